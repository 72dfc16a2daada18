"""The loop of a model with tools: what is asked, what is run, and where it ends. The model is a script, or one with random weights."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from maskwright import LLM, AsyncLLM, SamplingParams, ToolCall, ToolFailed, ToolRun, UsageError
from maskwright.chat import Reply
from maskwright.events import Done
from maskwright.outputs import GenerationOutput
from maskwright.tool_loop import (
    Replied,
    RoundStarted,
    ToolEnded,
    ToolLimits,
    ToolLoop,
    ToolResult,
    ToolsDone,
    ToolStarted,
    run_call,
    run_call_async,
    tool_loop,
)
from maskwright.tools import as_tool

SHORT = SamplingParams(temperature=0.0, max_tokens=40)


def double(n: int) -> int:
    """Twice a number."""
    if n > 100:
        raise ValueError("too large")
    return 2 * n


DEFINITION: Any = {"type": "function", "function": {"name": "ask", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}


def reply(*calls: ToolCall, tokens: int = 5) -> Reply:
    text = "\n".join(json.dumps({"name": call.name, "arguments": dict(call.arguments)}) for call in calls) or "done"
    output = GenerationOutput(prompt="", text=text, token_ids=(1,) * tokens, finish_reason="stop", closed_by_budget=False)
    return Reply(output=output, tool_calls=calls)


def call(**arguments: Any) -> ToolCall:
    return ToolCall(as_tool(double), arguments)


def played(replies: Sequence[Reply], *, tools: Sequence[Any] = (double,), choice: str = "auto", **limits: Any) -> tuple[ToolRun, list[Any]]:
    """A loop over replies that are known, and for each of them (how many tools it could call, the choice)."""
    loop = tool_loop("begin", tools, choice, ToolLimits(**limits), awaits=False)
    asked, script = [], iter(replies)
    while loop.goes_on:
        asked.append((len(loop.tools), loop.tool_choice))
        for call_id, each in loop.take(next(script)):
            loop.give(run_call(call_id, each, loop.limits.on_error))
    assert not list(script), "the loop ended early"
    return loop.run(), asked


def test_results_are_read_until_the_model_answers() -> None:
    run, asked = played([reply(call(n=1), call(n=2)), reply(call(n=3)), reply()], choice="required")
    assert [result.value for result in run.results] == [2, 4, 6]
    assert (run.ended_by, run.rounds, run.output_tokens, run.text) == ("answer", 3, 15, "done")
    assert asked == [(1, "required"), (1, "auto"), (1, "auto")]
    assert [message["role"] for message in run.messages] == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [message["content"] for message in run.messages if message["role"] == "tool"] == ["2", "4", "6"]
    ids = [message["tool_call_id"] for message in run.messages if message["role"] == "tool"]
    assert len(set(ids)) == 3 and all(len(each) == 9 and each.isalnum() for each in ids)  # as Mistral's templates want them


def test_errors_are_told_to_the_model() -> None:
    run, _ = played([reply(call(n=101), call(n="x"), call(m=1), call(n=4)), reply()])
    errors = [result.error or "" for result in run.results]
    assert errors[0] == "ValueError: too large" and "ValidationError" in errors[1] and errors[2] and not errors[3]
    assert json.loads(run.results[0].content) == {"error": "ValueError: too large"}
    with pytest.raises(ToolFailed, match='the tool "double" failed: ValueError: too large') as raised:
        played([reply(call(n=101))], on_error="raise")
    assert isinstance(raised.value.__cause__, ValueError)


def test_what_cannot_be_told_is_an_error_of_the_tool() -> None:
    circle: list[Any] = []
    circle.append(circle)

    def odd(kind: str) -> Any:
        """Odd things."""
        return {"set": {1}, "circle": circle, "text": "é", "none": None, "object": object, "model": Point(x=1)}[kind]

    def told(kind: str) -> ToolResult:
        return run_call("c", ToolCall(as_tool(odd), {"kind": kind}), "tell")

    assert told("circle").error is not None and told("missing").error == "KeyError: 'missing'"
    assert [told(kind).content for kind in ("text", "none", "set", "model")] == ["é", "null", "[1]", '{"x": 1}']
    assert "object" in told("object").content


class Point(BaseModel):
    x: int


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def fails(kind: str) -> Any:
    """Fails, in a way of its own."""
    if kind == "half":
        return "\ud800"
    raise {"stop": StopIteration(), "async": StopAsyncIteration("x"), "mute": Speechless(), "half name": OSError("\ud800")}[kind]


FAILURES = {"stop": "StopIteration: ", "async": "StopAsyncIteration: x", "mute": "Speechless: it cannot", "half": "UnicodeEncodeError: ", "half name": "OSError: \\ud800"}


@pytest.mark.parametrize("kind", FAILURES)
def test_however_a_tool_fails_both_loops_tell_it(kind: str) -> None:
    failing = ToolCall(as_tool(fails), {"kind": kind})

    async def waited(on_error: Any) -> ToolResult:
        return await asyncio.wait_for(run_call_async("c", failing, on_error), 20)

    for result in (run_call("c", failing, "tell"), asyncio.run(waited("tell"))):
        assert result.value is None and (result.error or "").startswith(FAILURES[kind])
        result.content.encode()
    with pytest.raises(ToolFailed, match="fails"):
        run_call("c", failing, "raise")
    with pytest.raises(ToolFailed, match="fails"):
        asyncio.run(waited("raise"))


class Later:
    """A function that is awaited, and does not look so."""

    __name__ = "later"

    async def __call__(self, n: int) -> int:
        await asyncio.sleep(0)
        return n if n < 9 else next(iter(()))


def test_what_is_awaited_is_a_result_under_asyncio_alone() -> None:
    tool = as_tool(Later())
    with pytest.raises(UsageError, match='"later" returned an awaitable coroutine'):
        run_call("c", ToolCall(tool, {"n": 3}), "tell")
    assert asyncio.run(run_call_async("c", ToolCall(tool, {"n": 3}), "tell")).value == 3
    assert (asyncio.run(run_call_async("c", ToolCall(tool, {"n": 9}), "tell")).error or "").startswith("RuntimeError")


def test_after_the_last_round_the_model_has_to_answer() -> None:
    run, asked = played([reply(call(n=1)), reply(call(n=2)), reply()], max_rounds=2)
    assert asked == [(1, "auto"), (1, "auto"), (0, "none")] and run.ended_by == "rounds" and len(run.results) == 2


def test_calls_beyond_the_limit_are_not_run() -> None:
    run, asked = played([reply(call(n=1)), reply(call(n=2), call(n=3), call(n=4)), reply()], max_calls=2)
    assert [result.value for result in run.results] == [2, None, None, 4] or [r.error is None for r in run.results].count(True) == 2
    assert sum("no more than 2 calls" in (result.error or "") for result in run.results) == 2
    assert asked[-1] == (0, "none") and run.ended_by == "calls"


def test_tokens_end_it_where_none_are_left() -> None:
    run, _ = played([reply(call(n=1), tokens=6), reply(call(n=2), tokens=4)], max_tokens=10)
    assert run.ended_by == "tokens" and run.output_tokens == 10 and [result.value for result in run.results] == [2, 4]
    loop = ToolLoop([], (), ToolLimits(max_tokens=10), "auto")
    loop.take(reply(call(n=1), tokens=6))
    assert loop.sampling(SamplingParams(max_tokens=7)).max_tokens == 4 and loop.is_short_of_tokens


def test_calls_without_a_function_are_the_callers() -> None:
    asks = ToolCall(as_tool(DEFINITION), {"q": "?"})
    run, _ = played([reply(call(n=1), asks)], tools=[double, DEFINITION])
    ((call_id, pending),) = run.pending
    assert run.ended_by == "pending" and pending is asks and [result.value for result in run.results] == [2]
    answered = [*run.messages, ToolResult(call_id, pending, "yes").message()]
    assert answered[-1]["content"] == "yes" and call_id not in {result.call_id for result in run.results}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 0}, "max_rounds= is an integer"),
        ({"max_calls": 1.5}, "max_calls= is an integer"),
        ({"max_tokens": True}, "max_tokens= is an integer"),
        ({"on_error": "ignore"}, '"tell" or "raise"'),
        ({"tools": [double, double]}, "two tools"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_runs(llm: LLM, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        llm.stream_tools("x", **{"tools": [double], **options})


def test_a_model_is_asked_again_with_what_its_call_gave(llm: LLM) -> None:
    events = list(llm.stream_tools("x", tools=[double], tool_choice="required", sampling=SHORT, max_rounds=1))
    done = events[-1]
    assert isinstance(done, ToolsDone) and done.run.rounds == 2 and done.run.ended_by == "rounds"
    kinds = [type(event) for event in events if isinstance(event, RoundStarted | Done | Replied | ToolStarted | ToolEnded | ToolsDone)]
    assert kinds == [RoundStarted, Done, Replied, ToolStarted, ToolEnded, RoundStarted, Done, Replied, ToolsDone]
    (result,) = done.run.results
    assert result.error is not None or result.value == 2 * result.call.arguments["n"]
    last = llm.chat(done.run.messages[:-1], sampling=SHORT)
    assert last.text == done.run.reply.text
    assert llm.run_tools("x", tools=[double], tool_choice="required", sampling=SHORT, max_rounds=1).messages == done.run.messages


def test_a_budget_too_small_for_another_reply_ends_it(llm: LLM) -> None:
    class Long(BaseModel):
        text: str

    long = {"type": "object", "properties": {"a": {"const": "x" * 60}}, "required": ["a"], "additionalProperties": False}
    run = llm.run_tools("x", tools=[double], tool_choice="required", sampling=SHORT, max_tokens=60, max_rounds=1, json_schema=long)
    assert run.ended_by == "tokens" and run.rounds == 1 and run.reply.tool_calls


def test_a_loop_under_asyncio_awaits_what_tools_return(llm: LLM) -> None:
    met = threading.Barrier(2, timeout=20)
    waited = asyncio.Event()

    async def later(n: int) -> int:
        """Later."""
        await asyncio.to_thread(met.wait)
        waited.set()
        return n

    with pytest.raises(UsageError, match="coroutine function"):
        llm.run_tools("x", tools=[later])

    async def main() -> list[Any]:
        async_llm = AsyncLLM(llm)
        events = async_llm.stream_tools("x", tools=[later], tool_choice="required", sampling=SHORT, max_rounds=1)
        told = []
        async for event in events:
            told.append(event)
            if isinstance(event, ToolStarted):
                await asyncio.to_thread(met.wait)  # it runs while its start is being told of
        return told

    told = asyncio.run(main())
    assert isinstance(told[-1], ToolsDone) and waited.is_set() and told[-1].run.results[0].value == told[-1].run.results[0].call.arguments["n"]


def test_both_loops_do_the_same(llm: LLM) -> None:
    options: Any = {"tools": [double], "tool_choice": "required", "sampling": SHORT, "max_rounds": 2}

    async def main() -> ToolRun:
        return await AsyncLLM(llm).run_tools("x", **options)

    one, other = llm.run_tools("x", **options), asyncio.run(main())
    assert one.messages == other.messages and one.ended_by == other.ended_by and one.output_tokens == other.output_tokens

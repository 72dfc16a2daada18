"""Every call of `LLM` beside the same one of `AsyncLLM`: the same result, or the same error."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field

from maskwright import LLM, AsyncLLM, SamplingParams, UsageError
from maskwright.constraints import Regex


class Switch(BaseModel):
    on: bool
    level: Annotated[int, Field(ge=0, le=9)]


def light(on: bool) -> str:
    """Switch the light."""
    return f"it is {'on' if on else 'off'}"


def broken(on: bool) -> str:
    """Never works."""
    raise ValueError("no current")


class Call(NamedTuple):
    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.options)})"


def call(name: str, *args: Any, **options: Any) -> Call:
    return Call(name, args, options)


SEEDED, SHORT = SamplingParams(temperature=1.0, seed=4, max_tokens=24), SamplingParams(temperature=0, max_tokens=5)
GREEDY = SamplingParams(temperature=0, max_tokens=60)
EACH = {"sampling": SEEDED, "regex": "[a-f]{3,9}"}
DEFINITION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "null"}}}}}
RIGHT = [
    call("generate", "Ada"),
    call("generate", ["Ada", "Grace"], sampling=[SEEDED, SHORT], choice=[["yes", "no"], ["a", "b"]], priority=3, user="u"),
    call("generate", "Ada", schema=Switch, sampling=SamplingParams(n=2, temperature=1.0, seed=1)),
    call("generate", [], schema=Switch),
    call("generate", "Ada", constraint=Regex("[ab]{2}"), sampling=GREEDY),
    call("beam_search", ["Ada", "Bob"], width=3, n=2, length_penalty=0.5, early_stopping="never", regex="[a-d]{3}"),
    call("particles", "Ada", count=3, resample_below=0.9, **EACH),
    call("stream", "Ada", schema=Switch),
    call("stream", "Ada", **EACH),
    call("stream_text", "Ada", sampling=SHORT),
    call("stream_text", "Ada", json_schema={"type": "array", "items": {"type": "null"}, "maxItems": 2}),
    call("stream_tokens", "Ada", schema=Switch),
    call("open", "Ada", schema=Switch),
    call("open", [{"role": "user", "content": "Ada"}], **EACH),
    call("resume", "ended.session", schema=Switch),
    call("resume", "begun.session", schema=Switch, cache="recompute"),
    call("chat", "Ada", **EACH),
    call("chat", [{"role": "system", "content": "short"}, {"role": "user", "content": "Ada"}], tools=[light], tool_choice="required"),
    call("chat", "Ada", tools=[light, DEFINITION], tool_choice="f", tool_style="hermes"),
    call("stream_chat", "Ada", tools=[light], tool_choice="light"),
    call("stream_chat", "Ada", schema=Switch, tools=[light], tool_style=None),
    call("run_tools", "Ada", tools=[light], tool_choice="required", max_rounds=2, sampling=GREEDY),
    call("run_tools", "Ada", tools=[broken], tool_choice="broken", max_calls=1, sampling=GREEDY),
    call("run_tools", "Ada", tools=[DEFINITION], tool_choice="required"),
    call("stream_tools", "Ada", tools=[light], tool_choice="light", max_tokens=60),
]
WRONG = [
    call("generate", "Ada", schema=Switch, regex="a"),
    call("generate", 3),
    call("generate", ["Ada"], regex=["a", "b"]),
    call("generate", "Ada", sampling="hot"),
    call("generate", "x" * 600),
    call("generate", "Ada", schema=Switch, sampling=SamplingParams(max_tokens=2)),
    call("generate", "Ada", regex="(a)\\1"),
    call("generate", "Ada", adapter="none"),
    call("generate", "Ada", colour=3),
    call("beam_search", "Ada", width=0),
    call("beam_search", "Ada", n=9),
    call("beam_search", "Ada", sampling=SamplingParams(top_k=3)),
    call("particles", "Ada", count=0),
    call("particles", "Ada", resample_below=2),
    call("stream", ["Ada", "Bob"]),
    call("stream_text", "Ada", grammar="root ::= x"),
    call("stream_tokens", None),
    call("open", 3),
    call("open", [{"role": 3, "content": "x"}]),
    call("resume", "no.session"),
    call("resume", "ended.session", regex="a"),
    call("resume", "ended.session", schema=Switch, cache="mine"),
    call("chat", []),
    call("chat", "Ada", tools=[3]),
    call("chat", "Ada", tools=[light], tool_choice="dark"),
    call("chat", "Ada", tool_style="shorthand"),
    call("stream_chat", [{"content": "x"}]),
    call("run_tools", "Ada", tools=None),
    call("run_tools", "Ada", tools=[light], max_rounds=-1),
    call("run_tools", "Ada", tools=[broken], tool_choice="broken", on_error="raise"),
    call("stream_tools", "Ada", tools=[light], on_error="cry"),
    call("load_adapter", "a", "no folder"),
    call("unload_adapter", "a"),
    call("unload_adapter", "a", wait=True),
    call("scorer", 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(llm: LLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions: one that has ended, and one that has begun."""
    folder = tmp_path_factory.mktemp("sessions")
    session = llm.open("Ada", schema=Switch)
    next(session)
    session.save(folder / "begun.session")
    session.result()
    session.save(folder / "ended.session")
    return folder


@pytest.mark.parametrize("asked", RIGHT, ids=repr)
def test_the_same_call_has_the_same_result(llm: LLM, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: Call) -> None:
    monkeypatch.chdir(folder)
    assert awaited(llm, asked) == told(llm, asked)


@pytest.mark.parametrize("asked", WRONG, ids=repr)
def test_what_is_wrong_with_a_call_is_told_alike(llm: LLM, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: Call) -> None:
    monkeypatch.chdir(folder)

    def error(ask: Any) -> tuple[type[Exception], str]:
        with pytest.raises(Exception) as caught:
            ask(llm, asked)
        return caught.type, str(caught.value).replace("AsyncLLM", "LLM")

    assert error(awaited) == error(told)
    assert not llm.driver.is_busy


def test_every_call_is_compared() -> None:
    calls = {name for name, member in vars(LLM).items() if not name.startswith("_") and inspect.isfunction(member)}
    assert calls - {each.name for each in WRONG} == {"close", "profile"}  # these take nothing that could be wrong, and give nothing
    assert {each.name for each in WRONG} - {each.name for each in RIGHT} == {"load_adapter", "unload_adapter", "scorer"}


def test_options_of_a_model_that_is_loaded_are_refused(llm: LLM) -> None:
    with pytest.raises(UsageError, match="dtype="):
        AsyncLLM(llm, dtype="float32")


def told(llm: LLM, asked: Call) -> object:
    result = getattr(llm, asked.name)(*asked.args, **asked.options)
    return list(result) if isinstance(result, Iterator) else result


def awaited(llm: LLM, asked: Call) -> object:
    async def ask() -> object:
        result = getattr(AsyncLLM(llm), asked.name)(*asked.args, **asked.options)
        result = await result if inspect.isawaitable(result) else result
        return [each async for each in result] if isinstance(result, AsyncIterator) else result

    return asyncio.run(ask())

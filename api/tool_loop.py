"""The loop of a model with tools: it calls, the calls are run, their results are read, until it answers.

`ToolLoop` decides and keeps the conversation; `LLM.stream_tools` and `AsyncLLM.stream_tools` ask the model and run the functions.

    RoundStarted(0)  events of the reply ...  Done(output)  Replied(0, reply)
    ToolStarted("call00000", call)  ToolEnded(result)  ...
    RoundStarted(1)  ...                      Done(output)  Replied(1, reply)
    ToolsDone(run)

**Errors.** What a function raises, and arguments that its annotations reject, are the result of the call: the model reads
`{"error": "ValueError: no such city"}` and may try again. So are values that no text tells. `on_error="raise"` ends the loop with
`ToolFailed` instead. What is no `Exception`, such as an interrupt, always ends it.

**Limits.** In `max_rounds` replies the model may call, `max_calls` times in all; then it is asked once more, without tools, so
that it has to answer. A call beyond the limit is not run, and its result says so. With `max_tokens`, of all replies together, the
loop ends where no tokens are left. A tool without a function is the caller's to run: the loop ends with its calls `pending`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, TypeAlias, get_args

from pydantic_core import to_jsonable_python

from .chat import Reply
from .conversation import Message, read_messages
from .errors import ToolFailed, UsageError
from .events import Event
from .function_parameters import behind_partials
from .sampling import SamplingParams
from .tools import Tool, ToolCall, ToolLike, unique_tools

OnError: TypeAlias = Literal["tell", "raise"]
EndedBy: TypeAlias = Literal["answer", "rounds", "calls", "tokens", "pending"]
MAX_ROUNDS, MAX_CALLS = 8, 32


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call: the value that the function returned, or why there is none."""

    call_id: str  # names the call in the conversation
    call: ToolCall
    value: Any = None
    error: str | None = None  # "ValueError: no such city"

    @property
    def content(self) -> str:
        """What the model reads: a text as it is, anything else as JSON."""
        if self.error is not None:
            return json.dumps({"error": self.error}, ensure_ascii=False)
        return self.value if isinstance(self.value, str) else _as_json(self.value)

    def message(self) -> dict[str, Any]:
        """The result as a message of the conversation."""
        return {"role": "tool", "tool_call_id": self.call_id, "name": self.call.name, "content": self.content}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """A loop that has ended. `messages` is the whole conversation, to be gone on with."""

    reply: Reply  # the last one
    messages: tuple[Message, ...]
    results: tuple[ToolResult, ...]  # of all calls, in their order
    rounds: int  # replies
    output_tokens: int  # of all replies
    ended_by: EndedBy  # "rounds" and "calls": that limit was reached, and the answer had to be given without tools
    pending: tuple[tuple[str, ToolCall], ...] = ()  # calls of tools without a function, with their ids: the caller is to run them

    @property
    def text(self) -> str:
        """The answer, without calls and reasoning."""
        return self.reply.content


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """The model is asked for a reply."""

    round: int


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply is complete, with the calls that it asks for."""

    round: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is being run."""

    call_id: str  # names the call in the conversation
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call has its result."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class ToolsDone:
    """The loop has ended."""

    run: ToolRun


ToolEvent: TypeAlias = Event | RoundStarted | Replied | ToolStarted | ToolEnded | ToolsDone


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """How long a loop may go on, and what becomes of errors. Raises UsageError for values that mean nothing."""

    max_rounds: int = MAX_ROUNDS
    max_calls: int = MAX_CALLS
    max_tokens: int | None = None
    on_error: OnError = "tell"

    def __post_init__(self) -> None:
        for name in ("max_rounds", "max_calls", "max_tokens"):
            value = getattr(self, name)
            if (value is not None or name != "max_tokens") and (type(value) is not int or value < 1):
                raise UsageError(f"{name}= is an integer of at least 1, not {value!r}")
        if self.on_error not in get_args(OnError):
            raise UsageError(f'on_error= is "tell" or "raise", not {self.on_error!r}')


@dataclass(slots=True)
class ToolLoop:
    """One loop. While `goes_on`: ask for a reply to `messages` with `tools` and `tool_choice`, `take` it, run the calls that this
    gives, and `give` their results in the same order."""

    messages: list[Message]
    offered: tuple[Tool, ...]
    limits: ToolLimits
    tool_choice: str | Mapping[str, Any]
    round: int = 0
    goes_on: bool = True
    _num_calls: int = 0  # that were asked for
    _output_tokens: int = 0
    _reply: Reply | None = None
    _ended_by: EndedBy = "answer"
    _results: list[ToolResult] = field(default_factory=list)
    _waiting: list[tuple[str, ToolCall]] = field(default_factory=list)  # calls of the last reply, without a result yet
    _ids: count[int] = field(default_factory=count)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the next reply may call."""
        return () if self._is_last else self.offered

    def sampling(self, asked: SamplingParams) -> SamplingParams:
        """The sampling of the next reply: what is left of the tokens bounds it."""
        if self.limits.max_tokens is None:
            return asked
        return replace(asked, max_tokens=min(asked.max_tokens, self.limits.max_tokens - self._output_tokens))

    def take(self, reply: Reply) -> list[tuple[str, ToolCall]]:
        """Take the reply. Returns the calls that are to be run, with their ids; the others have got a result."""
        named = [(f"call{next(self._ids):05}", call) for call in reply.tool_calls]
        self._reply, self.round = reply, self.round + 1
        self._output_tokens += len(reply.output.token_ids)
        self.messages.append(_with_ids(reply.message(), [call_id for call_id, _ in named]))
        within = named[: max(self.limits.max_calls - self._num_calls, 0)]
        self._num_calls += len(named)
        runnable = [(call_id, call) for call_id, call in within if call.tool.function is not None]
        self._waiting = [each for each in within if each not in runnable]
        for call_id, call in named[len(within) :]:
            self.give(ToolResult(call_id, call, error=f"not run: no more than {self.limits.max_calls} calls are made"))
        self._judge(bool(named))
        return runnable

    def give(self, result: ToolResult) -> None:
        """Take the result of a call."""
        self._results.append(result)
        self.messages.append(result.message())

    def end_for_lack_of_tokens(self) -> None:
        """The tokens that are left suffice for no reply."""
        self.goes_on, self._ended_by = False, "tokens"

    def run(self) -> ToolRun:
        """What came of it."""
        assert self._reply is not None and not self.goes_on
        return ToolRun(
            reply=self._reply, messages=tuple(self.messages), results=tuple(self._results), rounds=self.round,
            output_tokens=self._output_tokens, ended_by=self._ended_by, pending=tuple(self._waiting),
        )  # fmt: skip

    @property
    def is_short_of_tokens(self) -> bool:
        """Replies have used up some of the tokens that there are in all, so that the next one may find too few."""
        return self._reply is not None and self.limits.max_tokens is not None

    @property
    def _is_last(self) -> bool:
        return self._ended_by in ("rounds", "calls")

    def _judge(self, has_calls: bool) -> None:
        """Decide how it goes on behind a reply."""
        limits = self.limits
        if not has_calls or self._is_last:
            self.goes_on = False
            return
        self.tool_choice = "auto"  # what is required is so once
        if self._waiting:
            self.goes_on, self._ended_by = False, "pending"
        elif limits.max_tokens is not None and self._output_tokens >= limits.max_tokens:
            self.end_for_lack_of_tokens()
        elif self._num_calls >= limits.max_calls:
            self._ended_by, self.tool_choice = "calls", "none"
        elif self.round >= limits.max_rounds:
            self._ended_by, self.tool_choice = "rounds", "none"


def tool_loop(
    messages: str | Sequence[Message],
    tools: Sequence[ToolLike],
    tool_choice: str | Mapping[str, Any],
    limits: ToolLimits,
    *,
    awaits: bool,
) -> ToolLoop:
    """A loop that has not begun. awaits: whether functions may be coroutines. Raises UsageError."""
    checked = unique_tools(tools)
    for tool in checked:
        function = tool.function and behind_partials(tool.function)
        if not awaits and inspect.iscoroutinefunction(function):
            raise UsageError(f'tool "{tool.name}" is a coroutine function, which AsyncLLM.run_tools awaits; LLM.run_tools does not')
    return ToolLoop(list(read_messages(messages)), checked, limits, tool_choice)


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a function raised, as a value: a future cannot carry every exception (StopIteration), and who waits for it would wait
    for ever."""

    error: Exception


def run_call(call_id: str, call: ToolCall, on_error: OnError) -> ToolResult:
    """Run a call; errors are told or raised as ToolFailed. Raises UsageError where the function gives what is to be awaited."""
    value = _attempted(call)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        kind = type(value).__name__
        raise UsageError(f'tool "{call.name}" returned an awaitable {kind}, which AsyncLLM.run_tools awaits, not LLM.run_tools')
    return _result(call_id, call, value, on_error)


async def run_call_async(call_id: str, call: ToolCall, on_error: OnError) -> ToolResult:
    """Run a call in a thread, and await what it returns if that is awaitable; errors are told or raised as ToolFailed."""
    value = await asyncio.to_thread(_attempted, call)
    if inspect.isawaitable(value):
        try:
            value = await value
        except Exception as error:
            value = _Raised(error)
    return _result(call_id, call, value, on_error)


def _attempted(call: ToolCall) -> Any:
    try:
        return call.run()
    except Exception as error:
        return _Raised(error)


def _result(call_id: str, call: ToolCall, value: Any, on_error: OnError) -> ToolResult:
    """A value that no text tells is an error of the tool."""
    if not isinstance(value, _Raised):
        result = ToolResult(call_id, call, value)
        try:
            result.content.encode()
            return result
        except Exception as error:
            value = _Raised(error)
    told = _told(value.error)
    if on_error == "raise":
        raise ToolFailed(call.name, told) from value.error
    return ToolResult(call_id, call, error=told)


def _told(error: Exception) -> str:
    """An exception in words that any tokenizer reads, whatever its own are."""
    try:
        words = str(error)
    except Exception:
        words = "it cannot be put into words"
    return f"{type(error).__name__}: {words}".encode(errors="backslashreplace").decode()


def _as_json(value: Any) -> str:
    return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)


def _with_ids(message: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """A message with an id for each of its calls, by which results name them."""
    if "tool_calls" not in message:
        return message
    return {**message, "tool_calls": [{"id": call_id, **call} for call_id, call in zip(ids, message["tool_calls"], strict=True)]}

"""The events that a parser tells while a reply is written.

    I will look.<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>       gives

    TextDelta("I will look.")
    ToolCallStart(0, "weather")  ArgumentsDelta(0, '{"city": "Oslo"}')  ToolCallEnd(0, "weather", '{"city": "Oslo"}')

However the reply is cut into chunks, starts and ends come in the same order and the deltas between them join to the
same text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStart:
    """Reasoning begins."""


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """Reasoning is over."""


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool is called; its name is certain. `index` counts the calls of a reply."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """JSON text of the arguments, whatever the style of the model."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The call is complete. `arguments` is the JSON text of all arguments."""

    index: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class TagStart:
    """A tag begins; `begin` is the string it begins with."""

    index: int
    begin: str


@dataclass(frozen=True, slots=True)
class TagDelta:
    """Content of a tag."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class TagEnd:
    """The tag is complete."""

    index: int
    begin: str
    content: str


Event: TypeAlias = (
    TextDelta
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ArgumentsDelta
    | ToolCallEnd
    | TagStart
    | TagDelta
    | TagEnd
)


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One call of a finished reply."""

    name: str
    arguments: str  # JSON text


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply taken apart."""

    text: str
    reasoning: str
    calls: tuple[ParsedCall, ...]
    tags: tuple[tuple[str, str], ...] = ()  # (begin, content)
    is_complete: bool = True  # whether it satisfies its constraint as it is

"""The pieces that a reply is told in, whatever the endpoint makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """Text of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A tool is called."""

    index: int
    call_id: str
    name: str
    is_custom: bool = False  # it takes a text and no JSON


@dataclass(frozen=True, slots=True)
class CallDelta:
    """JSON text of a call's arguments; of a custom tool, its input."""

    index: int
    text: str


ReplyDelta: TypeAlias = ContentDelta | ThoughtDelta | CallStart | CallDelta

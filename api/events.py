"""A stream as typed events: which field has opened, what was added to it, its value when it is complete, and the end.

    {"name":"Ada","tags":["x"]}   gives

    FieldOpened((), "object")
    FieldOpened(("name",), "string")  Delta(("name",), "Ada")  FieldClosed(("name",), "Ada")
    FieldOpened(("tags",), "array")
    FieldOpened(("tags", 0), "string")  Delta(("tags", 0), "x")  FieldClosed(("tags", 0), "x")
    FieldClosed(("tags",), ["x"])
    FieldClosed((), {"name": "Ada", "tags": ["x"]})
    Done(output)

However the text is cut into tokens, the fields open and close in the same order and the deltas of a path join to the
same text (see `json_events.py`). The delta of a string is decoded text, the delta of a number or a literal is JSON
text; objects and arrays have none. Tool calls, reasoning and structural tags have events of their own
(`constraints/front_ends/tags/events.py`). Other output that is not JSON is one stream of deltas with path ().
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .constraints.front_ends.tags.events import Event as ReplyEvent
from .field_details import FieldDetails, Path

if TYPE_CHECKING:
    from .outputs import GenerationOutput

FieldKind: TypeAlias = Literal["object", "array", "string", "number", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class FieldOpened:
    """The first character of a value has arrived: of which `kind` it is, and at which `path` in the output."""

    path: Path
    kind: FieldKind


@dataclass(frozen=True, slots=True)
class Delta:
    """Text added to the string, number or literal at `path`."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class FieldClosed:
    """The value at `path` is complete."""

    path: Path
    value: Any
    details: FieldDetails | None = None  # with SamplingParams(field_details=True): what the constraint did to it


@dataclass(frozen=True, slots=True)
class Done:
    """Generation has ended, with `output`."""

    output: GenerationOutput


Event: TypeAlias = FieldOpened | Delta | FieldClosed | ReplyEvent | Done

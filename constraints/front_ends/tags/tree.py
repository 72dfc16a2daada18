"""The parts of structural tags. All are immutable values; any source (`JsonSchema`, `Regex`, ...) is a part too.

>>> weather = Tag("<weather>", JsonSchema(Weather), "</weather>")
>>> StructuralTag(Triggered(["<weather>"], [weather]))       # free text with any number of such tags

Strings that mark something (the beginning and end of a tag, triggers, separators) may hold names of special tokens of
the vocabulary: these are read as the tokens, everything else as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import ConstraintError
from ...grammar.segments import Segment
from ...grammar.source import Source


def _texts(value: Any, name: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value)
    for text in texts:
        if not isinstance(text, str):
            raise ConstraintError(f"{name} are strings, not {type(text).__name__}")
    return texts


def _tokens(value: Iterable[str | int] | None) -> tuple[str | int, ...] | None:
    return None if value is None else tuple(value)


@dataclass(frozen=True, slots=True)
class Text:
    """Any text that holds none of some strings. As the content of a tag it goes to the first end of the tag."""

    excludes: Iterable[str] = ()  # kept as a tuple
    max_chars: int | None = None
    max_tokens: int | None = None  # those with a byte in it
    not_leading: str = ""  # characters that it does not begin with
    without_tokens: Iterable[str | int] | None = None  # special tokens may stand in it, but not these; None: none may

    def __post_init__(self) -> None:
        object.__setattr__(self, "excludes", _texts(self.excludes, "excluded strings"))
        object.__setattr__(self, "without_tokens", _tokens(self.without_tokens))


@dataclass(frozen=True, slots=True)
class Const:
    """Exactly this text, special tokens included."""

    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """One special token of the vocabulary, by name or id."""

    token: str | int


@dataclass(frozen=True, slots=True)
class OtherToken:
    """One token of the vocabulary, text or special, but none of these, by name or id. The text of a token has to be
    whole characters."""

    without: Iterable[str | int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "without", tuple(self.without))


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: Iterable[Part]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several parts."""

    options: Iterable[Part]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `low` to `high` times; high None = no bound."""

    content: Part
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Some parts in this order with a separator between them. Each says whether it must be there."""

    parts: Iterable[tuple[Part, bool]]
    separator: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(tuple(part) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Tag:
    """`begin`, content, and one of the ends."""

    begin: str
    content: Part
    end: str | Iterable[str]  # kept as a tuple
    segment: Segment | None = field(default=None, kw_only=True)  # what the content is to a parser
    closing: Segment | None = field(default=None, kw_only=True)  # what the end is

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", _texts(self.end, "ends"))
        if not self.end:
            raise ConstraintError("a tag has an end", instead='end="" if nothing marks it')


@dataclass(frozen=True, slots=True)
class Triggered:
    """Text with tags in it. Where a trigger stands, a tag follows that begins with it.

    at_least_one: a tag comes first. stop_after_first: nothing follows the first tag. separator: may stand between two tags, and is
    not text then.
    """

    triggers: Iterable[str]
    tags: Iterable[Tag]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: Iterable[str] = ()
    separator: str = ""
    without_tokens: Iterable[str | int] | None = None  # as of `Text`

    def __post_init__(self) -> None:
        object.__setattr__(self, "without_tokens", _tokens(self.without_tokens))
        object.__setattr__(self, "triggers", _texts(self.triggers, "triggers"))
        object.__setattr__(self, "excludes", _texts(self.excludes, "excluded strings"))
        object.__setattr__(self, "tags", tuple(self.tags))


@dataclass(frozen=True, slots=True)
class Separated:
    """Tags with a separator between them and no other text."""

    tags: Iterable[Part]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))


@dataclass(frozen=True, slots=True)
class Labelled:
    """A part, and what a parser calls its bytes."""

    content: Part
    segment: Segment


@dataclass(frozen=True, slots=True)
class Located:
    """A part, and where it comes from: errors about it begin with this path."""

    content: Part
    path: str


Part = (
    Text
    | Const
    | Token
    | OtherToken
    | Sequence
    | AnyOf
    | Repeat
    | Joined
    | Tag
    | Triggered
    | Separated
    | Labelled
    | Located
    | Source
)

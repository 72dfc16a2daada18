"""A grammar as it is written: rules by name, expressions with their places; the same form for every notation.

The form that constraints are made of (`expression.py`) joins literals and puts rules in place of their names; what is said to
the author of a grammar needs both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..base.utf8 import Ranges
from ..front_ends.regex.parser import line_and_column
from ..grammar.source import Source

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Exactly this text."""

    text: str
    at: int  # index into the grammar's text, as everywhere below


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One character of a set; `spelling`: as written."""

    ranges: Ranges
    spelling: str
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Texts that are not looked into, such as those of a regular expression or an inline schema. source: None for a
    special token.

    uses: the terminals that are named in it.
    """

    source: Source | None
    spelling: str
    at: int
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """The texts of a rule."""

    name: str
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Parts one after the other; none: the empty text."""

    parts: tuple[Part, ...]
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of several; none: nothing at all."""

    options: tuple[Part, ...]
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """Copies of a part; high None: any number."""

    body: Part
    low: int
    high: int | None
    at: int


Part = Text | Chars | Pattern | Call | Series | Choice | Repeat


@dataclass(frozen=True, slots=True, eq=False)
class OutlineRule:
    """One rule. terminal: what it means as one piece, for notations that tell terminals from rules."""

    name: str
    body: Part
    at: int
    terminal: Pattern | None = None


@dataclass(frozen=True)
class Outline:
    """The rules of one grammar.

    skip: what may stand behind every terminal; skipped: the terminals it is made of; unread: what is not searched for ambiguity.
    """

    text: str
    start: str
    rules: Mapping[str, OutlineRule]
    skip: Pattern | None = None
    skipped: Sequence[str] = ()
    unread: Sequence[str] = ()

    def line(self, at: int) -> int:
        return line_and_column(self.text, at)[0]


def parts_below(part: Part) -> tuple[Part, ...]:
    """The parts that a part is made of."""
    if isinstance(part, Series):
        return part.parts
    if isinstance(part, Choice):
        return part.options
    return (part.body,) if isinstance(part, Repeat) else ()


def walk(body: Part) -> Iterator[Part]:
    """A part and all below it, parents first."""
    work = [body]
    while work:
        part = work.pop()
        yield part
        work.extend(reversed(parts_below(part)))


def fold(body: Part, combine: Callable[[Part, list[Result]], Result]) -> Result:
    """The results of `combine`, which is given each part and the results of its parts, children first."""
    made: dict[int, Result] = {}
    for part in reversed(list(walk(body))):
        made[id(part)] = combine(part, [made[id(below)] for below in parts_below(part)])
    return made[id(body)]


def calls(rule: OutlineRule) -> list[str]:
    """The rules that a rule calls, each once; a terminal calls terminals."""
    found: dict[str, None] = {}
    for part in walk(rule.body):
        if isinstance(part, Call):
            found[part.name] = None
        elif isinstance(part, Pattern):
            found.update(dict.fromkeys(part.uses))
    return list(found)


def spelled(part: Part) -> str:
    """A part in GBNF's spelling, for people."""
    return fold(part, _spelled)


def _spelled(part: Part, below: list[str]) -> str:
    if isinstance(part, Text):
        return quoted(part.text)
    if isinstance(part, Chars | Pattern):
        return part.spelling
    if isinstance(part, Call):
        return part.name
    if isinstance(part, Series):
        return " ".join(_wrapped(text, isinstance(one, Choice)) for one, text in zip(part.parts, below, strict=True)) or '""'
    if isinstance(part, Choice):
        return " | ".join(below) or "(nothing)"
    is_atom = not isinstance(part.body, Choice | Series | Repeat) or (isinstance(part.body, Series) and len(part.body.parts) == 1)
    return _wrapped(below[0], not is_atom) + count_mark(part.low, part.high)


def _wrapped(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def count_mark(low: int, high: int | None) -> str:
    """`*`, `+`, `?`, `{2}`, `{2,}` or `{2,4}`."""
    common = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (low, high) in common:
        return common[low, high]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def quoted(text: str) -> str:
    """A text in double quotes with what is not seen escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(char) or (char if char.isprintable() else _escape(char)) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"

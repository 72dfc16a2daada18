"""Regular expressions between slashes in lark's notation: Python's, and what llguidance's engine (Rust's regex) adds to them.

Added: `(?<name>...)`, `\\u{...}`, `\\x{...}`, `\\p{...}`, `\\pL`, `\\z`, `\\cA`. A pattern is about the text of its terminal
alone, so `^` and `$` are its ends. What the two engines read differently (operations on sets, POSIX classes) is refused by name.
"""

from __future__ import annotations

from ...base.errors import ConstraintError
from ...base.utf8 import MAX_CODE_POINT, Ranges, invert
from ...grammar.source import Limits
from .charsets import property_class
from .parser import Group
from .python_dialect import PythonParser
from .tree import Anchor, CharSet, Place, Tree

FLAGS = frozenset("imsux")
_SET_OPERATORS = ("&&", "--", "~~", "||", "[:")


def parse_lark_regex(pattern: str, flags: str, limits: Limits) -> Tree:
    """The meaning of a pattern under flags that stood behind it."""
    return LarkRegexParser(pattern, limits, frozenset(flags) - {"u"}).tree()


class LarkRegexParser(PythonParser):
    """The dialect of lark's terminals."""

    def __init__(self, pattern: str, limits: Limits, flags: frozenset[str] = frozenset()) -> None:
        super().__init__(pattern, limits)
        self._initial_flags = flags

    def _dialect_extension(self, group: Group) -> bool:
        if self._takes("<"):
            self._skip_past(">", group.opened)
            return True
        return super()._dialect_extension(group)

    def _special(self, char: str) -> Tree | None:
        if char == "$" and "m" not in self._groups[-1].flags:
            return Anchor(Place.END)
        return super()._special(char)

    def _escape(self, start: int, inside: bool) -> Ranges | Tree:
        letter = self.data[self.index : self.index + 1]
        if letter and letter in "pP":
            self._next()
            return self._property(letter, start)
        if letter and letter in "uUx" and self.data[self.index + 1 : self.index + 2] == "{":
            self._next()
            return self._one(self._in_braces(start), start)
        if letter == "z" and not inside:
            self._next()
            return Anchor(Place.END)
        if letter == "c" and self.data[self.index + 1 : self.index + 2].isalpha():
            self._next()
            return self._one(ord(self._next()) % 32, start)
        return super()._escape(start, inside)

    def _set_of_members(self, start: int) -> CharSet:
        end = start + 1
        while end < len(self.data) and (self.data[end] != "]" or end in (start + 1, start + 2)):
            operator = next((one for one in _SET_OPERATORS if self.data.startswith(one, end)), None)
            if operator:
                self._refuse(
                    operator, "engines differ about it inside of a set", "the characters themselves, escaped", end
                )
            end += 2 if self.data[end] == "\\" else 1
        return super()._set_of_members(start)

    def _property(self, letter: str, start: int) -> Ranges:
        name = self._next() if self.index < len(self.data) else ""
        if name == "{":
            begin = self.index
            self._skip_past("}", start)
            name = self.data[begin : self.index - 1]
        negative = name.startswith("^")
        try:
            ranges = property_class(name.removeprefix("^"))
        except ConstraintError as error:
            self._fail(error.reason, start)
        return ranges if (letter == "p") != negative else invert(ranges)

    def _in_braces(self, start: int) -> int:
        self._takes("{")
        end = self.data.find("}", self.index)
        code = self._hexadecimal(end - self.index) if self.index < end <= self.index + 8 else None
        if code is None or code > MAX_CODE_POINT:
            self._fail("the hexadecimal number of a code point and } are expected here", start)
        self._takes("}")
        return code

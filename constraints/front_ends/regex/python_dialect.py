"""Regular expressions as Python's `re` reads them in `str` patterns (library reference, "Regular Expression Syntax")."""

from __future__ import annotations

import re
import unicodedata
import warnings

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL, Ranges
from ...grammar.source import Limits
from .charsets import NOT_NEWLINE, python_class
from .parser import Group, PatternParser, line_and_column, syntax_error
from .tree import Anchor, CharSet, Place, Tree

_CONTROLS = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_NOT_WORD_EDGE = (
    Place.NOT_WORD_EDGE if re.search(r"\B", "") else Place.NOT_WORD_EDGE_OF_TEXT
)  # the former since Python 3.14
_PLACES = {"A": Place.START, "Z": Place.END, "b": Place.WORD_EDGE, "B": _NOT_WORD_EDGE}
_BLANKS = " \t\n\r\v\f"
_BACKREFERENCE = "what a group matched is not kept", "the alternatives written out"


def parse_python(pattern: str, limits: Limits) -> Tree:
    """The meaning of a pattern; whatever `re.compile` refuses is refused."""
    tree = PythonParser(pattern, limits).tree()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        raise syntax_error(pattern, error.msg, error.pos or 0) from None
    except (OverflowError, RecursionError) as error:
        line, column = line_and_column(pattern, 0)
        raise UnsupportedKeyword(f"Python cannot compile the pattern: {error}", line=line, column=column) from None
    return tree


class PythonParser(PatternParser):
    """The dialect "python"."""

    _low_may_be_absent = True
    _has_possessive = True
    _has_fixed_lookbehind = True
    _leading_bracket_is_member = True

    def _dialect_extension(self, group: Group) -> bool:
        if self._takes("P<"):
            self._skip_past(">", group.opened)
            return True
        if self._takes("P="):
            self._refuse("(?P=", *_BACKREFERENCE, group.opened)
        if self._takes("("):
            self._refuse("(?(", "whether a group matched is not kept", "the two cases as alternatives", group.opened)
        if self._takes(">"):
            self._refuse("(?>", "it forbids matches that backtracking would find", "(?:", group.opened)
        return self._flags(group)

    def _flags(self, group: Group) -> bool:
        """`(?flags)` for the whole pattern, or the head of `(?flags-flags:...)`."""
        start = self.index
        added = set(self._run_of("aiLmsux"))
        removed = set(self._run_of("imsx")) if self._takes("-") else set()
        inherited = group.flags - {"a"} if "u" in added else group.flags
        flags = (inherited | added) - removed - {"u"}
        if self._takes(":"):
            group.flags = flags
            return True
        if not self._takes(")") or not added:
            self._fail("unknown extension of a group", start - 1)
        self._groups[0].flags = flags
        return False

    def _special(self, char: str) -> Tree | None:
        flags = self._groups[-1].flags
        if char == ".":
            return CharSet(ALL if "s" in flags else NOT_NEWLINE)
        if char == "^":
            return Anchor(Place.LINE_START if "m" in flags else Place.START)
        if char == "$":
            return Anchor(Place.LINE_END if "m" in flags else Place.END_OR_LAST_NEWLINE)
        return None

    def _escape(self, start: int, inside: bool) -> Ranges | Tree:
        char = self._next()
        if char in "dDsSwW":
            return python_class(char, "a" in self._groups[-1].flags)
        if char in _PLACES and not inside:
            return Anchor(_PLACES[char], python_class("w", "a" in self._groups[-1].flags))
        if char in "xuU":
            return self._one(self._hexadecimal({"x": 2, "u": 4, "U": 8}[char]), start)
        if char == "N":
            return self._one(self._named(start), start)
        if char.isascii() and char.isdigit():
            return self._one(self._octal(char, start, inside), start)
        if char in _CONTROLS or (inside and char == "b"):
            return self._one(_CONTROLS.get(char, 0x08), start)
        return self._one(None if char.isascii() and char.isalpha() else ord(char), start)

    def _one(self, code: int | None, start: int) -> Ranges:
        if code is None:
            self._fail(f"unknown escape {self.data[start : start + 2]}", start)
        return ((code, code),)

    def _named(self, start: int) -> int | None:
        if not self._takes("{"):
            return None
        begin = self.index
        self._skip_past("}", start)
        try:
            return ord(unicodedata.lookup(self.data[begin : self.index - 1]))
        except (KeyError, TypeError):
            return None

    def _octal(self, first: str, start: int, inside: bool) -> int | None:
        """The character an octal escape names; what is not one is the number of a group."""
        text = first
        while len(text) < 3 and self.data[self.index : self.index + 1] in tuple("01234567"):
            text += self._next()
        is_octal = first == "0" or inside or (len(text) == 3 and first in "0123")
        if not is_octal:
            self._refuse(f"\\{first}", *_BACKREFERENCE, start)
        return int(text, 8) if first in "01234567" and int(text, 8) <= 0o377 else None

    def _not_a_range(self, low: Ranges, high: Ranges, start: int) -> Ranges:
        self._fail(f"bad range {self.data[start : self.index]}", start)

    def _skip_ignored(self) -> bool:
        before = -1
        while before != self.index:
            before = self.index
            if self._sees("(?#"):
                self._skip_past(")", self.index)
            if "x" in self._groups[-1].flags:
                self._run_of(_BLANKS)
                if self._takes("#"):
                    end = self.data.find("\n", self.index)
                    self.index = len(self.data) if end < 0 else end
        return False

    def _skip_past(self, text: str, start: int) -> None:
        end = self.data.find(text, self.index)
        if end < 0:
            self._fail(f"missing {text}", start)
        self.index = end + len(text)

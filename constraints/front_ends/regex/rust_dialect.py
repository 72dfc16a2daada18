"""Regular expressions as Rust's `regex` crate reads them, which Pydantic uses: Unicode, no lookarounds, a search anywhere.

Which characters a class has (`\\w`, `\\p{Greek}`, `[a-z&&[^aeiou]]`, with flags) is asked of the crate itself, so that sets of
characters and their version of Unicode are those of the installed Pydantic.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ...base.utf8 import ALL, Ranges, invert, normalize
from ...grammar.source import Limits
from .charsets import NOT_NEWLINE, simply_ignoring_case
from .parser import Group, PatternParser, syntax_error
from .tree import Anchor, CharSet, Concat, Lookahead, Place, Tree

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

_CONTROLS = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_BLANKS = " \t\n\r\v\f\x85\u200e\u200f\u2028\u2029"
_FLAGS = "imsRUux"
_PLAIN_SET = re.compile(
    r"\[\^?(?:[^\W_]-[^\W_]|[\w @%+=:,./!#*()$;\"'<>?{}|])+\]", re.ASCII
)  # read alike by all dialects
_BLOCK = 4096  # characters
_LAST_BEFORE_SURROGATES, _FIRST_BEHIND_SURROGATES = 0xD7FF, 0xE000


def parse_rust(pattern: str, limits: Limits) -> Tree:
    """The meaning of a pattern; whatever the crate refuses is refused."""
    from pydantic_core import SchemaError  # here, as few need it and it takes 10 ms to load

    try:
        _validator(pattern)
    except SchemaError as error:
        reason = " ".join(str(error).split("error:")[-1].split())
        raise syntax_error(pattern, reason, 0) from None
    return RustParser(pattern, limits).tree()


class RustParser(PatternParser):
    """The dialect "rust"."""

    _initial_flags = frozenset("u")
    _low_may_be_absent = True

    def _dialect_extension(self, group: Group) -> bool:
        if self._takes("P<") or self._takes("<"):
            self.index = self.data.index(">", self.index) + 1
            return True
        added = set(self._run_of(_FLAGS))
        removed = set(self._run_of(_FLAGS)) if self._takes("-") else set()
        if "R" in added:
            self._refuse("(?R", "lines that end in \\r\\n are not followed", "(?:\\r?\\n)", group.opened)
        if self._takes(":"):
            group.flags = (group.flags | added) - removed
            return True
        self._takes(")")
        self._groups[-1].flags = (self._groups[-1].flags | added) - removed
        return False

    def _special(self, char: str) -> Tree | None:
        flags = self._groups[-1].flags
        if char == ".":
            return CharSet(ALL if "s" in flags else NOT_NEWLINE)
        if char == "^":
            return Anchor(Place.LINE_START if "m" in flags else Place.START)
        if char == "$":
            return Anchor(Place.LINE_END if "m" in flags else Place.END)
        return None

    def _folded(self, ranges: Ranges) -> Ranges:
        normal = normalize(ranges)
        return simply_ignoring_case(normal) if "i" in self._groups[-1].flags else normal

    def _set_of_members(self, start: int) -> CharSet:
        plain = _PLAIN_SET.match(self.data, start)
        if plain and self._groups[-1].flags.isdisjoint("ix"):
            return super()._set_of_members(start)
        self.index = self._end_of_set(start)
        return CharSet(self._class(self.data[start : self.index]))

    def _end_of_set(self, start: int) -> int:
        """The index behind the set that begins at `start`; sets may stand in sets."""
        depth, index, is_first = 0, start, False
        while True:
            char = self.data[index]
            index += 1
            if char == "[":
                depth, is_first = depth + 1, True
                index += self.data.startswith("^", index)
                continue
            if char == "]" and not is_first:
                depth -= 1
                if not depth:
                    return index
            if char == "\\":
                index += 1
            elif char == "#" and "x" in self._groups[-1].flags:
                index = (self.data.find("\n", index) + 1) or len(self.data)
            is_first = is_first and (char == "-" or (char in _BLANKS and "x" in self._groups[-1].flags))

    def _class(self, text: str) -> Ranges:
        flags = self._groups[-1].flags
        prefix = "".join(sorted(flags & set("ix"))) + ("" if "u" in flags else "-u")
        return crate_class(f"(?{prefix}:{text})" if prefix else text)

    def _escape(self, start: int, inside: bool) -> Ranges | Tree:
        char = self._next()
        if char in "dDsSwW":
            return self._class("\\" + char)
        if char in "pP":
            self.index = self.data.index("}", self.index) + 1 if self._sees("{") else self.index + 1
            return self._class(self.data[start : self.index])
        if char in "AzbB<>" and not inside:
            return self._edge(char)
        if char in _HEX_DIGITS:
            return self._one(self._hexadecimal_of(_HEX_DIGITS[char]))
        return self._one(_CONTROLS.get(char, ord(char)))

    def _one(self, code: int) -> Ranges:
        return ((code, code),)

    def _hexadecimal_of(self, digits: int) -> int:
        if not self._sees("{"):
            code = self._hexadecimal(digits)
            assert code is not None
            return code
        end = self.data.index("}", self.index)
        code = int(self.data[self.index + 1 : end], 16)
        self.index = end + 1
        return code

    def _edge(self, char: str) -> Tree:
        """An anchor: where the text begins or ends, or an edge of a word."""
        if char in "Az":
            return Anchor(Place.START if char == "A" else Place.END)
        word = self._class(r"\w")
        is_in_word, is_at_edge = CharSet(word), Anchor(Place.WORD_EDGE, word)
        side = {"<": "start", ">": "end"}.get(char) or next(
            (s for s in _SIDES if char == "b" and self._takes(f"{{{s}}}")), ""
        )
        if side == "start":
            return Concat((is_at_edge, Lookahead(is_in_word, negative=False)))
        if side == "end":
            return Concat((is_at_edge, Lookahead(is_in_word, negative=True)))
        if side == "start-half":
            return Anchor(Place.START_OR_AFTER, invert(word))
        if side == "end-half":
            return Lookahead(is_in_word, negative=True)
        return is_at_edge if char == "b" else Anchor(Place.NOT_WORD_EDGE, word)

    def _not_a_range(self, low: Ranges, high: Ranges, start: int) -> Ranges:
        self._fail(f"bad range {self.data[start : self.index]}", start)

    def _skip_ignored(self) -> bool:
        while "x" in self._groups[-1].flags and (self._run_of(_BLANKS) or self._takes("#")):
            if self.data[self.index - 1] == "#":
                end = self.data.find("\n", self.index)
                self.index = len(self.data) if end < 0 else end
        return False


_SIDES = ("start-half", "end-half", "start", "end")


@lru_cache(maxsize=256)
def crate_class(text: str) -> Ranges:
    """The characters that a part of a pattern matches, which matches one character."""
    all_of, some_of = _validator(rf"\A(?:{text})+\z"), _validator(text)
    found: list[tuple[int, int]] = []
    todo = [
        (low, min(low + _BLOCK - 1, last))
        for first, last in ((_FIRST_BEHIND_SURROGATES, ALL[-1][1]), (0, _LAST_BEFORE_SURROGATES))
        for low in range(first, last + 1, _BLOCK)
    ][::-1]
    while todo:
        low, high = todo.pop()
        block = "".join(map(chr, range(low, high + 1)))
        if all_of.isinstance_python(block):
            found.append((low, high))
        elif low < high and some_of.isinstance_python(block):
            middle = (low + high) // 2
            todo += [(middle + 1, high), (low, middle)]
    return normalize(found)


def _validator(pattern: str) -> SchemaValidator:
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))

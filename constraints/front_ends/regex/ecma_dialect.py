"""Regular expressions as ECMA-262 reads them, by code points: the flag u, and Annex B where u would call it an error.

JSON Schema asks for this dialect. With the flag u, `\\u{...}` and `\\p{...}` have their meaning; without it, escapes such as `\\_`
and a lone `{` are characters. A pattern that has both means different things with and without u and is refused.

Flags stand in the pattern: `(?ims-ims:...)` since ECMA-262 of 2025. `(?ims)`, for the rest of its group, is not of that standard;
it is read as all engines read it that know it. What is equal without case is so by simple case folding, as with the flag u.
"""

from __future__ import annotations

from ...base.errors import ConstraintError
from ...base.utf8 import ALL, MAX_CODE_POINT, Ranges, invert, normalize
from ...grammar.source import Limits
from .charsets import ASCII_WORD, ECMA_LINE_ENDS, ecma_class, property_class, simply_ignoring_case
from .parser import Group, PatternParser
from .tree import Alternate, Anchor, CharSet, Lookahead, Place, Tree

_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_PLACES = {"b": Place.WORD_EDGE, "B": Place.NOT_WORD_EDGE}
_OTHER_DIALECTS = {"A": "^", "Z": "$", "z": "$", "G": "^", "Q": "escaped characters", "E": "escaped characters"}
_SYNTAX_CHARACTERS = "^$\\.*+?()[]{}|/"
_NOT_LINE_END = invert(ECMA_LINE_ENDS)
_ANY = CharSet(ALL)
_ANCHORS: dict[str, Tree] = {"^": Anchor(Place.START), "$": Anchor(Place.END)}
_LINE_ANCHORS: dict[str, Tree] = {  # under the flag m
    "^": Anchor(Place.START_OR_AFTER, ECMA_LINE_ENDS),
    "$": Alternate((Anchor(Place.END), Lookahead(CharSet(ECMA_LINE_ENDS), negative=False))),
}


def parse_ecma(pattern: str, limits: Limits, dot: Ranges = _NOT_LINE_END) -> Tree:
    """The meaning of a pattern. dot: what "." matches."""
    return EcmaParser(pattern, limits, dot).meaning()


class EcmaParser(PatternParser):
    """The dialect "ecma"."""

    def __init__(self, pattern: str, limits: Limits, dot: Ranges) -> None:
        super().__init__(pattern, limits)
        self._dot = CharSet(dot)
        self._only_with_u: int | None = None  # where something stands that the flag u gives its meaning
        self._only_without_u: int | None = None  # where something stands that the flag u makes an error

    def meaning(self) -> Tree:
        """The tree. Raises `UnsupportedKeyword` for a pattern that the flag u is both necessary and an error for."""
        tree = self.tree()
        if self._only_with_u is not None and self._only_without_u is not None:
            start = self._only_without_u
            other = self.data[start : start + 2]
            reason = f"it has its meaning with the flag u, which makes {other!r} in the same pattern an error"
            self._refuse(
                self.data[self._only_with_u :][:3], reason, "a pattern valid with the flag u", self._only_with_u
            )
        return tree

    def _dialect_extension(self, group: Group) -> bool:
        if self._takes("<"):
            end = self.data.find(">", self.index)
            if end < 0 or not self.data[self.index : end].replace("$", "_").isidentifier():
                self._fail("bad name of a group", self.index)
            self.index = end + 1
            return True
        return self._flags(group)

    def _flags(self, group: Group) -> bool:
        """The head of `(?flags-flags:...)`, or `(?flags)` for the rest of the group in which it stands."""
        start = self.index
        added, removed = self._run_of("ims"), ""
        is_whole = not self._takes("-")
        if not is_whole:
            removed = self._run_of("ims")
        flags = added + removed
        if not flags or len(set(flags)) < len(flags) or not (self._sees(":") or (is_whole and self._sees(")"))):
            keyword = f"(?{self.data[start : start + 1]}"
            self._refuse(keyword, "ECMA-262 has no such group", "the pattern without it", group.opened)
        if self._takes(":"):
            group.flags = (group.flags | set(added)) - set(removed)
            return True
        self._takes(")")
        self._groups[-1].flags |= set(added)
        return False

    def _special(self, char: str) -> Tree | None:
        if char in "{}]":
            self._only_without_u = self.index - 1
        flags = self._groups[-1].flags
        if char == ".":
            return _ANY if "s" in flags else self._dot
        return (_LINE_ANCHORS if "m" in flags else _ANCHORS).get(char)

    def _folded(self, ranges: Ranges) -> Ranges:
        normal = normalize(ranges)
        return simply_ignoring_case(normal) if "i" in self._groups[-1].flags else normal

    def _escape(self, start: int, inside: bool) -> Ranges | Tree:
        char = self._next()
        if char == "W":
            return invert(self._folded(ASCII_WORD))
        if char in "dDsSw":
            return ecma_class(char)
        if char in _PLACES and not inside:
            return Anchor(_PLACES[char], self._folded(ASCII_WORD))
        if char in "pP" and self._sees("{"):
            return self._property(char, start)
        if (char.isascii() and char.isdigit() and char != "0") or (char == "k" and not inside):
            self._refuse(f"\\{char}", "what a group matched is not kept", "the alternatives written out", start)
        if char in _OTHER_DIALECTS and not inside:
            self._refuse(f"\\{char}", "ECMA-262 has no such escape", _OTHER_DIALECTS[char], start)
        if char == "c" and not self._is_control_letter(inside):
            self.index, self._only_without_u = start + 1, start
            return self._one(ord("\\"))
        code = self._character(char, start)
        if code == ord(char) and char not in (_SYNTAX_CHARACTERS + "-" if inside else _SYNTAX_CHARACTERS):
            self._only_without_u = start
        return self._one(code)

    def _one(self, code: int) -> Ranges:
        return ((code, code),)

    def _property(self, char: str, start: int) -> Ranges:
        end = self.data.find("}", self.index)
        if end < 0:
            self._fail(f"\\{char}{{ is never closed", start)
        self._only_with_u = start
        name = self.data[self.index + 1 : end]
        self.index = end + 1
        try:
            ranges = property_class(name)
        except ConstraintError as error:
            self._fail(error.reason, start)
        return ranges if char == "p" else invert(ranges)

    def _is_control_letter(self, inside: bool) -> bool:
        """Whether what follows `\\c` completes it; where it does not, the backslash is a character (Annex B)."""
        letter = self.data[self.index : self.index + 1]
        if inside and letter in tuple("0123456789_"):
            self._only_without_u = self.index
            return True
        return letter.isascii() and letter.isalpha()

    def _character(self, char: str, start: int) -> int:
        """The code point of an escape for one character; any other character escaped is itself."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "b":
            return 0x08
        if char == "0":
            if self.data[self.index : self.index + 1].isdigit():
                self._refuse("\\0", "octal escapes are not part of ECMA-262", "\\xHH", start)
            return 0
        if char == "c":
            return ord(self._next()) % 32
        code = self._hexadecimal(2) if char == "x" else self._unicode(start) if char == "u" else None
        return ord(char) if code is None else code

    def _unicode(self, start: int) -> int | None:
        """`HHHH`, a pair of surrogates, or `{H...}`."""
        if self._takes("{"):
            end = self.data.find("}", self.index)
            code = self._hexadecimal(end - self.index) if end > self.index else None
            if code is None or code > MAX_CODE_POINT:
                self._fail("\\u{ wants the hexadecimal number of a code point and }", start)
            self._takes("}")
            self._only_with_u = start
            return code
        high = self._hexadecimal(4)
        if high is None or not 0xD800 <= high < 0xDC00 or not self._sees("\\u"):
            return high
        before = self.index
        self._takes("\\u")
        low = self._hexadecimal(4)
        if low is None or not 0xDC00 <= low < 0xE000:
            self.index = before
            return high
        return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)

    def _not_a_range(self, low: Ranges, high: Ranges, start: int) -> Ranges:
        self._only_without_u = start
        return (*low, (0x2D, 0x2D), *high)

"""The part of parsing regular expressions that both dialects share, without recursion: patterns may nest as deep as
`limits.nesting`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from ...base.errors import ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from ...base.utf8 import ALL, Ranges, invert, normalize
from ...grammar.source import Limits
from ...grammar.stopwatch import look
from .charsets import ignoring_case
from .tree import (
    Alternate,
    Anchor,
    CharSet,
    Concat,
    Lookahead,
    Lookbehind,
    Place,
    Repeat,
    SequenceBehind,
    Tree,
    fold,
)

_REACH: Final = 16
_SEQUENCES: Final = 100
_LONG: Final = 300  # characters of a pattern in which it pays to look for groups that are written several times
_BETWEEN_LOOKS: Final = 255  # characters, groups and quantifiers, less one: a few milliseconds
_PART = re.compile(r"(\(\?:)|(\()|(\))|(\\[1-9k])|\\.|\[(?:\\.|[^\]\\])*\]?", re.DOTALL)  # a set may be left open: linear time
_PLAIN_OPEN, _OTHER_OPEN, _CLOSE, _REFERENCE = range(1, 5)  # groups of that
Sequences = list[SequenceBehind] | None
Before = tuple[Ranges, bool] | None  # characters that may stand before a position, and whether nothing may

_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Group:
    """A parenthesis that is open, or the whole pattern. opened: index of its "("."""

    def __init__(self, opened: int, flags: frozenset[str]) -> None:
        self.opened, self.flags = opened, flags
        self.wrap: Callable[[Tree], Tree] = lambda tree: tree
        self.options: list[Tree] = []
        self.parts: list[Tree] = []

    def end_option(self) -> None:
        self.options.append(self.parts[0] if len(self.parts) == 1 else Concat(tuple(self.parts)))
        self.parts = []

    def tree(self) -> Tree:
        self.end_option()
        return self.wrap(self.options[0] if len(self.options) == 1 else Alternate(tuple(self.options)))


class PatternParser:
    """A parser of one pattern. What the dialects do not share is in `PythonParser` and `EcmaParser`."""

    def __init__(self, pattern: str, limits: Limits) -> None:
        self.data, self.index = pattern, 0
        self._limits = limits
        self._groups: list[Group] = []
        self._characters: dict[str, CharSet] = {}
        self._plain = _plain_groups(pattern) if len(pattern) > _LONG else {}
        self._read: dict[tuple[str, frozenset[str]], Tree] = {}  # plain groups by their text and flags

    def tree(self) -> Tree:
        """The meaning of the pattern. Raises `GrammarSyntaxError`, `UnsupportedKeyword`, `ConstraintLimit`."""
        self._groups = [Group(0, self._initial_flags)]
        read = 0
        while self._skip_ignored() or self.index < len(self.data):
            self._element()
            read += 1
            if not read & _BETWEEN_LOOKS:
                look()
        if len(self._groups) > 1:
            self._fail("a parenthesis is never closed", self._groups[-1].opened)
        return self._groups.pop().tree()

    # -- characters -------------------------------------------------------------------------------------------------

    def _sees(self, expected: str) -> bool:
        return self.data.startswith(expected, self.index)

    def _takes(self, expected: str) -> bool:
        """Whether `expected` comes next; if so it is read."""
        if not self.data.startswith(expected, self.index):
            return False
        self.index += len(expected)
        return True

    def _next(self) -> str:
        self.index += 1
        return self.data[self.index - 1]

    def _run_of(self, chars: str) -> str:
        """The longest run of `chars` from here on."""
        start = self.index
        while self.index < len(self.data) and self.data[self.index] in chars:
            self.index += 1
        return self.data[start : self.index]

    # -- groups and quantifiers -------------------------------------------------------------------------------------

    def _element(self) -> None:
        start = self.index
        char = self._next()
        if char == "|":
            self._groups[-1].end_option()
        elif char == "(":
            if not self._takes_read(start):
                self._open(start)
        elif char == ")":
            if len(self._groups) == 1:
                self._fail("a parenthesis is closed that was not opened", start)
            group = self._groups.pop()
            tree = group.tree()
            if group.opened in self._plain:
                self._read[self.data[group.opened : start + 1], self._groups[-1].flags] = tree
            self._groups[-1].parts.append(self._quantified(tree, start))
        else:
            atom = self._atom(char, start)
            if (char in "^$" or isinstance(atom, Anchor)) and self._is_quantifier_next():
                self._fail("nothing to repeat", self.index)
            self._groups[-1].parts.append(self._quantified(atom, start))

    def _takes_read(self, start: int) -> bool:
        """Whether a group has the text of one that was read before; if so it is passed, and has the same tree."""
        end = self._plain.get(start)
        tree = self._read.get((self.data[start:end], self._groups[-1].flags)) if end else None
        if end is None or tree is None:
            return False
        self.index = end
        self._groups[-1].parts.append(self._quantified(tree, end - 1))
        return True

    def _open(self, start: int) -> None:
        group = Group(start, self._groups[-1].flags)
        if self._takes("?") and not self._extension(group):
            return
        if len(self._groups) > self._limits.nesting:
            limit = self._limits.nesting
            raise ConstraintLimit("a pattern nests its groups too deep", limit="nesting", value=limit)
        self._groups.append(group)

    def _extension(self, group: Group) -> bool:
        """What follows "(?": prepares `group`, or returns False when it is complete already."""
        if self._takes(":"):
            return True
        if self._takes("=") or self._takes("!"):
            negative = self.data[self.index - 1] == "!"
            group.wrap = lambda body: Lookahead(body, negative)
            return True
        if self._takes("<=") or self._takes("<!"):
            negative = self.data[self.index - 1] == "!"
            group.wrap = lambda body: self._lookbehind(body, negative, group.opened)
            return True
        return self._dialect_extension(group)

    def _lookbehind(self, body: Tree, negative: bool, start: int) -> Tree:
        """The tree of a lookbehind; one of at most one character is an anchor."""
        before = fold(body, _before)[body]
        if before is None:
            sequences = fold(body, _sequences)[body]
            if sequences is None:
                keyword = self.data[start : start + 4]
                reason = f"a lookbehind that is not bounded by {_REACH} characters, {_SEQUENCES} alternatives, or has assertions"
                self._refuse(keyword, reason, "a lookbehind of a few characters", start)
            if self._has_fixed_lookbehind and len({len(one.sets) for one in sequences}) > 1:
                self._fail("a lookbehind has one length", start)
            return Lookbehind(tuple(sequences), negative)
        chars, at_start = before
        if negative:
            chars, at_start = invert(chars), not at_start
        return Anchor(Place.START_OR_AFTER if at_start else Place.AFTER, chars)

    def _quantified(self, tree: Tree, start: int) -> Tree:
        self._skip_ignored()
        bounds = self._quantifier()
        if bounds is None:
            return tree
        low, high = bounds
        if high is not None and high < low:
            self._fail(f"the repetition {{{low},{high}}} has its bounds in the wrong order", start)
        if max(low, high or 0) > self._limits.repetition:
            limit = self._limits.repetition
            raise ConstraintLimit(f"a repetition of {max(low, high or 0)}", limit="repetition", value=limit)
        self._after_quantifier()
        return Repeat(tree, low, high)

    def _is_quantifier_next(self) -> bool:
        self._skip_ignored()
        start = self.index
        is_next = self._quantifier() is not None
        self.index = start
        return is_next

    def _quantifier(self) -> tuple[int, int | None] | None:
        bounds = _QUANTIFIERS.get(self.data[self.index : self.index + 1])
        if bounds is None:
            return self._braces() if self._sees("{") else None
        self.index += 1
        return bounds

    def _braces(self) -> tuple[int, int | None] | None:
        """`{n}`, `{n,}`, `{n,m}`; None, and nothing read, when the brace is a character like others."""
        start = self.index
        self._takes("{")
        low = self._run_of("0123456789")
        comma = self._takes(",")
        high = self._run_of("0123456789") if comma else low
        if not self._takes("}") or not (low or (self._low_may_be_absent and comma)):
            self.index = start
            return None
        if max(len(low), len(high)) > 18:
            limit = self._limits.repetition
            raise ConstraintLimit(f"a repetition of {low or high}", limit="repetition", value=limit)
        return int(low or 0), int(high) if high else None

    def _after_quantifier(self) -> None:
        self._takes("?")  # lazy: the same strings
        possessive = self._sees("+") and self._has_possessive
        if possessive:
            self._refuse(
                "possessive quantifier",
                "it forbids matches that backtracking would find",
                "the plain quantifier",
                self.index,
            )
        if self._is_quantifier_next():
            self._fail("multiple repeat", self.index)

    # -- atoms ------------------------------------------------------------------------------------------------------

    def _atom(self, char: str, start: int) -> Tree:
        if char == "[":
            return self._set_of_members(start)
        if char == "\\":
            if self.index == len(self.data):
                self._fail("a backslash at the end", start)
            found = self._escape(start, inside=False)
            return CharSet(self._folded(found)) if isinstance(found, tuple) else found
        if char in "*+?":
            self._fail("nothing to repeat", start)
        return self._special(char) or self._character_itself(char)

    def _character_itself(self, char: str) -> CharSet:
        """One character, always the same object outside of the flag i."""
        if "i" in self._groups[-1].flags:
            return CharSet(self._folded(((ord(char), ord(char)),)))
        known = self._characters.get(char)
        if known is None:
            known = self._characters[char] = CharSet(normalize([(ord(char), ord(char))]))
        return known

    def _set_of_members(self, start: int) -> CharSet:
        negative = self._takes("^")
        members: list[tuple[int, int]] = []
        first = self.index
        while not (self._sees("]") and not (self._leading_bracket_is_member and self.index == first)):
            if self.index >= len(self.data):
                self._fail("a set of characters is never closed", start)
            members.extend(self._range())
        self._takes("]")
        ranges = self._folded(tuple(members))
        return CharSet(invert(ranges) if negative else ranges)

    def _range(self) -> Ranges:
        """One member of a set: a character, a class, or a range of characters."""
        start = self.index
        low = self._member()
        if not (self._sees("-") and self.data[self.index + 1 : self.index + 2] not in ("]", "")):
            return low
        self._takes("-")
        high = self._member()
        if not (_is_one(low) and _is_one(high)):
            return self._not_a_range(low, high, start)
        if low[0][0] > high[0][0]:
            self._fail(f"the range {self.data[start : self.index]} has its ends in the wrong order", start)
        return ((low[0][0], high[0][0]),)

    def _member(self) -> Ranges:
        start = self.index
        if self.index >= len(self.data):
            self._fail("a set of characters is never closed", start)
        char = self._next()
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self.index == len(self.data):
            self._fail("a backslash at the end", start)
        found = self._escape(start, inside=True)
        assert isinstance(found, tuple)
        return found

    def _folded(self, ranges: Ranges) -> Ranges:
        """`ranges` and, under the flag i, whatever equals one of them without case."""
        flags = self._groups[-1].flags
        normal = normalize(ranges)
        return ignoring_case(normal, "a" in flags) if "i" in flags else normal

    def _hexadecimal(self, digits: int) -> int | None:
        """The number that `digits` hexadecimal digits stand for; None, and nothing read, when they are not there."""
        text = self.data[self.index : self.index + digits]
        if len(text) < digits or not _HEXADECIMAL.issuperset(text):
            return None
        self.index += digits
        return int(text, 16)

    # -- what dialects define ---------------------------------------------------------------------------------------

    _initial_flags: frozenset[str] = frozenset()
    _low_may_be_absent = False  # whether "{,n}" is a quantifier
    _has_fixed_lookbehind = False  # whether all alternatives of a lookbehind must be of one length
    _has_possessive = False  # whether "+" may follow a quantifier
    _leading_bracket_is_member = False  # whether "]" is a member where a set begins

    def _dialect_extension(self, group: Group) -> bool:
        raise NotImplementedError

    def _special(self, char: str) -> Tree | None:
        """The meaning of ".", "^" and "$"."""
        raise NotImplementedError

    def _escape(self, start: int, inside: bool) -> Ranges | Tree:
        """What the escape after a backslash means; ranges if it is `inside` a set."""
        raise NotImplementedError

    def _not_a_range(self, low: Ranges, high: Ranges, start: int) -> Ranges:
        raise NotImplementedError

    def _skip_ignored(self) -> bool:
        """Skip comments, and blanks under the flag x. Always False."""
        return False

    # -- errors -----------------------------------------------------------------------------------------------------

    def _fail(self, reason: str, index: int) -> NoReturn:
        raise syntax_error(self.data, reason, index)

    def _refuse(self, keyword: str, reason: str, instead: str, index: int) -> NoReturn:
        line, column = line_and_column(self.data, index)
        raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)


def syntax_error(pattern: str, reason: str, index: int) -> GrammarSyntaxError:
    """An error that shows where in the pattern it is."""
    line, column = line_and_column(pattern, index)
    start = max(0, column - 40)
    shown = pattern.split("\n")[line - 1][start : column + 40]
    caret = " " * (column - 1 - start) + "^"
    return GrammarSyntaxError(f"{reason}\n    {shown}\n    {caret}", line=line, column=column)


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """(line, column) of a place in a text, both from 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _before(tree: Tree, parts: list[Before]) -> Before:
    """What a lookbehind with this body asks of its left side: a character of a set, or nothing; None if it asks for
    more."""
    known = [part for part in parts if part is not None]
    if isinstance(tree, CharSet):
        return tree.ranges, False
    if isinstance(tree, Anchor):
        return ((), True) if tree.place is Place.START else None
    if isinstance(tree, Concat) and not parts:
        return ALL, True
    if isinstance(tree, Alternate) and len(known) == len(parts):
        return normalize([one for chars, _ in known for one in chars]), any(at_start for _, at_start in known)
    is_once = isinstance(tree, Repeat) and tree.low == 1 and not isinstance(tree.body, Anchor)
    return parts[0] if is_once else (ALL, True) if isinstance(tree, Repeat) and tree.low == 0 else None


def _sequences(tree: Tree, parts: list[Sequences]) -> Sequences:
    """The sequences of sets that the body of a lookbehind stands for; None if they are too many or too long, or the
    body asks for more."""
    known = [part for part in parts if part is not None]
    if isinstance(tree, Anchor):
        return [SequenceBehind((), True)] if tree.place is Place.START else None
    if len(known) < len(parts):
        return None
    if isinstance(tree, CharSet):
        return [SequenceBehind((tree.ranges,), False)]
    if isinstance(tree, Alternate):
        return _bounded([one for part in known for one in part])
    if isinstance(tree, Concat):
        return _joined(known)
    if not isinstance(tree, Repeat) or tree.high is None or tree.high > _REACH:
        return None
    found: list[SequenceBehind] = []
    for count in range(tree.low, tree.high + 1):
        copies = _joined(known * count)
        if copies is None:
            return None
        found += copies
    return _bounded(found)


def _joined(parts: list[list[SequenceBehind]]) -> Sequences:
    """Sequences one behind the other. Nothing can stand before a part that begins at the start of the text."""
    found = [SequenceBehind((), False)]
    for part in parts:
        pairs = [(before, after) for before in found for after in part if not (after.at_start and before.sets)]
        grown = [SequenceBehind(one.sets + two.sets, one.at_start or two.at_start) for one, two in pairs]
        bounded = _bounded(grown)
        if bounded is None:
            return None
        found = bounded
    return found


def _bounded(sequences: list[SequenceBehind]) -> Sequences:
    found = list(dict.fromkeys(sequences))
    return None if len(found) > _SEQUENCES or any(len(one.sets) > _REACH for one in found) else found


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _plain_groups(pattern: str) -> dict[int, int]:
    """Where groups `(?:...)` begin and end whose meaning does not depend on where they stand: nothing in them is numbered or refers
    to a number, and no other kind of group is in them."""
    found: dict[int, int] = {}
    opened: list[int] = []  # groups around the place: where those begin that are plain, -1 for others
    spoilt = 0  # so many of them, from the outermost on, have something else in them
    for part in _PART.finditer(pattern):
        if part.lastindex == _PLAIN_OPEN:
            opened.append(part.start())
        elif part.lastindex == _OTHER_OPEN or part.lastindex == _REFERENCE:
            opened += [-1] if part.lastindex == _OTHER_OPEN else []
            spoilt = len(opened)
        elif part.lastindex == _CLOSE and opened:
            start = opened.pop()
            if len(opened) >= spoilt:
                found[start] = part.end()
            spoilt = min(spoilt, len(opened))
    return found

"""Regular expressions as constraints: Python's `re`, ECMA-262 and Rust's `regex`.

The text is parsed into a small tree (`tree`) by a parser per dialect (`python_dialect`, `ecma_dialect`, `rust_dialect`), and the
tree is lowered to a grammar node (`lowering`). Character classes, anchors anywhere, lookaheads and word edges are exact; what is
not a regular language, or not known to be one, is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...base.errors import ConstraintError, ConstraintLimit
from ...base.utf8 import Ranges
from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits
from . import rows
from .charsets import NOT_NEWLINE
from .combination import Combinable
from .ecma_dialect import parse_ecma
from .lowering import PatternLowering
from .python_dialect import parse_python
from .rust_dialect import parse_rust
from .tree import (
    Alternate,
    Anchor,
    Both,
    CharSet,
    Complement,
    Concat,
    Lookahead,
    Lookbehind,
    Place,
    Repeat,
    Tree,
    Unit,
    assertions,
    fold,
    is_at,
)

_DIALECTS = {"python": parse_python, "ecma": parse_ecma, "rust": parse_rust}


@dataclass(frozen=True, slots=True)
class Regex(Combinable):
    """Texts that a regular expression, `pattern`, matches: as a whole, or somewhere in them if not `full`.

    `dialect` is "python" (as `re` reads `str` patterns: `re.fullmatch`, `re.search`), "ecma" (ECMA-262 by code points) or "rust"
    (as the crate `regex` reads them, and Pydantic with it).
    Beyond these, patterns can be combined: `Regex("[a-z]+") & ~Regex(".*foo.*")`, and `|`.
    """

    pattern: str
    dialect: str = "python"
    full: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise ConstraintError(
                f"a pattern is a string, not {type(self.pattern).__name__}", instead="Regex(pattern.pattern)"
            )
        if self.dialect not in _DIALECTS:
            raise ConstraintError(
                f"no dialect {self.dialect!r} of regular expressions", instead=" or ".join(map(repr, _DIALECTS))
            )

    @property
    def source_text(self) -> str:
        return self.pattern

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts as UTF-8. Raises `GrammarSyntaxError`, `UnsupportedKeyword`, `ConstraintLimit`."""

        def character(ranges: Ranges) -> Node:
            is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
            return grammar.literal(chr(ranges[0][0])) if is_one else grammar.chars(ranges)

        return lower_pattern(grammar, self.pattern, dialect=self.dialect, full=self.full, unit=character, limits=limits)


def lower_pattern(grammar: Grammar, pattern: str, *, dialect: str, full: bool, unit: Unit, limits: Limits) -> Node:
    """The texts that `pattern` matches, as a whole (`full`) or somewhere in them.

    `unit(ranges)` gives the node for one character out of a set of code points (no surrogates); texts are sequences of such.
    """
    return lower_tree(grammar, parse_pattern(pattern, dialect, limits), full=full, unit=unit, limits=limits)


def lower_mismatch(grammar: Grammar, pattern: str, *, dialect: str, unit: Unit, limits: Limits) -> Node:
    """All byte strings but the texts in which a pattern matches somewhere, to be intersected with texts.

    Other engines of ECMA-262 exclude a line feed alone from ".". Texts in which they would find a match are left out too, if the
    pattern has no lookarounds: with those, more for "." could mean fewer matches. Raises as `lower_pattern`.
    """
    lowering = PatternLowering(grammar, unit, _tree_of_mismatch(pattern, dialect, limits), limits)
    return grammar.negate(lowering.any_text_with_match(lowering.around.any_bytes))


def _tree_of_mismatch(pattern: str, dialect: str, limits: Limits) -> Tree:
    tree = parse_pattern(pattern, dialect, limits)
    if (
        dialect == "ecma"
        and "." in pattern
        and not any(isinstance(part, Lookahead | Lookbehind) for part in assertions(tree))
    ):
        return parse_ecma(pattern, limits, NOT_NEWLINE)
    return tree


def other_texts(grammar: Grammar, pattern: str, *, dialect: str, unit: Unit, limits: Limits) -> Node | None:
    """What `lower_mismatch` leaves of all texts, where that is no intersection (see rows.py); else None. Raises as it does."""
    row = rows.row_of(_tree_of_mismatch(pattern, dialect, limits))
    return None if row is None else rows.other_texts(grammar, unit, row)


def texts_of_length(
    grammar: Grammar, pattern: str, low: int, high: int | None, *, dialect: str, unit: Unit, limits: Limits
) -> Node | None:
    """The texts of `low` to `high` characters in which a pattern matches somewhere, where that is no intersection; else None.
    Raises as `lower_pattern`."""
    row = rows.row_of(parse_pattern(pattern, dialect, limits))
    return None if row is None else rows.texts_of_length(grammar, unit, row, low, high)


def lower_tree(grammar: Grammar, tree: Tree, *, full: bool, unit: Unit, limits: Limits) -> Node:
    """`lower_pattern` for a pattern that has been parsed."""
    lowering = PatternLowering(grammar, unit, tree, limits)
    return lowering.whole_text() if full else lowering.any_text_with_match()


def pattern_length(pattern: str, *, dialect: str, full: bool, limits: Limits | None = None) -> tuple[int, int | None]:
    """Bounds on the code points of the texts that `lower_pattern` describes: never wrong, exact without assertions."""
    tree = parse_pattern(pattern, dialect, limits or Limits())
    low, high = tree_length(tree)
    if full or _is_between_ends(tree):
        return low, high
    after_end = None if high is None else fold(tree, _after_end)[tree]
    if high is None or after_end is None or not fold(tree, _begins_at_start)[tree]:
        return low, None
    return low, high + after_end


def _is_between_ends(tree: Tree) -> bool:
    """Whether a pattern begins and ends with the anchors of the whole text, as most do."""
    parts = tree.parts if isinstance(tree, Concat) else ()
    return len(parts) > 1 and is_at(parts[0], Place.START) and is_at(parts[-1], Place.END)


def tree_length(tree: Tree) -> tuple[int, int | None]:
    """Bounds on the code points of what a tree matches."""
    return fold(tree, _length)[tree]


def parse_pattern(pattern: str, dialect: str, limits: Limits) -> Tree:
    """The meaning of a pattern. Raises `GrammarSyntaxError`, `UnsupportedKeyword`, `ConstraintLimit`."""
    if len(pattern) > limits.pattern_characters:
        value = limits.pattern_characters
        raise ConstraintLimit(f"a pattern of {len(pattern)} characters", limit="pattern_characters", value=value)
    return _parsed(pattern, dialect, limits)


@lru_cache(maxsize=4)
def _parsed(pattern: str, dialect: str, limits: Limits) -> Tree:
    """`parse_pattern`, remembered: a pattern is asked for several times in a row, for its texts, their lengths, perhaps
    for all others."""
    return _DIALECTS[dialect](pattern, limits)


def _length(tree: Tree, parts: list[tuple[int, int | None]]) -> tuple[int, int | None]:
    """(least, greatest) length of the texts that a tree matches."""
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    if isinstance(tree, CharSet):
        return 1, 1
    if isinstance(tree, Concat):
        return sum(lows), None if None in highs else sum(high for high in highs if high is not None)
    if isinstance(tree, Alternate):
        return min(lows), None if None in highs else max(high for high in highs if high is not None)
    if isinstance(tree, Repeat):
        return lows[0] * tree.low, _product(highs[0], tree.high)
    if isinstance(tree, Both):
        return max(lows), min((high for high in highs if high is not None), default=None)
    return (0, None) if isinstance(tree, Complement) else (0, 0)


def _product(length: int | None, count: int | None) -> int | None:
    if 0 in (length, count):
        return 0
    return None if length is None or count is None else length * count


def _begins_at_start(tree: Tree, parts: list[bool]) -> bool:
    """Whether every match begins where the text does."""
    if isinstance(tree, Concat):
        return any(parts)
    if isinstance(tree, Alternate):
        return all(parts)
    if isinstance(tree, Repeat):
        return tree.low > 0 and parts[0]
    return isinstance(tree, Anchor) and tree.place is Place.START


def _after_end(tree: Tree, parts: list[int | None]) -> int | None:
    """How many characters at most follow any match; None = no bound."""
    known = [part for part in parts if part is not None]
    if isinstance(tree, Lookahead | Both | Complement) or not known:
        place = tree.place if isinstance(tree, Anchor) else None
        return 0 if place is Place.END else 1 if place is Place.END_OR_LAST_NEWLINE else None
    if isinstance(tree, Concat):
        return min(known)
    if isinstance(tree, Alternate):
        return max(known) if len(known) == len(parts) else None
    return known[0] if isinstance(tree, Repeat) and tree.low > 0 else None

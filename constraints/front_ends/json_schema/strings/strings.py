"""String shapes as grammar nodes: the characters between the quotes. `LANGUAGES` says how `pattern` and its like are lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from ....base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ....base.utf8 import MAX_CODE_POINT, Ranges
from ....grammar.cardinality import list_words
from ....grammar.expression import EMPTY, FAIL, Grammar, Kind, Node
from ....grammar.lowering_cache import LOWERING_CACHE
from ....grammar.matcher import Steps
from ....grammar.source import Limits
from ...numbers.multiples import not_multiple_node
from ...regex.regex import lower_mismatch, lower_pattern, other_texts, pattern_length, texts_of_length
from ..documents.document import Site
from ..documents.paths import common_path
from ..documents.policy import Policy, located
from ..documents.values import is_integral
from .formats import FORMATS, format_length, format_node, note_narrower, wider_node
from .string_shape import Mismatch, StringShape
from .text import JsonText

_MAX_LISTED, _MAX_LISTED_LENGTH = 32, 64  # strings, and characters of each, that are worth listing
Lengths = tuple[int, int | None]  # bounds on the number of characters
Body = tuple[Node, Lengths]


class Strings:
    """Builds the bodies of strings, each pattern and format once."""

    def __init__(self, grammar: Grammar, text: JsonText, limits: Limits, policy: Policy, assert_formats: bool) -> None:
        self._grammar, self.text, self._limits, self._policy = grammar, text, limits, policy
        self._assert_formats = assert_formats
        self.steps = Steps(grammar)
        self._bodies: dict[
            tuple[str, str], Body | None
        ] = {}  # by dialect of a pattern or "format", and pattern or format
        self._mismatches: dict[tuple[str, str], Node] = {}  # by dialect and pattern
        self._of_shape: dict[StringShape, Node] = {}
        self._listed: dict[StringShape, frozenset[bytes] | None] = {}

    def body(self, shape: StringShape) -> Node:
        """The texts between the quotes; FAIL when there is none."""
        known = self._of_shape.get(shape)
        if known is None:
            known = self._of_shape[shape] = self._body(shape)
        return known

    def spelled(self, text: str) -> bytes:
        """The text between the quotes of a given string."""
        return self.text.body(text)

    def search(self, pattern: str, site: Site, keyword: str, dialect: str = "ecma") -> Body | None:
        """The strings in which a pattern matches somewhere; None when the pattern is not supported and was relaxed."""
        key = (dialect, pattern)
        if key not in self._bodies:
            self._bodies[key] = self._lower_pattern(pattern, site, keyword, dialect)
        return self._bodies[key]

    def mismatch(self, pattern: str, dialect: str = "ecma") -> Node:
        """All strings in which a pattern, which `search` has lowered, matches nowhere; and byte strings that are no text."""
        known = self._mismatches.get((dialect, pattern))
        if known is None:
            key = ("not pattern", dialect, pattern, self.text.notation, self._limits)
            known = LOWERING_CACHE.node(
                self._grammar, key, lambda: self._lower_mismatch(pattern, dialect), may_be_rare=True
            )
            self._mismatches[dialect, pattern] = known
        return known

    def _lower_mismatch(self, pattern: str, dialect: str) -> Node:
        return lower_mismatch(self._grammar, pattern, dialect=dialect, unit=self.text.unit, limits=self._limits)

    def other_texts(self, pattern: str) -> Node | None:
        """The strings in which a pattern of ECMA-262, which `search` has lowered, matches nowhere, where that is no intersection;
        else None."""
        return other_texts(self._grammar, pattern, dialect="ecma", unit=self.text.unit, limits=self._limits)

    def listed(self, shape: StringShape) -> frozenset[bytes] | None:
        """The texts of a shape's strings, where patterns leave a few only."""
        if shape not in self._listed:
            is_short = (self.longest(shape) or _MAX_LISTED_LENGTH) < _MAX_LISTED_LENGTH
            few = is_short and shape.languages and not self.is_narrowed(shape)
            words = list_words(self.steps, self.body(shape), _MAX_LISTED) if few else None
            self._listed[shape] = None if words is None else frozenset(words)
        return self._listed[shape]

    def longest(self, shape: StringShape) -> int | None:
        """A bound on the length of a shape's strings."""
        bounds = [lengths[1] for _, lengths in self._parts(shape)] + [shape.high]
        return min((bound for bound in bounds if bound is not None), default=None)

    def is_narrowed(self, shape: StringShape) -> bool:
        """Whether a format leaves out strings that are valid for its definition."""
        names = (site.keywords["format"] for keyword, site in shape.languages if keyword == "format")
        return self._assert_formats and any(name in FORMATS and FORMATS[name].wider for name in names)

    def tells_nothing(self, keywords: Mapping[str, Any]) -> bool:
        """Whether there is no remark about the place of a schema that has some keywords."""
        name = keywords.get("format")
        return name is None or (self._assert_formats and name in FORMATS)

    def _parts(self, shape: StringShape) -> list[Body]:
        wanted = (LANGUAGES[keyword].body(self, site) for keyword, site in shape.languages)
        return [part for part in wanted if part is not None]

    def _body(self, shape: StringShape) -> Node:
        parts = self._parts(shape)
        low, high = shape.low, shape.high
        if (high is not None and low > high) or any(_are_apart((low, high), lengths) for _, lengths in parts):
            return FAIL
        bodies = [node for node, _ in parts if node != self.text.any_body]
        if len(bodies) == 1 and not any(_is_within(lengths, (low, high)) for _, lengths in parts):
            of_length = self._pattern_of_length(shape)
            if of_length is not None:
                bodies = [of_length]
                parts = [(of_length, (low, high))]
        if not bodies or not any(_is_within(lengths, (low, high)) for _, lengths in parts):
            bodies.append(self._grammar.repeat(self.text.any_character, low, high))
        whole = self._grammar.both(*bodies, *(self._mismatch(each) for each in shape.mismatches))
        claims = [*shape.languages, *((f"not {each.keyword}", each.site) for each in shape.mismatches)]
        if claims:
            lengths = [("minLength", low > 0), ("maxLength", high is not None)]
            keywords = [*(keyword for keyword, _ in claims), *(name for name, is_set in lengths if is_set)]
            self._grammar.claim(whole, common_path(site.path for _, site in claims), keywords)
        return whole

    def _pattern_of_length(self, shape: StringShape) -> Node | None:
        """The strings of a shape that has one pattern, where its length is no intersection; else None."""
        (keyword, site), *others = shape.languages
        dialect = _DIALECT_OF.get(keyword)
        if others or dialect is None:
            return None
        return texts_of_length(
            self._grammar, site.keywords[keyword], shape.low, shape.high, dialect=dialect, unit=self.text.pattern_unit,
            limits=self._limits,
        )  # fmt: skip

    def _mismatch(self, literal: Mismatch) -> Node:
        """The strings that violate a keyword; FAIL where it claims nothing."""
        language = LANGUAGES[literal.keyword]
        return FAIL if language.body(self, literal.site) is None else language.complement(self, literal.site)

    def _pattern(self, site: Site, keyword: str, dialect: str) -> Body | None:
        return self.search(site.keywords[keyword], site, keyword, dialect)

    def _without_pattern(self, site: Site, keyword: str, dialect: str) -> Node:
        return self.mismatch(site.keywords[keyword], dialect)

    def _lower_pattern(self, pattern: str, site: Site, keyword: str, dialect: str) -> Body | None:
        def lower() -> Node:
            unit = self.text.pattern_unit
            return lower_pattern(self._grammar, pattern, dialect=dialect, full=False, unit=unit, limits=self._limits)

        try:
            key = ("pattern", dialect, pattern, self.text.notation, self._limits)
            first = len(self._grammar)
            node = LOWERING_CACHE.node(self._grammar, key, lower, may_be_rare=True)
            self._claim_all(first, site, keyword)
            return node, _pattern_length(pattern, dialect, self._limits)
        except UnsupportedKeyword as error:
            self._policy.refuse(located(error, site.path, keyword))  # type: ignore[arg-type]
            return None
        except ConstraintError as error:
            raise located(error, site.path, keyword) from None

    def _claim_all(self, first: int, site: Site, keyword: str) -> None:
        """Say of the intersections and complements inside of a pattern, which are the nodes from `first` on, whose they are."""
        kinds = self._grammar.rows[4 * first :: 4]
        if Kind.BOTH in kinds or Kind.NEGATE in kinds:
            for made, kind in enumerate(kinds, first):
                if kind in (Kind.BOTH, Kind.NEGATE):
                    self._grammar.claim(Node(made), site.path, (keyword,))

    def _lower_format(self, name: str) -> Node:
        node = format_node(self._grammar, name, self.text.pattern_unit, self._limits)
        assert node is not None
        return node

    def _format(self, site: Site) -> Body | None:
        name = site.keywords["format"]
        if not self._assert_formats:
            self._policy.note(f"{site.path}: format {name!r} is an annotation here (formats='annotation')")
            return None
        if name not in FORMATS:
            self._policy.note(f"{site.path}: format {name!r} is not known and not asserted")
            return None
        if ("format", name) not in self._bodies:
            key = ("format", name, self.text.notation, self._limits)
            node = LOWERING_CACHE.node(self._grammar, key, lambda: self._lower_format(name))
            note_narrower(self._grammar, name)
            self._bodies["format", name] = node, format_length(name)
        return self._bodies["format", name]

    def _without_format(self, site: Site) -> Node:
        name = site.keywords["format"]
        key = ("not format", name, self.text.notation)
        if key not in self._grammar.memo:
            self._grammar.memo[key] = self._grammar.negate(wider_node(self._grammar, name, self.text.pattern_unit, self._limits))
        return self._grammar.memo[key]

    def _number(self, site: Site) -> Body:
        """The canonical spellings of numbers within limits, which need no escapes."""
        limits = {keyword: Decimal(value) for keyword, value in site.keywords["x-maskwright-number"].items()}
        low, high = limits.get("minimum"), limits.get("maximum")
        above, below = limits.get("exclusiveMinimum"), limits.get("exclusiveMaximum")
        excludes_low = above is not None and (low is None or above >= low)
        excludes_high = below is not None and (high is None or below <= high)
        low, high = above if excludes_low else low, below if excludes_high else high
        step = limits.get("multipleOf")
        node = not_multiple_node(
            self._grammar, [], multiple_of=step, integer=step is not None and is_integral(step),
            low=low, high=high, exclusive_low=excludes_low, exclusive_high=excludes_high,
            digits=self._limits.digits,
        )  # fmt: skip
        return node, (1, None if step is None or low is None or high is None else _longest_number(low, high, step))

    def _without_number(self, site: Site) -> Node:
        return self._grammar.negate(self._number(site)[0])

    def _utf8_length(self, site: Site) -> Body:
        """The strings of some number of bytes in UTF-8."""
        limits = site.keywords["x-maskwright-utf8Length"]
        low, high = int(limits.get("minimum", 0)), limits.get("maximum")
        key = ("UTF-8 length", low, high, self.text.notation)
        if key not in self._grammar.memo:
            self._grammar.memo[key] = self._of_bytes(low, None if high is None else int(high))
        return self._grammar.memo[key], (-(-low // 4), high)

    def _of_bytes(self, low: int, high: int | None) -> Node:
        most = low if high is None else high
        if most > self._limits.repetition:
            raise ConstraintLimit(f"{most} bytes", limit="repetition", value=self._limits.repetition)
        grammar, units = self._grammar, [self.text.pattern_unit(ranges) for ranges in _OF_BYTES]
        behind: list[Node] = []  # of so many bytes before the most: what may follow
        for left in range(most + 1):
            longer = [grammar.seq(units[n - 1], behind[left - n]) for n in range(1, min(left, 4) + 1)]
            if high is None:  # any number of bytes once there are enough
                longer += (
                    [grammar.seq(unit, self.text.any_body) for unit in units[left:]] if left else [self.text.any_body]
                )
            behind.append(grammar.alt(*([EMPTY] if most - left >= low else []), *longer))
        return behind[-1]

    def _without_utf8_length(self, site: Site) -> Node:
        return self._grammar.negate(self._utf8_length(site)[0])


def _longest_number(low: Decimal, high: Decimal, step: Decimal) -> int:
    """The characters of the longest multiple of a step between two numbers: a sign, digits, a point, digits."""
    return max(len(f"{low:.0f}"), len(f"{high:.0f}")) + 3 + max(0, -int(step.as_tuple().exponent))


_OF_BYTES: tuple[Ranges, ...] = (((0, 0x7F),), ((0x80, 0x7FF),), ((0x800, 0xFFFF),), ((0x10000, MAX_CODE_POINT),))


@dataclass(frozen=True)
class Language:
    """How a keyword that claims a set of strings is lowered, for the site that has it.

    body: to the strings of the set; to None where the keyword claims nothing. complement: to all other strings, where it claims
    something.
    """

    body: Callable[[Strings, Site], Body | None]
    complement: Callable[[Strings, Site], Node]


_DIALECT_OF = {"pattern": "ecma", "x-maskwright-rustPattern": "rust", "x-maskwright-pythonPattern": "python"}
LANGUAGES = {
    **{
        keyword: Language(
            partial(Strings._pattern, keyword=keyword, dialect=dialect),
            partial(Strings._without_pattern, keyword=keyword, dialect=dialect),
        )
        for keyword, dialect in _DIALECT_OF.items()
    },
    "x-maskwright-number": Language(Strings._number, Strings._without_number),
    "x-maskwright-utf8Length": Language(Strings._utf8_length, Strings._without_utf8_length),
    "format": Language(Strings._format, Strings._without_format),
}


@lru_cache(maxsize=4096)
def _pattern_length(pattern: str, dialect: str, limits: Limits) -> Lengths:
    return pattern_length(pattern, dialect=dialect, full=False, limits=limits)


def _is_within(inner: Lengths, outer: Lengths) -> bool:
    return inner[0] >= outer[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))


def _are_apart(a: Lengths, b: Lengths) -> bool:
    return (a[1] is not None and a[1] < b[0]) or (b[1] is not None and b[1] < a[0])

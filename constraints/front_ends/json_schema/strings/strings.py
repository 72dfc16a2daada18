"""String shapes as grammar nodes: the characters between the quotes. `LANGUAGES` says how `pattern` and its like are lowered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ....base.errors import ConstraintError, UnsupportedKeyword
from ....grammar.cardinality import list_words
from ....grammar.expression import FAIL, Grammar, Node
from ....grammar.lowering_cache import LOWERING_CACHE
from ....grammar.matcher import Steps
from ....grammar.source import Limits
from ...regex.regex import lower_mismatch, lower_pattern, pattern_length
from ..documents.document import Site
from ..documents.paths import common_path
from ..documents.policy import Policy, located
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
        self._bodies: dict[tuple[str, str], Body | None] = {}  # by keyword ("pattern" or "format") and its value
        self._mismatches: dict[str, Node] = {}  # by pattern
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

    def search(self, pattern: str, site: Site, keyword: str) -> Body | None:
        """The strings in which a pattern matches somewhere; None when the pattern is not supported and was relaxed."""
        key = ("pattern", pattern)
        if key not in self._bodies:
            self._bodies[key] = self._lower_pattern(pattern, site, keyword)
        return self._bodies[key]

    def mismatch(self, pattern: str) -> Node:
        """All strings in which a pattern, which `search` has lowered, matches nowhere; and byte strings that are no text."""
        known = self._mismatches.get(pattern)
        if known is None:
            key = ("not pattern", pattern, self.text.notation, self._limits)
            known = LOWERING_CACHE.node(self._grammar, key, lambda: self._lower_mismatch(pattern), may_be_rare=True)
            self._mismatches[pattern] = known
        return known

    def _lower_mismatch(self, pattern: str) -> Node:
        return lower_mismatch(self._grammar, pattern, unit=self.text.unit, limits=self._limits)

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

    def _parts(self, shape: StringShape) -> list[Body]:
        wanted = (LANGUAGES[keyword].body(self, site) for keyword, site in shape.languages)
        return [part for part in wanted if part is not None]

    def _body(self, shape: StringShape) -> Node:
        parts = self._parts(shape)
        low, high = shape.low, shape.high
        if (high is not None and low > high) or any(_are_apart((low, high), lengths) for _, lengths in parts):
            return FAIL
        bodies = [node for node, _ in parts if node != self.text.any_body]
        if not bodies or not any(_is_within(lengths, (low, high)) for _, lengths in parts):
            bodies.append(self._grammar.repeat(self.text.any_character, low, high))
        whole = self._grammar.both(*bodies, *(self._mismatch(each) for each in shape.mismatches))
        claims = [*shape.languages, *((f"not {each.keyword}", each.site) for each in shape.mismatches)]
        if claims:
            lengths = [("minLength", low > 0), ("maxLength", high is not None)]
            keywords = [*(keyword for keyword, _ in claims), *(name for name, is_set in lengths if is_set)]
            self._grammar.claim(whole, common_path(site.path for _, site in claims), keywords)
        return whole

    def _mismatch(self, literal: Mismatch) -> Node:
        """The strings that violate a keyword; FAIL where it claims nothing."""
        language = LANGUAGES[literal.keyword]
        return FAIL if language.body(self, literal.site) is None else language.complement(self, literal.site)

    def _pattern(self, site: Site) -> Body | None:
        return self.search(site.keywords["pattern"], site, "pattern")

    def _without_pattern(self, site: Site) -> Node:
        return self.mismatch(site.keywords["pattern"])

    def _lower_pattern(self, pattern: str, site: Site, keyword: str) -> Body | None:
        def lower() -> Node:
            unit = self.text.pattern_unit
            return lower_pattern(self._grammar, pattern, dialect="ecma", full=False, unit=unit, limits=self._limits)

        try:
            key = ("pattern", pattern, self.text.notation, self._limits)
            node = LOWERING_CACHE.node(self._grammar, key, lower, may_be_rare=True)
            return node, _pattern_length(pattern, self._limits)
        except UnsupportedKeyword as error:
            self._policy.refuse(located(error, site.path, keyword))  # type: ignore[arg-type]
            return None
        except ConstraintError as error:
            raise located(error, site.path, keyword) from None

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


@dataclass(frozen=True, slots=True)
class Language:
    """How a keyword that claims a set of strings is lowered, for the site that has it.

    body: to the strings of the set; to None where the keyword claims nothing. complement: to all other strings, where it claims
    something.
    """

    body: Callable[[Strings, Site], Body | None]
    complement: Callable[[Strings, Site], Node]


LANGUAGES = {
    "pattern": Language(Strings._pattern, Strings._without_pattern),
    "format": Language(Strings._format, Strings._without_format),
}


@lru_cache(maxsize=4096)
def _pattern_length(pattern: str, limits: Limits) -> Lengths:
    return pattern_length(pattern, dialect="ecma", full=False, limits=limits)


def _is_within(inner: Lengths, outer: Lengths) -> bool:
    return inner[0] >= outer[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))


def _are_apart(a: Lengths, b: Lengths) -> bool:
    return (a[1] is not None and a[1] < b[0]) or (b[1] is not None and b[1] < a[0])

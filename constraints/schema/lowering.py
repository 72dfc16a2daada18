"""Conjunctions of sites to grammar nodes.

A conjunction becomes the union, over its terms and the JSON types, of the texts of one shape. Each is lowered once; one that is
met again inside itself becomes a rule, and so does what is nested deeply, which keeps Python's own recursion shallow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ..expression import FAIL, Grammar, Node, Rule
from ..formats import FORMATS, format_node
from ..numbers import number_node
from ..regex import lower_pattern, pattern_length
from ..source import Limits
from .branches import Branches, Conj, Term
from .disjoint import Disjointness
from .document import Site
from .members import Member, Members
from .membership import Membership
from .policy import Policy, located
from .shapes import NumberShape, Shapes, StringShape
from .text import JsonText
from .values import scalar_text

Body = tuple[Node, tuple[int, int | None]]  # what stands between the quotes of a string, and bounds on its length
MAX_INLINE = 24  # levels of nested values lowered in place
MAX_PERMUTED = 6  # undeclared members of an enumerated object that may come in any order


class Lowering:
    """Lowers the sites of one schema into one grammar."""

    def __init__(self, grammar: Grammar, limits: Limits, policy: Policy, text: JsonText, assert_formats: bool) -> None:
        self._grammar, self._limits, self._policy, self._text = grammar, limits, policy, text
        self._assert_formats = assert_formats
        self._members = Members(grammar, text)
        self._branches = Branches(policy, lambda groups: self._disjointness.are_disjoint(groups))
        self._shapes = Shapes(self._branches, policy, limits)
        self._membership = Membership(grammar, self._branches, self._shapes, self.string)
        self._disjointness = Disjointness(self._branches, self._shapes, self._membership)
        self._nodes: dict[Conj, Node] = {}
        self._typed: dict[tuple[Term, str], Node] = {}
        self._strings: dict[StringShape, Node] = {}
        self._bodies: dict[tuple[str, str], Body | None] = {}  # by keyword ("pattern" or "format") and its value
        self._rules: dict[Conj, Rule] = {}
        self._open: set[Conj] = set()
        self._deferred: list[Conj] = []
        self._causes: list[str] = []  # why alternatives were found empty, first one first

    def whole(self, root: Site) -> Node:
        """The texts of a schema's values. Raises `ConstraintError` when there is none."""
        conj = self._branches.conj([root])
        node = self.node(conj)
        while self._deferred:
            later = self._deferred.pop()
            self._grammar.define(self._rules[later], self._lower(later))
        self._branches.prove()
        if node == FAIL:
            why = f": {self._causes[0]}" if self._causes else ""
            raise ConstraintError(f"no value satisfies the schema{why}", path=root.path, instead="a schema with a value")
        return self._grammar.seq(self._text.margin, node, self._text.margin)

    def node(self, conj: Conj) -> Node:
        """The texts of a conjunction's values; FAIL when there is none."""
        known = self._nodes.get(conj)
        if known is not None:
            return known
        if conj in self._rules or conj in self._open:
            return self._grammar.call(self._rule(conj))
        if len(self._open) >= MAX_INLINE:
            self._deferred.append(conj)
            return self._grammar.call(self._rule(conj))
        node = self._lower(conj)
        if conj in self._rules:
            self._grammar.define(self._rules[conj], node)
            node = self._grammar.call(self._rules[conj]) if node != FAIL else FAIL
        self._nodes[conj] = node
        return node

    def _rule(self, conj: Conj) -> Rule:
        if conj not in self._rules:
            self._rules[conj] = self._grammar.rule(conj[0].path if conj else "any JSON value")
        return self._rules[conj]

    def _lower(self, conj: Conj) -> Node:
        if len(self._grammar) > self._limits.nodes:
            raise ConstraintLimit("the schema is too large", limit="nodes", value=self._limits.nodes)
        opened, self._open = self._open, self._open | {conj} if conj not in self._rules else {conj}
        terms = self._branches.terms(conj)
        self._branches.prove()
        node = self._grammar.alt(*(self._term(term) for term in terms))
        self._open = opened
        if node == FAIL and conj:
            self._causes.append(f"{conj[0].path} admits nothing")
        return self._grammar.label(node, conj[0].path) if conj and node != FAIL else node

    # -- one alternative ----------------------------------------------------------------------------------------------

    def _term(self, term: Term) -> Node:
        values = self._shapes.values(term)
        if values is not None:
            return self._typed_node(term, "values")
        atoms = self._shapes.atoms(term)
        kinds = ["number" if atom == "fraction" else atom for atom in _ORDER if atom in atoms]
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        if not kinds:
            self._causes.append(f"the types at {', '.join(site.path for site in term)} exclude each other")
        return self._grammar.alt(*(self._typed_node(term, kind) for kind in kinds))

    def _typed_node(self, term: Term, kind: str) -> Node:
        known = self._typed.get((term, kind))
        if known is None:
            known = self._typed[term, kind] = getattr(self, f"_{kind}")(term)
            if known == FAIL:
                self._causes.append(f"no {kind} satisfies {', '.join(site.path for site in term)}")
        return known

    def _null(self, term: Term) -> Node:
        return self._grammar.literal("null")

    def _boolean(self, term: Term) -> Node:
        return self._grammar.words([b"false", b"true"])

    def _integer(self, term: Term) -> Node:
        return self._number(term)

    def _number(self, term: Term) -> Node:
        try:
            return self._number_node(self._shapes.number(term))
        except ConstraintLimit as error:
            raise located(error, term[0].path if term else "#", "minimum or maximum") from None

    def _number_node(self, shape: NumberShape) -> Node:
        interval, digits = shape.interval, self._limits.digits
        if interval.is_empty():
            return FAIL
        node = number_node(
            self._grammar, integer=shape.fraction_digits == 0, low=interval.low, high=interval.high,
            exclusive_low=interval.exclusive_low, exclusive_high=interval.exclusive_high, digits=digits,
        )  # fmt: skip
        if not shape.fraction_digits:
            return node
        grammar = self._grammar
        some, few = (grammar.repeat(grammar.bytes_in([(48, 57)]), 1, most) for most in (digits, shape.fraction_digits))
        fraction = grammar.optional(grammar.seq(grammar.literal("."), few))
        return grammar.both(node, grammar.seq(grammar.optional(grammar.literal("-")), some, fraction))

    def _string(self, term: Term) -> Node:
        shape = self._shapes.string(term)
        self._check_counts(term, "minLength", shape.low, shape.high)
        return self.string(shape)

    def _array(self, term: Term) -> Node:
        shape = self._shapes.array(term)
        self._check_counts(term, "minItems", shape.low, shape.high)
        prefix = [self.node(conj) for conj in shape.prefix[: shape.high]]
        rest = FAIL if shape.high is not None and shape.high <= len(prefix) else self.node(shape.rest)
        return self._members.array(prefix, rest, shape.low, shape.high)

    def _object(self, term: Term) -> Node:
        shape = self._shapes.object(term)
        rest = self.node(shape.rest)
        required = set(shape.required)
        declared = [Member(name, self.node(conj), name in required) for name, conj in shape.declared.items()]
        undeclared = [Member(name, rest) for name in shape.required if name not in shape.declared]
        for member in declared + undeclared:
            if member.is_required and member.value == FAIL:
                self._causes.append(f"the required member {member.name!r} admits no value")
        return self._members.object(declared, undeclared, rest)

    def _check_counts(self, term: Term, keyword: str, low: int, high: int | None) -> None:
        limit = self._limits.repetition
        if max(low, high or 0) > limit:
            path = term[0].path if term else "#"
            raise ConstraintLimit(
                f"{keyword} or its maximum is {max(low, high or 0)}", limit="repetition", value=limit, path=path
            )

    # -- strings ------------------------------------------------------------------------------------------------------

    def string(self, shape: StringShape) -> Node:
        """The texts of strings of a shape, quotes included."""
        known = self._strings.get(shape)
        if known is None:
            known = self._strings[shape] = self._text.string(self._body(shape))
        return known

    def _body(self, shape: StringShape) -> Node:
        found = [self._pattern(site) for site in shape.patterns] + [self._format(site) for site in shape.formats]
        parts = [part for part in found if part is not None]
        low, high = shape.low, shape.high
        if (high is not None and low > high) or any(_are_apart((low, high), length) for _, length in parts):
            return FAIL
        bodies = [node for node, _ in parts if node != self._text.any_body]
        if not bodies or not any(_is_within(length, (low, high)) for _, length in parts):
            bodies.append(self._grammar.repeat(self._text.any_character, low, high))
        return self._grammar.both(*bodies)

    def _pattern(self, site: Site) -> Body | None:
        pattern = site.keywords["pattern"]
        if ("pattern", pattern) not in self._bodies:
            self._bodies["pattern", pattern] = self._pattern_body(site, pattern)
        return self._bodies["pattern", pattern]

    def _pattern_body(self, site: Site, pattern: str) -> Body | None:
        try:
            node = lower_pattern(
                self._grammar, pattern, dialect="ecma", full=False, unit=self._text.unit, limits=self._limits
            )
            return node, _pattern_length(pattern, False, self._limits)
        except UnsupportedKeyword as error:
            self._policy.refuse(located(error, site.path, "pattern"))  # type: ignore[arg-type]
            return None
        except ConstraintError as error:
            raise located(error, site.path, "pattern") from None

    def _format(self, site: Site) -> Body | None:
        name = site.keywords["format"]
        if not self._assert_formats:
            self._policy.note(f"{site.path}: format {name!r} is an annotation here (formats='annotation')")
            return None
        if name not in FORMATS:
            self._policy.note(f"{site.path}: format {name!r} is not known and not asserted")
            return None
        if ("format", name) not in self._bodies:
            node = format_node(self._grammar, name, self._text.unit, self._limits)
            assert node is not None
            self._bodies["format", name] = node, _pattern_length(FORMATS[name].pattern, True, self._limits)
        return self._bodies["format", name]

    # -- enum and const -----------------------------------------------------------------------------------------------

    def _values(self, term: Term) -> Node:
        values = self._shapes.values(term)
        assert values is not None
        kept = [value for value in values.values() if self._membership.in_shape(term, value)]
        scalars = [value for value in kept if not isinstance(value, (dict, list))]
        others = [self._value_in(term, value) for value in kept if isinstance(value, (dict, list))]
        try:
            texts = [scalar_text(value, self._limits.digits).encode() for value in scalars]
        except ConstraintLimit as error:
            raise located(error, term[0].path, "enum or const") from None
        return self._grammar.alt(self._grammar.words(texts), *others)

    def _value(self, conj: Conj, value: Any) -> Node:
        """The texts of one value that a conjunction admits."""
        if not isinstance(value, (dict, list)):
            return self._grammar.literal(scalar_text(value, self._limits.digits))
        return self._value_in(next(t for t in self._branches.terms(conj) if self._membership.in_term(t, value)), value)

    def _value_in(self, term: Term, value: Any) -> Node:
        if isinstance(value, list):
            items = self._shapes.array(term)
            nodes = [self._value(items.item(i), item) for i, item in enumerate(value)]
            return self._members.array(nodes, FAIL, len(nodes), len(nodes))
        shape = self._shapes.object(term)
        declared = [name for name in shape.declared if name in value]
        undeclared = [name for name in value if name not in shape.declared]
        if len(undeclared) > MAX_PERMUTED:
            self._policy.note(f"{term[0].path if term else '#'}: an enumerated object keeps its keys in the order written")
            declared, undeclared = declared + undeclared, []
        member = {name: Member(name, self._value(shape.member(name), item)) for name, item in value.items()}
        return self._members.object([member[name] for name in declared], [member[name] for name in undeclared], FAIL)


_ORDER = ("null", "boolean", "fraction", "integer", "string", "array", "object")


@lru_cache(maxsize=4096)
def _pattern_length(pattern: str, full: bool, limits: Limits) -> tuple[int, int | None]:
    return pattern_length(pattern, dialect="ecma", full=full, limits=limits)


def _is_within(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> bool:
    return inner[0] >= outer[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))


def _are_apart(a: tuple[int, int | None], b: tuple[int, int | None]) -> bool:
    return (a[1] is not None and a[1] < b[0]) or (b[1] is not None and b[1] < a[0])

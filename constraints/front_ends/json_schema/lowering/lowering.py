"""Grammar nodes made of conjunctions of claims.

A conjunction becomes the union, over its terms and the JSON types, of the texts of one shape. Each is lowered once; one that is
met again inside itself becomes a rule, and so does what is nested deeply, which keeps Python's own recursion shallow.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from decimal import Decimal
from functools import cache, partial, reduce
from typing import Any, Final

from ....base.errors import ConstraintError, ConstraintLimit
from ....grammar.cardinality import shows_endless
from ....grammar.expression import FAIL, Grammar, Node, Rule
from ....grammar.productivity import barren_rules
from ....grammar.source import Limits
from ....grammar.stopwatch import look
from ...numbers.multiples import common_step, not_multiple_node
from ..algebra.branches import Branches
from ..algebra.claims import Among, Claim, Condition, Conj, Count, Equals, Index, Keys, Kinds, Literal, NameTest, Term
from ..algebra.discriminators import Discriminators
from ..algebra.disjoint import Disjointness
from ..algebra.finite_sets import FiniteSets
from ..algebra.membership import Membership
from ..algebra.mixed_arrays import MixedArrays
from ..algebra.names import Names
from ..algebra.numbering import Numbering
from ..algebra.partitions import Partitions
from ..algebra.shapes import NumberShape, ObjectShape
from ..algebra.shaping import Shapes
from ..documents.document import Site
from ..documents.keyword_table import concerning
from ..documents.keywords import TYPES
from ..documents.policy import Policy, entry_of, located
from ..documents.values import dump_json, equality_key
from ..strings.few_texts import few_texts
from ..strings.strings import Body, Strings
from ..strings.text import JsonText
from .builders import Builders
from .containers import Containers
from .objects import Objects
from .plain import MAX_INLINE, PlainSchemas

MAX_FLAT: Final = 16  # items or members of a value whose texts are written without ado
MAX_PROVEN: Final = 40  # claims of one item that are looked at as alternatives, to prove that nothing satisfies them


class Lowering:
    """Lowers the sites of one schema into one grammar."""

    def __init__(
        self, grammar: Grammar, limits: Limits, policy: Policy, text: JsonText, *, assert_formats: bool, is_ordered: bool
    ) -> None:
        self._grammar, self._limits, self._policy, self._text = grammar, limits, policy, text
        self._assert_formats, self._is_ordered = assert_formats, is_ordered
        numbering = Numbering(tells_all=policy.tells_all)
        self._builders: Builders | None = None
        self._branches = Branches(
            policy, numbering, lambda groups: self._with_builders.disjointness.are_disjoint(groups),
            lambda term: self._shapes.is_void(term),
            lambda schemas, decided: self._with_builders.discriminators.cases(schemas, decided),
        )  # fmt: skip
        self._shapes = Shapes(self._branches.conj, self._branches.is_contradiction, limits, self._check)
        values = text.values.canonical
        self._strings = Strings(grammar, values, limits, policy, assert_formats)  # what strings are
        self._spelled = self._strings  # how they are written
        if text.values is not values:
            self._spelled = Strings(grammar, text.values, limits, policy, assert_formats)
        self._membership = Membership(self._branches, self._shapes, self._strings, lambda: self._with_builders.names)
        self._causes: list[str] = []  # why alternatives were found empty, first one first
        self._together: list[list[Conj]] = []  # conjunctions of which any may hold in one place
        self._has_unique_arrays = False
        in_any_order = None if is_ordered else self._in_any_order
        self._plain = PlainSchemas(
            grammar, limits, text, self._spelled, self.node, lambda kind: self._typed_node((), kind), self._branches.conj,
            numbering, in_any_order, self._check, tells_all=policy.tells_all,
        )  # fmt: skip
        self._any_value = ("any value", text.notation, text.values.notation, text.whitespace, text.comma, text.colon, is_ordered)
        self._open: set[Conj] = set()
        self._deferred: list[Conj] = []
        self._barren: set[Conj] = set()  # rules without a value
        self._canonical: Lowering | None = None  # for what is remembered, if strings have several spellings
        self._begin()

    @property
    def _with_builders(self) -> Builders:
        """The builders of what is not plain; they are made when they are first asked for."""
        if self._builders is None:
            self._builders = self._new_builders()
        return self._builders

    def _new_builders(self) -> Builders:
        grammar, text, policy, branches, shapes, membership = (
            self._grammar, self._text, self._policy, self._branches, self._shapes, self._membership
        )  # fmt: skip
        of_names = self._strings
        if text.canonical is not text.values.canonical:
            of_names = Strings(grammar, text.canonical, self._limits, policy, self._assert_formats)
        names = Names(grammar, text.canonical, of_names, self._string_bodies, self._listed_strings)
        few = FiniteSets(branches, shapes, membership, self._few_strings)
        partitions = Partitions(branches.terms, branches.conj, shapes, membership)
        containers = Containers(
            grammar, text, self.node, few.count, self._together.append, branches.conj, self._admit_nothing,
            self._are_apart, partitions.cases, policy.refuse, self._check,
        )  # fmt: skip
        objects = Objects(
            grammar, text, names, self.node, self._together.append, branches.conj, shapes.lacks_values,
            self._are_apart, partitions.cases, shapes.values_listed, self._is_ordered, self._causes.append, self._check,
        )  # fmt: skip
        return Builders(
            names, Disjointness(branches, shapes, membership, self._strings, policy), Discriminators(branches, shapes, membership),
            MixedArrays(branches.terms, shapes, names, policy, self._is_ordered), containers, objects,
        )  # fmt: skip

    def _in_any_order(self, values: dict[str, Node], required: frozenset[str], other: Node) -> Node:
        return self._with_builders.objects.in_any_order(values, required, other)

    def _admit_nothing(self, claims: list[Claim]) -> bool:
        """Whether it is proven that no value satisfies some claims."""
        lacks_values = self._shapes.lacks_values(claims)
        return lacks_values or (len(claims) <= MAX_PROVEN and not self._branches.terms(self._branches.conj(claims)))

    def _begin(self) -> None:
        """Forget all that has been lowered, and the rules made for it."""
        known = self._grammar.memo.get(self._any_value)  # lowered once for all grammars, see JsonSchema.new_grammar
        self._nodes: dict[Conj, Node] = {} if known is None else {(): known}
        self._typed: dict[tuple[Term, str], Node] = {}
        self._rules: dict[Conj, Rule] = {}
        self._causes.clear()
        if self._builders is not None:
            self._builders.objects.forget()

    def whole(self, root: Site) -> Node:
        """The texts of a schema's values; FAIL when there is none, for which there may be a `cause`."""
        node = self.all_of(root)
        if node == FAIL:
            return FAIL
        return self._grammar.seq(self._text.margin, node)

    @property
    def cause(self) -> str | None:
        """The first reason that was found why something has no value."""
        return self._causes[0] if self._causes else None

    def all_of(self, *sites: Site) -> Node:
        """The texts of the values that satisfy all of these schemas; FAIL when there is none.

        That a value would have to contain itself is seen when all is lowered. As its absence matters where it stands (another
        member has to come instead), all is lowered again then, with FAIL in its place.
        """
        conj = self._branches.conj(sites)
        while True:
            node = self.node(conj)
            self._lower_deferred()
            if not self._leave_out_barren():
                break
        library = sites[0].document.library
        residue = (entry_of(path, *each) for path, dropped in library.dropped.items() for each in dropped.items())
        self._policy.tell(library.inspection.remarks, residue)
        return node

    def _leave_out_barren(self) -> bool:
        """Whether some rules turn out to have no value. From now on FAIL stands for these rules, and lowering begins again."""
        is_changed = self._canonical is not None and self._canonical._leave_out_barren()
        rules = barren_rules(self._grammar) if self._rules else set[Rule]()
        found = {conj for conj, rule in self._rules.items() if rule in rules}
        if found or is_changed:
            self._barren |= found
            self._begin()
        return bool(found) or is_changed

    def _lower_deferred(self) -> None:
        while self._deferred:
            later = self._deferred.pop()
            self._grammar.define(self._rules[later], self._lower(later))
        if self._canonical is not None:
            self._canonical._lower_deferred()
        if self._has_unique_arrays:
            while self._together and not self._grammar.mixed_arrays:
                self._grammar.mixed_arrays = self._with_builders.mixed_arrays.stand_in(self._together.pop())

    def _are_apart(self, conjs: list[Conj]) -> bool:
        """Whether it is proven that no value satisfies two of some conjunctions."""
        return self._with_builders.disjointness.are_disjoint([self._branches.pending_terms(conj) for conj in conjs])

    def admits(self, site: Site, value: Any) -> bool:
        """Whether a value satisfies a schema."""
        return self._membership.in_conj(self._branches.conj((site,)), value)

    def names_passed(self, name: str, tests: Collection[NameTest]) -> frozenset[NameTest]:
        """The conditions on names that a name meets."""
        return self._with_builders.names.passed(name, tests)

    def node(self, conj: Conj) -> Node:
        """The texts of a conjunction's values; FAIL when there is none."""
        known = self._nodes.get(conj)
        if known is not None:
            return known
        if conj in self._barren:
            self._causes.append(f"every value of {conj[0].path} would contain another one")
            return FAIL
        if conj in self._rules or conj in self._open:
            return self._grammar.call(self._rule(conj))
        if self._plain.levels >= MAX_INLINE:
            if all(map(self._shapes.is_void, self._branches.terms(conj))):  # where it stands, it matters that there is none
                return FAIL
            self._deferred.append(conj)
            return self._grammar.call(self._rule(conj))
        node = self._lower(conj)
        if conj in self._rules:
            self._grammar.define(self._rules[conj], node)
            node = self._grammar.call(self._rules[conj]) if node != FAIL else FAIL
        self._nodes[conj] = node
        if not conj:
            self._grammar.memo[self._any_value] = node
        return node

    def _rule(self, conj: Conj) -> Rule:
        if conj not in self._rules:
            self._rules[conj] = self._grammar.rule(conj[0].path if conj else "any JSON value")
        return self._rules[conj]

    def _lower(self, conj: Conj) -> Node:
        self._check(conj[0].path if conj else None)
        plain = self._plainly(conj)
        if plain is not None and plain != FAIL:
            return self._grammar.label(plain, conj[0].path)
        opened, levels = self._enter(conj)
        self._together.append([conj])
        node = self._grammar.alt(*(self._term(term) for term in self._branches.terms(conj)))
        self._open, self._plain.levels = opened, levels
        if node == FAIL and conj:
            self._causes.append(f"{conj[0].path} admits nothing")
        return self._grammar.label(node, conj[0].path) if conj and node != FAIL else node

    def _enter(self, conj: Conj) -> tuple[set[Conj], int]:
        """Lower inside of a conjunction from now on: in place, or as a rule. Returns what was open before."""
        before = self._open, self._plain.levels
        if conj in self._rules:
            self._open, self._plain.levels = {conj}, 1
        else:
            self._open, self._plain.levels = self._open | {conj}, self._plain.levels + 1
        return before

    def _plainly(self, conj: Conj) -> Node | None:
        """The texts of one schema that says little, as most do: alternatives and shapes of it need not be known. None of all
        others, and of what admits nothing."""
        site = conj[0] if len(conj) == 1 else None
        if not isinstance(site, Site) or len(site.active) != len(site.keywords):  # what means nothing is remarked on
            return None
        kind = site.active.get("type")
        if kind == "object" or kind == "array":
            return self._plain_container(conj, site, kind)
        scalar = self._plain.scalar(site)
        return self._plain.of_types(site, partial(self._plain_container, conj, site)) if scalar is None else scalar

    def _plain_container(self, conj: Conj, site: Site, kind: str) -> Node | None:
        term: Term = (site,)
        known = self._typed.get((term, kind))
        if known is not None:
            return known
        opened, levels = self._enter(conj)
        node = self._plain.object(site) if kind == "object" else self._plain.array(site)
        self._open, self._plain.levels = opened, levels
        if node is not None:
            self._typed[term, kind] = node
        return node

    def _check(self, path: str | None = None) -> None:
        """Raise `ConstraintLimit` when nodes, bytes or time are used up. All that may grow passes here, or asks the policy."""
        if len(self._grammar) > self._limits.nodes:
            raise ConstraintLimit("the schema is too large", limit="nodes", value=self._limits.nodes)
        self._policy.check_time(path)

    # -- one alternative ----------------------------------------------------------------------------------------------

    def _term(self, term: Term) -> Node:
        values = self._shapes.values(term)
        if values is not None:
            return self._typed_node(term, "values")
        kinds = _kinds(self._shapes.atoms(term))
        if not kinds:
            self._causes.append(f"the types at {_shown(term)} exclude each other")
        return self._grammar.alt(*(self._typed_node(term, kind) for kind in kinds))

    def _typed_node(self, term: Term, kind: str) -> Node:
        known = self._typed.get((term, kind))
        if known is None:
            said = _about(term, kind)
            known = self._typed[term, kind] = self._typed_node(said, kind) if said != term else getattr(self, f"_{kind}")(term)
            if known == FAIL:
                self._causes.append(f"no {'listed value' if kind == 'values' else kind} satisfies {_shown(term)}")
        return known

    def _null(self, term: Term) -> Node:
        return self._without_values(self._grammar.literal(self._text.constants[None]), term, "null")

    def _boolean(self, term: Term) -> Node:
        both = (self._text.constants[value].encode() for value in (False, True))
        return self._without_values(self._grammar.words(both), term, "boolean")

    def _without_values(self, node: Node, term: Term, kind: str) -> Node:
        """The texts of scalars without those that are excluded one by one."""
        excluded = [value for value in self._shapes.excluded(term).values() if _is_of(value, kind)]
        if not excluded:
            return node
        texts = {self._scalar_text(term, value).encode() for value in excluded}
        if kind in ("null", "boolean"):
            values = (None,) if kind == "null" else (False, True)
            every = {self._text.constants[value].encode() for value in values}
            return self._grammar.words(every - texts)
        return self._grammar.without(node, self._grammar.words(texts))

    # -- numbers ------------------------------------------------------------------------------------------------------

    def _integer(self, term: Term) -> Node:
        return self._number(term)

    def _number(self, term: Term) -> Node:
        try:
            return self._without_values(self._number_node(term, self._shapes.number(term)), term, "number")
        except ConstraintLimit as error:
            raise located(error, _path(term), "multipleOf" if error.limit == "modulus" else "minimum or maximum") from None

    def _number_node(self, term: Term, shape: NumberShape) -> Node:
        grammar, interval, digits = self._grammar, shape.interval, self._limits.digits
        if interval.is_empty():
            return FAIL
        step = reduce(common_step, shape.steps) if shape.steps else None
        fractions = [] if "integer" in self._shapes.atoms(term) else [Decimal(1)]
        return not_multiple_node(
            grammar, [*fractions, *shape.not_steps], multiple_of=step, integer=shape.is_integer, low=interval.low,
            high=interval.high, exclusive_low=interval.exclusive_low, exclusive_high=interval.exclusive_high, digits=digits,
        )  # fmt: skip

    # -- strings ------------------------------------------------------------------------------------------------------

    def _string(self, term: Term) -> Node:
        return self._text.string(self._string_body(term, self._spelled))

    def _string_body(self, term: Term, strings: Strings) -> Node:
        """The texts between the quotes of the strings of a term."""
        values = self._shapes.values(term)
        if values is not None:
            kept = [value for value in values.values() if isinstance(value, str) and self._membership.in_shape(term, value)]
            return strings.text.bodies(kept)
        shape = self._shapes.string(term)
        self._check_least(term, "minLength", shape.low)
        excluded = [value for value in self._shapes.excluded(term).values() if isinstance(value, str)]
        return self._grammar.without(strings.body(shape), strings.text.bodies(excluded))

    def _few_strings(self, term: Term, most: int) -> list[str] | None:
        """The strings of a term; None where there are more than `most`, or may be."""
        shape = self._shapes.string(term)
        has_few = shape.languages or shape.mismatches or shape.high == 0
        if not has_few or self._strings.is_narrowed(shape):
            return None
        body = self._string_body(term, self._strings)
        texts = None if shows_endless(self._grammar, body) else few_texts(self._strings.steps, body, most)
        return None if texts is None else [json.loads(b'"' + text + b'"') for text in texts]

    def _string_bodies(self, conj: Conj) -> Body:
        """The texts between the quotes of the strings that satisfy a conjunction, and a bound on their length."""
        terms = [term for term in self._branches.terms(conj) if "string" in self._shapes.atoms(term)]
        longest = [self._strings.longest(self._shapes.string(term)) for term in terms]
        most = None if None in longest else max((length for length in longest if length is not None), default=0)
        return self._grammar.alt(*(self._string_body(term, self._strings) for term in terms)), (0, most)

    def _listed_strings(self, conj: Conj) -> list[str] | None:
        """The strings that satisfy a conjunction, where each of its terms lists them."""
        listed = [self._shapes.values(term) for term in self._branches.terms(conj)]
        if any(values is None for values in listed):
            return None
        strings = {value for values in listed for value in (values or {}).values() if isinstance(value, str)}
        return sorted(value for value in strings if self._membership.in_conj(conj, value))

    # -- arrays and objects ---------------------------------------------------------------------------------------------

    def _array(self, term: Term) -> Node:
        plain = self._plain.array(term[0]) if len(term) == 1 and isinstance(term[0], Site) else None
        return self._counted_array(term) if plain is None else plain

    def _must_differ(self, count: int) -> None:
        """What costs a new key, or item, is to be told for so many of them; names that are listed count as well."""
        self._grammar.most_different = max(self._grammar.most_different, count)

    def _counted_array(self, term: Term) -> Node:
        shape = self._shapes.array(term)
        self._check_least(term, "minItems", shape.low)
        for need in shape.needs:
            self._check_least(term, "minContains", need.low)
        if shape.is_unique:
            self._has_unique_arrays = True
            self._must_differ(shape.low + sum(need.low for need in shape.needs))
        try:
            builder = self._of_unique_items() if shape.is_unique else self
            return builder._with_builders.containers.array(shape)
        except ConstraintLimit as error:
            raise _with_place(error, term, "minItems") from None

    def _of_unique_items(self) -> Lowering:
        """Writes every string in one spelling: items that must differ are compared as texts."""
        if self._text.canonical is self._text:
            return self
        if self._canonical is None:
            self._canonical = Lowering(
                self._grammar, self._limits, self._policy, self._text.canonical,
                assert_formats=self._assert_formats, is_ordered=self._is_ordered,
            )  # fmt: skip
        return self._canonical

    def _object(self, term: Term) -> Node:
        plain = self._plain.object(term[0]) if len(term) == 1 and isinstance(term[0], Site) else None
        return self._counted_object(term) if plain is None else plain

    def _conditional_object(self, shape: ObjectShape) -> Node | None:
        """The objects of a shape with its conditions; None where its alternatives are to be told apart."""
        try:
            return self._with_builders.objects.conditional(shape)
        except ConstraintLimit as error:
            if error.limit != "alternatives" or not shape.conditions:
                raise
            return None

    def _counted_object(self, term: Term) -> Node:
        shape = self._shapes.object(term)
        self._check_least(term, "minProperties", shape.low)
        if shape.low > 0 or shape.needs:
            self._must_differ(shape.low + sum(need.low for need in shape.needs) + len(shape.named))
        try:
            if (node := self._conditional_object(shape)) is not None:
                return node
            cases = self._branches.spelled_out(term) if shape.conditions else self._cases(term, shape)
            if shape.conditions or cases:
                return self._grammar.alt(*(self._typed_node(case, "object") for case in cases if not self._shapes.is_void(case)))
            return self._with_builders.objects.object(shape)
        except ConstraintLimit as error:
            raise _with_place(error, term, "properties") from None

    def _cases(self, term: Term, shape: ObjectShape) -> list[Term]:
        """The alternatives that fulfil one clause in each of its ways, where they cost less than to follow it; else none."""
        clause = self._with_builders.objects.told_apart(shape)
        cases = [(*term, Count(option.where, option.conj, option.low, option.high)) for option in clause]
        is_simpler = all(len(self._shapes.object(case).clauses) < len(shape.clauses) for case in cases)
        return cases if is_simpler else []

    def _check_least(self, term: Term, keyword: str, low: int) -> None:
        """Refuse a lower bound beyond the limit. Upper bounds are free: they do not make texts longer."""
        limit = self._limits.repetition
        if low > limit:
            raise ConstraintLimit(f"{keyword} is {low} or more", limit="repetition", value=limit, path=_path(term))

    # -- enum and const -----------------------------------------------------------------------------------------------

    def _values(self, term: Term) -> Node:
        values = self._shapes.values(term)
        assert values is not None
        atoms = self._shapes.atoms(term)
        scalars = [value for value in values.values() if not isinstance(value, (dict, list))]
        kept = [value for value in scalars if self._membership.in_shape(term, value)]
        containers = [value for value in values.values() if isinstance(value, (dict, list))]
        arrays = [value for value in containers if isinstance(value, list) and "array" in atoms]
        objects = [value for value in containers if isinstance(value, dict) and "object" in atoms]
        others = [self._arrays_of(term, arrays), self._objects_of(term, objects)]
        return self._grammar.alt(self._scalar_texts(term, kept), *others)

    def _arrays_of(self, term: Term, arrays: list[list[Any]]) -> Node:
        """The texts of those of some arrays that satisfy the term; item by item, which may have other texts too."""
        flat = [[self._scalar_text(term, item).encode() for item in value] for value in arrays if self._is_flat(term, value)]
        others = (value for value in arrays if not self._is_flat(term, value))
        shapes = [self._shapes.array(term + _parts_of(value)) for value in others]
        self._has_unique_arrays = self._has_unique_arrays or any(shape.is_unique for shape in shapes)
        nodes = [self._with_builders.containers.array(shape) for shape in shapes]
        return self._grammar.alt(self._with_builders.containers.flat_arrays(flat) if flat else FAIL, *nodes)

    def _objects_of(self, term: Term, objects: list[dict[str, Any]]) -> Node:
        """The texts of those of some objects that satisfy the term; member by member, which may have other texts too."""
        flat = [
            {name: self._scalar_text(term, item).encode() for name, item in value.items()}
            for value in objects if self._is_flat(term, value.values())
        ]  # fmt: skip
        others = (value for value in objects if not self._is_flat(term, value.values()))
        nodes = [self._counted_object(term + _parts_of(value)) for value in others]
        return self._grammar.alt(self._with_builders.containers.flat_objects(flat) if flat else FAIL, *nodes)

    def _is_flat(self, term: Term, parts: Collection[Any]) -> bool:
        """Whether an array or object holds a few scalars, is written in one way, and satisfies a term if its type does."""
        few = len(parts) <= MAX_FLAT and not any(isinstance(part, (list, dict)) for part in parts)
        return few and self._text.canonical is self._text and all(map(_is_about_values, term))

    def _scalar_texts(self, term: Term, values: list[Any]) -> Node:
        try:
            return self._text.scalars(values, self._limits.digits)
        except ConstraintLimit as error:
            raise located(error, _path(term), "enum or const") from None

    def _scalar_text(self, term: Term, value: Any) -> str:
        try:
            return self._text.scalar(value, self._limits.digits)
        except ConstraintLimit as error:
            raise located(error, _path(term), "enum or const") from None


_ABOUT: Final = {kind: concerning(kind) for kind in ("string", "array", "object")}
_OF_CONTAINERS: Final = _ABOUT["array"] | _ABOUT["object"]
_ORDER: Final = ("null", "boolean", "fraction", "integer", "string", "array", "object")


@cache
def _kinds(atoms: frozenset[str]) -> tuple[str, ...]:
    """The kinds of values to write for some atoms, in the order in which they are written; integers are numbers, too."""
    kinds = ["number" if atom == "fraction" else atom for atom in _ORDER if atom in atoms]
    return tuple(kind for kind in kinds if kind != "integer" or "number" not in kinds)


def _about(term: Term, kind: str) -> Term:
    """The literals of a term that say something of values of one kind, if these are one or none; else the whole term."""
    keywords = _ABOUT.get(kind)
    if keywords is None:
        return term
    said = tuple(literal for literal in term if not isinstance(literal, Site) or not keywords.isdisjoint(literal.active))
    return said if len(said) < 2 else term


def _parts_of(value: list[Any] | dict[str, Any]) -> tuple[Literal, ...]:
    """The literals that together say a value equals this array or object, item by item or member by member."""
    if isinstance(value, list):
        items = (Count(Index(i, i + 1), (_equal(item),), 1, None) for i, item in enumerate(value))
        return (Kinds(TYPES["array"]), Count(Index(), (), len(value), len(value)), *items)
    names = Keys(frozenset(value), others=True)
    members = (Count(Keys(frozenset([name])), (_equal(item),), 1, None) for name, item in value.items())
    return (Kinds(TYPES["object"]), Count(names, (), 0, 0), *members)


def _is_about_values(literal: Literal) -> bool:
    """Whether a literal says nothing of arrays and objects beyond their type and the values listed."""
    if isinstance(literal, Site):
        return _OF_CONTAINERS.isdisjoint(literal.active)
    return isinstance(literal, (Kinds, Among))


def _equal(value: Any) -> Equals:
    look()
    return Equals(equality_key(value), value, dump_json(value))


def _is_of(value: Any, kind: str) -> bool:
    if value is None or isinstance(value, (bool, str)):
        return kind == ("null" if value is None else "boolean" if isinstance(value, bool) else "string")
    return kind == "number" and isinstance(value, (int, Decimal))


def _with_place(error: ConstraintLimit, term: Term, keyword: str) -> ConstraintError:
    """The error of a limit, with a place in the schema if it has none yet."""
    return error if error.path else located(error, _path(term), keyword)


def _path(term: Term) -> str:
    sites = (literal if isinstance(literal, Site) else literal.site for literal in term if isinstance(literal, (Site, Condition)))
    return next((site.path for site in sites), "#")


def _shown(term: Term) -> str:
    return ", ".join(dict.fromkeys(literal.path for literal in term if isinstance(literal, Site))) or "#"

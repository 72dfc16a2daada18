"""Objects whose members have conditions: formulas over which are there, followed as decision diagrams (conditional_members.py).

Members that no condition is about are parts of their own: declared ones in one chain, others one by one or, where they are many,
together, and remembered as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ....base.errors import ConstraintLimit
from ....base.kinds import LAST
from ....grammar.expression import EMPTY, FAIL, Event, Grammar, Node
from ....grammar.member_diagrams import MemberDiagrams
from ..algebra.claims import Claim, Conj
from ..algebra.formulas import AtLeast, Formula, Has, counts, facts, given, names_of
from ..algebra.shapes import ObjectShape
from ..strings.text import JsonText
from .conditional_members import ConditionalMembers, Member
from .member_order import in_narrow_order
from .value_cases import told_apart
from .variants import CasesOf

MAX_COUNTED = 4_000  # members that there must be at least, beside conditions
MAX_SINGLE = 48  # names in any order that are counted one by one; more are counted together, and remembered as they come

Cases = list[tuple[Node, dict[Conj, bool]]]  # of a member's value: its texts, and which conjunctions hold
Others = Sequence[tuple[Node, int | None]]  # members of other names, remembered as they come, and how many of them there are


Bounds = tuple[int, int | None]  # of how many members come


class Named(NamedTuple):
    """A member of a given name: its place, whether it must come, its value in all and by case."""

    name: str
    position: int
    is_required: bool
    value: Conj
    cases: Cases


class ConditionalObjects:
    """Builds the texts of such objects. The functions are those that `Objects` takes; `tree` writes members of many names."""

    def __init__(
        self, grammar: Grammar, text: JsonText, node_of: Callable[[Conj], Node], stand_together: Callable[[list[Conj]], None],
        conjoin: Callable[[Iterable[Claim]], Conj], lacks_values: Callable[[list[Claim]], bool],
        cases_of: CasesOf, values_of: Callable[[Conj], Mapping[str, Any] | None], explain: Callable[[str], None],
        check: Callable[[], None], tree: Callable[[dict[str, Node]], Node],
    ) -> None:  # fmt: skip
        self._grammar, self._text, self._node_of, self._stand_together = grammar, text, node_of, stand_together
        self._conjoin, self._lacks_values, self._cases_of, self._values_of = conjoin, lacks_values, cases_of, values_of
        self._explain, self._check, self._tree = explain, check, tree

    def node(
        self, shape: ObjectShape, formulas: list[Formula], values: Mapping[str, Conj], in_order: Sequence[str], others: Others,
        witnesses: Mapping[str, Node],
    ) -> Node:  # fmt: skip
        """The texts of the objects of a shape for which all formulas hold. values: of all members that have a name; in_order: the
        names that come first, in this order; witnesses: members of other names by which formulas hold, each under a name that no
        member has; there may be more like them. Raises `TooLarge`."""
        told = _told(formulas)
        position = {name: place for place, name in enumerate(in_order, 1)}
        named = [
            Named(name, position.get(name, LAST), name in shape.required, value, self._cases(value, told.get(name, {})))
            for name, value in values.items()
        ]
        missing = [each.name for each in named if each.is_required and not each.cases]
        if missing:
            self._explain(f"the required member {missing[0]!r} admits no value")
            return FAIL
        most = sum(bool(each.cases) for each in named) + sum(LAST if count is None else count for _, count in others)
        ranges = _ranges(shape, formulas, most)
        is_counted = any(bounds != (0, None) for bounds, _ in ranges)
        build = MemberDiagrams(self._grammar, self._text.comma, self._text.gap, is_counted)
        free = [each for each in named if each.name not in told and each.cases]
        parts = [*self._declared(free, build), *self._undeclared(free, build)]
        parts += [build.counted(build.member(text), 0, count) for text, count in others]
        asked_of = {each.name: each for each in named if each.name in told}
        narrow = [self._member(asked_of[name]) for name in in_narrow_order(told, formulas) if name in asked_of]
        narrow += [Member(name, LAST, (text,), ({},), text) for name, text in witnesses.items()]
        members = sorted(narrow, key=lambda member: member.position)
        required = [Has(each.name, ()) for each in named if each.is_required and each.name in told]
        otherwise: ConditionalMembers | None = None
        if members != narrow:
            otherwise = ConditionalMembers(self._grammar, build, narrow, self._check, are_placed=True)
        told_members = ConditionalMembers(self._grammar, build, members, self._check, otherwise)
        found = []
        try:
            for bounds, left in ranges:
                asked = frozenset[str]().union(*map(names_of, (*left, *required)))
                idle = told_members.free(name for name in told if name in values and name not in asked)
                found += [(*bounds, [*parts, *idle, *own]) for own in told_members.alternatives([*left, *required])]
        finally:
            told_members.give_back()
        return self._walks(found, build, bool(others) or _are_many(free))

    def _walks(
        self, alternatives: list[tuple[int, int | None, list[Node]]], build: MemberDiagrams, is_remembered: bool
    ) -> Node:
        """The texts of objects whose members meet all parts of one of the alternatives, from so many to so many of them."""
        grammar = self._grammar
        end = grammar.mark(b"}", Event.OBJECT_CLOSE) if is_remembered else grammar.literal("}")
        opening = grammar.mark(b"{", Event.OBJECT_OPEN) if is_remembered else grammar.literal("{")
        may_end = any(low == 0 and all(map(build.may_lack, parts)) for low, _, parts in alternatives)
        walks = [grammar.seq(build.walk(parts, low, high), end) for low, high, parts in alternatives]
        return grammar.seq(opening, self._text.gap, grammar.alt(end if may_end else FAIL, *walks))

    # -- members with conditions --------------------------------------------------------------------------------------

    def _cases(self, value: Conj, wanted: Mapping[Conj, set[bool]]) -> Cases:
        """The cases of a member's value that have texts."""
        conjs = {conj: signs for conj, signs in wanted.items() if conj}
        cases: list[tuple[Conj, dict[Conj, bool]]] = [(value, {})]
        if conjs:
            cases = told_apart(value, conjs, self._conjoin, self._lacks_values, self._values_of, self._cases_of)
        if len(cases) > 1:
            self._stand_together([value, *(conj for conj, _ in cases)])
        nodes = ((self._node_of(conj), truths) for conj, truths in cases)
        return [(node, truths) for node, truths in nodes if node != FAIL]

    def _member(self, named: Named) -> Member:
        texts = tuple(self._text.member(named.name, node) for node, _ in named.cases)
        whole = self._text.member(named.name, self._node_of(named.value)) if len(texts) > 1 else next(iter(texts), FAIL)
        return Member(named.name, named.position, texts, tuple(truths for _, truths in named.cases), whole)

    # -- members without ----------------------------------------------------------------------------------------------

    def _declared(self, free: list[Named], build: MemberDiagrams) -> list[Node]:
        """One part for those that come in order."""
        node = EMPTY
        for each in reversed([each for each in free if each.position != LAST]):
            text = build.member(self._text.member(each.name, each.cases[0][0]))
            case = text, () if node == EMPTY else (node,)
            node = build.decision(each.position, [case], FAIL if each.is_required else node)
        return [] if node == EMPTY else [node]

    def _undeclared(self, free: list[Named], build: MemberDiagrams) -> list[Node]:
        """A part for each of those in any order, or one for many together."""
        parts: list[Node] = []
        for is_required in (True, False):
            alike = [each for each in free if each.position == LAST and each.is_required is is_required]
            if _are_many(free) and alike:
                text = self._tree({each.name: each.cases[0][0] for each in alike})
                parts.append(build.counted(build.member(text), len(alike) if is_required else 0, len(alike)))
                continue
            texts = (self._text.member(each.name, each.cases[0][0]) for each in alike)
            parts += [build.counted(build.member(text), int(is_required), 1) for text in texts]
        return parts


def _are_many(free: list[Named]) -> bool:
    """Whether the members in any order are counted together."""
    return sum(each.position == LAST for each in free) > MAX_SINGLE


def _told(formulas: list[Formula]) -> dict[str, dict[Conj, set[bool]]]:
    """What formulas ask about each member, and which answers matter."""
    told: dict[str, dict[Conj, set[bool]]] = {}
    for formula in formulas:
        for fact, sign in facts(formula):
            told.setdefault(fact.name, {}).setdefault(fact.conj, set()).add(sign)
    return told


def _ranges(shape: ObjectShape, formulas: Sequence[Formula], most: int) -> list[tuple[Bounds, list[Formula]]]:
    """The numbers of members that a shape allows, at most so many, by ranges in which formulas say the same of them: the bounds of
    each, where names do not say so already, and what is left of the formulas."""
    starts = [0, *sorted(frozenset[int]().union(*map(counts, formulas)))]
    ends = [*(start - 1 for start in starts[1:]), None]
    found: list[tuple[Bounds, list[Formula]]] = []
    for start, end in zip(starts, ends, strict=True):
        low, high = max(start, shape.low), _lesser(end, shape.high)
        left = [_of_at_least(low, formula) for formula in formulas]
        if low <= (most if high is None else min(high, most)) and False not in left:
            found.append((_bounds(shape, low, high, most), left))
    return found


def _lesser(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _of_at_least(least: int, formula: Formula) -> Formula:
    """What is left of a formula in the range of numbers of members that begins with `least`."""
    if not counts(formula):
        return formula
    return given(formula, lambda fact: least >= fact.count if isinstance(fact, AtLeast) else None)


def _bounds(shape: ObjectShape, least: int, high: int | None, most: int) -> Bounds:
    """How many members there may be, from `least` to `high`, where the names do not say so already."""
    low = least if least > len(shape.required) else 0
    if low > MAX_COUNTED:
        raise ConstraintLimit(
            f"at least {low} members, beside conditions on which they are", limit="counts", value=MAX_COUNTED,
            instead="a smaller minProperties",
        )  # fmt: skip
    return low, None if high is None or high >= most else high

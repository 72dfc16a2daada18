"""The shapes of terms: what the keywords and conditions of a term come to, for each type, and whether nothing is left.

A shape is read once from the assertions of all sites in the term and from its other literals. See shapes.py for what shapes are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from ....base.errors import ConstraintLimit
from ....grammar.source import Limits
from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.keyword_table import ANNOTATIONS, Assertion, asserting
from ..documents.keywords import in_force, is_anything, value_of
from ..documents.reading import (
    Members,
    contains_of,
    count_of,
    flag_of,
    items_of,
    members_of,
    required_of,
    step_of,
    tightened,
    values_of,
)
from ..documents.values import equality_key
from ..strings.string_shape import Mismatch, StringShape
from .atoms import literal_atoms
from .claims import (
    ALL_ATOMS,
    EVERY_INDEX,
    EVERY_KEY,
    NOTHING,
    Among,
    Claim,
    Clause,
    Common,
    Condition,
    Conj,
    Count,
    Either,
    Equals,
    Index,
    Keys,
    Length,
    Named,
    NameTest,
    Not,
    NotMultiple,
    Repeats,
    Term,
    Unevaluated,
    Within,
    negated,
)
from .clauses import FEW_CLAUSES, Need, settled
from .formulas import facts
from .shapes import ArrayShape, Conjoin, NumberShape, ObjectShape

_LISTING: Final = ANNOTATIONS.union(asserting(Assertion.VALUE))  # a schema of these is a list of values
_LANGUAGES: Final = asserting(Assertion.LANGUAGE)
_UNKNOWN: Any = object()


class Shapes:
    """Computes the shapes of terms, once each. `check` raises an error when what lowering may take is used up."""

    def __init__(
        self, conjoin: Conjoin, is_contradiction: Callable[[Conj], bool], limits: Limits, check: Callable[[], None]
    ) -> None:  # fmt: skip
        self._conjoin, self._is_contradiction, self._limits, self._check = conjoin, is_contradiction, limits, check
        self._memo: dict[tuple[str, Term], Any] = {}
        self._values_of_site: dict[Site, dict[str, Any] | None] = {}
        self._members_of_site: dict[Site, Members] = {}
        self._lacking: dict[tuple[Claim, ...], bool] = {}

    # -- any type ---------------------------------------------------------------------------------------------------

    def atoms(self, term: Term) -> frozenset[str]:
        """The atoms (see values.py) that are left."""
        return literal_atoms(term[0]) if len(term) == 1 else reduce(frozenset.__and__, map(literal_atoms, term), ALL_ATOMS)

    def values(self, term: Term) -> dict[str, Any] | None:
        """The values that `enum` and `const` leave, by their equality key; None without such a condition."""
        known: Any = self._memo.get(("values", term), _UNKNOWN)
        if known is _UNKNOWN:
            known = self._memo["values", term] = self._common_values(term)
        return known

    def _common_values(self, term: Term) -> dict[str, Any] | None:
        out: dict[str, Any] | None = None
        for literal in term:
            own = self._values_of(literal) if isinstance(literal, Site) else None
            if isinstance(literal, Among) and literal.holds:
                own = dict(zip(literal.keys, literal.values, strict=True))
            if own is not None:
                out = own if out is None else {key: value for key, value in out.items() if key in own}
        excluded = self.excluded(term) if out else {}
        return {key: value for key, value in out.items() if key not in excluded} if out and excluded else out

    def excluded(self, term: Term) -> dict[str, Any]:
        """Scalar values that are not admitted, by their equality key."""
        without = [literal for literal in term if isinstance(literal, Among) and not literal.holds]
        return {key: value for each in without for key, value in zip(each.keys, each.values, strict=True)}

    def is_void(self, term: Term) -> bool:
        """Whether a term obviously has no value: without looking into items and members."""
        atoms = self.atoms(term)
        values = self.values(term)
        if values is not None:
            return not values
        if atoms & {"null", "boolean"}:
            return False
        return not (
            (atoms & {"integer", "fraction"} and not self.number(term).interval.is_empty())
            or ("string" in atoms and not _is_over(self.string(term)))
            or ("array" in atoms and not self._is_void_array(self.array(term)))
            or ("object" in atoms and not self._is_void_object(self.object(term)))
        )

    def _is_void_array(self, shape: ArrayShape) -> bool:
        return _is_over(shape) or any(where.start < shape.low and conj == NOTHING for where, conj in shape.rules)

    def _is_void_object(self, shape: ObjectShape) -> bool:
        if _is_over(shape) or (shape.high is not None and shape.high < len(shape.required)):
            return True
        return any(map(shape.forbids, shape.required)) or any(map(self.lacks_values, map(shape.said_of, shape.required)))

    def lacks_values(self, claims: list[Claim]) -> bool:
        """Whether claims obviously contradict each other, or list no common value: as `if` on one member often makes them."""
        self._check()
        key = tuple(claims)
        known = self._lacking.get(key)
        if known is None:
            known = self._lacking[key] = len(key) > 1 and self._finds_no_value(claims)
        return known

    def _finds_no_value(self, claims: list[Claim]) -> bool:
        left: set[str] | None = None
        unwanted: set[str] = set()
        conj = self._conjoin(claims)
        if self._is_contradiction(conj):
            return True
        for claim in conj:
            subject = claim.claim if isinstance(claim, Not) else claim
            listed = {subject.key} if isinstance(subject, Equals) else None
            if isinstance(subject, Site) and (claim is subject or _LISTING.issuperset(subject.active)):
                listed = None if (values := self._values_of(subject)) is None else set(values)
            if listed is not None and claim is subject:
                left = listed if left is None else left & listed
            elif listed is not None:
                unwanted |= listed
        return left is not None and left <= unwanted

    def values_listed(self, conj: Conj) -> dict[str, Any] | None:
        """The values of a conjunction that is a list of them, by their equality key; None of any other."""
        claim = conj[0] if len(conj) == 1 else None
        if isinstance(claim, Equals):
            return {claim.key: claim.value}
        return self._values_of(claim) if isinstance(claim, Site) and _LISTING.issuperset(claim.active) else None

    def _values_of(self, site: Site) -> dict[str, Any] | None:
        if site not in self._values_of_site:
            self._values_of_site[site] = self._read_values(site)
        return self._values_of_site[site]

    def _read_values(self, site: Site) -> dict[str, Any] | None:
        out: dict[str, Any] | None = None
        for own in values_of(site):
            if len(own) > self._limits.enum_values:
                limit = self._limits.enum_values
                raise ConstraintLimit(f"{len(own)} values", limit="enum_values", value=limit, path=site.path)
            out = own if out is None else {key: value for key, value in out.items() if key in own}
        return out

    # -- strings and numbers ----------------------------------------------------------------------------------------

    def string(self, term: Term) -> StringShape:
        key = ("string", term)
        if key not in self._memo:
            self._memo[key] = self._read_string(term)
        known: StringShape = self._memo[key]
        return known

    def _read_string(self, term: Term) -> StringShape:
        sites = _sites(term)
        lengths = [literal for literal in term if isinstance(literal, Length)]
        low = max([*_counts(sites, "minLength"), *(each.low for each in lengths)], default=0)
        high = min([*_counts(sites, "maxLength"), *(each.high for each in lengths if each.high is not None)], default=None)
        languages = {
            (keyword, value if isinstance(value, str) else equality_key(value)): (keyword, site)
            for keyword in _LANGUAGES for site in reversed(sites) if (value := value_of(site, keyword)) is not None
        }  # fmt: skip
        mismatches = tuple(literal for literal in term if isinstance(literal, Mismatch))
        return StringShape(low, high, tuple(languages.values()), mismatches)

    def number(self, term: Term) -> NumberShape:
        key = ("number", term)
        if key not in self._memo:
            self._memo[key] = self._read_number(term)
        known: NumberShape = self._memo[key]
        return known

    def _read_number(self, term: Term) -> NumberShape:
        interval, sites = Interval(), _sites(term)
        for site in sites:
            interval = tightened(interval, site)
        for literal in term:
            if isinstance(literal, Within):
                interval = interval.within(literal.interval)
        steps = dict.fromkeys(step for site in sites if (step := step_of(site)) is not None)
        not_steps = dict.fromkeys(literal.step for literal in term if isinstance(literal, NotMultiple))
        return NumberShape(interval, "fraction" not in self.atoms(term), tuple(steps), tuple(not_steps))

    # -- arrays -----------------------------------------------------------------------------------------------------

    def array(self, term: Term) -> ArrayShape:
        key = ("array", term)
        if key not in self._memo:
            self._memo[key] = self._read_array(term)
        known: ArrayShape = self._memo[key]
        return known

    def _read_array(self, term: Term) -> ArrayShape:
        sites = _sites(term)
        high = min(_counts(sites, "maxItems"), default=None)
        shape = ArrayShape(self._conjoin, low=max(_counts(sites, "minItems"), default=0), high=high)
        for site in sites:
            items = items_of(site)
            shape.rules += [(Index(i, i + 1), (schema,)) for i, schema in enumerate(items.prefix)]
            if items.rest is not None:
                shape.rules.append((Index(len(items.prefix)), (items.rest,)))
            if (contains := contains_of(site)) is not None:
                self._need_items(shape, Need(EVERY_INDEX, (contains[0],), contains[1], contains[2]))
            if flag_of(site, "uniqueItems"):
                shape.unique = site
        for literal in term:
            if isinstance(literal, Count) and literal.kind == "array":
                self._need_items(shape, Need(literal.where, literal.conj, literal.low, literal.high))
            elif isinstance(literal, Unevaluated) and literal.keyword == "unevaluatedItems":
                self._leave_items(shape, literal)
            elif isinstance(literal, Repeats):
                shape.repeats, shape.low = literal.site, max(shape.low, 2)
        if shape.repeats is not None and shape.unique is not None:
            shape.low, shape.high = 1, 0
        return shape

    def _leave_items(self, shape: ArrayShape, literal: Unevaluated) -> None:
        """Add the rule or need for items that no evaluator has seen. Since 2020-12 `contains` evaluates the items that it finds."""
        start, found = 0, []
        for site in literal.evaluators:
            items = items_of(site)
            others = site is not literal.site and in_force(site, "unevaluatedItems")
            if items.rest is not None or others:
                return self._leave_none(shape, literal)
            start = max(start, len(items.prefix))
            if in_force(site, "contains") and site.document.draft >= 2020:
                found.append(site.child("contains"))
        wanted = literal.site.child("unevaluatedItems")
        if literal.holds:
            conj: Conj = (Either(((wanted,), *((each,) for each in found))),) if found else (wanted,)
            shape.rules.append((Index(start), conj))
        else:
            unwanted = tuple(Not(each) for each in (wanted, *found))
            self._need_items(shape, Need(Index(start), self._conjoin(unwanted), 1, None))
        return None

    def _leave_none(self, shape: ArrayShape | ObjectShape, literal: Unevaluated) -> None:
        """Every item or member is evaluated: the claim holds, and its violation is impossible."""
        if not literal.holds:
            shape.low, shape.high = 1, 0

    def _need_items(self, shape: ArrayShape, need: Need) -> None:
        where, conj = need.where, self._conjoin(need.conj)
        assert isinstance(where, Index)
        if need.high is not None and need.low > need.high:
            shape.low, shape.high = 1, 0
        elif where == EVERY_INDEX and not conj:
            _bound(shape, need)
        elif where.single is not None and need.low > 0:
            shape.low = max(shape.low, where.start + 1)
            shape.rules.append((where, conj))
        elif need.high == 0:
            shape.rules.append((where, negated(conj)))
        elif need.low > 0 or (need.high is not None and where.single is None):
            shape.needs.append(Need(where, conj, need.low, need.high))

    # -- objects ----------------------------------------------------------------------------------------------------

    def object(self, term: Term) -> ObjectShape:
        key = ("object", term)
        if key not in self._memo:
            self._memo[key] = self._read_object(term)
        known: ObjectShape = self._memo[key]
        return known

    def _read_object(self, term: Term) -> ObjectShape:
        self._check()
        sites = _sites(term)
        high = min(_counts(sites, "maxProperties"), default=None)
        shape = ObjectShape(self._conjoin, low=max(_counts(sites, "minProperties"), default=0), high=high)
        shape.members += [
            self._members(literal) if isinstance(literal, Site) else literal.members
            for literal in term if isinstance(literal, (Site, Common))
        ]  # fmt: skip
        for site in sites:
            shape.required |= dict.fromkeys(required_of(site))
            if in_force(site, "propertyNames") and not is_anything(site.keywords["propertyNames"]):
                shape.rules.append((self._other_names((site.child("propertyNames"),)), NOTHING))
        for literal in term:
            if isinstance(literal, Count) and literal.kind == "object":
                self._need_members(shape, self._need(literal))
            elif isinstance(literal, Clause):
                shape.clauses.append(tuple(map(self._need, literal.options)))
            elif isinstance(literal, Condition):
                shape.conditions.append(literal.formula)
                shape.placed |= dict.fromkeys(fact.name for fact, holds in facts(literal.formula) if fact.conj and holds)
            elif isinstance(literal, Unevaluated) and literal.keyword == "unevaluatedProperties":
                self._leave_members(shape, literal)
        if 0 < len(shape.clauses) <= FEW_CLAUSES:
            self._settle_clauses(shape)
        return shape

    def _need(self, literal: Count) -> Need:
        return Need(literal.where, self._conjoin(literal.conj), literal.low, literal.high)

    def _settle_clauses(self, shape: ObjectShape) -> None:
        """Leave only options that can hold. A clause with one option left becomes a need, which may settle other clauses."""
        pending = True
        while pending:
            clauses = settled(shape, self.lacks_values)
            shape.clauses = [clause for clause in clauses if len(clause) > 1]
            pending = len(shape.clauses) < len(clauses)
            for clause in clauses:
                if not clause:
                    shape.low, shape.high = 1, 0
                elif len(clause) == 1:
                    self._need_members(shape, clause[0])

    def _members(self, site: Site) -> Members:
        known = self._members_of_site.get(site)
        if known is None:
            known = self._members_of_site[site] = members_of(site)
        return known

    def _other_names(self, conj: Conj) -> Keys:
        """The names that a conjunction does not admit."""
        return Keys(tests=frozenset([Named(self._conjoin(conj))]), others=True)

    def _leave_members(self, shape: ObjectShape, literal: Unevaluated) -> None:
        """Add the rule or need for members that no evaluator has seen."""
        names: set[str] = set()
        tests: set[NameTest] = set()
        for site in literal.evaluators:
            members = self._members(site)
            others = site is not literal.site and in_force(site, "unevaluatedProperties")
            if members.additional is not None or others:
                return self._leave_none(shape, literal)
            names.update(members.properties)
            tests.update(pattern for pattern, _ in members.patterns)
        where, wanted = Keys(frozenset(names), frozenset(tests), others=True), literal.site.child("unevaluatedProperties")
        if literal.holds:
            shape.rules.append((where, (wanted,)))
        else:
            self._need_members(shape, Need(where, (Not(wanted),), 1, None))
        return None

    def _need_members(self, shape: ObjectShape, need: Need) -> None:
        where, conj = need.where, self._conjoin(need.conj)
        assert isinstance(where, Keys)
        single = where.single
        if (need.high is not None and need.low > need.high) or (single is not None and need.low > 1):
            shape.low, shape.high = 1, 0
        elif where == EVERY_KEY and not conj:
            _bound(shape, need)
        elif single is not None and need.low > 0:
            shape.required[single] = None
            shape.rules += [(where, conj)] if conj else []
        elif need.high == 0:
            shape.rules.append((where, negated(conj)))
        elif need.low > 0 or (need.high is not None and single is None):
            shape.needs.append(Need(where, conj, need.low, need.high))


def _sites(term: Term) -> list[Site]:
    return [literal for literal in term if isinstance(literal, Site)]


def _counts(sites: list[Site], keyword: str) -> list[int]:
    return [count for site in sites if (count := count_of(site, keyword)) is not None]


def _bound(shape: ArrayShape | ObjectShape, need: Need) -> None:
    shape.low = max(shape.low, need.low)
    shape.high = need.high if shape.high is None or (need.high is not None and need.high < shape.high) else shape.high


def _is_over(shape: StringShape | ArrayShape | ObjectShape) -> bool:
    return shape.high is not None and shape.low > shape.high

"""What a term says about the values of one JSON type: bounds, patterns, items, members.

A term is a conjunction, so bounds tighten, patterns add up, and the schemas of an item or a member are conjoined in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

from ..errors import ConstraintLimit
from ..numbers import Interval, shifted
from ..source import Limits
from .branches import Branches, Conj, Term
from .document import Site, shown
from .keywords import APPLICATORS, TYPES, in_force, instead_of, is_anything, value_of
from .policy import Policy
from .values import equality_key, is_integral

ALL_ATOMS = frozenset().union(*TYPES.values())
MAX_FRACTION_DIGITS = 4  # multiples of 10**-k are spelled without exponent up to here


@dataclass(frozen=True, slots=True)
class StringShape:
    low: int = 0  # code points
    high: int | None = None
    patterns: tuple[Site, ...] = ()
    formats: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberShape:
    interval: Interval = field(default_factory=Interval)
    fraction_digits: int | None = None  # at most so many behind the point; 0 for integers, None for no limit


@dataclass(frozen=True, slots=True)
class ArrayShape:
    prefix: tuple[Conj, ...] = ()  # of the first items
    rest: Conj = ()  # of all items behind them
    low: int = 0
    high: int | None = None

    def item(self, index: int) -> Conj:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, slots=True)
class ObjectShape:
    declared: dict[str, Conj]  # in the order in force
    required: tuple[str, ...]
    rest: Conj = ()  # of members with any other name

    def member(self, name: str) -> Conj:
        return self.declared.get(name, self.rest)


class Shapes:
    """Shapes of terms, computed once each."""

    def __init__(self, branches: Branches, policy: Policy, limits: Limits) -> None:
        self._branches, self._policy, self._limits = branches, policy, limits
        self._memo: dict[tuple[str, Term], Any] = {}
        self._values_of_site: dict[Site, dict[str, Any] | None] = {}

    # -- any type ---------------------------------------------------------------------------------------------------

    def atoms(self, term: Term) -> frozenset[str]:
        """The atoms (see values.py) that the `type` keywords leave."""
        return reduce(frozenset.__and__, (_atoms_of(site) for site in term), ALL_ATOMS)

    def values(self, term: Term) -> dict[str, Any] | None:
        """The values that `enum` and `const` leave, by their equality key; None without such a keyword."""
        out: dict[str, Any] | None = None
        for site in term:
            own = self._values_of(site)
            if own is not None:
                out = own if out is None else {key: value for key, value in out.items() if key in own}
        return out

    def _values_of(self, site: Site) -> dict[str, Any] | None:
        if site not in self._values_of_site:
            self._values_of_site[site] = self._read_values(site)
        return self._values_of_site[site]

    def _read_values(self, site: Site) -> dict[str, Any] | None:
        out = None
        if in_force(site, "enum"):
            listed = site.keywords["enum"]
            if not isinstance(listed, list):
                raise site.error("enum", f"a list of values is expected, not {shown(listed)}")
            if len(listed) > self._limits.enum_values:
                limit = self._limits.enum_values
                raise ConstraintLimit(f"{len(listed)} values", limit="enum_values", value=limit, path=site.path)
            out = {equality_key(value): value for value in listed}
        if in_force(site, "const"):
            value = site.keywords["const"]
            key = equality_key(value)
            out = {key: value} if out is None or key in out else {}
        return out

    # -- strings ----------------------------------------------------------------------------------------------------

    def string(self, term: Term) -> StringShape:
        lows = [low for site in term if (low := count_of(site, "minLength")) is not None]
        highs = [high for site in term if (high := count_of(site, "maxLength")) is not None]
        patterns = {site.keywords["pattern"]: site for site in reversed(term) if _text_of(site, "pattern")}
        formats = {site.keywords["format"]: site for site in reversed(term) if _text_of(site, "format")}
        high = min(highs, default=None)
        return StringShape(max(lows, default=0), high, tuple(patterns.values()), tuple(formats.values()))

    # -- numbers ----------------------------------------------------------------------------------------------------

    def number(self, term: Term) -> NumberShape:
        interval, fraction_digits = Interval(), None
        if "fraction" not in self.atoms(term):
            fraction_digits = 0
        for site in term:
            interval = _tightened(interval, site)
        for site in term:
            if in_force(site, "multipleOf"):
                fraction_digits = self._fraction_digits(site, fraction_digits)
        return NumberShape(interval, fraction_digits)

    def _fraction_digits(self, site: Site, known: int | None) -> int | None:
        """The digits behind the point that `multipleOf` leaves, where it says no more than that."""
        step = Decimal(number_of(site, "multipleOf") or 0)
        if step <= 0:
            raise site.error("multipleOf", "a number above 0 is expected")
        for digits in range(MAX_FRACTION_DIGITS + 1):
            if step == shifted(Decimal(1), -digits):
                return digits if known is None else min(known, digits)
        if known == 0 and Fraction(step).numerator == 1:
            return known  # every integer is a multiple of 1/n
        self._policy.refuse(site.unsupported("multipleOf", "not enforced yet", instead_of("multipleOf")))
        return known

    # -- arrays -----------------------------------------------------------------------------------------------------

    def array(self, term: Term) -> ArrayShape:
        key = ("array", term)
        if key not in self._memo:
            self._memo[key] = self._read_array(term)
        known: ArrayShape = self._memo[key]
        return known

    def _read_array(self, term: Term) -> ArrayShape:
        lows = [low for site in term if (low := count_of(site, "minItems")) is not None]
        highs = [high for site in term if (high := count_of(site, "maxItems")) is not None]
        low, high = max(lows, default=0), min(highs, default=None)
        parts = [self._items_of(site) for site in term]
        length = max((len(prefix) for prefix, _ in parts), default=0)
        conj = self._branches.conj
        prefix = tuple(
            conj(site for own, rest in parts for site in (own[i : i + 1] if i < len(own) else rest)) for i in range(length)
        )
        shape = ArrayShape(prefix, conj(site for _, rest in parts for site in rest), low, high)
        for site in term:
            self._refuse_about_items(site, shape)
        return shape

    def _items_of(self, site: Site) -> tuple[list[Site], list[Site]]:
        """The schemas of the first items, and that of all others (none: no condition)."""
        items = value_of(site, "items")
        if isinstance(items, list):
            if site.document.draft == 2020:
                self._policy.note(f"{site.path}: a list of items is read as in older drafts; prefixItems is its name now")
            prefix, rest = [site.child("items", i) for i in range(len(items))], "additionalItems"
        else:
            listed = value_of(site, "prefixItems")
            if listed is not None and not isinstance(listed, list):
                raise site.error("prefixItems", f"a list of schemas is expected, not {shown(listed)}")
            prefix, rest = [site.child("prefixItems", i) for i in range(len(listed or ()))], "items"
        others = [site.child(rest)] if in_force(site, rest) else []
        if not others and in_force(site, "unevaluatedItems"):
            others = self._unevaluated(site, "unevaluatedItems", "contains")
        return prefix, others

    def _unevaluated(self, site: Site, keyword: str, *also: str) -> list[Site]:
        """An `unevaluated...` keyword as an `additional...` one, which it is where nothing beside it evaluates anything."""
        if is_anything(site.keywords[keyword]):
            return []
        beside = [key for key in (*APPLICATORS, "dependentSchemas", *also) if in_force(site, key)]
        if beside:
            reason = f"not enforced yet beside {beside[0]!r}"
            self._policy.refuse(site.unsupported(keyword, reason, instead_of(keyword)))
            return []
        return [site.child(keyword)]

    def _refuse_about_items(self, site: Site, shape: ArrayShape) -> None:
        if in_force(site, "uniqueItems"):
            wanted = site.keywords["uniqueItems"]
            if not isinstance(wanted, bool):
                raise site.error("uniqueItems", f"true or false is expected, not {shown(wanted)}")
            if wanted and (shape.high is None or shape.high > 1):
                self._policy.refuse(site.unsupported("uniqueItems", "not enforced yet", instead_of("uniqueItems")))
        if in_force(site, "contains"):
            low, high = count_of(site, "minContains"), count_of(site, "maxContains")
            if not (low == 0 and high is None):
                self._policy.refuse(site.unsupported("contains", "not enforced yet", instead_of("contains")))

    # -- objects ----------------------------------------------------------------------------------------------------

    def object(self, term: Term) -> ObjectShape:
        key = ("object", term)
        if key not in self._memo:
            self._memo[key] = self._read_object(term)
        known: ObjectShape = self._memo[key]
        return known

    def _read_object(self, term: Term) -> ObjectShape:
        parts = [self._members_of(site) for site in term]
        names = dict.fromkeys(name for own, _ in parts for name in own)
        conj = self._branches.conj
        declared = {
            name: conj(site for own, rest in parts for site in ([own[name]] if name in own else rest)) for name in names
        }
        required = tuple(dict.fromkeys(name for site in term for name in _required_of(site)))
        shape = ObjectShape(declared, required, conj(site for _, rest in parts for site in rest))
        for site in term:
            shape = self._without_members(site, shape)
        return shape

    def _members_of(self, site: Site) -> tuple[dict[str, Site], list[Site]]:
        """The schemas of declared members, and that of all others (none: no condition)."""
        properties = value_of(site, "properties")
        if properties is not None and not isinstance(properties, dict):
            raise site.error("properties", f"an object of schemas is expected, not {shown(properties)}")
        declared = {name: site.child("properties", name) for name in properties or ()}
        if value_of(site, "patternProperties"):
            reason = "not enforced yet"
            self._policy.refuse(site.unsupported("patternProperties", reason, instead_of("patternProperties")))
            return declared, []  # relaxed: what is additional is not known either
        others = [site.child("additionalProperties")] if in_force(site, "additionalProperties") else []
        if not others and in_force(site, "unevaluatedProperties"):
            others = self._unevaluated(site, "unevaluatedProperties")
        return declared, others

    def _without_members(self, site: Site, shape: ObjectShape) -> ObjectShape:
        """Deals with the keywords about members that are not enforced, which are refused unless they say nothing here."""
        unsupported = []
        if not is_anything(site.keywords.get("propertyNames", True)) and in_force(site, "propertyNames"):
            unsupported.append("propertyNames")
        if (count_of(site, "minProperties") or 0) > len(shape.required):
            unsupported.append("minProperties")
        high = count_of(site, "maxProperties")
        is_closed = self._branches.terms(shape.rest) == []
        if high is not None and not (is_closed and len(shape.declared) <= high):
            unsupported.append("maxProperties")
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            dependent = value_of(site, keyword)
            if dependent is not None and not _says_nothing(dependent):
                unsupported.append(keyword)
        for keyword in unsupported:
            self._policy.refuse(site.unsupported(keyword, "not enforced yet", instead_of(keyword)))
        return shape


# -- one keyword ------------------------------------------------------------------------------------------------------------


def count_of(site: Site, keyword: str) -> int | None:
    """The value of a keyword that counts something."""
    if not in_force(site, keyword):
        return None
    value = site.keywords[keyword]
    is_count = isinstance(value, (int, Decimal)) and not isinstance(value, bool) and value >= 0 and is_integral(value)
    if not is_count:
        raise site.error(keyword, f"a whole number from 0 is expected, not {shown(value)}")
    if isinstance(value, Decimal) and value.adjusted() > 300:
        raise site.error(keyword, "the number is too large")
    return int(value)


def number_of(site: Site, keyword: str) -> Decimal | None:
    """The value of a keyword that bounds numbers."""
    if not in_force(site, keyword):
        return None
    value = site.keywords[keyword]
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise site.error(keyword, f"a number is expected, not {shown(value)}")
    return Decimal(value)


def _text_of(site: Site, keyword: str) -> bool:
    if in_force(site, keyword) and not isinstance(site.keywords[keyword], str):
        raise site.error(keyword, f"a string is expected, not {shown(site.keywords[keyword])}")
    return in_force(site, keyword)


def _atoms_of(site: Site) -> frozenset[str]:
    if not in_force(site, "type"):
        return ALL_ATOMS
    value = site.keywords["type"]
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise site.error("type", f"there is no type {shown(name)}", "one of " + ", ".join(TYPES))
    return frozenset().union(*(TYPES[name] for name in names))


def _required_of(site: Site) -> list[str]:
    names = value_of(site, "required")
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise site.error("required", f"a list of names is expected, not {shown(names)}")
    return names


def _says_nothing(dependent: Any) -> bool:
    return isinstance(dependent, dict) and all(value in ([], {}) or value is True for value in dependent.values())


def _tightened(interval: Interval, site: Site) -> Interval:
    """The part of `interval` within the bounds of a site, those of draft 4 (booleans beside a bound) included."""
    low, high = number_of(site, "minimum"), number_of(site, "maximum")
    for keyword, bound in (("exclusiveMinimum", low), ("exclusiveMaximum", high)):
        is_low, value = keyword == "exclusiveMinimum", site.keywords.get(keyword)
        if bound is not None:
            interval = _bounded(interval, bound, is_low, value is True and in_force(site, keyword))
        if in_force(site, keyword) and not isinstance(value, bool):
            exclusive = number_of(site, keyword)
            assert exclusive is not None
            interval = _bounded(interval, exclusive, is_low, True)
    return interval


def _bounded(interval: Interval, bound: Decimal, is_low: bool, exclusive: bool) -> Interval:
    if is_low:
        return interval.from_(bound, exclusive)
    return interval.mirrored().from_(bound.copy_negate(), exclusive).mirrored()

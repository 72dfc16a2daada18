"""Claims about a value: that it satisfies a schema, that it does not, and single conditions that no keyword spells.

A *conjunction* (`Conj`) is a tuple of claims, all of which hold. It is the union of its *terms*: tuples of *literals*, which speak
about the value itself and, through conjunctions again, about its items and members. A site as a literal stands for its assertions
(see keyword_table.py). The other literals arise where a schema is negated: each is the violation of one assertion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from ....grammar.stopwatch import look
from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.keywords import TYPES
from ..documents.reading import Members, Pattern
from ..strings.string_shape import Mismatch
from .formulas import Formula

ALL_ATOMS = frozenset().union(*TYPES.values())
NUMBERS = TYPES["number"]
_BETWEEN_LOOKS = 255  # literals hashed, about


@cache
def _compared(kind: type) -> Callable[[object], object]:
    """What reads the fields that are compared of a dataclass."""
    return attrgetter(*(each.name for each in fields(kind) if each.compare))


class HashedOnce:
    """A value that remembers its hash, as literals are keys of many dictionaries and large."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            kind: Any = type(self)  # hashable, though the checker takes its `__hash__` for that of its instances
            object.__setattr__(self, "_hash", hash(_compared(kind)(self)))
            if not self._hash & _BETWEEN_LOOKS:
                look()
            return self._hash


@dataclass(frozen=True, slots=True)
class Not:
    """The value does not satisfy the claim."""

    claim: Site | Either | Equals | Cell

    @property
    def path(self) -> str:
        return f"not {self.claim.path}"


@dataclass(frozen=True, slots=True)
class Either:
    """The value satisfies one of some conjunctions."""

    options: tuple[Conj, ...]

    @property
    def path(self) -> str:
        return " or ".join(claim.path for conj in self.options for claim in conj) or "nothing"


@dataclass(frozen=True, slots=True)
class Equals:
    """The value is this one. `key` is its equality key (see values.py)."""

    key: str
    value: Any = field(compare=False)
    path: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Cell(HashedOnce):
    """The value satisfies one of some terms: a case of values that is claimed, and never denied (partitions.py)."""

    terms: tuple[Term, ...]
    path: str = field(compare=False)

    __hash__ = HashedOnce.__hash__


Claim = Site | Not | Either | Equals | Cell
Conj = tuple[Claim, ...]
NOTHING: Conj = (Either(()),)


# -- where: the items and members that a condition is about -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Index:
    """The items from `start` to before `stop` (None: to the end)."""

    start: int = 0
    stop: int | None = None

    def __contains__(self, index: int) -> bool:
        return self.start <= index and (self.stop is None or index < self.stop)

    @property
    def single(self) -> int | None:
        return self.start if self.stop == self.start + 1 else None


@dataclass(frozen=True, slots=True)
class Named:
    """A condition on names: a string that satisfies schemas."""

    conj: Conj

    @property
    def shown(self) -> str:
        """The text by which conditions on names are sorted."""
        return " and ".join(claim.path for claim in self.conj)


NameTest = Pattern | Named


@dataclass(frozen=True, slots=True)
class Keys(HashedOnce):
    """A set of names of members: those listed and those that pass one of the tests. If `others`: all names but these."""

    names: frozenset[str] = frozenset()
    tests: frozenset[NameTest] = frozenset()
    others: bool = False

    __hash__ = HashedOnce.__hash__

    def admits(self, name: str | None, passed: frozenset[NameTest]) -> bool:
        """Whether a name is in the set, given which of all tests it passes. None stands for a name that is listed nowhere."""
        return (name in self.names or not self.tests.isdisjoint(passed)) is not self.others

    @property
    def single(self) -> str | None:
        return next(iter(self.names)) if len(self.names) == 1 and not self.tests and not self.others else None


EVERY_KEY = Keys(others=True)
EVERY_INDEX = Index()


# -- literals ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kinds:
    """The value is of one of these atoms (see values.py)."""

    atoms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Among:
    """The value is one of these. Unless `holds`: it is none of them."""

    keys: tuple[str, ...]
    values: tuple[Any, ...] = field(compare=False)
    holds: bool = True

    @property
    def atoms(self) -> frozenset[str]:
        return ALL_ATOMS


@dataclass(frozen=True, slots=True)
class Within:
    """The value is a number of an interval."""

    interval: Interval

    @property
    def atoms(self) -> frozenset[str]:
        return NUMBERS


@dataclass(frozen=True, slots=True)
class NotMultiple:
    """The value is a number that is no multiple of `step`."""

    step: Decimal

    @property
    def atoms(self) -> frozenset[str]:
        return NUMBERS


@dataclass(frozen=True, slots=True)
class Length:
    """The value is a string of `low` to `high` code points."""

    low: int
    high: int | None

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["string"]


@dataclass(frozen=True, slots=True)
class Count(HashedOnce):
    """The number of items or members in `where` that satisfy `conj` is from `low` to `high`.

    Says that the value is an array (an object), if `strict`; else nothing about values of other types.
    """

    where: Index | Keys
    conj: Conj
    low: int
    high: int | None
    strict: bool = True

    __hash__ = HashedOnce.__hash__

    @property
    def kind(self) -> str:
        return "array" if isinstance(self.where, Index) else "object"

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES[self.kind] if self.strict else ALL_ATOMS


@dataclass(frozen=True, slots=True)
class Clause(HashedOnce):
    """One of some conditions on members holds: that there is one (`Count` from 1 up) or that there is none (up to 0).

    Says that the value is an object, if `strict`; else nothing about values of other types.
    """

    options: tuple[Count, ...]
    strict: bool = True

    __hash__ = HashedOnce.__hash__

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["object"] if self.strict else ALL_ATOMS


@dataclass(frozen=True, slots=True)
class Condition(HashedOnce):
    """A formula holds of the members of an object: what a keyword of a site says, or that the site fails (`keyword` "fails"), or
    that it holds if there is a member of some name (`dependent`).

    Says that the value is an object, if `strict`; else nothing about values of other types.
    """

    formula: Formula
    strict: bool
    site: Site = field(compare=False)
    keyword: str = field(compare=False)
    dependent: str | None = field(default=None, compare=False)
    is_kept: bool = field(default=False, compare=False)  # however few alternatives it comes to

    __hash__ = HashedOnce.__hash__

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["object"] if self.strict else ALL_ATOMS


@dataclass(frozen=True, slots=True)
class Common(HashedOnce):
    """The object has members of these names and no others, in this order, with these values.

    Says that the value is an object, if `strict`; else nothing about values of other types.
    """

    values: tuple[tuple[str, Conj], ...]
    strict: bool
    members: Members = field(compare=False)

    __hash__ = HashedOnce.__hash__

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["object"] if self.strict else ALL_ATOMS


@dataclass(frozen=True, slots=True)
class Repeats:
    """The value is an array with two equal items: the violation of a site's `uniqueItems`."""

    site: Site

    @property
    def atoms(self) -> frozenset[str]:
        return TYPES["array"]


@dataclass(frozen=True, slots=True)
class Unevaluated:
    """The items or members that `evaluators` leave unevaluated satisfy the `unevaluated...` keyword of a site.

    Unless `holds`: one of them does not satisfy it.
    """

    site: Site
    keyword: str
    evaluators: tuple[Site, ...]
    holds: bool = True

    @property
    def atoms(self) -> frozenset[str]:
        return ALL_ATOMS if self.holds else TYPES["array" if self.keyword == "unevaluatedItems" else "object"]


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Of the branches that a site has in `keyword`, `oneOf` or `anyOf`, none but the one at `index` holds (None: none at all)."""

    site: Site
    index: int | None
    keyword: str = "oneOf"

    @property
    def atoms(self) -> frozenset[str]:
        return ALL_ATOMS


Literal = (
    Site | Kinds | Among | Within | NotMultiple | Length | Mismatch | Count | Clause | Condition | Common | Repeats | Unevaluated
    | Exclusive
)
Term = tuple[Literal, ...]


def has_key(name: str, strict: bool = True) -> Count:
    """The value has a member of this name."""
    return Count(Keys(frozenset([name])), (), 1, None, strict)


def negated(conj: Conj) -> Conj:
    """A conjunction that holds where this one does not."""
    if not conj:
        return NOTHING
    if len(conj) > 1:
        return (Not(Either((conj,))),)
    return (conj[0].claim,) if isinstance(conj[0], Not) else (Not(conj[0]),)


def implied_keys(name: str, names: list[str]) -> Term:
    """The value has members of all these names if it has one of the first."""
    absent = lacks_key(name, strict=False)
    return tuple(Clause((absent, has_key(each, strict=False)), strict=False) for each in names if each != name)


def implied(name: str, terms: list[Term]) -> list[Term]:
    """One of the terms holds if the value has a member of this name."""
    absent = lacks_key(name, strict=False)
    options = (absent, *(option for term in terms for option in _options(term)))
    first: Term = (absent,) if len(options) == 1 else (Clause(tuple(dict.fromkeys(options)), strict=False),)
    return [first, *(term for term in terms if not _options(term))]


def lacks_key(name: str, strict: bool = True) -> Count:
    """The value has no member of this name."""
    return Count(Keys(frozenset([name])), (), 0, 0, strict)


def with_clause(terms: list[Term]) -> list[Term]:
    """Join those alternatives into one `Clause` that only say of an object that some member is there, or is not.

    Where several schemas are violated, the ways to violate each multiply: so the fewer, the better.
    """
    options = [option for term in terms for option in _options(term)]
    if len(options) < 2:
        return terms
    return [*(term for term in terms if not _options(term)), (Clause(tuple(dict.fromkeys(options))),)]


def _options(term: Term) -> tuple[Count, ...]:
    literal = term[0] if len(term) == 1 else None
    if isinstance(literal, Clause) and literal.strict:
        return literal.options
    if not isinstance(literal, Count) or not literal.strict or literal.kind != "object":
        return ()
    return (literal,) if (literal.low, literal.high) in ((1, None), (0, 0)) else ()

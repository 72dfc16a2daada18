"""The cases of a value: which of some conjunctions it satisfies.

Conjunctions that say no more of scalars than types, listed values, bounds of numbers and lengths of strings cut the values of each
type into as many pieces as there are bounds, however they overlap; for the others every combination has to be looked at. Types are
looked at one by one, so what is said of one does not multiply with what is said of another.

    minimum 3, maximum 5, enum [4, "a"]     numbers: below 3, from 3 to 5 but 4, 4, above 5;  strings: "a", others;  other types
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from ....base.errors import ConstraintLimit
from ...numbers.numbers import Interval
from ..documents.document import Site
from ..documents.keyword_table import concerning
from ..documents.keywords import TYPES
from ..documents.values import atom_of, equality_key
from .claims import (
    NUMBERS,
    Among,
    Cell,
    Claim,
    Conj,
    Kinds,
    Length,
    Literal,
    Named,
    NameTest,
    NotMultiple,
    Term,
    Within,
    negated,
)
from .membership import Membership
from .shaping import Shapes

MAX_PIECES = 1_000
_FEW_CASES = 16  # of strings, of which it is not asked whether some string is in each
MOST_TOLD_APART = 256  # cases of one value, where every combination has to be looked at
_TYPES = (TYPES["null"], TYPES["boolean"], NUMBERS, TYPES["string"], TYPES["array"], TYPES["object"])
_ABOUT = {kind: concerning(kind) for kind in ("array", "object")}
_OF_SCALARS = (Kinds, Among, Within, NotMultiple, Length)

Case = tuple[Conj, dict[Conj, bool]]  # what is claimed of a value, and which of the conjunctions hold, as far as that is told
Cut = tuple[Any, bool]  # a place between numbers, or lengths: before one, or behind it
ToldApart = Callable[[Conj, list[Conj]], list[Case]]


class _Piece(NamedTuple):
    """Values of some atoms between two cuts, without those that have some equality keys."""

    atoms: frozenset[str]
    low: Cut | None = None
    high: Cut | None = None
    without: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        return self.low is None and self.high is None and not self.without


@dataclass(slots=True)
class _Facet:
    """The values of one type that satisfy a conjunction: pieces, and values by their equality key."""

    pieces: list[_Piece] = field(default_factory=list)
    listed: dict[str, Any] = field(default_factory=dict)
    excluded: dict[str, Any] = field(default_factory=dict)  # by some piece

    def is_all(self, atoms: frozenset[str]) -> bool:
        return frozenset[str]().union(*(piece.atoms for piece in self.pieces if piece.is_whole)) >= atoms

    @property
    def is_none(self) -> bool:
        return not self.pieces and not self.listed


class Partitions:
    """Finds the cases. `terms(conj)` are the alternatives of a conjunction."""

    def __init__(
        self, terms: Callable[[Conj], list[Term]], conjoin: Callable[[Iterable[Claim]], Conj], shapes: Shapes,
        membership: Membership,
    ) -> None:  # fmt: skip
        self._terms, self._conjoin, self._shapes, self._membership = terms, conjoin, shapes, membership

    def cases(self, value: Conj, conjs: Sequence[Conj], told_apart: ToldApart) -> list[Case]:
        """The cases of a value. `told_apart` finds those of conjunctions that say more of a type than can be cut into pieces."""
        terms = {conj: self._terms(conj) for conj in conjs}
        own = frozenset[str]().union(*map(self._shapes.atoms, self._terms(value)))
        found: dict[int, list[Term]] = {}
        others: list[Case] = []
        for atoms in (own & each for each in _TYPES):
            if not atoms:
                continue
            told = {conj: self._facet(of_conj, atoms) for conj, of_conj in terms.items()}
            facets = [facet for facet in told.values() if facet is not None]
            if len(facets) == len(conjs):
                kinds: Term = () if atoms == own else (Kinds(atoms),)
                for signature, term in _pieces(facets, atoms, kinds):
                    found.setdefault(signature, []).append(term)
                if len(found) > MAX_PIECES:
                    raise too_many(len(conjs), MAX_PIECES)
            else:
                part = self._claimed(value, () if atoms == own else ((Kinds(atoms),),), conjs, {})
                others += self._other_cases(part, told, atoms, told_apart)
        cases: list[Case] = []
        for bits, alike in found.items():
            truths = _truths(bits, conjs)
            cases.append((self._claimed(value, tuple(_listed_together(alike)), conjs, truths), truths))
        return [*cases, *others]

    def _claimed(self, value: Conj, terms: tuple[Term, ...], conjs: Sequence[Conj], truths: Mapping[Conj, bool]) -> Conj:
        """What is claimed of a value that satisfies one of some terms; it is shown as what holds of it, or does not."""
        if () in terms or not terms:
            return value
        paths = ((truths.get(conj, True), conj[0].path) for conj in conjs if conj)
        is_held, path = max(paths, default=(True, "#"), key=lambda each: each[0])
        return self._conjoin([*value, Cell(terms, path if is_held else f"not {path}")])

    def _other_cases(
        self, value: Conj, told: Mapping[Conj, _Facet | None], atoms: frozenset[str], told_apart: ToldApart
    ) -> Iterator[Case]:
        """The cases of values of a type of which some conjunctions say more."""
        settled = {conj: facet is not None and facet.is_all(atoms) for conj, facet in told.items()}
        open_conjs = [conj for conj, facet in told.items() if not settled[conj] and not (facet is not None and facet.is_none)]
        for conj in open_conjs:
            del settled[conj]
        cases = self._by_values(value, open_conjs, atoms)
        try:
            cases = cases or told_apart(value, open_conjs)
        except ConstraintLimit as error:
            if error.limit != "alternatives" or atoms != TYPES["string"]:
                raise
        if atoms == TYPES["string"] and (cases is None or len(cases) > _FEW_CASES):
            of_texts = self._by_texts(value, open_conjs)
            if cases is None or (of_texts is not None and len(of_texts) < len(cases)):
                cases = of_texts
        if cases is None:
            raise too_many(len(open_conjs), MOST_TOLD_APART)
        for conj, truths in cases:
            yield conj, {**settled, **truths}

    def _by_values(self, value: Conj, conjs: Sequence[Conj], atoms: frozenset[str]) -> list[Case] | None:
        """The cases of values of a type where each conjunction lists its own, arrays or objects too; None where one does not."""
        values: dict[str, Any] = {}
        signatures: dict[str, int] = {}
        for number, conj in enumerate(conjs):
            for term in self._terms(conj):
                listed = self._shapes.values(term)
                if listed is None and self._shapes.atoms(term) & atoms:
                    return None
                for key, each in (listed or {}).items():
                    if atom_of(each) in atoms and self._membership.in_term(term, each):
                        values[key], signatures[key] = each, signatures.get(key, 0) | 1 << number
        cases: list[Case] = []
        for bits in dict.fromkeys(signatures.values()):
            keys, truths = [key for key, each in signatures.items() if each == bits], _truths(bits, conjs)
            among = Among(tuple(keys), tuple([values[key] for key in keys]))
            cases.append((self._claimed(value, ((among,),), conjs, truths), truths))
        others = self._conjoin([*value, *(claim for conj in conjs for claim in negated(conj))])
        return [*cases, (others, dict.fromkeys(conjs, False))]

    def _by_texts(self, value: Conj, conjs: Sequence[Conj]) -> list[Case] | None:
        """The cases of strings, sorted by which conjunctions they satisfy (names.py); None where that is too much.

        That a conjunction does not hold is claimed where strings of the same case but for that would satisfy it, too.
        """
        names = self._membership.names()
        tests: list[NameTest] = [Named(conj) for conj in conjs]
        try:
            sets = [*names.classes(tests)]
        except ConstraintLimit as error:
            if error.limit != "name_classes":
                raise
            return None
        listed = dict.fromkeys(names.listed(tests))
        keys, apart = tuple(map(equality_key, listed)), tuple(listed)
        cases: list[Case] = []
        for text, key in zip(apart, keys, strict=True):
            truths = _passed(names.passed(text, tests), conjs)
            cases.append((self._claimed(value, ((Among((key,), (text,)),),), conjs, truths), truths))
        others = self._claimed(value, ((Among(keys, apart, holds=False),),) if listed else (), conjs, {})
        for passed in sets:
            truths = _passed(passed, conjs)
            near = frozenset[NameTest]().union(*(each for each in sets if each > passed)) - passed
            told = [conj for conj, holds in truths.items() if holds or Named(conj) in near]
            claims = [claim for conj in told for claim in (conj if truths[conj] else negated(conj))]
            cases.append((self._conjoin([*others, *claims]), truths))
        return cases

    def _facet(self, terms: list[Term], atoms: frozenset[str]) -> _Facet | None:
        """What the alternatives of a conjunction say of one type; None where that is more than pieces."""
        facet = _Facet()
        for term in terms:
            values = self._shapes.values(term)
            if values is not None:
                of_type = {key: value for key, value in values.items() if atom_of(value) in atoms}
                if any(isinstance(value, (list, dict)) for value in of_type.values()):
                    return None
                facet.listed |= {key: value for key, value in of_type.items() if self._membership.in_term(term, value)}
                continue
            left = self._shapes.atoms(term) & atoms
            piece = self._piece(term, left) if left else None
            if piece is not None:
                excluded = {key: value for key, value in self._shapes.excluded(term).items() if atom_of(value) in left}
                facet.pieces.append(piece._replace(without=frozenset(excluded)))
                facet.excluded |= excluded
            elif left:
                return None
        return facet

    def _piece(self, term: Term, atoms: frozenset[str]) -> _Piece | None:
        if atoms <= NUMBERS:
            number = self._shapes.number(term)
            if number.steps or number.not_steps:
                return None
            interval = number.interval
            above = None if interval.low is None else (Decimal(interval.low), interval.exclusive_low)
            below = None if interval.high is None else (Decimal(interval.high), not interval.exclusive_high)
            return _Piece(atoms & {"integer"} if number.is_integer else atoms, above, below)
        if atoms == TYPES["string"]:
            string = self._shapes.string(term)
            is_plain = not string.languages and not string.mismatches
            high = None if string.high is None else (string.high + 1, False)
            return _Piece(atoms, (string.low, False) if string.low else None, high) if is_plain else None
        kind = next(iter(atoms))
        return _Piece(atoms) if kind not in _ABOUT or all(_is_silent(literal, kind) for literal in term) else None


def _passed(passed: frozenset[NameTest], conjs: Sequence[Conj]) -> dict[Conj, bool]:
    return {conj: Named(conj) in passed for conj in conjs}


def _is_silent(literal: Literal, kind: str) -> bool:
    """Whether a literal says nothing of arrays, or objects, but their type."""
    return _ABOUT[kind].isdisjoint(literal.active) if isinstance(literal, Site) else isinstance(literal, _OF_SCALARS)


def _pieces(facets: list[_Facet], atoms: frozenset[str], kinds: Term) -> Iterator[tuple[int, Term]]:
    """Terms for all values of some atoms, and which facets they are in, as the bits of a number."""
    pieces = [piece for facet in facets for piece in facet.pieces]
    cuts: list[Cut] = sorted({cut for piece in pieces for cut in (piece.low, piece.high) if cut is not None})
    signatures = {atom: _signatures(facets, atom, cuts) for atom in sorted(atoms)}
    apart = _values_apart(facets, signatures, cuts)
    by_atoms = [(atoms, next(iter(signatures.values())))]
    if len({tuple(each) for each in signatures.values()}) > 1:
        by_atoms = [(frozenset([atom]), each) for atom, each in signatures.items()]
    for some, each in by_atoms:
        told = kinds if some == atoms else (Kinds(some),)
        start = 0
        for end in range(1, len(each) + 1):
            if end < len(each) and each[end] == each[start]:
                continue
            low, high = cuts[start - 1] if start else None, cuts[end - 1] if end < len(each) else None
            inside = {key: value for key, (value, place, _) in apart.items() if start <= place < end and atom_of(value) in some}
            without: Term = (Among(tuple(inside), tuple(inside.values()), holds=False),) if inside else ()
            yield each[start], (*told, *_between(low, high, atoms), *without)
            start = end
    for key, (value, _, signature) in apart.items():
        yield signature, (Among((key,), (value,)),)


def _signatures(facets: list[_Facet], atom: str, cuts: list[Cut]) -> list[int]:
    """Between each two cuts, the facets that have values of an atom there."""
    out = [0] * (len(cuts) + 1)
    for number, facet in enumerate(facets):
        for piece in facet.pieces:
            if atom in piece.atoms:
                first = 0 if piece.low is None else bisect_right(cuts, piece.low)
                end = len(out) if piece.high is None else bisect_left(cuts, piece.high) + 1
                for place in range(first, end):
                    out[place] |= 1 << number
    return out


def _values_apart(
    facets: list[_Facet], signatures: Mapping[str, list[int]], cuts: list[Cut]
) -> dict[str, tuple[Any, int, int]]:  # fmt: skip
    """The values that are not in the same facets as those around them: by key, the value, its place, and the facets it is in."""
    values: dict[str, Any] = {}
    in_lists: dict[str, int] = {}
    without: list[tuple[int, _Facet]] = [(number, facet) for number, facet in enumerate(facets) if facet.excluded]
    for number, facet in enumerate(facets):
        values |= facet.listed | facet.excluded
        for key in facet.listed:
            in_lists[key] = in_lists.get(key, 0) | 1 << number
    out: dict[str, tuple[Any, int, int]] = {}
    for key, value in values.items():
        atom = atom_of(value)
        if atom not in signatures:
            continue
        size = Decimal(value) if atom in NUMBERS else len(value) if atom == "string" else None
        cut: Cut | None = None if size is None else (size, False)
        place = 0 if cut is None else bisect_right(cuts, cut)
        signature = around = signatures[atom][place]
        for number, facet in without:
            if key in facet.excluded and not _has_piece(facet, key, atom, cut):
                signature &= ~(1 << number)
        signature |= in_lists.get(key, 0)
        if signature != around:
            out[key] = value, place, signature
    return out


def _has_piece(facet: _Facet, key: str, atom: str, cut: Cut | None) -> bool:
    """Whether a value, which lies behind a cut, is in some piece."""
    return any(
        atom in piece.atoms and key not in piece.without
        and (cut is None or ((piece.low is None or piece.low <= cut) and (piece.high is None or cut < piece.high)))
        for piece in facet.pieces
    )  # fmt: skip


def _between(low: Cut | None, high: Cut | None, atoms: frozenset[str]) -> Term:
    """What says that a number, or the length of a string, lies between two cuts."""
    if low is None and high is None:
        return ()
    if atoms == TYPES["string"]:
        return (Length(0 if low is None else low[0], None if high is None else high[0] - 1),)
    lowest, is_above = (None, False) if low is None else low
    highest, is_within = (None, True) if high is None else high
    return (Within(Interval(low=lowest, high=highest, exclusive_low=is_above, exclusive_high=not is_within)),)


def _listed_together(terms: list[Term]) -> Iterator[Term]:
    """The terms, with all that are one listed value as one."""
    listed: dict[str, Any] = {}
    for term in terms:
        literal = term[0] if len(term) == 1 else None
        if isinstance(literal, Among) and literal.holds:
            listed |= zip(literal.keys, literal.values, strict=True)
        else:
            yield term
    if listed:
        yield (Among(tuple(listed), tuple(listed.values())),)


def _truths(signature: int, conjs: Sequence[Conj]) -> dict[Conj, bool]:
    return {conj: bool(signature >> number & 1) for number, conj in enumerate(conjs)}


def too_many(count: int, most: int) -> ConstraintLimit:
    return ConstraintLimit(
        f"{count} conditions on one value", limit="alternatives", value=most,
        instead="fewer anyOf, oneOf, not or contains that hold at the same time",
    )  # fmt: skip

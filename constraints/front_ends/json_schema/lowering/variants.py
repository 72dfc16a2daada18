"""Cases of an item or member: which of the conditions on all items or members it counts in, and what it settles.

Two kinds of conditions are watched: needs, which count, and clauses, of whose options one has to hold. An option that a member
exists holds once one has been read; an option that none does fails then, and holds at the end otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ....base.errors import ConstraintLimit
from ..algebra.claims import Claim, Conj, Index, Keys, negated
from ..algebra.clauses import Clause, Need
from ..algebra.partitions import MOST_TOLD_APART, Case, ToldApart, too_many
from .series import TOTAL, Effect

Where = Index | Keys
CasesOf = Callable[[Conj, list[Conj], ToldApart], list[Case]]
_FEW_BESIDE_WATCHED: Final = 16  # cases of one item, where it may be watched instead
_FEW: Final = 3  # conditions on one member that are told apart no more than they have to be
NO_EFFECT: Final = Effect()


class Variant(NamedTuple):
    """One case of an item or member: the conjunction that it satisfies, and the effect; by condition what else it may satisfy."""

    conj: Conj
    effect: Effect = NO_EFFECT
    watched: tuple[tuple[int, Conj], ...] = ()


class Watches:
    """The needs and clauses that are watched while a series is read. `lacks_values` proves that no value satisfies some claims,
    `are_apart` that none satisfies two of some conjunctions; `cases_of` tells many conjunctions apart (partitions.py).

    tells_all: no two cases have a value in common, even where it need not be known what they satisfy.
    """

    def __init__(
        self, needs: Sequence[Need], clauses: Iterable[Clause], conjoin: Callable[[Iterable[Claim]], Conj],
        lacks_values: Callable[[list[Claim]], bool], are_apart: Callable[[list[Conj]], bool], cases_of: CasesOf,
        *, tells_all: bool = False,
    ) -> None:  # fmt: skip
        clauses = list(clauses)
        self._tells_all = tells_all
        self._needs, self._conjoin, self._lacks_values, self._are_apart = needs, conjoin, lacks_values, are_apart
        self._cases_of = cases_of
        self._numbers = _numbered(clauses)
        self.clauses = frozenset(frozenset(self._numbers[option] for option in clause) for clause in clauses)
        self.absences = frozenset(number for option, number in self._numbers.items() if option.high == 0)

    def __bool__(self) -> bool:
        return bool(self._needs or self._numbers)

    @property
    def bounded(self) -> frozenset[int]:
        """The numbers of the needs that have an upper bound, so that too many may be counted."""
        return frozenset(i for i, need in enumerate(self._needs, TOTAL + 1) if need.high is not None)

    @property
    def may_settle(self) -> bool:
        """Whether it may be that nothing has to be watched any more."""
        return not self.bounded

    def without(self, name: str) -> Effect:
        """The effect of passing a member over."""
        options = self._numbers.items()
        return Effect(makes=frozenset(number for option, number in options if option.high == 0 and option.keys.single == name))

    def variants(
        self, value: Conj, is_meant: Callable[[Where], bool], name: str | None = None, *, may_watch: bool = False
    ) -> list[Variant]:
        """The cases of a value at a place. `name`: the member's, if it is one of its own.

        No case claims more than has to be known: an item that may be left uncounted need not violate what it is counted by. Where
        cases would be many, and items may be watched, they are not told apart by needs without an upper bound.
        """
        needs = [(i, need) for i, need in enumerate(self._needs, TOTAL + 1) if is_meant(need.where)]
        options = [(number, option) for option, number in self._numbers.items() if is_meant(option.where)]
        conjs = dict.fromkeys(each.conj for _, each in (*needs, *options))
        if len(conjs) > _FEW:
            watchable = _counted_without_bound(needs, options) if may_watch else set()
            told = self._cases_of(value, list(conjs), partial(self._told_apart, watchable))
            return [Variant(conj, _effect(case, needs, options, name), _watched(case, needs)) for conj, case in told]
        cases: list[dict[Conj, bool | None]] = [{}]
        for conj in conjs:
            signs = self._signs(conj, value, needs, options)
            cases = [{**case, conj: sign} for case in cases for sign in signs]
        variants = [Variant(self._conjoin(_claims(value, case)), _effect(case, needs, options, name)) for case in cases]
        return [each for each in variants if not any(_is_among(each, other) for other in variants)]

    def _apart(self, value: Conj, conjs: list[Conj]) -> list[Case]:
        """The cases of a value that satisfies one of some conjunctions at the most: one for each, and one for none."""
        cases: list[Case] = []
        for conj in conjs:
            if not self._lacks_values([*value, *conj]):
                cases.append((self._conjoin([*value, *conj]), {each: each is conj for each in conjs}))
        none = dict.fromkeys(conjs, False)
        if not self._lacks_values(claims := _claims(value, none)):
            cases.append((self._conjoin(claims), none))
        return cases

    def _told_apart(self, watchable: Collection[Conj], value: Conj, conjs: list[Conj]) -> list[Case]:
        """The cases where every combination has to be looked at."""
        if len(conjs) > 1 and () not in conjs and self._are_apart([self._conjoin([*value, *conj]) for conj in conjs]):
            return self._apart(value, conjs)
        watched = [conj for conj in conjs if conj in watchable]
        most = _FEW_BESIDE_WATCHED if len(watched) > 1 else MOST_TOLD_APART
        try:
            return self._by_sign(value, conjs, most)
        except ConstraintLimit as error:
            if error.limit != "alternatives" or len(watched) < 2:
                raise
        cases = self._by_sign(value, [conj for conj in conjs if conj not in watchable], MOST_TOLD_APART)
        return [(conj, {**case, **self._settled(conj, watched)}) for conj, case in cases]

    def _settled(self, value: Conj, conjs: list[Conj]) -> dict[Conj, bool]:
        """Which of some conjunctions a value satisfies or violates for certain."""
        held = {conj: True for conj in conjs if set(value).issuperset(conj)}
        return held | {conj: False for conj in conjs if conj not in held and self._lacks_values([*value, *conj])}

    def _by_sign(self, value: Conj, conjs: list[Conj], most: int) -> list[Case]:
        cases: list[dict[Conj, bool]] = [{}]
        for conj in conjs:
            signs = (True,) if set(value).issuperset(conj) else (True, False)
            cases = [{**case, conj: sign} for case in cases for sign in signs]
            cases = [case for case in cases if not self._lacks_values(_claims(value, case))]
            if len(cases) > most:
                raise too_many(len(conjs), most)
        return [(self._conjoin(_claims(value, case)), case) for case in cases]

    def _signs(
        self, conj: Conj, value: Conj, needs: list[tuple[int, Need]], options: list[tuple[int, Need]]
    ) -> tuple[bool | None, ...]:
        """Whether a member satisfies something: yes, no, and where neither has to be known, None."""
        if set(value).issuperset(conj):
            return (True,)
        if self._tells_all:
            return (True, False)
        highs = [need.high for _, need in needs if need.conj == conj]
        wanted = [option.high for _, option in options if option.conj == conj]
        wants_true, wants_false = bool(highs) or None in wanted, any(high is not None for high in highs) or 0 in wanted
        if wants_true and wants_false:
            return (True, False)
        return (True, None) if wants_true else (False, None)


def _is_among(variant: Variant, other: Variant) -> bool:
    """Whether another case has all that this one has, to the same effect."""
    return variant.effect == other.effect and set(variant.conj) > set(other.conj)


def _claims(value: Conj, case: Mapping[Conj, bool | None]) -> list[Claim]:
    signs = ((conj if sign else negated(conj)) for conj, sign in case.items() if sign is not None)
    return [*value, *(claim for claims in signs for claim in claims)]


def _effect(
    case: Mapping[Conj, bool | None], needs: list[tuple[int, Need]], options: list[tuple[int, Need]], name: str | None
) -> Effect:
    signs = [(number, option, case[option.conj]) for number, option in options]
    counts_in = frozenset(i for i, need in needs if case.get(need.conj))
    found = {number for number, option, sign in signs if option.high is None and sign}
    absent = {number for number, option, sign in signs if option.high == 0 and sign is False and option.keys.single == name}
    breaks = frozenset(number for number, option, sign in signs if option.high == 0 and sign is not False)
    return Effect(counts_in, frozenset(found | absent if name is not None else found), breaks)


def _counted_without_bound(needs: list[tuple[int, Need]], options: list[tuple[int, Need]]) -> set[Conj]:
    """What no need bounds, and no clause asks for."""
    others = {need.conj for _, need in needs if need.high is not None} | {option.conj for _, option in options}
    return {need.conj for _, need in needs} - others


def _watched(case: Mapping[Conj, bool], needs: list[tuple[int, Need]]) -> tuple[tuple[int, Conj], ...]:
    """The needs of which a case does not tell whether they hold."""
    return tuple((i, need.conj) for i, need in needs if need.conj not in case)


def _numbered(clauses: list[Clause]) -> dict[Need, int]:
    """Numbers of options. Options that some member exists have one number if they are in the same clauses."""
    places: dict[Need, list[int]] = {}
    for place, clause in enumerate(clauses):
        for option in clause:
            places.setdefault(option, []).append(place)
    numbers: dict[Hashable, int] = {}
    alike: dict[Need, Hashable] = {option: option if option.high == 0 else tuple(found) for option, found in places.items()}
    return {option: numbers.setdefault(key, len(numbers)) for option, key in alike.items()}

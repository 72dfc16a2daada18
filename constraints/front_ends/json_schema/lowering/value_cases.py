"""The cases of one member's value: which of some conjunctions it satisfies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..algebra.claims import Claim, Conj, Either, Equals, negated
from ..algebra.partitions import Case, too_many
from ..documents.values import dump_json
from .variants import CasesOf

MAX_CASES = 256
_FEW = 3  # conditions on one value that are told apart no more than they have to be


def told_apart(
    value: Conj, wanted: Mapping[Conj, set[bool]], conjoin: Callable[[Iterable[Claim]], Conj],
    lacks_values: Callable[[list[Claim]], bool], values_of: Callable[[Conj], Mapping[str, Any] | None], cases_of: CasesOf,
) -> list[Case]:  # fmt: skip
    """The cases of a value. wanted: of each conjunction, whether it matters that it holds, or that it does not.

    What does not matter is not claimed: a value that may be taken for one that violates something need not violate it.
    """
    if len(wanted) > _FEW:
        listed = {conj: values for conj in wanted if (values := values_of(conj)) is not None}
        if len(listed) == len(wanted):
            return _by_value(value, listed, conjoin, lacks_values)
        exactly = {True, False}
        return cases_of(value, list(wanted), lambda of, some: _by_sign(of, dict.fromkeys(some, exactly), conjoin, lacks_values))
    return _by_sign(value, wanted, conjoin, lacks_values)


def _by_sign(
    value: Conj, wanted: Mapping[Conj, set[bool]], conjoin: Callable[[Iterable[Claim]], Conj],
    lacks_values: Callable[[list[Claim]], bool],
) -> list[Case]:  # fmt: skip
    """The cases by every combination of what holds and what does not."""
    cases: list[tuple[list[Claim], dict[Conj, bool]]] = [(list(value), {})]
    for conj, signs in wanted.items():
        told = [(True, list(conj) if True in signs else []), (False, list(negated(conj)) if False in signs else [])]
        if set(value).issuperset(conj):
            told = [(True, [])]
        cases = [([*claims, *more], {**truths, conj: sign}) for claims, truths in cases for sign, more in told]
        cases = [case for case in cases if not lacks_values(case[0])]
        if len(cases) > MAX_CASES:
            raise too_many(len(wanted), MAX_CASES)
    return [(conjoin(claims), truths) for claims, truths in cases]


def _by_value(
    value: Conj, listed: Mapping[Conj, Mapping[str, Any]], conjoin: Callable[[Iterable[Claim]], Conj],
    lacks_values: Callable[[list[Claim]], bool],
) -> list[Case]:  # fmt: skip
    """The cases of conjunctions that list their values: one for all values in the same lists, and one for those in none."""
    in_lists: dict[str, list[Conj]] = {}
    equal: dict[str, Equals] = {}
    for conj, values in listed.items():
        for key, each in values.items():
            in_lists.setdefault(key, []).append(conj)
            equal.setdefault(key, Equals(key, each, dump_json(each)))
    alike: dict[tuple[Conj, ...], list[Equals]] = {}
    for key, conjs in in_lists.items():
        if not lacks_values([*value, equal[key]]):
            alike.setdefault(tuple(conjs), []).append(equal[key])
    out: list[Case] = []
    for lists, values_alike in alike.items():
        claim: Claim = Either(tuple((each,) for each in values_alike)) if len(values_alike) > 1 else values_alike[0]
        out.append((conjoin([*value, claim]), {conj: conj in lists for conj in listed}))
    rest = [*value, *(claim for conj in listed for claim in negated(conj))]
    return out if lacks_values(rest) else [*out, (conjoin(rest), dict.fromkeys(listed, False))]

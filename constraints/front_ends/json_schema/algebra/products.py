"""Products of alternatives: every combination of one from each group that may hold of some value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from ....base.errors import ConstraintLimit
from ..documents.document import Site
from ..documents.policy import Policy
from .atoms import literal_atoms
from .claims import Conj, Literal, Term
from .hubs import MIN_GROUPS, Hub, hub_of, told_by
from .sameness import Sameness

FEW: Final = 16  # alternatives not worth a search for superfluous ones
MAX_ABSORBED: Final = 1_000  # alternatives compared with one another
MAX_TERMS: Final = 5_000  # alternatives of one conjunction: each anyOf beside another multiplies them


class Products:
    """Combines terms; `is_void` proves that no value satisfies one."""

    def __init__(self, policy: Policy, sameness: Sameness, is_void: Callable[[Term], bool]) -> None:
        self._policy, self._sameness, self._is_void = policy, sameness, is_void

    def joined(
        self, groups: Sequence[list[Term]], where: Conj, most: int = MAX_TERMS, decided: frozenset[str] = frozenset()
    ) -> list[Term]:
        """One term of each group, in all combinations that are not void; refused where these multiply to more than `most`.

        decided: members whose cases are told apart already.
        """
        several = [group for group in groups if len(group) > 1]
        if len(several) >= MIN_GROUPS and (hub := hub_of(several, decided)) is not None:
            return self._by_cases(hub, groups, where, most, decided | {hub.name})
        out: list[Term] = [()]
        for group in _condensed(groups):
            if out == [()] and len(group) == 1 and len(group[0]) < 2:
                out = group
                continue
            if len(out) * len(group) > FEW:
                out = self._product(out, group, where, most)
                continue
            out = list(dict.fromkeys(merged(term, more) for term in out for more in group))
            if len(group) > 1 or any(not isinstance(literal, Site) for literal in (group[0] if group else ())):
                out = [term for term in out if not self.is_empty(term)]
        return out

    def _by_cases(
        self, hub: Hub, groups: Sequence[list[Term]], where: Conj, most: int, decided: frozenset[str]
    ) -> list[Term]:  # fmt: skip
        """The combinations by the cases of one member."""
        told = [group for group in groups if len(group) > 1 and told_by(hub, group)]
        others = self.joined([group for group in groups if not any(group is each for each in told)], where, most, decided)
        out: list[Term] = []
        for claim, left in hub.cases(told):
            self._policy.check_time(where[0].path if where else None)
            out += self.joined([others, [claim], *left], where, most, decided)
            check_count(len(out), where)
        return out

    def _product(self, terms: list[Term], group: list[Term], where: Conj, most: int) -> list[Term]:
        """The product of two large groups. A term of the first that already says all of one in the second stays as it is."""
        terms, group = (list(dict.fromkeys(map(self._sameness.shared, each))) for each in (terms, group))
        said = [frozenset(more) for more in group]
        out: dict[Term, None] = {}
        for term in terms:
            self._policy.check_time(where[0].path if where else None)
            literals = frozenset(term)
            if any(more <= literals for more in said):
                out[term] = None
                continue
            out |= {each: None for more in group if not self.is_empty(each := merged(term, more))}
            check_count(len(out), where, most)
        return absorbed(list(out)) if FEW < len(out) <= MAX_ABSORBED else list(out)

    def is_empty(self, term: Term) -> bool:
        """Whether it is proven that no value satisfies a term."""
        if len(term) < 2:
            return False
        atoms = literal_atoms(term[0])
        for literal in term[1:]:
            atoms &= literal_atoms(literal)
        return not atoms or (any(not isinstance(literal, Site) for literal in term) and self._is_void(term))


def merged(first: Term, second: Term) -> Term:
    """Both terms as one, each literal once."""
    return tuple(dict.fromkeys(first + second)) if first and second else first or second


def _condensed(groups: Sequence[list[Term]]) -> Iterator[list[Term]]:
    """The groups, where neighbours of one term each become one group: an allOf of thousands is joined in one step."""
    for is_single, run in groupby(groups, lambda group: len(group) == 1):
        if is_single:
            yield [tuple(dict.fromkeys(literal for (term,) in run for literal in term))]
        else:
            yield from run


def absorbed(terms: list[Term]) -> list[Term]:
    """The terms without those that say all that another one says, and more."""
    if () in terms:
        return [()]
    uses = Counter(literal for term in terms for literal in term)
    kept: dict[Literal, list[frozenset[Literal]]] = {}  # by the literal of a term that is in the fewest
    out = []
    for term in sorted(terms, key=len):
        literals = frozenset(term)
        if not any(weaker <= literals for literal in term if literal in kept for weaker in kept[literal]):
            kept.setdefault(min(term, key=uses.__getitem__), []).append(literals)
            out.append(term)
    return out


def union(groups: Iterable[list[Any]]) -> list[Any]:
    """All alternatives of some groups, each once."""
    return list(dict.fromkeys(each for group in groups for each in group))


def check_count(count: int, where: Conj, most: int = MAX_TERMS) -> None:
    """Refuses more alternatives than the limit."""
    if count > most:
        raise too_many(count, where)


def too_many(count: int, where: Conj) -> ConstraintLimit:
    return ConstraintLimit(
        f"{count} combinations of alternatives", limit="alternatives", value=MAX_TERMS,
        path=where[0].path if where else None, instead="fewer anyOf, oneOf or not that hold at the same time",
    )  # fmt: skip

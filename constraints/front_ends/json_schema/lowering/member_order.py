"""An order of members in which decision diagrams about them are small: those that are asked about together stand near each other.

A diagram has to remember what it has been told and asks about later. Along a path, a ring or a tree of conditions that is little,
if members come as they lie on it. Source: E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices" (1969).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

from ..algebra.formulas import Formula, Joined, Negated, all_of, first_name, names_of

MOST_BESIDE = 12  # members of one formula that are all taken to be near each other

Neighbours = dict[str, dict[str, None]]


def in_narrow_order(names: Iterable[str], formulas: Iterable[Formula]) -> list[str]:
    """Some names, and all others that formulas speak of: each group of those that hang together from one end of it to the other,
    in the one of some orders in which the fewest are asked about together with later ones; of equal ones the one in which what
    formulas speak of first comes soonest, as it decides what is left of those inside of others."""
    neighbours = _neighbours(names, formulas)
    found: dict[str, None] = {}
    for name in neighbours:
        if name not in found:
            group = _by_distance(name, neighbours)
            first = min(group, key=lambda each: len(neighbours[each]))
            end = _by_distance(first, neighbours)[-1]
            orders = [_by_distance(end, neighbours), _in_depth(end, neighbours)]
            orders += [order[::-1] for order in orders]
            narrowest = min(orders, key=lambda order: (_width(order, neighbours), order.index(name)))
            found |= dict.fromkeys(narrowest)
    return list(found)


def _width(order: list[str], neighbours: Neighbours) -> int:
    """How many members at the most, of those before some place, have neighbours behind it."""
    place = {name: i for i, name in enumerate(order)}
    left, widest, is_open = [0] * (len(order) + 1), 0, 0
    for i, name in enumerate(order):
        last = max((place[each] for each in neighbours[name]), default=i)
        if last > i:
            is_open += 1
            left[last] += 1
        is_open -= left[i]
        widest = max(widest, is_open)
    return widest


def _neighbours(names: Iterable[str], formulas: Iterable[Formula]) -> Neighbours:
    found: Neighbours = {name: {} for name in names}
    told = all_of(formulas)
    for formula in told.parts if isinstance(told, Joined) and told.how == "all" else (told,):
        for first, second in _pairs(formula):
            found.setdefault(first, {})[second] = None
            found.setdefault(second, {})[first] = None
    return found


def _pairs(formula: Formula) -> Iterator[tuple[str, str]]:
    """Members that are near each other in a formula: all of a small one; of a larger one those of each part, and the first ones of
    parts that follow each other."""
    names = names_of(formula)
    if isinstance(formula, Negated):
        formula = formula.part
    if len(names) <= MOST_BESIDE or not isinstance(formula, Joined):
        yield from combinations(sorted(names), 2)
        return
    for part in formula.parts:
        if isinstance(part, Joined):
            yield from _pairs(part)
    yield from pairwise(dict.fromkeys([name for part in formula.parts if (name := first_name(part)) is not None]))


def _by_distance(start: str, neighbours: Neighbours) -> list[str]:
    """The names that hang together with one, by their distance from it, those with fewer neighbours first."""
    found: dict[str, None] = {start: None}
    waiting = [start]
    for name in waiting:
        fresh = sorted((each for each in neighbours[name] if each not in found), key=lambda each: len(neighbours[each]))
        found |= dict.fromkeys(fresh)
        waiting += fresh
    return waiting


def _in_depth(start: str, neighbours: Neighbours) -> list[str]:
    """The names that hang together with one, each followed by those that it leads to, those with fewer neighbours first."""
    found: dict[str, None] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += sorted((each for each in neighbours[name] if each not in found), key=lambda each: -len(neighbours[each]))
    return list(found)

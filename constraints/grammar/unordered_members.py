"""Bags: members in any order, with bounds for each part and for all members together.

A BAG node is a list of parts, each a repetition with its bounds, and the bounds of the total. Equal bags are one node:
their bounds are the tightest that say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..base.errors import ConstraintError
from ..base.kinds import MOST, NO_BOUND, NO_TOTAL, UNBOUNDED, Kind
from .copies import repeated
from .emptiness import shows_empty
from .store import EMPTY, FAIL, Node, NodeStore

_BAG: Final = int(Kind.BAG)  # reading a member is slow
_REPEAT: Final = int(Kind.REPEAT)
_TALLY: Final = int(Kind.TALLY)


def bag(store: NodeStore, parts: Iterable[tuple[Node, int, int | None]], low: int = 0, high: int | None = None) -> Node:
    """The BAG node that `Grammar.bag` returns."""
    counts: dict[Node, tuple[int, int]] = {}  # parts with the same body are one
    for body, least, most in parts:
        if shows_empty(store, body):
            raise ConstraintError("a member of a bag may not be empty")
        ceiling = 0 if body == FAIL else NO_BOUND if most is None else most
        if least > ceiling:
            return FAIL
        before = counts.get(body, (0, 0))
        counts[body] = before[0] + max(least, 0), min(before[1] + ceiling, NO_BOUND)
    return _tight_bag(store, sorted((body, *bounds) for body, bounds in counts.items()), low, NO_TOTAL if high is None else high)


def bags_less(store: NodeStore, parts: Sequence[tuple[Node, int, int | None]]) -> list[Node]:
    """For each part of a bag without bounds on the total: the bag that is left when one copy of the part has been
    taken."""
    fewer = [(body, max(low - 1, 0), None if high is None else high - 1) for body, low, high in parts]
    if len({body for body, _, _ in parts}) < len(parts):
        return [FAIL if less[2] == -1 else bag(store, [*parts[:i], less, *parts[i + 1 :]]) for i, less in enumerate(fewer)]
    order = sorted(range(len(parts)), key=lambda i: parts[i][0])
    counted = [_part_of_bag(store, *part) for part in parts]
    tails = [FAIL]  # lists of the last parts, the shortest one first
    for i in reversed(order):
        tails.append(_tally(store, counted[i], tails[-1]))
    bags = [FAIL] * len(parts)
    for place, i in enumerate(order):
        if fewer[i][2] == -1:
            continue
        tally = _tally(store, _part_of_bag(store, *fewer[i]), tails[len(order) - 1 - place])
        for j in reversed(order[:place]):
            tally = _tally(store, counted[j], tally)
        bags[i] = _bag_of(store, tally, 0, UNBOUNDED)
    return bags


def _part_of_bag(store: NodeStore, body: Node, low: int, high: int | None) -> Node:
    """A part with its bounds; FAIL for a part of which no member is left."""
    return FAIL if high == 0 else store.intern((_REPEAT, body, low, UNBOUNDED if high is None else min(high, MOST)))


def _tally(store: NodeStore, part: Node, tally: Node) -> Node:
    return tally if part == FAIL else store.intern((_TALLY, part, tally, 0))


def _bag_of(store: NodeStore, tally: Node, low: int, high: int) -> Node:
    """The bag of a list of parts; a list of fewer than two is a repetition."""
    if tally == FAIL:
        return EMPTY
    part, others, _ = store.operands(tally)
    if others == FAIL:
        body, least, most = store.operands(Node(part))
        return repeated(store, Node(body), least, None if most == UNBOUNDED else most)
    return store.intern((_BAG, tally, low, high))


def _tight_bag(store: NodeStore, parts: list[tuple[Node, int, int]], low: int, high: int) -> Node:
    """The bag whose bounds can all be reached, without those bounds of the total that follow from the parts. So equal
    bags are one node.

    `nodes.less` does this for the bags that the automaton makes.
    """
    least, most = sum(part[1] for part in parts), sum(part[2] for part in parts)
    low, high = max(low, least), min(high, most)
    if low > high:
        return FAIL
    slack = (high if high < NO_BOUND else NO_TOTAL) - least
    bounds = [(body, max(a, low - (most - b)), min(b, a + slack)) for body, a, b in parts]
    tight = [(body, a, b) for body, a, b in bounds if b > 0]
    tally = FAIL
    for body, a, b in reversed(tight):
        tally = _tally(store, _part_of_bag(store, body, a, b if b < NO_BOUND else None), tally)
    low = 0 if low <= sum(part[1] for part in tight) else low
    high = UNBOUNDED if high >= sum(part[2] for part in tight) else high
    return _bag_of(store, tally, low, high)

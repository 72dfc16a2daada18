"""Which tokens of a mask can be gone on from in the tokenizer's spelling, beyond the pair that each makes with the token before.

Where a constraint leaves little choice, as in the name of a member, a pair may be one that the tokenizer writes and lead nowhere:
of `days` a mask allows `d`, behind which only `ays` and its beginnings may come, and none of these does the tokenizer write there.
So where few tokens are left, each is followed until there is a choice again, or the end.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ...constraints.base.errors import ConstraintError
from .canonical import CanonicalPairs, Mask
from .mask_tokens import tokens_in
from .request import Constraint

FEW = 64  # tokens of a mask; among more there is one to go on with
MOST_PLACES = 256  # that are looked at for one mask

Place: TypeAlias = tuple[Any, int]  # a state, and the token that led to it


def with_ways_on(mask: Mask, pairs: CanonicalPairs, constraint: Constraint, state: Any, before: int) -> Mask:
    """What of the mask of a state may follow the token `before`; all of it where nothing may, so that texts come to no dead end."""
    left = pairs.narrowed(mask, before)
    if _is_choice(left):
        return left
    token_ids, search = tokens_in(left), _Search(pairs, constraint)
    if len(token_ids) < 2:
        return left
    ended = [int(token_id) for token_id in token_ids if not search.leads_on(state, int(token_id))]
    return left if len(ended) in (0, len(token_ids)) else _without(left, ended)


class _Search:
    """Follows tokens through a constraint, each place once, and so many places at most: what is not looked at leads on."""

    def __init__(self, pairs: CanonicalPairs, constraint: Constraint) -> None:
        self._pairs, self._constraint = pairs, constraint
        self._known: dict[Place, bool] = {}

    def leads_on(self, state: Any, token_id: int) -> bool:
        try:
            return self._has_way(state, token_id)
        except ConstraintError:  # a limit: whoever gets there is told
            return True

    def _has_way(self, state: Any, token_id: int) -> bool:
        """Depth first; the way is kept in a list, since texts without a choice may be long."""
        way: list[Place] = []
        untried = [iter([(state, token_id)])]  # steps from before the way, and from each place on it
        while untried:
            step = next(untried[-1], None)
            if step is None:  # none of the steps from the last place leads on
                untried.pop()
                if way:
                    self._known[way.pop()] = False
                continue
            after = self._constraint.advance(*step)
            place = after, step[1]
            if after is None or self._known.get(place, len(self._known) >= MOST_PLACES):  # None: an end of the text
                return True
            if place not in self._known:
                self._known[place] = True  # a way that comes back here does so with text, and may go on
                mask = self._constraint.mask(after) & self._pairs.allowed(step[1])
                if _is_choice(mask):
                    return True
                way.append(place)
                untried.append(iter([(after, int(each)) for each in tokens_in(mask)]))
        return False


def _is_choice(mask: Mask) -> bool:
    return int(np.bitwise_count(mask).sum()) > FEW


def _without(mask: Mask, token_ids: list[int]) -> Mask:
    out = mask.copy()
    for token_id in token_ids:
        out[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))
    return out

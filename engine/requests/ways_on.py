"""Which tokens of a mask can be gone on from in the tokenizer's spelling, beyond the pair that each makes with the token before.

Where a constraint leaves little choice, as in the name of a member, a pair may be one that the tokenizer writes and lead nowhere:
of `days` a mask allows `d`, behind which only `ays` and its beginnings may come, and none of these does the tokenizer write there.
So where few tokens are left, each is followed until there is a choice again, or the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...constraints.base.errors import ConstraintError
from .canonical import CanonicalPairs, Mask
from .request import Constraint

FEW = 64  # tokens of a mask; among more there is one to go on with
MOST_PLACES = 256  # that are looked at for one mask


def with_ways_on(mask: Mask, pairs: CanonicalPairs, constraint: Constraint, state: Any, before: int) -> Mask:
    """What of the mask of a state may follow the token `before`; all of it where nothing may, so that texts come to no dead end."""
    left = pairs.narrowed(mask, before)
    token_ids = _few(left)
    if len(token_ids) < 2:
        return left
    search = _Search(pairs, constraint)
    ended = [int(token_id) for token_id in token_ids if not search.leads_on(state, int(token_id))]
    return left if len(ended) in (0, len(token_ids)) else _without(left, ended)


class _Search:
    """Follows tokens through a constraint, each place once, and so many places at most: what is not looked at leads on."""

    def __init__(self, pairs: CanonicalPairs, constraint: Constraint) -> None:
        self._pairs, self._constraint = pairs, constraint
        self._known: dict[tuple[Any, int], bool] = {}

    def leads_on(self, state: Any, token_id: int) -> bool:
        try:
            after = self._constraint.advance(state, token_id)
            return after is None or self._has_way(after, token_id)  # None: an end of the text
        except ConstraintError:  # a limit: whoever gets there is told
            return True

    def _has_way(self, state: Any, before: int) -> bool:
        place = state, before
        if place not in self._known and len(self._known) >= MOST_PLACES:
            return True
        if place not in self._known:
            self._known[place] = True  # a way that comes back here does so with text, and may go on
            left = self._constraint.mask(state) & self._pairs.allowed(before)
            token_ids = _few(left)
            self._known[place] = bool(left.any()) and (
                not len(token_ids) or any(self.leads_on(state, int(token_id)) for token_id in token_ids)
            )
        return self._known[place]


def _few(mask: Mask) -> NDArray[np.intp]:
    """The tokens of a mask; none where they are more than a few."""
    if int(np.bitwise_count(mask).sum()) > FEW:
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))


def _without(mask: Mask, token_ids: list[int]) -> Mask:
    out = mask.copy()
    for token_id in token_ids:
        out[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))
    return out

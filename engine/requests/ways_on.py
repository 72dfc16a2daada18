"""Which tokens of a mask can be gone on from in the tokenizer's spelling, beyond the pair that each makes with the token before.

Where a constraint leaves little choice, as in the name of a member, a pair may be one that the tokenizer writes and lead nowhere:
of `days` a mask allows `d`, behind which only `ays` and its beginnings may come, and none of these does the tokenizer write there.
So a token that leads to a *narrow* place, one where few tokens are allowed, is followed until there is a choice again, or the end.
In a wide mask, of `[a-z]ays` for example, most tokens lead to a few states, and those to wide ones are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...constraints.base.errors import ConstraintError
from .canonical import CanonicalPairs, Mask
from .mask_tokens import tokens_in
from .request import Constraint

FEW = 64  # tokens of a mask; among more there is one to go on with
MOST_PLACES = 4096  # that are looked at for one mask
MOST_ENDS = 1024  # tokens of a wide mask that are followed

Place: TypeAlias = tuple[Any, int]  # a state, and the token that led to it


def with_ways_on(mask: Mask, pairs: CanonicalPairs, constraint: Constraint, state: Any, before: int) -> Mask:
    """What of the mask of a state may follow the token `before`; all of it where nothing may, so that texts come to no dead end."""
    left = pairs.narrowed(mask, before)
    token_ids, search = tokens_in(left), _Search(pairs, constraint)
    if len(token_ids) < 2:
        return left
    followed = token_ids if len(token_ids) <= FEW else search.narrow_ends(state, token_ids)
    ended = [int(token_id) for token_id in followed if not search.leads_on(state, int(token_id))]
    return left if len(ended) in (0, len(token_ids)) else _without(left, ended)


class _Search:
    """Follows tokens through a constraint, each place once, and so many places at most: what is not looked at leads on."""

    def __init__(self, pairs: CanonicalPairs, constraint: Constraint) -> None:
        self._pairs, self._constraint = pairs, constraint
        self._ends = frozenset(constraint.vocabulary.eos_token_ids)
        self._known: dict[Place, bool] = {}
        self._few: dict[Any, list[int] | None] = {}  # the tokens of a state; None: more than a few

    def narrow_ends(self, state: Any, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the tokens that lead to narrow places, the first ones of them; none where the states behind are not told."""
        successors = getattr(self._constraint, "successors", None)
        after = None if successors is None else successors(state)
        if after is None:
            return token_ids[:0]
        states, which = np.unique(after[token_ids], return_inverse=True)
        if len(states) > MOST_PLACES:
            return token_ids[:0]
        is_narrow = np.array([each >= 0 and self._tokens_of(int(each)) is not None for each in states])
        return token_ids[is_narrow[which]][:MOST_ENDS]

    def leads_on(self, state: Any, token_id: int) -> bool:
        try:
            return self._has_way(state, token_id)
        except ConstraintError:  # a limit: whoever gets there is told
            return True

    def _has_way(self, state: Any, token_id: int) -> bool:
        """Depth first; the way is kept in a list, since texts without a choice may be long."""
        way: list[Place] = []
        untried: list[Iterator[Place]] = [iter([(state, token_id)])]  # steps from before the way, and from each place on it
        while untried:
            step = next(untried[-1], None)
            if step is None:  # none of the steps from the last place leads on
                untried.pop()
                if way:
                    self._known[way.pop()] = False
                continue
            if step[1] in self._ends:
                return True
            after = self._constraint.advance(*step)
            place = after, step[1]
            if self._known.get(place, len(self._known) >= MOST_PLACES):
                return True
            if place not in self._known:
                self._known[place] = True  # a way that comes back here does so with text, and may go on
                allowed = self._tokens_of(after)
                if allowed is None:
                    return True
                way.append(place)
                untried.append(self._steps(after, step[1], allowed))
        return False

    def _steps(self, state: Any, before: int, allowed: list[int]) -> Iterator[Place]:
        return ((state, token_id) for token_id in allowed if self._pairs.is_pair(before, token_id))

    def _tokens_of(self, state: Any) -> list[int] | None:
        if state not in self._few:
            mask = self._constraint.mask(state)
            self._few[state] = tokens_in(mask).tolist() if int(np.bitwise_count(mask).sum()) <= FEW else None
        return self._few[state]


def _without(mask: Mask, token_ids: list[int]) -> Mask:
    out = mask.copy()
    for token_id in token_ids:
        out[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))
    return out

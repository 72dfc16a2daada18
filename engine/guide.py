"""One sequence's way through its constraint: state, next mask, and the promise to finish within the budget.

Promise: `min_tokens(state) <= num_left` holds at all times. Near the limit the mask is asked for with that budget. Far from
it the plain mask is used, which every sequence in that state shares; should the token drawn from it lead too far away
(a key that opens a large object), it is not taken: `advance` refuses, and the next mask is the one with the budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import InternalError
from .request import Constraint

NEAR = 16  # tokens between min_tokens and the limit, below which masks are asked for with a budget


class Guide:
    """Call `fill_masks` before reading `mask`, then `advance` with a token that it allows."""

    def __init__(self, constraint: Constraint, num_left: int, extra_end_ids: Iterable[int] = ()) -> None:
        self.constraint = constraint
        self.state = constraint.start()
        self.num_left = num_left  # tokens that may still be generated
        self.mask: NDArray[np.uint32] = np.zeros(num_words(constraint), dtype=np.uint32)  # of the next token
        self.num_allowed = 0  # tokens in the mask, end-of-text tokens included
        self.closed_by_budget = False
        self.failure: Exception | None = None  # of the last fill_masks
        self.end_ids = frozenset(constraint.vocabulary.eos_token_ids) | frozenset(extra_end_ids)
        self._extra_end_ids = tuple(set(extra_end_ids) - set(constraint.vocabulary.eos_token_ids))
        self._is_tight = False  # the last draw led too far: ask with the budget

    @property
    def min_tokens(self) -> int:
        """A number of tokens that suffices to finish."""
        return self.constraint.min_tokens(self.state)

    @property
    def is_complete(self) -> bool:
        """Only end-of-text is legal: nothing is left to choose."""
        return self.num_allowed == len(self.end_ids) and self.is_accepting

    @property
    def is_accepting(self) -> bool:
        return self.constraint.is_accepting(self.state)

    @property
    def only_token(self) -> int | None:
        """The one token the mask allows, if there is one."""
        if self.num_allowed != 1:
            return None
        word = int(np.flatnonzero(self.mask)[0])
        return word * 32 + int(self.mask[word]).bit_length() - 1

    def advance(self, token_id: int) -> bool:
        """Take an allowed text token. False: from there the output could not finish in time, so nothing changed."""
        state = self.constraint.advance(self.state, token_id)
        if state is None:
            raise InternalError(f"token {token_id} was in the mask, but the constraint does not accept it")
        if self.constraint.min_tokens(state) > self.num_left - 1:
            self._is_tight = True
            return False
        self.state, self.num_left, self._is_tight = state, self.num_left - 1, False
        return True

    @property
    def is_tight(self) -> bool:
        """The next mask is one with the budget, because a draw from the plain one led too far."""
        return self._is_tight

    def tighten(self) -> None:
        self._is_tight = True

    def legal_prefix(self, token_ids: Sequence[int]) -> list[int]:
        """The leading ones of these tokens that could be taken one after another; end-of-text is none of them.

        What fails ends the prefix: should the sequence get there, it fails again, and ends that sequence alone.
        """
        state, legal = self.state, list[int]()
        for token_id in token_ids:
            try:
                after = None if token_id in self.end_ids else self.constraint.advance(state, token_id)
                if after is None or self.constraint.min_tokens(after) > self.num_left - len(legal) - 1:
                    break
            except Exception:
                break
            state = after
            legal.append(token_id)
        return legal

    def end_at_limit(self) -> None:
        """No token is left. The output is complete, by the promise; note whether it could have gone on."""
        assert self.num_left == 0 and self.is_accepting, "a constrained output finishes within its budget"
        self._install(self.constraint.mask(self.state))
        self.closed_by_budget |= not self.is_complete

    def _install(self, plain: NDArray[np.uint32]) -> None:
        """Make `plain`, the mask of the current state, the mask of the next token."""
        self.mask = plain
        if self.num_left and (self._is_tight or self.num_left <= self.constraint.min_tokens(self.state) + NEAR):
            self.mask = self.constraint.mask(self.state, budget=self.num_left)
            self.closed_by_budget |= not np.array_equal(self.mask, plain)
        if self._extra_end_ids and self.is_accepting:
            self.mask = with_tokens(self.mask, self._extra_end_ids)
        self.num_allowed = int(np.bitwise_count(self.mask).sum())


def fill_masks(guides: Sequence[Guide]) -> None:
    """Compute the next mask of each guide, one batch call per constraint. What fails is noted in `failure`."""
    by_constraint: defaultdict[int, list[Guide]] = defaultdict(list)
    for guide in guides:
        by_constraint[id(guide.constraint)].append(guide)
    for group in by_constraint.values():
        for guide, plain in zip(group, _plain_masks(group), strict=True):
            _try_install(guide, plain)


def _plain_masks(group: list[Guide]) -> Sequence[NDArray[np.uint32] | None]:
    """The masks of guides that share a constraint; all None when the batch call failed, to be asked one by one."""
    constraint = group[0].constraint
    rows = np.empty((len(group), num_words(constraint)), dtype=np.uint32)
    try:
        constraint.fill_masks([guide.state for guide in group], rows)
    except Exception:
        return [None] * len(group)
    return list(rows)


def _try_install(guide: Guide, plain: NDArray[np.uint32] | None) -> None:
    try:
        guide._install(guide.constraint.mask(guide.state) if plain is None else plain)
    except Exception as error:
        guide.failure = error


def num_words(constraint: Constraint) -> int:
    return -(-constraint.vocabulary.size // 32)


def with_tokens(mask: NDArray[np.uint32], token_ids: Iterable[int]) -> NDArray[np.uint32]:
    """A copy of `mask` that also allows `token_ids`."""
    widened = mask.copy()
    for token_id in token_ids:
        widened[token_id // 32] |= np.uint32(1 << token_id % 32)
    return widened

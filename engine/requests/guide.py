"""One sequence's way through its constraint: state, next mask, and the promise to finish within the budget.

Promise: `min_tokens(state) <= num_left` holds at all times. Near the limit the mask is asked for with that budget. Far from
it the plain mask is used, which every sequence in that state shares; should the token drawn from it lead too far away
(a key that opens a large object), it is not taken: `advance` refuses, and the next mask is the one with the budget.

Where the model repeats itself in a value, the mask may be narrower yet (`steering.py`), and so it is where texts are to be spelt as
the tokenizer spells them (`canonical.py`, `ways_on.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...constraints.runtime.mask_batches import make_masks
from ..errors import InternalError
from .canonical import CanonicalPairs
from .loops import Loop
from .mask_tokens import tokens_in
from .request import Constraint
from .steering import Steering
from .ways_on import with_ways_on

NEAR = 16  # tokens between min_tokens and the limit, below which masks are asked for with a budget


class Guide:
    """One sequence's state in its constraint. `MaskViews.fill` makes `mask`; `advance` takes a token that it allows."""

    def __init__(
        self,
        constraint: Constraint,
        num_left: int,
        extra_end_ids: Iterable[int] = (),
        state: Any = None,
        steering: Steering | None = None,
        canonical: CanonicalPairs | None = None,
        before: int = -1,
    ) -> None:
        """state: where the output begins; None for the start of the constraint. steering: what ends loops, if anything does.
        canonical: what keeps to the tokenizer's spelling, if anything does; before: the last token of the prompt."""
        self.constraint = constraint
        self.state = constraint.start() if state is None else state
        self.num_left = num_left  # tokens that may still be generated
        self.mask: NDArray[np.uint32] = np.zeros(num_words(constraint), dtype=np.uint32)  # of the next token
        self.num_allowed = 0  # tokens in the mask, end-of-text tokens included
        self._widest: tuple[Counted, Any] | None = None  # the constraint's mask, and its state
        self._mask_address: int | None = None
        self.closed_by_budget = False
        self.failure: Exception | None = None  # of the last mask
        self.end_ids = frozenset(constraint.vocabulary.eos_token_ids) | frozenset(extra_end_ids)
        self._extra_end_ids = tuple(set(extra_end_ids) - set(constraint.vocabulary.eos_token_ids))
        self._num_needed = constraint.min_tokens(self.state)
        self.is_tight = False  # the last draw led too far: ask with the budget
        self.is_narrowed = False  # the mask was asked for with the budget
        self.steering = steering
        self._canonical, self._before = canonical, before

    @property
    def min_tokens(self) -> int:
        """A number of tokens that suffices to finish."""
        return self._num_needed

    @property
    def has_masks_of_its_own(self) -> bool:
        """Whether its masks are others than those of its constraint: the output may also end with tokens that the constraint does
        not know, or its spelling is kept to."""
        return bool(self._extra_end_ids) or self._canonical is not None

    @property
    def is_steered(self) -> bool:
        """A loop is being ended: only the host knows the next mask."""
        return self.steering is not None and self.steering.is_active

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops that were ended."""
        return () if self.steering is None else self.steering.loops

    def is_idle_for(self, num_tokens: int) -> bool:
        """Whether no loop will be seen in the next so many tokens, whatever they are."""
        return self.steering is None or self.steering.is_idle_for(num_tokens)

    def fork(self) -> Guide:
        """One that has come as far as this one and goes on by itself."""
        child = copy.copy(self)
        child.steering = None if self.steering is None else self.steering.fork()
        return child

    @property
    def leaves_a_choice(self) -> bool:
        """Certainly more than one token is legal, and not end-of-text alone; told quickly."""
        return self.failure is None and self.num_allowed > len(self.end_ids)

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
        word = int(self.mask.argmax())  # the one that is not zero
        return word * 32 + int(self.mask[word]).bit_length() - 1

    def legal_tokens(self, most: int) -> NDArray[np.int64] | None:
        """All that any mask of this state allows, however narrow, ascending; None where it is more than `most`, or unknown."""
        widest = self._few_at_most(most)
        if widest is None:
            return None
        tokens = tokens_in(widest.mask)
        return np.union1d(tokens, self._extra_end_ids) if self._extra_end_ids and self.is_accepting else tokens

    def address_of_legal(self, most: int) -> int | None:
        """The address of a mask that has `legal_tokens`; None where there is none."""
        widest = self._few_at_most(most)
        return None if widest is None or (self._extra_end_ids and self.is_accepting) else widest.address

    def _few_at_most(self, most: int) -> Counted | None:
        if self._widest is None or self._widest[1] is not self.state or not 0 < self._widest[0].num_tokens <= most:
            return None
        return self._widest[0]

    @property
    def mask_address(self) -> int:
        """Where the words of `mask` are."""
        if self._mask_address is None:
            self._mask_address = self.mask.ctypes.data
        return self._mask_address

    def advance(self, token_id: int) -> bool:
        """Take an allowed text token. False: from there the output could not finish in time, so nothing changed."""
        state = self.constraint.advance(self.state, token_id)
        if state is None:
            raise InternalError(f"token {token_id} was in the mask, but the constraint does not accept it")
        num_needed = self.constraint.min_tokens(state)
        if num_needed > self.num_left - 1:
            self.is_tight = True
            return False
        self.state, self.num_left, self.is_tight, self._num_needed = state, self.num_left - 1, False, num_needed
        self._before = token_id
        if self.steering is not None:
            self.steering.take(token_id, state, num_needed, self.num_left)
        return True

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

    def spelt(self, mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """What of a mask is left where the tokenizer's spelling is kept to; never nothing."""
        return mask if self._canonical is None else with_ways_on(mask, self._canonical, self.constraint, self.state, self._before)

    def end_at_limit(self) -> None:
        """No token is left. The output is complete, by the promise; note whether it could have gone on."""
        assert self.num_left == 0 and self.is_accepting, "a constrained output finishes within its budget"
        self._install(counted(self.constraint.mask(self.state)))
        self.closed_by_budget |= not self.is_complete

    def _install(self, widest: Counted) -> None:
        """Make the mask of the current state the mask of the next token."""
        plain = self.mask = widest.mask
        self._widest = widest, self.state
        self.is_narrowed = self.num_left > 0 and (self.is_tight or self.num_left <= self._num_needed + NEAR)
        if self.is_narrowed:
            self.mask = self.constraint.mask(self.state, budget=self.num_left)
            self.closed_by_budget |= not np.array_equal(self.mask, plain)
        if self.steering is not None and self.steering.mask is not None:
            self.mask = self.steering.mask
        if self._extra_end_ids and self.is_accepting:
            self.mask = with_tokens(self.mask, self._extra_end_ids)
        self.mask = self.spelt(self.mask)
        if self.mask is plain:
            self.num_allowed, self._mask_address = widest.num_tokens, widest.address
        else:
            self.mask = np.ascontiguousarray(self.mask)
            self.num_allowed, self._mask_address = count_tokens(self.mask), None


class Counted(NamedTuple):
    """A mask, and what is known of it."""

    mask: NDArray[np.uint32]  # contiguous
    num_tokens: int  # that it has
    address: int  # of its words


class MaskViews:
    """The masks of guides, without copying them: those of equal states are one array, the tokens in which are counted once."""

    def __init__(self, capacity: int = 2048) -> None:
        self._capacity = capacity
        # By the id of a mask, which so is kept: plain tuples, which no garbage collection has to look at.
        self._counted: dict[int, tuple[NDArray[np.uint32], int, int]] = {}

    def fill(self, guides: Iterable[Guide]) -> None:
        """Compute the next mask of each guide. What fails is noted in its `failure`."""
        guides = list(guides)
        if len(guides) > 1:
            make_masks((guide.constraint, guide.state) for guide in guides)
        for guide in guides:
            try:
                guide._install(self._count(guide.constraint.mask(guide.state)))
            except Exception as error:
                guide.failure = error

    def _count(self, mask: NDArray[np.uint32]) -> Counted:
        known = self._counted.get(id(mask))
        if known is not None:
            return Counted(*known)
        found = counted(mask)
        if len(self._counted) >= self._capacity:
            self._counted.clear()
        if found.mask is mask:
            self._counted[id(mask)] = found.mask, found.num_tokens, found.address
        return found


def counted(mask: NDArray[np.uint32]) -> Counted:
    words = np.ascontiguousarray(mask)
    return Counted(words, count_tokens(words), words.ctypes.data)


def count_tokens(mask: NDArray[np.uint32]) -> int:
    return int(np.bitwise_count(mask).sum())


def num_words(constraint: Constraint) -> int:
    return -(-constraint.vocabulary.size // 32)


def with_tokens(mask: NDArray[np.uint32], token_ids: Iterable[int]) -> NDArray[np.uint32]:
    """A copy of `mask` that also allows `token_ids`."""
    widened = mask.copy()
    for token_id in token_ids:
        widened[token_id // 32] |= np.uint32(1 << token_id % 32)
    return widened

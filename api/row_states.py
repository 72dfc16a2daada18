"""States of rows of tokens that a caller hands over whole at every step, as transformers' `generate` does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .constraints.runtime.constraint import FINISHED, Constraint, State
from .errors import UsageError

_DIGEST_BYTES = 16  # of a row's tokens: two rows of one digest are not met


class RowStates:
    """Finds the state of each row by the tokens before it, so rows may be reordered, dropped, repeated and taken back.

    prompt_length: how many tokens of a row are its prompt, padding included. None: a call with a row that goes on from none seen
        before is the first of new outputs, and its rows are their prompts.
    """

    def __init__(self, constraint: Constraint, prompt_length: int | None = None) -> None:
        self.constraint, self._given_length = constraint, prompt_length
        self.reset()

    def reset(self) -> None:
        """Forget all rows: the next call starts new outputs."""
        self.prompt_length = self._given_length or 0
        self._states: dict[bytes, State | None] = {}  # digest of a row -> its state, None for a dead row

    def of(self, rows: NDArray[np.integer]) -> list[State | None]:
        """The state of every row of int [rows, tokens]; None where a row holds a token that its constraint does not allow."""
        if self._given_length is not None:
            if rows.shape[1] < self._given_length:
                raise UsageError(f"prompt_length={self._given_length}, but the rows have {rows.shape[1]} tokens only")
            return [self._walked(row) for row in rows]
        before = [_digest(row[:-1]) for row in rows]
        if not all(key in self._states for key in before):
            self.prompt_length = rows.shape[1]
            self._states = dict.fromkeys(map(_digest, rows), self.constraint.start())
        else:
            last = [int(row[-1]) for row in rows]
            moved = {_digest(row): self._next(self._states[key], token) for row, key, token in zip(rows, before, last, strict=True)}
            self._states |= moved
        return [self._states[_digest(row)] for row in rows]

    def _walked(self, row: NDArray[np.integer]) -> State | None:
        """The state of a row of which the prompt's length is known: from the longest part of it that was seen before."""
        unknown = []
        state: State | None = self.constraint.start()
        for length in range(len(row), self.prompt_length, -1):
            key = _digest(row[:length])
            if key in self._states:
                state = self._states[key]
                break
            unknown.append((key, int(row[length - 1])))
        for key, token_id in reversed(unknown):
            state = self._states[key] = self._next(state, token_id)
        return state

    def _next(self, state: State | None, token_id: int) -> State | None:
        """The state after a token. A finished row is padded by the caller and stays finished."""
        if state is None or state == FINISHED:
            return state
        return self.constraint.advance(state, token_id) if 0 <= token_id < self.constraint.vocabulary.size else None

    def allowed(self, states: list[State | None], budget: int | None = None) -> NDArray[np.bool_]:
        """bool [rows, V]: what may come next; only EOS for dead rows. budget: tokens left for each row."""
        vocabulary = self.constraint.vocabulary
        words = np.zeros((len(states), -(-vocabulary.size // 32)), np.uint32)
        for row, mask in enumerate(self._masks(states, budget)):
            if mask is not None:
                words[row] = mask
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : vocabulary.size].astype(bool)
        bits[np.ix_([state is None for state in states], vocabulary.eos_token_ids)] = True
        return bits

    def _masks(self, states: list[State | None], budget: int | None) -> Iterator[NDArray[np.uint32] | None]:
        for state in states:
            yield None if state is None else mask_within(self.constraint, state, budget)


def mask_within(constraint: Constraint, state: State, budget: int | None) -> NDArray[np.uint32]:
    """The mask of a state with `budget` tokens left; where so few suffice for nothing, that without a budget."""
    if budget is not None and constraint.min_tokens(state) <= budget:
        return constraint.mask(state, budget)
    return constraint.mask(state)


def _digest(row: NDArray[np.integer]) -> bytes:
    """A name of the tokens of a row."""
    return hashlib.blake2b(np.ascontiguousarray(row, np.int64).tobytes(), digest_size=_DIGEST_BYTES).digest()

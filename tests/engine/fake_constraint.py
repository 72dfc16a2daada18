"""Slow, obvious constraints with the engine's contract, for vocabularies of a hundred tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np


class FakeConstraint:
    """A language given by `num_bytes_to_finish(text) -> int | None`: None when no completion exists.

    States are texts, or FINISHED after end-of-text. Every completion is spelled in one-byte tokens, so the number of
    bytes to finish is the number of tokens that suffices.
    """

    FINISHED = "finished"

    def __init__(self, vocabulary, num_bytes_to_finish: Callable[[bytes], int | None]) -> None:
        self.vocabulary = vocabulary
        self._to_finish = cache(num_bytes_to_finish)

    def start(self):
        return b""

    def is_accepting(self, state) -> bool:
        return state == self.FINISHED or self._to_finish(state) == 0

    def min_tokens(self, state) -> int:
        return 0 if state == self.FINISHED else self._to_finish(state)

    def advance(self, state, token_id):
        if token_id in self.vocabulary.eos_token_ids:
            return self.FINISHED if self.is_accepting(state) else None
        token = self.vocabulary.text_tokens[token_id]
        if state == self.FINISHED or token is None or self._to_finish(state + token) is None:
            return None
        return state + token

    def advance_bytes(self, state, data: bytes):
        return None if state == self.FINISHED or self._to_finish(state + data) is None else state + data

    def forced(self, state) -> bytes:
        """Byte by byte, as long as there is one way to go on."""
        text = b""
        while not self.is_accepting(state):
            after = [bytes([byte]) for byte in range(256) if self._to_finish(state + bytes([byte])) is not None]
            if len(after) != 1:
                break
            state, text = state + after[0], text + after[0]
        return text

    def mask(self, state, budget=None):
        bits = np.zeros(-(-self.vocabulary.size // 32) * 32, dtype=bool)
        for token_id in range(self.vocabulary.size):
            after = self.advance(state, token_id)
            in_time = budget is None or after == self.FINISHED or after is None or self.min_tokens(after) <= budget - 1
            bits[token_id] = after is not None and in_time
        return np.packbits(bits, bitorder="little").view(np.uint32)

    def fill_masks(self, states, out) -> None:
        for row, state in enumerate(states):
            out[row] = self.mask(state)


def choice(vocabulary, *words: bytes) -> FakeConstraint:
    def to_finish(text: bytes) -> int | None:
        return min((len(word) - len(text) for word in words if word.startswith(text)), default=None)

    return FakeConstraint(vocabulary, to_finish)


def brackets(vocabulary, *, cost: int = 1) -> FakeConstraint:
    """Brackets that nest, and x anywhere: "xx(x(x))x", not empty. Each "(" is closed by `cost` times ")" on end."""

    def to_finish(text: bytes) -> int | None:
        owed = 0
        for place, byte in enumerate(text):
            if byte == ord("("):
                owed += cost
            elif byte == ord(")") and owed:
                owed -= 1
            elif byte != ord("x") or (owed and text[place - 1] == ord(")") and owed % cost):
                return None
        return owed + (0 if text else 1)

    return FakeConstraint(vocabulary, to_finish)


class Failing(FakeConstraint):
    """As `brackets`, but raises `error` in `method` once the text has `after` bytes."""

    def __init__(self, vocabulary, method: str, error: Exception, after: int) -> None:
        super().__init__(vocabulary, brackets(vocabulary)._to_finish)
        self._method, self._error, self._after = method, error, after

    def _fail(self, method: str, state) -> None:
        if method == self._method and len(state) >= self._after:
            raise self._error

    def mask(self, state, budget=None):
        self._fail("mask", state)
        return super().mask(state, budget)

    def advance(self, state, token_id):
        if self._method == "advance":
            self._fail("advance", state)
        return super().advance(state, token_id)

"""What sampling remembers about one sequence: its seed, its position, and the tokens it has seen."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .params import SamplingError, SamplingParams

BANNED = float("-inf")  # as a bias


def resolve_seed(seed: int | None) -> int:
    """The seed given, or a fresh one of 64 bits."""
    return secrets.randbits(64) if seed is None else seed


class SequenceSampling:
    """The sampling side of one sequence. Call `accept` with every token that joins the output, drawn or forced.

    Token ids are the engine's. `end_token_ids` are the tokens that end generation (end-of-text and the request's stop
    tokens); they are banned while the output is shorter than `params.min_tokens`. `engine_ids[t]` is the engine's
    number of the user's token t where the engine renumbers the vocabulary; it applies to the ids inside `params`.
    """

    def __init__(
        self,
        params: SamplingParams,
        *,
        vocab_size: int,
        prompt_token_ids: Sequence[int] = (),
        end_token_ids: Sequence[int] = (),
        seed: int | None = None,
        engine_ids: NDArray[np.integer] | None = None,
    ) -> None:
        self.params = params
        self.seed = resolve_seed(params.seed) if seed is None else seed
        self.position = 0  # tokens in the output
        self._bias = bias_entries(params, vocab_size, engine_ids)
        self._end_bias = self._bias | dict.fromkeys(end_token_ids, BANNED)
        self._history = TokenCounts(prompt_token_ids if params.repetition_penalty != 1 else ())

    @property
    def has_penalties(self) -> bool:
        params = self.params
        return params.repetition_penalty != 1 or params.presence_penalty != 0 or params.frequency_penalty != 0

    @property
    def must_continue(self) -> bool:
        """The output may not end yet."""
        return self.position < self.params.min_tokens

    @property
    def bias(self) -> dict[int, float]:
        """Token id -> value added to its logit for the next token; -inf bans it."""
        return self._end_bias if self.must_continue else self._bias

    @property
    def history(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Distinct token ids seen, and how often each occurs in the output (0 = in the prompt only)."""
        return self._history.arrays()

    def accept(self, token_id: int) -> None:
        self.position += 1
        if self.has_penalties:
            self._history.add(token_id)


def bias_entries(params: SamplingParams, vocab_size: int, engine_ids: NDArray[np.integer] | None) -> dict[int, float]:
    """Bias and bans by engine id. Raises `SamplingError` for an id outside the vocabulary."""
    user_bias = dict(params.logit_bias) | dict.fromkeys(params.banned_token_ids, BANNED)
    for token_id in user_bias:
        if token_id >= vocab_size:
            option = "banned_token_ids" if token_id in params.banned_token_ids else "logit_bias"
            raise SamplingError(option, token_id, f"token ids below the vocabulary size {vocab_size}")
    if engine_ids is None:
        return user_bias
    return {int(engine_ids[token_id]): value for token_id, value in user_bias.items()}


class TokenCounts:
    """Distinct tokens with counts, in growing arrays: adding one costs O(1), reading them costs nothing."""

    def __init__(self, uncounted: Sequence[int]) -> None:
        distinct = list(dict.fromkeys(uncounted))
        self._slot = {token_id: slot for slot, token_id in enumerate(distinct)}
        self._token_ids = np.array(distinct + [0] * 16, dtype=np.int64)
        self._counts = np.zeros(len(distinct) + 16, dtype=np.float32)

    def add(self, token_id: int) -> None:
        slot = self._slot.setdefault(token_id, len(self._slot))
        if slot == len(self._token_ids):
            self._grow()
        self._token_ids[slot] = token_id
        self._counts[slot] += 1

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._token_ids[: len(self._slot)], self._counts[: len(self._slot)]

    def _grow(self) -> None:
        self._token_ids = np.concatenate([self._token_ids, np.zeros_like(self._token_ids)])
        self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])

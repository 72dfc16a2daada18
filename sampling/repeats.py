"""What of a text goes on with something that was said before: n-grams that may not come twice, and DRY's penalties.

Both ask, of every earlier place, how long the text before it is the text before the end. These lengths follow from those of one
token earlier, so a token costs one pass over an array of integers. They are computed here and not in a kernel: they depend on the
whole text of a sequence, which the sampler never sees, and concern a few tokens, which it takes as bias.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from .checks import LARGEST
from .params import SamplingParams

LARGEST_LOGARITHM = 88.7228391  # of a float32
NO_TEXT = b"\xff"  # which no UTF-8 text has


class RepeatedEnds:
    """A text of tokens, and how far it repeats itself before each place: `lengths`."""

    def __init__(self, token_ids: Sequence[int] = ()) -> None:
        self.num_given = len(token_ids)  # tokens of the prompt
        self._size = len(token_ids)
        room = max(2 * self._size, 256)
        self._tokens: NDArray[np.int64] = np.zeros(room, np.int64)
        self._lengths: NDArray[np.int32] = np.zeros(room, np.int32)
        self._tokens[: self._size] = token_ids
        self._lengths[: self._size] = common_prefixes(token_ids[::-1])[::-1]

    def add(self, token_id: int) -> None:
        size = self._size
        if size == len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.zeros_like(self._tokens)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        lengths = self._lengths[:size]
        lengths[1:] = lengths[:-1] + 1
        lengths[:1] = 1
        lengths[self._tokens[:size] != token_id] = 0
        self._tokens[size] = token_id
        self._size = size + 1

    def copy(self) -> RepeatedEnds:
        made = RepeatedEnds()
        made.num_given, made._size = self.num_given, self._size
        made._tokens, made._lengths = self._tokens.copy(), self._lengths.copy()
        return made

    @property
    def tokens(self) -> NDArray[np.int64]:
        """[tokens] int64"""
        return self._tokens[: self._size]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """[tokens - 1] int32: how many tokens up to and with each place but the last are also the last ones of the text."""
        return self._lengths[: max(self._size - 1, 0)]

    def followers(self, length: int) -> list[int]:
        """The distinct tokens before which at least `length` tokens were the last ones of the text."""
        found = self.tokens if length == 0 else self.tokens[1:][self.lengths >= length]
        return [int(token_id) for token_id in np.unique(found)]


def common_prefixes(tokens: Sequence[int]) -> list[int]:
    """How long each end of `tokens` is a beginning of it: the Z-function (Gusfield, "Algorithms on Strings", 1997). O(tokens)."""
    found = [0] * len(tokens)
    start, end = 0, 0  # of the match that reaches farthest
    for place in range(1, len(tokens)):
        length = min(end - place, found[place - start]) if place < end else 0
        while place + length < len(tokens) and tokens[length] == tokens[place + length]:
            length += 1
        found[place] = length
        if place + length > end:
            start, end = place, place + length
    return found


class Breakers:
    """Texts across which no repetition goes on, found in the bytes of tokens, so however they are cut into tokens."""

    def __init__(self, texts: Sequence[str], spellings: Sequence[bytes | None]) -> None:
        """spellings: the bytes of each token id; None for those that are no text."""
        self._texts, self._spellings = [text.encode() for text in texts], spellings
        self.longest = max(map(len, self._texts), default=0)  # bytes

    def is_in(self, token_id: int) -> bool:
        """Whether a token has all of a breaker."""
        return any(text in self._spelling(token_id) for text in self._texts)

    def distance(self, tokens: Sequence[int]) -> int:
        """How many tokens come behind the one in which the last breaker ends; all of them if there is none."""
        spellings = list(map(self._spelling, tokens))
        ends = np.cumsum([0, *map(len, spellings)])
        text = b"".join(spellings)
        found = (text.rfind(each) + len(each) for each in self._texts if each in text)
        last = max(found, default=0)  # byte behind it
        return len(tokens) - int(np.searchsorted(ends, last)) if last else len(tokens)

    def _spelling(self, token_id: int) -> bytes:
        return (self._spellings[token_id] if token_id < len(self._spellings) else None) or NO_TEXT


def dry_penalties(ends: RepeatedEnds, breakers: Breakers, params: SamplingParams) -> dict[int, float]:
    """What DRY (p-e-w) takes from the logits of tokens, as llama.cpp's `llama_sampler_dry_apply` has it.

    A token that would make a repetition of length L + 1, where L >= dry_allowed_length, costs dry_multiplier * dry_base ** (L -
    dry_allowed_length). Repetitions do not reach across breakers, and tokens that are breakers cost nothing.
    """
    size = len(ends.tokens) if params.dry_penalty_last_n < 0 else min(params.dry_penalty_last_n, len(ends.tokens))
    allowed = params.dry_allowed_length
    if size <= allowed:
        return {}
    tokens = ends.tokens[len(ends.tokens) - size :]
    lengths = ends.lengths[len(ends.lengths) - (size - 1) :] if size > 1 else ends.lengths[:0]
    lengths = np.minimum(lengths, np.arange(1, size))  # a repetition lies inside the window
    if not (lengths >= allowed).any():
        return {}
    lengths = np.minimum(lengths, breakers.distance(tokens[max(size - int(lengths.max()) - breakers.longest, 0) :].tolist()))
    places = np.flatnonzero(lengths >= allowed)
    longest: dict[int, int] = {}
    for token_id, length in zip(tokens[places + 1].tolist(), lengths[places].tolist(), strict=True):
        longest[token_id] = max(length, longest.get(token_id, 0))
    return {
        token_id: min(params.dry_multiplier * _power(params.dry_base, length - allowed), LARGEST)
        for token_id, length in longest.items()
        if not breakers.is_in(token_id)
    }


def _power(base: float, exponent: int) -> float:
    """Bounded, so that it is a float32."""
    most = int(LARGEST_LOGARITHM / math.log(base)) if base > 1.000001 else exponent
    return base ** min(exponent, most)


def completing(sequences: Collection[tuple[int, ...]], tokens: NDArray[np.int64]) -> list[int]:
    """The tokens that would complete one of these sequences, each of two or more, behind the text."""
    longest = max(map(len, sequences), default=1) - 1
    end = tuple(tokens[max(len(tokens) - longest, 0) :].tolist())
    return [each[-1] for each in sequences if end[-(len(each) - 1) :] == each[:-1]]

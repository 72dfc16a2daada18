"""What a sequence's text so far adds to the scores of single tokens: edits, each one object in one list.

An edit reads the text and names tokens with what is added to their logits, -inf to ban them. The sampler takes all of them as bias.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .params import SamplingParams
from .repeats import Breakers, RepeatedEnds, completing, dry_penalties

BANNED = float("-inf")  # as a bias
TokenArrays: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32]]  # token ids, and a value for each
Edit: TypeAlias = Callable[[RepeatedEnds], Mapping[int, float]]


def edits_of(params: SamplingParams, sequences: Sequence[tuple[int, ...]], spellings: Sequence[bytes | None]) -> list[Edit]:
    """The edits that are on. sequences: bad words of two or more of the engine's tokens; spellings: the bytes of each token."""
    edits: list[Edit] = []
    if sequences:
        edits.append(lambda text: dict.fromkeys(completing(sequences, text.tokens[text.num_given :]), BANNED))
    if params.no_repeat_ngram_size:
        edits.append(lambda text: dict.fromkeys(text.followers(params.no_repeat_ngram_size - 1), BANNED))
    if params.dry_multiplier and params.dry_penalty_last_n:
        edits.append(partial(_dry, Breakers(params.dry_sequence_breakers, spellings), params))
    return edits


def _dry(breakers: Breakers, params: SamplingParams, text: RepeatedEnds) -> Mapping[int, float]:
    return {token_id: -penalty for token_id, penalty in dry_penalties(text, breakers, params).items()}


def arrays_of(bias: Mapping[int, float]) -> TokenArrays:
    """In the order of the mapping."""
    return np.array([*bias], dtype=np.int64), np.array([*bias.values()], dtype=np.float32)


def arrays_within(bias: Mapping[int, float], allowed: Collection[int], vocab_size: int) -> TokenArrays:
    """`bias` with bans of all tokens but those that are allowed; with `bias` alone where none are named."""
    if not allowed:
        return arrays_of(bias)
    token_ids, values = arrays_of({token_id: value for token_id, value in bias.items() if token_id in allowed})
    others = np.delete(np.arange(vocab_size, dtype=np.int64), list(allowed))
    return np.concatenate([token_ids, others]), np.concatenate([values, np.full(len(others), BANNED, np.float32)])


def with_edits(bias: TokenArrays, edits: Mapping[int, float]) -> TokenArrays:
    """`bias` with what `edits` adds; its ids stay distinct."""
    token_ids, values = bias
    added_ids, added = arrays_of(edits)
    order = np.argsort(token_ids)
    places = np.searchsorted(token_ids, added_ids, sorter=order)
    places = order[np.minimum(places, len(order) - 1)] if len(order) else places
    is_known = token_ids[places] == added_ids if len(order) else np.zeros(len(added_ids), bool)
    values = values.copy()
    values[places[is_known]] += added[is_known]
    return np.concatenate([token_ids, added_ids[~is_known]]), np.concatenate([values, added[~is_known]])

"""Texts in sampling options as the tokens that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .params import SamplingParams


def spelled(params: SamplingParams, encode: Callable[[str], Sequence[int]]) -> SamplingParams:
    """`params` with token ids in place of texts. encode: a text as tokens, with nothing put around it.

    A text of `logit_bias` means every token of it, as llama.cpp has it. A bad word means its tokens one after the other, as it
    stands alone and behind a space, as vLLM has it: where those have another first token, and are as many.
    """
    if not params.texts:
        return params
    bias: dict[int | str, float] = {key: value for key, value in params.logit_bias.items() if not isinstance(key, str)}
    for text, value in params.logit_bias.items():
        if isinstance(text, str):
            bias |= dict.fromkeys(encode(text), value)
    sequences = [*params.bad_words_ids]
    for word in params.bad_words:
        alone, behind = tuple(encode(word.lstrip())), tuple(encode(" " + word.lstrip()))
        sequences += [alone] if alone else []
        if behind and (not alone or (behind[0] != alone[0] and len(behind) == len(alone))):
            sequences.append(behind)
    return replace(params, logit_bias=bias, bad_words=(), bad_words_ids=tuple(dict.fromkeys(sequences)))

"""Three ways to attend to given keys and values, one signature: the obvious one, the streaming one, and PyTorch's fused one.

`naive` writes down the definition. `streaming` goes over the keys block by block and never holds all scores: its running
maximum and sum are the online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867) that FlashAttention uses (Dao et al.
2022, arXiv:2205.14135). `fused` is `scaled_dot_product_attention`; what that lacks (soft caps and sinks) it leaves to
`streaming`. Researchers choose by name: `EngineConfig(attention="naive")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

STREAMING_BLOCK = 512  # keys per block


@dataclass(frozen=True, slots=True)
class Scoring:
    """From the product of query and key to the softmax."""

    scale: float | None = None  # times the product; None = head_dim ** -0.5
    softcap: float | None = None  # a score s becomes softcap * tanh(s / softcap): Gemma 2, arXiv:2408.00118


PLAIN = Scoring()


@dataclass(frozen=True, slots=True)
class Visible:
    """Which keys a query sees: all, those up to its own (`is_causal`: as many queries as keys), or as `bias` says."""

    bias: Tensor | None = None  # 0 or -inf, added to the scores; broadcasts to [..., queries, keys]
    is_causal: bool = False


class Attend(Protocol):
    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
    ) -> Tensor:
        """Attention of `query` [..., queries, head_dim] to `key` [..., keys, head_dim] and `value` [..., keys, value_dim].

        Leading axes are equal. `sinks` broadcasts to [..., queries, 1]: the score of one more key, whose value is zero.
        Returns [..., queries, value_dim] in the dtype of `value`.
        """


def naive(
    query: Tensor, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
) -> Tensor:
    scores = _scores(query, key, scoring) + _bias(query, key, visible)
    if sinks is not None:
        scores = torch.cat((scores, sinks.float().expand(*scores.shape[:-1], 1)), dim=-1)
    weights = scores.softmax(dim=-1)[..., : key.shape[-2]]
    return weights.to(value.dtype) @ value


def streaming(
    query: Tensor, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
) -> Tensor:
    rows = query.shape[:-1]
    bias = _bias(query, key, visible).expand(*rows, key.shape[-2])
    highest = _column(rows, float("-inf"), query) if sinks is None else sinks.float().expand(*rows, 1)
    total = _column(rows, 0.0 if sinks is None else 1.0, query)  # of exp(score - highest)
    output = query.new_zeros((*rows, value.shape[-1]), dtype=torch.float32)
    for start in range(0, key.shape[-2], STREAMING_BLOCK):
        block = slice(start, start + STREAMING_BLOCK)
        scores = _scores(query, key[..., block, :], scoring) + bias[..., block]
        risen = torch.maximum(highest, scores.amax(dim=-1, keepdim=True))
        anchor = risen.clamp_min(torch.finfo(torch.float32).min)  # where nothing was seen yet: no inf - inf
        weights, fade = (scores - anchor).exp(), (highest - anchor).exp()
        total = total * fade + weights.sum(dim=-1, keepdim=True)
        output = output * fade + (weights.to(value.dtype) @ value[..., block, :]).float()
        highest = risen
    return (output / total).to(value.dtype)


def fused(
    query: Tensor, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
) -> Tensor:
    if scoring.softcap is not None or sinks is not None:
        return streaming(query, key, value, visible, sinks, scoring)
    return scaled_dot_product_attention(
        query, key, value, attn_mask=visible.bias, is_causal=visible.is_causal, scale=scoring.scale
    )


METHODS: Mapping[str, Attend] = {"fused": fused, "streaming": streaming, "naive": naive}


def _scores(query: Tensor, key: Tensor, scoring: Scoring) -> Tensor:
    """float32 [..., queries, keys]"""
    scale = query.shape[-1] ** -0.5 if scoring.scale is None else scoring.scale
    scores = (query @ key.transpose(-2, -1)).float() * scale
    return scores if scoring.softcap is None else scoring.softcap * torch.tanh(scores / scoring.softcap)


def _bias(query: Tensor, key: Tensor, visible: Visible) -> Tensor:
    """`visible` as a float32 bias."""
    if visible.bias is not None:
        return visible.bias.float()
    shape = (query.shape[-2], key.shape[-2])
    if visible.is_causal:
        return torch.full(shape, float("-inf"), device=query.device).triu(1)
    return torch.zeros(shape, device=query.device)


def _column(rows: torch.Size, value: float, like: Tensor) -> Tensor:
    return torch.full((*rows, 1), value, dtype=torch.float32, device=like.device)

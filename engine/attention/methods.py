"""Three ways to attend to given keys and values, one signature: the obvious one, the streaming one, and PyTorch's fused one.

`naive` writes down the definition. `streaming` goes over the keys block by block and never holds all scores: its running
maximum and sum are the online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867) that FlashAttention uses (Dao et al.
2022, arXiv:2205.14135). `fused` is `scaled_dot_product_attention`; what that lacks (soft caps and sinks) it leaves to
`streaming`. Researchers choose by name: `EngineConfig(attention="naive")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ...foundation.registry import Registry

QUERY_BLOCK, KEY_BLOCK = 128, 512  # of `streaming`: as many scores are held at once, for each head
EVERYTHING = slice(None)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a product of query and key becomes the score that the softmax takes."""

    scale: float | None = None  # times the product; None = head_dim ** -0.5
    softcap: float | None = None  # a score s becomes softcap * tanh(s / softcap): Gemma 2, arXiv:2408.00118


PLAIN = Scoring()


@dataclass(frozen=True, slots=True)
class Visible:
    """Which keys a query sees: all, those up to its own (`is_causal`: as many queries as keys), or as `bias` says."""

    bias: Tensor | None = None  # 0 or -inf, added to the scores; broadcasts to [..., queries, keys]
    is_causal: bool = False


class Attend(Protocol):
    """A way to attend; `METHODS` has them by name."""

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
    scores = _scores(query, key, scoring)
    if (bias := _bias(query, key, visible)) is not None:
        scores = scores + bias
    if sinks is not None:
        scores = torch.cat((scores, sinks.float().expand(*scores.shape[:-1], 1)), dim=-1)
    weights = scores.softmax(dim=-1)[..., : key.shape[-2]]
    return weights.to(value.dtype) @ value


def streaming(
    query: Tensor, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
) -> Tensor:
    output = query.new_empty((*query.shape[:-1], value.shape[-1]), dtype=value.dtype)
    for start in range(0, query.shape[-2], QUERY_BLOCK):
        rows = slice(start, start + QUERY_BLOCK)
        output[..., rows, :] = _stream(query, rows, key, value, visible, sinks, scoring)
    return output


def _stream(
    query: Tensor, rows: slice, key: Tensor, value: Tensor, visible: Visible, sinks: Tensor | None, scoring: Scoring
) -> Tensor:
    """The output of some queries, key block by key block."""
    some = query[..., rows, :]
    shape = (*some.shape[:-1], 1)
    highest = some.new_full(shape, float("-inf"), dtype=torch.float32) if sinks is None else sinks.float().expand(shape)
    total = torch.full_like(highest, 0.0 if sinks is None else 1.0)  # of exp(score - highest)
    output = some.new_zeros((*some.shape[:-1], value.shape[-1]), dtype=torch.float32)
    for start in range(0, min(key.shape[-2], rows.stop) if visible.is_causal else key.shape[-2], KEY_BLOCK):
        block = slice(start, start + KEY_BLOCK)
        scores = _scores(some, key[..., block, :], scoring)
        if (bias := _bias(query, key, visible, rows, block)) is not None:
            scores += bias
        risen = torch.maximum(highest, scores.amax(dim=-1, keepdim=True))
        anchor = risen.clamp_min(torch.finfo(torch.float32).min)  # where nothing was seen yet: no inf - inf
        weights, fade = scores.sub_(anchor).exp_(), (highest - anchor).exp()
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


METHODS: Registry[Attend] = Registry(
    "attention method", {"fused": fused, "streaming": streaming, "naive": naive}, needs="a function such as `naive`"
)


def _scores(query: Tensor, key: Tensor, scoring: Scoring) -> Tensor:
    """float32 [..., queries, keys]"""
    scale = query.shape[-1] ** -0.5 if scoring.scale is None else scoring.scale
    scores = (query @ key.transpose(-2, -1)).float() * scale
    return scores if scoring.softcap is None else scoring.softcap * torch.tanh(scores / scoring.softcap)


def _bias(
    query: Tensor, key: Tensor, visible: Visible, rows: slice = EVERYTHING, columns: slice = EVERYTHING
) -> Tensor | None:
    """`visible` as a float32 bias on the scores of some queries and keys; None where it changes nothing."""
    num_queries, num_keys = query.shape[-2], key.shape[-2]
    if visible.bias is not None:
        whole = visible.bias.expand(*visible.bias.shape[:-2], num_queries, num_keys)
        return whole[..., rows, columns].float()
    if not visible.is_causal:
        return None
    position = torch.arange(num_keys, device=query.device)
    is_later = position[columns] > position[rows, None]
    return torch.zeros(is_later.shape, device=query.device).masked_fill_(is_later, float("-inf"))

"""What the rotation of queries and keys reads, whichever implementation computes it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Rotation(NamedTuple):
    """Angles of each token. The first rotary_dim numbers of a head turn, in pairs; the others stay."""

    cosine: Tensor  # [num_tokens, rotary_dim / 2], float32 or the query's dtype, contiguous
    sine: Tensor
    is_interleaved: bool = False  # number 2i pairs with 2i + 1 (GPT-J, GLM), else i with i + rotary_dim / 2 (Llama)


class HeadNorm(NamedTuple):
    """RMSNorm of each head of queries and keys before they turn (Qwen3, Gemma 3)."""

    query_weight: Tensor  # [head_dim]
    key_weight: Tensor  # [head_dim]
    eps: float
    weight_offset: float = 0.0  # 1 for Gemma

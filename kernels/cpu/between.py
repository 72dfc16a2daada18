"""What lies between the products of a decoder layer, in one pass each: norms, turned heads, attention to a paged cache, gates.

All tensors are on a CPU and float32, but for those of the cache, which are one of CACHES: numbers are rounded to it when they are
written, those beyond 448 to that in 8 bits. Where widths are not those that vectors take (`fits`), and for what is not here,
PyTorch computes the same: `engine/models/modules.py`, `engine/attention/methods.py`.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from .library import TYPES, loaded

VECTOR = 16  # widths are multiples of it
MAX_HEAD_DIM = 512
CACHES = {  # what keys and values may be stored as, by the numbers of native/products.h
    torch.float32: TYPES.index("F32"), torch.float16: TYPES.index("F16"), torch.bfloat16: TYPES.index("BF16"),
    torch.float8_e4m3fn: TYPES.index("FLOAT8"),
}  # fmt: skip
ACTIVATIONS = ("silu", "gelu_tanh", "gelu")  # in the order of native/products.h


def fits(width: int) -> bool:
    """Whether this can be the last axis of what is computed here."""
    return width % VECTOR == 0


class _Turn(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("heads", "cosine", "sine", "angles", "norm", "slots", "query", "keys", "values")),
        *((name, ctypes.c_int64) for name in ("num_rows", "stride", "num_heads", "num_kv_heads", "head_dim", "half")),
        ("eps", ctypes.c_float), ("kv_type", ctypes.c_int32),
    )  # fmt: skip


class _Attention(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("query", "keys", "values", "tables", "lengths", "out")),
        *((name, ctypes.c_int64) for name in ("num_rows", "num_kv_heads", "heads_per_kv_head", "head_dim", "block_size")),
        *((name, ctypes.c_int64) for name in ("table_width", "window", "max_tokens")),
        ("scale", ctypes.c_float), ("kv_type", ctypes.c_int32),
    )  # fmt: skip


def rms_norm(hidden: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(normed sum, sum) of hidden and delta [num_tokens, width]; without delta the sum is `hidden` itself. weight [width]."""
    hidden = hidden.contiguous()
    out = torch.empty_like(hidden)
    if delta is None:
        _library().maskwright_norm(hidden.data_ptr(), None, weight.data_ptr(), eps, *hidden.shape, None, out.data_ptr())
        return out, hidden
    total, delta = torch.empty_like(hidden), delta.contiguous()
    places = (hidden.data_ptr(), delta.data_ptr(), weight.data_ptr())
    _library().maskwright_norm(*places, eps, *hidden.shape, total.data_ptr(), out.data_ptr())
    return out, total


def gated(inner: Tensor, activation: str) -> Tensor:
    """activation(gate) * up [num_tokens, width] of inner [num_tokens, 2 * width]: gate, then up; one of ACTIVATIONS."""
    inner = inner if inner.stride(1) == 1 else inner.contiguous()
    num_tokens, width = inner.shape[0], inner.shape[1] // 2
    out = torch.empty(num_tokens, width)
    given = (inner.data_ptr(), num_tokens, inner.stride(0), width, out.data_ptr())
    _library().maskwright_gate(ACTIVATIONS.index(activation), *given)
    return out


class Heads(NamedTuple):
    """How the columns of a projection are queries, keys and values."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


class HeadNorm(NamedTuple):
    """The RMS norm of each query and key before it is turned."""

    weight: Tensor  # [num_heads + num_kv_heads, head_dim]
    eps: float


def turn_and_cache(
    projected: Tensor,
    heads: Heads,
    angles: tuple[Tensor, Tensor],
    norm: HeadNorm | None,
    cache: tuple[Tensor, Tensor],
    slots: Tensor,
) -> Tensor:
    """Queries [num_tokens, num_heads, head_dim], turned; keys, turned, and values are written to the cache.

    projected [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]; angles: cosine and sine, both contiguous [num_tokens, ...,
    half]: dimension i turns with i + half; cache: keys and values [num_places, num_kv_heads, head_dim]; slots int64 [num_tokens].
    """
    projected = projected if projected.stride(1) == 1 else projected.contiguous()
    query = torch.empty(projected.shape[0], heads.num_heads, heads.head_dim)
    turn = _Turn(
        projected.data_ptr(), angles[0].data_ptr(), angles[1].data_ptr(), None, None if norm is None else norm.weight.data_ptr(),
        slots.data_ptr(), query.data_ptr(), cache[0].data_ptr(), cache[1].data_ptr(), projected.shape[0], projected.stride(0),
        heads.num_heads, heads.num_kv_heads, heads.head_dim, angles[0].shape[-1], 0.0 if norm is None else norm.eps,
        CACHES[cache[0].dtype],
    )  # fmt: skip
    _library().maskwright_turn(ctypes.byref(turn))
    return query


def attend(
    query: Tensor, cache: tuple[Tensor, Tensor], tables: Tensor, lengths: Tensor, max_tokens: int, scale: float, window: int | None
) -> Tensor:
    """Attention of one query of each sequence, [num_rows, num_heads, head_dim], to the tokens in its blocks.

    cache: keys and values [num_blocks, block_size, num_kv_heads, head_dim]; tables int64 [num_rows, width]; lengths int64
    [num_rows], how many tokens each row sees, at least 1 and at most `max_tokens`; with a window only the last of these.
    """
    keys, values = cache
    _, block_size, num_kv_heads, head_dim = keys.shape
    query, out = query.contiguous(), torch.empty(query.shape)
    call = _Attention(
        query.data_ptr(), keys.data_ptr(), values.data_ptr(), tables.data_ptr(), lengths.data_ptr(), out.data_ptr(), query.shape[0],
        num_kv_heads, query.shape[1] // num_kv_heads, head_dim, block_size, tables.stride(0), window or 0, max_tokens, scale,
        CACHES[keys.dtype],
    )  # fmt: skip
    if _library().maskwright_attend(ctypes.byref(call), torch.get_num_threads()) != 0:
        raise MemoryError(f"no memory for the attention of {query.shape[0]} tokens to {max_tokens}")
    return out


def _library() -> ctypes.CDLL:
    found = loaded()
    assert found is not None, "who calls this has made sure that there is a library"
    return found

"""Keys and values of one sequence outside a cache, kept by token, so that they fit into blocks of any length.

Of a cache of keys and values this is [num_tokens, ...] for each tensor; places behind the last token, which may hold what others
have left there, are not taken. Of a pool of states it is the sequence's slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from .transfers import tensors_of

Kept: TypeAlias = tuple[Tensor, ...]  # one for each tensor of a cache


class BlockContent(NamedTuple):
    """What belongs into one block, in the model's cache and in that of a model that drafts (empty without one)."""

    model: Kept
    draft: Kept = ()


class KeptLayout(NamedTuple):
    """What a cache keeps of one token, or of one sequence when it is a state. Comparable, and plain enough for JSON."""

    is_state: bool
    parts: tuple[tuple[str, tuple[int, ...]], ...]  # (dtype, shape) of each tensor


def layout_of(cache: Any) -> KeptLayout:
    is_state = _is_state(cache)
    shapes = [tuple(tensor.shape[1 if is_state else 2 :]) for tensor in tensors_of(cache)]
    dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors_of(cache)]
    return KeptLayout(is_state, tuple(zip(dtypes, shapes, strict=True)))


def take_out(cache: Any, block_table: Sequence[int], num_tokens: int) -> Kept:
    """Copies in host memory of what the cache holds of a sequence's first `num_tokens` tokens."""
    tensors = tensors_of(cache)
    if _is_state(cache):
        return tuple(tensor[block_table[0]].cpu().clone() for tensor in tensors)
    block_size = tensors[0].shape[1]
    blocks = torch.tensor(block_table[: -(-num_tokens // block_size)], dtype=torch.int64, device=tensors[0].device)
    return tuple(_rows(tensor, blocks).flatten(0, 1)[:num_tokens].cpu().contiguous() for tensor in tensors)


def cut_into_blocks(kept: Kept, num_tokens: int, block_size: int, is_state: bool) -> list[Kept]:
    """What of `kept` goes into each block; a state is one block as a whole."""
    if is_state:
        return [kept]
    return [tuple(tensor[start : start + block_size] for tensor in kept) for start in range(0, num_tokens, block_size)]


def _rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """`tensor[rows]`, of any dtype: some of one byte cannot be indexed on a CPU."""
    if tensor.dtype.itemsize > 1:
        return tensor.index_select(0, rows)
    return tensor.view(torch.uint8).index_select(0, rows).view(tensor.dtype)


def _is_state(cache: Any) -> bool:
    return hasattr(cache, "lengths")

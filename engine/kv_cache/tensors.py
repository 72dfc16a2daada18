"""The tensors of the paged KV cache: how they lie in memory, and how a step's keys and values get there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...kernels.attention import FP8
from ...kernels.attention.interface import FP8_MAX
from .pages import zeros_by_page

CPU_GATHER_BYTES = 1 << 20  # of keys, and as many of values, gathered at once


class LayerShape(NamedTuple):
    """What the cache holds of one token in one layer. Without a width of their own values are the keys' first columns."""

    num_kv_heads: int
    key_dim: int
    value_dim: int


def kv_block_bytes(layers: Sequence[LayerShape], block_size: int, dtype: torch.dtype) -> int:
    """Memory that one block of the cache takes; `dtype` is the one it is stored in."""
    return block_size * dtype.itemsize * sum(heads * (key_dim + value_dim) for heads, key_dim, value_dim in layers)


@dataclass(frozen=True, slots=True)
class KVCache:
    """Keys and values of every layer, [num_blocks, block_size, num_kv_heads, head_dim] each.

    Token i of a sequence has slot table[i // block_size] * block_size + i % block_size: its place among all tokens of all
    blocks. Behind the last block lies one place more, `spare_slot`, of nobody: rows that only pad a batch write there.

    Layers may differ in heads and widths. Values of width 0 are not stored: they are the first columns of the keys (the
    latent cache of DeepSeek's attention). A contiguous cache is one whose blocks are as long as the longest sequence.
    Blocks are reused without being cleared. They start as zeros because masked places still meet a weight of 0: a
    NaN there would not vanish. An fp8 cache (e4m3, no scales) holds numbers up to 448; larger ones are cut.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    key_places: tuple[Tensor, ...]  # the same memory, [num_blocks * block_size + 1, num_kv_heads, head_dim]
    value_places: tuple[Tensor, ...]
    dtype: torch.dtype  # in which attention is computed; what is stored may have fewer bits

    @classmethod
    def allocate(
        cls, num_layers: int, shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device
    ) -> KVCache:
        """A cache of zeros whose layers are all alike: `shape` is [num_blocks, block_size, num_kv_heads, head_dim]."""
        num_blocks, block_size, num_kv_heads, head_dim = shape
        layers = [LayerShape(num_kv_heads, head_dim, head_dim)] * num_layers
        return cls.of_layers(layers, num_blocks, block_size, dtype, device)

    @classmethod
    def of_layers(
        cls,
        layers: Sequence[LayerShape],
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
        stored: torch.dtype | None = None,
    ) -> KVCache:
        """A cache of zeros for layers of these shapes. `stored`: the dtype of its memory; None = `dtype`."""
        num_places = num_blocks * block_size + 1

        def places(num_heads: int, dim: int) -> Tensor:
            return _zeros((num_places, num_heads, dim), stored or dtype, device)

        def blocks(places: Tensor) -> Tensor:
            return places[:-1].unflatten(0, (num_blocks, block_size))

        keys = tuple(places(layer.num_kv_heads, layer.key_dim) for layer in layers)
        values = tuple(places(layer.num_kv_heads, layer.value_dim) for layer in layers)
        return cls(tuple(map(blocks, keys)), tuple(map(blocks, values)), keys, values, dtype)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors; their first axis is the block."""
        return (*self.keys, *self.values)

    @property
    def block_size(self) -> int:
        return self.keys[0].shape[1]

    @property
    def spare_slot(self) -> int:
        return len(self.key_places[0]) - 1

    @property
    def device(self) -> torch.device:
        return self.keys[0].device

    @property
    def tokens_per_gather(self) -> int | None:
        """How many tokens' keys to gather at once; None = any number."""
        token_bytes = self.keys[0][0, 0].numel() * self.dtype.itemsize
        return CPU_GATHER_BYTES // token_bytes if self.device.type == "cpu" else None

    def write(self, layer: int, slots: Tensor, key: Tensor, value: Tensor) -> None:
        """Write one layer's keys and values [num_tokens, num_kv_heads, ...] to `slots`, int64 [num_tokens], none negative."""
        _put(self.key_places[layer], slots, key)
        if self.values[layer].shape[-1]:
            _put(self.value_places[layer], slots, value)

    def gather(self, blocks: Tensor, tables: Tensor, num_tokens: int, run: int | None) -> Tensor:
        """[num_rows, num_tokens, num_kv_heads, head_dim] of `dtype` from the blocks (keys or values of one layer) that `tables`
        [num_rows, num_blocks] lists.

        `run`: the tables have one column and list this block and those that follow it. A contiguous cache has one block for
        each sequence: nothing beyond `num_tokens` is copied, and nothing at all of a run.
        """
        raw = blocks.view(torch.uint8) if blocks.dtype == FP8 else blocks  # torch cannot index fp8 on a CPU
        found = _gather(raw, tables, num_tokens, run)
        return (found.view(FP8) if blocks.dtype == FP8 else found).to(self.dtype)


def _gather(blocks: Tensor, tables: Tensor, num_tokens: int, run: int | None) -> Tensor:
    num_rows, num_blocks = tables.shape
    if run is not None:
        return blocks[run : run + num_rows, :num_tokens]
    if num_blocks == 1:
        return blocks[:, :num_tokens].index_select(0, tables[:, 0])
    found = blocks.flatten(1).index_select(0, tables.flatten())  # whole blocks are long runs: fast to copy
    return found.view(num_rows, num_blocks * blocks.shape[1], *blocks.shape[2:])[:, :num_tokens]


def _put(places: Tensor, slots: Tensor, heads: Tensor) -> None:
    if places.dtype == FP8:
        heads = heads.clamp(-FP8_MAX, FP8_MAX).to(FP8).view(torch.uint8)
        places = places.view(torch.uint8)
    places.index_copy_(0, slots, heads.to(places.dtype))


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Zeros; on a CPU their memory pages are taken at the first write: a generous cache costs a small run nothing."""
    if device.type != "cpu" or 0 in shape:
        return torch.zeros(shape, dtype=dtype, device=device)
    return zeros_by_page(math.prod(shape) * dtype.itemsize).view(dtype).view(shape)

"""Carries out what `kv_space.py` has planned: blocks of the KV cache are copied, and moved to host memory and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .prefix_cache import Restored, Transfer


class BlockMover:
    """Carries transfers out for one cache. Host memory is taken when the first block moves there, pinned beside a GPU."""

    def __init__(self, cache: Any, num_host_blocks: int = 0) -> None:
        self._layers = tensors_of(cache)  # [num_blocks, ...] each
        self._num_host_blocks = num_host_blocks
        self._host: list[Tensor] = []

    @torch.inference_mode()
    def move(self, transfers: Iterable[Transfer | Restored]) -> None:
        """Carry the transfers out in their order: what one writes another may read."""
        for transfer in transfers:
            if isinstance(transfer, Restored):
                self._lay_down(transfer.content.model, transfer.target)
            elif transfer.kind == "wipe":
                for layer in self._layers:
                    layer[transfer.target].zero_()
            else:
                self._carry(*transfer)

    def _carry(self, kind: str, source: int, target: int) -> None:
        sources, targets = self._sides(kind)
        for before, after in zip(sources, targets, strict=True):
            after[target].copy_(before[source], non_blocking=kind == "load")

    def _lay_down(self, content: Sequence[Tensor], block: int) -> None:
        """For each tensor the beginning of the block, [tokens or places, ...]; nothing of a cache that nothing was kept of."""
        for layer, part in zip(self._layers, content, strict=bool(content)):
            layer[block][: len(part)].copy_(part)

    def _sides(self, kind: str) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        if kind == "copy":
            return self._layers, self._layers
        if not self._host:
            self._host = [_host_tensor(layer, self._num_host_blocks) for layer in self._layers]
        return (self._layers, self._host) if kind == "save" else (self._host, self._layers)


def tensors_of(cache: Any) -> list[Tensor]:
    """All that a cache holds of its blocks: keys and values, or in a pool of states its tensors and their lengths."""
    if hasattr(cache, "lengths"):
        return [*cache.tensors, torch.from_numpy(cache.lengths)]
    return [tensor for tensor in (*cache.keys, *cache.values) if tensor.numel()]


def _host_tensor(layer: Tensor, num_blocks: int) -> Tensor:
    shape = (num_blocks, *layer.shape[1:])
    return torch.empty(shape, dtype=layer.dtype, pin_memory=layer.is_cuda)

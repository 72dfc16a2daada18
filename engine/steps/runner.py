"""Turn the scheduler's chunks into one packed forward pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.to_device import to_device
from ..adapters.slots import AdapterSlots
from ..attention.decode_batch import DecodeBatch
from ..attention.methods import Attend, fused
from ..attention.paged import Span
from ..kv_cache.prefix_cache import Restored, Transfer
from ..kv_cache.transfers import BlockMover
from ..models.decoder import ForwardBatch
from ..models.model import Model
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk


class Packing(NamedTuple):
    """A step's input as the host knows it: what sequences compute, one behind another."""

    token_ids: list[int]
    positions: list[int]
    logit_rows: list[int]  # whose next token is wanted
    slots: list[int]  # of each token's adapter, -1 for none
    spans: list[Span]


class ModelRunner:
    """A model with its KV cache, or pool of states, some blocks of which may be kept in host memory.

    `attend` is how attention is computed, where there is a choice. `adapters` are the slots that the model's layers look into;
    None: it is computed without adapters, whatever the sequences ask for.
    """

    keeps_whole_cache = True  # all that is kept of a token is in `cache`

    def __init__(
        self,
        decoder: Model,
        cache: Any,
        attend: Attend = fused,
        num_host_blocks: int = 0,
        adapters: AdapterSlots | None = None,
    ) -> None:
        self.decoder, self.cache, self.attend, self.adapters = decoder, cache, attend, adapters
        self._mover = BlockMover(cache, num_host_blocks)

    def move_blocks(self, transfers: list[Transfer | Restored]) -> None:
        """Carry transfers of blocks out; called before `forward` of the same step."""
        self._mover.move(transfers)

    def forward(self, chunks: list[Chunk[Sequence]], columns: NDArray[np.int64] | None = None) -> Tensor:
        """Logits [rows, head width]: of each chunk as many as it has `num_rows`, behind its last tokens.

        Writes the keys and values of all tokens and drafts. columns: the tokens, ascending, whose logits are wanted, None for all;
        others may be 0.
        """
        packing = packed(chunks)
        logits = self._forward_lists(packing, columns)
        if logits is not None:
            return logits
        batch = self.prepared(packing)
        return self.compute(batch if columns is None else replace(batch, columns=self._to_device(columns)))

    def _forward_lists(self, packing: Packing, columns: NDArray[np.int64] | None) -> Tensor | None:
        """The step in one call, where the model computes such and no tensors need to be made for it."""
        if self.attend is not fused or not hasattr(self.decoder, "forward_lists") or self._has_adapters(packing):
            return None
        logits: Tensor | None = self.decoder.forward_lists(
            packing.token_ids, packing.positions, packing.logit_rows, packing.spans, self.cache, columns
        )
        return logits

    def _has_adapters(self, packing: Packing) -> bool:
        return self.adapters is not None and max(packing.slots, default=-1) >= 0

    def compute(self, batch: ForwardBatch) -> Tensor:
        """`forward` of a batch that `pack` made."""
        if self.adapters is None or batch.adapters is None:
            return self.decoder.forward(batch, self.cache)
        with self.adapters.applied(batch.adapters, batch.logit_rows):
            return self.decoder.forward(batch, self.cache)

    def decode(self, batch: DecodeBatch) -> Tensor:
        """Logits [rows, head width] of a step whose input is on the device (`decode_batch.py`), if `can_decode`."""
        if self.adapters is None or batch.adapters is None:
            return self.decoder.decode(batch, self.cache, self.attend)  # type: ignore[attr-defined]
        with self.adapters.applied(batch.adapters):
            return self.decoder.decode(batch, self.cache, self.attend)  # type: ignore[attr-defined]

    @property
    def adapter_version(self) -> int:
        """Of the memory that captured steps read adapters from."""
        return 0 if self.adapters is None else self.adapters.version

    @property
    def can_decode(self) -> bool:
        return hasattr(self.decoder, "decode")

    def pack(self, chunks: list[Chunk[Sequence]]) -> ForwardBatch:
        """The input of a step, on its way to the device. A token that is drawn but not read yet is 0 here."""
        return self.prepared(packed(chunks))

    def prepared(self, packing: Packing) -> ForwardBatch:
        """A packing as `compute` wants it."""
        return self.batch(packing)

    def batch(self, packing: Packing, token_ids: Tensor | None = None) -> ForwardBatch:
        """The input of a step. `token_ids`: those of the packing, where they are on the device already."""
        return ForwardBatch(
            token_ids=self._to_device(packing.token_ids) if token_ids is None else token_ids,
            positions=self._to_device(packing.positions),
            logit_rows=self._to_device(packing.logit_rows),
            attention=self.decoder.plan(packing.spans, self.cache, self.attend),
            adapters=self._to_device(packing.slots) if self._has_adapters(packing) else None,
        )

    def close(self) -> None:
        """End what it has started elsewhere: here nothing."""

    @property
    def picks_columns(self) -> bool:
        """Whether it is of use to say which logits are wanted."""
        return getattr(self.decoder, "picks_columns", False)

    def _to_device(self, numbers: list[int] | NDArray[np.int64]) -> Tensor:
        return to_device(np.array(numbers, np.int64), self.decoder.device)


def packed(chunks: list[Chunk[Sequence]]) -> Packing:
    """What a step computes."""
    spans: list[Span] = []
    token_ids, positions, logit_rows, slots = list[int](), list[int](), list[int](), list[int]()
    for chunk in chunks:
        sequence, past, drafts = chunk.sequence, chunk.sequence.num_computed, chunk.drafts
        known, width = sequence.token_ids[past : past + chunk.num_tokens], chunk.width
        spans.append((past, width, sequence.block_table))
        token_ids += known if len(known) == width else [*known, *[0] * (chunk.num_tokens - len(known)), *drafts]
        positions += range(past, past + width)
        slots += [sequence.adapter_slot] * width
        logit_rows += range(len(token_ids) - chunk.num_rows, len(token_ids))
    return Packing(token_ids, positions, logit_rows, slots, spans)

"""A decode step's input at fixed addresses: what a forward pass captured in a CUDA graph reads, and how it is refilled.

Everything that differs from one decode step to the next is in six int32 tensors. `DecodeBuffers` owns them for the largest batch
and writes them from the host; `DecodeBuffers.batch(n)` is the same memory seen as a batch of n rows, one for each size that is
captured. `Decoder.decode(batch, cache)` reads nothing else but weights and cache: it depends on the shapes alone, asks nothing
of the device, and has no branch on data. So this is a step, captured once for each size and replayed:

    buffers = DecodeBuffers(max_sequences, max_blocks, block_size, device)
    batch = buffers.batch(32)
    with torch.cuda.graph(graph):                         # after one call outside, which compiles the kernels
        logits = decoder.decode(batch, cache)             # [32, vocab]
        ...                                               # sampling, into `token_ids`, and what follows a token
        batch.advance(token_ids)                          # if several steps are taken before the host looks again
    ...
    buffers.fill(token_ids, num_past, block_tables)       # up to 32 rows, whatever they were before; the others pad
    graph.replay()

A row that pads has position -1, length 0 and slot -1: it computes something, writes nothing that anybody reads, and its logits
mean nothing. Rows whose blocks end (a table may list blocks reserved for several steps) go on without writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

NOBODY = -1  # token, position and slot of a row that pads; entry of a block table behind its end


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """One new token for each of n sequences, int32 all of it, on the device."""

    token_ids: Tensor  # [n]: the last token of each sequence, whose keys and values this step computes
    positions: Tensor  # [n]: of that token, counted from 0
    context_lengths: Tensor  # [n]: tokens that it sees, itself included
    slots: Tensor  # [n]: where its keys and values go: block * block_size + place
    block_tables: Tensor  # [n, max_blocks]
    query_starts: Tensor  # [n + 1]: 0, 1, 2, ...
    block_size: int
    adapters: Tensor | None = None  # [n]: the slot of each sequence's adapter, NOBODY for none; None: no sequence has one

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def max_tokens(self) -> int:
        """The longest context that there is room for."""
        return self.block_tables.shape[1] * self.block_size

    @torch.inference_mode()
    def advance(self, token_ids: Tensor) -> None:
        """Make this the next step's input, on the device alone: every row goes on with its new token, of any integer type [n].

        A negative token ends its row, which pads from then on. What was padding stays it.
        """
        goes_on = (self.positions >= 0) & (token_ids >= 0)
        self.token_ids.copy_(torch.where(goes_on, token_ids, NOBODY))
        self.positions.copy_(torch.where(goes_on, self.positions + 1, NOBODY))
        self.context_lengths.copy_(self.positions + 1)
        column = self.positions // self.block_size
        last = self.block_tables.shape[1] - 1
        block = self.block_tables.gather(1, column.clamp(0, last).long()[:, None])[:, 0]
        is_there = goes_on & (block >= 0) & (column <= last)
        self.slots.copy_(torch.where(is_there, block * self.block_size + self.positions % self.block_size, NOBODY))


class DecodeBuffers:
    """The memory of decode batches of up to `max_rows` sequences of `max_blocks` blocks each."""

    def __init__(self, max_rows: int, max_blocks: int, block_size: int, device: torch.device) -> None:
        self.block_size, self.device = block_size, device
        self._numbers = torch.full((5, max_rows), NOBODY, dtype=torch.int32, device=device)
        self._numbers[2] = 0  # lengths
        self._block_tables = torch.full((max_rows, max_blocks), NOBODY, dtype=torch.int32, device=device)
        self._query_starts = torch.arange(max_rows + 1, dtype=torch.int32, device=device)
        self._written: list[list[int]] = [[] for _ in range(max_rows)]  # what the block tables hold

    def batch(self, num_rows: int, *, has_adapters: bool = False) -> DecodeBatch:
        """The first `num_rows` rows, always in the same memory: batches made before see what is filled in."""
        token_ids, positions, context_lengths, slots, adapters = self._numbers[:, :num_rows]
        starts, tables = self._query_starts[: num_rows + 1], self._block_tables[:num_rows]
        wanted = adapters if has_adapters else None
        return DecodeBatch(token_ids, positions, context_lengths, slots, tables, starts, self.block_size, wanted)

    @torch.inference_mode()
    def fill(
        self,
        token_ids: Sequence[int] | None,
        num_past: Sequence[int],
        block_tables: Sequence[Sequence[int]],
        adapters: Sequence[int] = (),
    ) -> None:
        """Row i computes token_ids[i], which num_past[i] tokens in the cache precede, into the blocks of block_tables[i].

        Rows behind the last one pad. token_ids None: those that are there stay, because the device wrote them. adapters: the slot
        of each row's adapter, as many as there are rows, or none at all. Copies are ordered with what is launched on the current
        stream, and the host does not wait for them. Of the tables only what changed is sent.
        """
        num_rows, size = len(num_past), self.block_size
        numbers = np.full(self._numbers.shape, NOBODY, dtype=np.int32)
        numbers[2] = 0
        if token_ids is not None:
            numbers[0, :num_rows] = token_ids
        numbers[1, :num_rows] = num_past
        numbers[2, :num_rows] = numbers[1, :num_rows] + 1
        numbers[3, :num_rows] = [
            table[past // size] * size + past % size for past, table in zip(num_past, block_tables, strict=True)
        ]
        numbers[4, : len(adapters)] = adapters
        first = 1 if token_ids is None else 0
        self._numbers[first:].copy_(self._staged(numbers[first:]), non_blocking=True)
        self.write_tables(block_tables)

    @torch.inference_mode()
    def write_tables(self, block_tables: Sequence[Sequence[int]]) -> None:
        """The blocks of row i are block_tables[i] from here on; all else stays as it is."""
        places: list[int] = []
        entries: list[int] = []
        width = self._block_tables.shape[1]
        for row, table in enumerate(block_tables):
            there = self._written[row]
            if there == table:
                continue
            kept = len(there) if there == table[: len(there)] else 0
            changed = [*table[kept:], *[NOBODY] * (len(there) - len(table))]
            places += range(row * width + kept, row * width + kept + len(changed))
            entries += changed
            self._written[row] = list(table)
        if places:
            sent = self._staged(np.array((places, entries), dtype=np.int32)).to(self.device, non_blocking=True)
            self._block_tables.view(-1).index_copy_(0, sent[0].long(), sent[1])

    def _staged(self, array: np.ndarray) -> Tensor:
        """Host memory that a copy under way may read from: pinned memory is not used again before the copy is done."""
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

"""What a rank holds of a tensor: some of its rows, or some of its columns, whichever way it is stored.

Tensors of checkpoints lie in mapped files. Rows that follow one another stay there; what else is held is copied, and no more is
read than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.quantized import Packed
from ...kernels.quantized.scaled import Scaled

Range = tuple[int, int]  # from the first up to the second


@dataclass(frozen=True, slots=True)
class Cut:
    """What is held of an axis that has `length` places: those of `ranges`, one behind another. No ranges: nothing."""

    axis: int  # 0: rows, 1: columns
    length: int
    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, axis: int, length: int, ranges: Iterable[Range]) -> Cut:
        """With ranges that touch joined, and empty ones left out."""
        joined: list[Range] = []
        for first, stop in ranges:
            if first == stop:
                continue
            if joined and joined[-1][1] == first:
                first = joined.pop()[0]
            joined.append((first, stop))
        return cls(axis, length, tuple(joined))

    @property
    def num_held(self) -> int:
        return sum(stop - first for first, stop in self.ranges)

    @property
    def copies(self) -> bool:
        """Whether what is held is not one piece of memory."""
        return self.num_held < self.length and (self.axis > 0 or len(self.ranges) > 1)

    def shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        return (*whole[: self.axis], self.num_held, *whole[self.axis + 1 :])

    def tensor(self, whole: Tensor) -> Tensor:
        """Contiguous where `whole` is."""
        pieces = [whole.narrow(self.axis, first, stop - first) for first, stop in self.ranges]
        return pieces[0].contiguous() if len(pieces) == 1 else torch.cat(pieces, dim=self.axis)

    def fits_blocks(self, size: int) -> bool:
        """Whether no block of `size` columns is cut in two."""
        return self.axis == 0 or all(first % size == 0 and stop % size == 0 for first, stop in self.ranges)

    def blocks(self, whole: Packed) -> Packed:
        """Of a matrix in blocks, none of which is cut in two."""
        if self.axis == 0:
            return Packed(whole.type, self.tensor(whole.data))
        size, num_bytes = whole.type.num_weights, whole.type.num_bytes
        in_bytes = [(first // size * num_bytes, stop // size * num_bytes) for first, stop in self.ranges]
        return Packed(whole.type, Cut.of(1, whole.data.shape[1], in_bytes).tensor(whole.data))

    def codes(self, whole: Scaled) -> Scaled | None:
        """Of a matrix of codes with scales; None where a cut would go through what has a scale, or bytes, in common."""
        if self.axis == 0:
            return self._rows(whole)
        bits, height, width = whole.type.bits, *whole.block
        is_row = width >= whole.num_columns  # one scale for all columns
        if whole.order is not None or len(self.ranges) != 1 or not (is_row or self.fits_blocks(width)):
            return None
        ((first, stop),) = self.ranges
        if bits < 8 and (first * bits % 32 or stop * bits % 32):
            return None
        data = whole.data[:, first * bits // 8 : stop * bits // 8].contiguous()
        columns = slice(None) if is_row else slice(first // width, stop // width)
        zeros = None if whole.zeros is None else whole.zeros[:, columns].contiguous()
        return Scaled(whole.type, data, whole.scales[:, columns].contiguous(), stop - first, (height, width), zeros)

    def _rows(self, whole: Scaled) -> Scaled:
        if len(self.ranges) == 1:
            return whole.rows(slice(*self.ranges[0]))
        return whole.rows(torch.cat([torch.arange(first, stop, device=whole.data.device) for first, stop in self.ranges]))

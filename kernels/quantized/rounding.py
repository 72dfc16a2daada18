"""Inputs of products rounded to a grid: what 8-bit activations do to the numbers.

A product of 8-bit weights and 8-bit activations is, up to the rounding of its sums, the product of the numbers that both stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

FLOAT8_MAX = 448.0  # of e4m3
EPSILON = torch.finfo(torch.float32).eps


@dataclass(frozen=True, slots=True)
class Rounding:
    """To which grid the rows of an input are rounded, each for itself, so that a row has the same numbers in any batch.

    The formulas are those of compressed-tensors: scale = largest magnitude / half the range of the grid, or, where zero is not in
    the middle, range of the numbers / range of the grid.
    """

    grid: Literal["int8", "float8"]
    group: int | None = None  # columns that have a scale together; None: a whole row
    is_symmetric: bool = True
    scale: Tensor | None = None  # float32 [1], of all rows, found when the model was made; None: of each row, found now
    zero: Tensor | None = None  # float32 [1], beside `scale`
    ceiling: float | None = None  # no number counts as larger when the scale is found (fbgemm)

    def __call__(self, x: Tensor) -> Tensor:
        """x [rows, columns] on the grid, in its dtype."""
        codes, scale, zero = self.codes(x)
        numbers = (codes if zero is None else codes - zero) * scale
        return numbers.flatten(1)[:, : x.shape[1]].to(x.dtype)

    def codes(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """(codes, scale, zero point) of which (codes - zero) * scale is x on the grid, all float32.

        Codes are shaped as x [rows, columns], or [rows, groups, group]; scales and zero points have one number for each row or
        group, or one for all.
        """
        numbers = x.float()
        if self.group is not None and self.scale is None:
            numbers = torch.nn.functional.pad(numbers, (0, -numbers.shape[1] % self.group)).unflatten(1, (-1, self.group))
        scale, zero = self._found(numbers) if self.scale is None else (self.scale, self.zero)
        codes = numbers / scale
        codes = (codes if zero is None else codes + zero).clamp(*self.range)
        return codes.round() if self.grid == "int8" else codes.to(torch.float8_e4m3fn).float(), scale, zero

    def _found(self, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scale and zero point along the last axis."""
        least, most = self.range
        if self.is_symmetric:
            largest = numbers.abs().amax(dim=-1, keepdim=True)
            if self.ceiling is not None:
                largest = largest.clamp_max(self.ceiling)
            return _positive(largest / ((most - least) / 2)), None
        low, high = (numbers.amin(dim=-1, keepdim=True).clamp_max(0), numbers.amax(dim=-1, keepdim=True).clamp_min(0))
        scale = _positive((high - low) / (most - least))
        return scale, (least - low / scale).clamp(least, most).round()

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest number of the grid."""
        return (-128.0, 127.0) if self.grid == "int8" else (-FLOAT8_MAX, FLOAT8_MAX)


def _positive(scale: Tensor) -> Tensor:
    """Where all numbers are zero any scale will do."""
    return torch.where(scale == 0, EPSILON, scale)

"""FP8 (e4m3) as "fp8" and "fbgemm_fp8" of transformers and vLLM have it: a scale for all, for each row, or for a rectangle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ...kernels.quantized.rounding import Rounding
from ...kernels.quantized.scaled import CODE_TYPES, Scaled
from .compressed import positive
from .scheme import FLOATS, Shape, Stored, shaped_scales

_ONE: tuple[Shape, ...] = ((), (1,), (1, 1))


@dataclass(frozen=True, slots=True)
class Float8:
    """Codes as they lie."""

    is_in_place: ClassVar[bool] = True
    block: tuple[int, int] | None  # rows and columns that have a scale together; None: all, or each row, as the shape says
    inputs: Rounding | None
    has_input_scale: bool = False

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        shapes: tuple[Shape, ...] = (*_ONE, (rows, 1), (rows,))
        if self.block is not None:
            shapes = ((-(-rows // self.block[0]), -(-columns // self.block[1])),)
        return (
            Stored(("weight",), ((rows, columns),), ("F8_E4M3",)),
            Stored((self._scale, "weight_scale", "weight_scale_inv"), shapes, FLOATS),
            Stored(("input_scale", "activation_scale"), _ONE, FLOATS, is_optional=not self.has_input_scale),
            Stored(("input_scale_ub",), _ONE, FLOATS, is_optional=True),
        )

    @property
    def _scale(self) -> str:
        """What it is called, as a rule."""
        return "weight_scale" if self.block is None else "weight_scale_inv"

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        scales, block = shaped_scales(tensors[self._scale], rows, columns, self.block)
        return Scaled(CODE_TYPES["float8"], tensors["weight"].view(torch.uint8), scales, columns, block)

    def rounding(self, tensors: Mapping[str, Tensor]) -> Rounding | None:
        if self.inputs is None or not self.has_input_scale:
            return self.inputs
        return replace(self.inputs, scale=positive(tensors["input_scale"], "input_scale"))

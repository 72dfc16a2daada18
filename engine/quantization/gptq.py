"""GPTQ, as AutoGPTQ and GPTQModel write it (arXiv:2210.17323)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ...kernels.quantized.scaled import Scaled
from .scheme import FLOATS, BadTensor, Stored, bytes_of, order_of, reordered, unsigned, words, zeros_of


@dataclass(frozen=True, slots=True)
class Gptq:
    """Codes of a column of the matrix in turn, 32 bits a word; a scale and a zero point for each group of columns.

    In the first version of the format zero points are stored less one. "g_idx" says which group a column belongs to.
    """

    is_in_place: ClassVar[bool] = False
    bits: int  # 2, 3, 4 or 8
    group_size: int  # columns; -1: all
    is_first_version: bool

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        if columns * self.bits % 32 or rows * self.bits % 32:
            reason = f"cannot hold {rows} rows of {columns} columns: {self.bits} bits each do not fill whole words"
            raise BadTensor("qweight", reason)
        groups = self._groups(columns)
        return (
            Stored(("qweight",), ((words(columns, self.bits), rows),), ("I32",)),
            Stored(("qzeros",), ((groups, words(rows, self.bits)),), ("I32",)),
            Stored(("scales",), ((groups, rows),), FLOATS),
            Stored(("g_idx",), ((columns,),), ("I32",), is_optional=True),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        kind, width = unsigned(self.bits), self._width(columns)
        data = bytes_of(tensors["qweight"].T)
        order = None
        if "g_idx" in tensors:
            order = order_of(tensors["g_idx"], width, self._groups(columns), "g_idx")
        if order is not None:
            data = reordered(data, kind, order)
        zeros = zeros_of(tensors["qzeros"], self.bits, rows, shift=int(self.is_first_version))
        return Scaled(kind, data, tensors["scales"].T.contiguous(), columns, (1, width), zeros, order)

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None

    def _width(self, columns: int) -> int:
        return columns if self.group_size == -1 else self.group_size

    def _groups(self, columns: int) -> int:
        return -(-columns // self._width(columns))

"""AWQ in the layout that is called "gemm", as AutoAWQ writes it (arXiv:2306.00978)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...kernels.quantized.scaled import Scaled
from ...kernels.quantized.scaled_reference import unpacked
from .scheme import FLOATS, BadTensor, Stored, unsigned

BITS, PER_WORD = 4, 8
_ROWS_OF_BYTES = ((0, 2), (4, 6), (1, 3), (5, 7))  # of the eight in a word, the one in the lower half of a byte first
_CODES_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True)
class Awq:
    """Codes of eight rows in a word; a scale and a zero point for each group of columns."""

    is_in_place: ClassVar[bool] = False
    group_size: int  # columns; -1: all

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        if rows % PER_WORD:
            raise BadTensor("qweight", f"cannot hold {rows} rows: {PER_WORD} of them make a word")
        groups = -(-columns // self._width(columns))
        return (
            Stored(("qweight",), ((columns, rows // PER_WORD),), ("I32",)),
            Stored(("qzeros",), ((groups, rows // PER_WORD),), ("I32",)),
            Stored(("scales",), ((groups, rows),), FLOATS),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        data, kind = transposed(tensors["qweight"]), unsigned(BITS)
        zeros = unpacked(transposed(tensors["qzeros"]), kind, tensors["qzeros"].shape[0]).contiguous()
        return Scaled(kind, data, tensors["scales"].T.contiguous(), columns, (1, self._width(columns)), zeros)

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None

    def _width(self, columns: int) -> int:
        return columns if self.group_size == -1 else self.group_size


def transposed(words: Tensor) -> Tensor:
    """Rows of codes, uint8 [8 m, bytes of n codes], of words int32 [n, m]: a few at a time and byte by byte, as most of a model is
    turned so while it is loaded."""
    (columns, count), kind = words.shape, unsigned(BITS)
    rows = torch.zeros(PER_WORD * count, kind.row_bytes(columns), dtype=torch.uint8)
    even, odd = rows[:, : (columns + 1) // 2], rows[:, : columns // 2]
    step = max(1, _CODES_AT_A_TIME // (PER_WORD * columns))
    for begin in range(0, count, step):
        some = words[:, begin : begin + step].contiguous()
        end = PER_WORD * (begin + some.shape[1])
        for place, (low, high) in enumerate(_ROWS_OF_BYTES):
            codes = some.view(torch.uint8)[:, place::4].T.contiguous()
            first, second = codes[:, ::2], codes[:, 1::2]
            for row, shifted in ((low, (first & 15, second << 4)), (high, (first >> 4, second & 0xF0))):
                which = slice(PER_WORD * begin + row, end, PER_WORD)
                even[which] |= shifted[0]
                odd[which] |= shifted[1]
    return rows

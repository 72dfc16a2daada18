"""What a matrix of codes is: integers of 1 to 8 bits or small floats, with scales and perhaps zero points beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@dataclass(frozen=True, slots=True)
class CodeType:
    """How a code of so many bits is a number, before its scale."""

    name: str
    bits: int
    values: tuple[float, ...]  # of each code; of integers without the zero point, which is `middle` where none is stored
    middle: int = 0

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row: codes without gaps, the first in the lowest bits, filled up to 4 bytes where codes share bytes."""
        return columns if self.bits == 8 else -(-columns * self.bits // 32) * 4


def _float8() -> tuple[float, ...]:
    return tuple(torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().tolist())


CODE_TYPES: Mapping[str, CodeType] = {
    kind.name: kind
    for kind in (
        *(CodeType(f"uint{bits}", bits, tuple(map(float, range(1 << bits))), 1 << bits - 1) for bits in range(1, 9)),
        CodeType("int8", 8, tuple(float(code - 256 * (code > 127)) for code in range(256))),
        CodeType("float8", 8, _float8()),  # e4m3, without infinities
        CodeType("float4", 4, (*_E2M1, *(-value for value in _E2M1))),  # e2m1
        CodeType("nf4", 4, _NF4),  # quantiles of a normal distribution: QLoRA, arXiv:2305.14314
    )
}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A matrix [rows, columns]: (value of a code - zero point) * scale. Tensors may lie in a mapped file.

    Of a code at (i, j) the scale is `scales[i // block[0], j // block[1]]`, and the zero point likewise.
    """

    type: CodeType
    data: Tensor  # uint8 [rows, type.row_bytes(columns)]
    scales: Tensor  # floating point [ceil(rows / block[0]), ceil(columns / block[1])]
    num_columns: int
    block: tuple[int, int]
    zeros: Tensor | None = None  # uint8, shaped as `scales`; None: `type.middle`
    order: Tensor | None = None  # int64 [columns]: which column of the matrix each column of codes is; None: as they are

    @property
    def num_rows(self) -> int:
        return self.data.shape[0]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All that is held, by what it is."""
        named = {"codes": self.data, "scales": self.scales, "zeros": self.zeros, "order": self.order}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def to(self, device: torch.device) -> Scaled:
        moved = [None if tensor is None else tensor.to(device) for tensor in (self.zeros, self.order)]
        return Scaled(self.type, self.data.to(device), self.scales.to(device), self.num_columns, self.block, *moved)

    def pieces(self, num_rows: int) -> Iterable[tuple[int, Scaled]]:
        """(first row, some rows), whose blocks have one row each: scales and zero points are repeated as rows need them."""
        for begin in range(0, self.num_rows, num_rows):
            yield begin, self.rows(slice(begin, begin + num_rows))

    def rows(self, which: slice | Tensor) -> Scaled:
        """Some rows, in an order of their own."""
        data, height = self.data[which], self.block[0]
        if height == 1:
            of_row: slice | Tensor = which
        elif isinstance(which, slice):
            of_row = torch.arange(which.start, which.start + len(data), device=self.data.device) // height
        else:
            of_row = which // height
        zeros = None if self.zeros is None else self.zeros[of_row]
        return Scaled(self.type, data, self.scales[of_row], self.num_columns, (1, self.block[1]), zeros, self.order)

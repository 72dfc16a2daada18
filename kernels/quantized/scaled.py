"""Matrices of codes with scales beside them, as GPTQ, AWQ, compressed-tensors, FP8 and bitsandbytes have them, and their products.

Codes are integers of 1 to 8 bits or small floats; a scale, and perhaps a zero point, holds for a block of them: a piece of a row, a
row, a rectangle, or all. `scaled_reference.py` says what they mean in plain PyTorch on any device; `scaled_cpu.py` has the same
compiled for a CPU. A product decodes a few rows at a time, as in `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

SCRATCH = {"cpu": 1 << 18, "cuda": 1 << 24}  # numbers that are unpacked at a time; on a CPU they stay in the cache of a core
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


def multiply(x: Tensor, matrix: Scaled) -> Tensor:
    """x W^T, [num_rows of x, rows], in the dtype of x [num_rows, columns]. On CUDA nothing is asked of the device.

    On a CPU the product is computed in float32, whatever the dtype of x.
    """
    given = x if matrix.order is None else x.index_select(1, matrix.order)
    if x.device.type == "cpu":
        return _multiply_on_cpu(given.float(), matrix).to(x.dtype)
    return multiply_in_pieces(given, matrix)


def multiply_in_pieces(x: Tensor, matrix: Scaled) -> Tensor:
    """`multiply` in plain PyTorch on any device, of columns in the order of the codes."""
    from . import scaled_reference

    step = max(1, SCRATCH["cuda"] // matrix.num_columns)
    pieces = (scaled_reference.decode(piece) for _, piece in matrix.pieces(step))
    return torch.cat([linear(x, weights.to(x.dtype)) for weights in pieces], dim=1)


def rows(matrix: Scaled, indices: Tensor) -> Tensor:
    """Rows of the matrix, float32 [num_indices, columns]."""
    return dequantize(matrix.rows(indices))


def dequantize(matrix: Scaled) -> Tensor:
    """The whole matrix, float32 [rows, columns]."""
    if matrix.data.device.type == "cpu":
        found = torch.empty(matrix.num_rows, matrix.num_columns)
        for begin, piece in matrix.pieces(_step(matrix)):
            _decode(piece, found[begin : begin + piece.num_rows])
    else:
        from . import scaled_reference

        found = scaled_reference.decode(matrix.rows(slice(0, matrix.num_rows)))
    return found if matrix.order is None else torch.empty_like(found).index_copy_(1, matrix.order, found)


def _step(matrix: Scaled) -> int:
    return min(matrix.num_rows, max(16, SCRATCH["cpu"] // matrix.num_columns))


def _multiply_on_cpu(x: Tensor, matrix: Scaled) -> Tensor:
    step = _step(matrix)
    out, unpacked = x.new_empty(len(x), matrix.num_rows), torch.empty(step, matrix.num_columns)
    for begin, piece in matrix.pieces(step):
        weights = unpacked[: piece.num_rows]
        _decode(piece, weights)
        torch.mm(x, weights.T, out=out[:, begin : begin + piece.num_rows])
    return out


def _decode(piece: Scaled, out: Tensor) -> None:
    from .scaled_cpu import decode  # here, so that only who has packed weights waits for Numba

    decode(piece, out)

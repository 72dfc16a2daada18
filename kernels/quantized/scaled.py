"""Products with matrices of codes, as GPTQ, AWQ, compressed-tensors, FP8 and bitsandbytes have them.

`codes.py` says what such a matrix is: codes, and a scale, perhaps a zero point, for each block of them, which is a piece of a row,
a row, a rectangle, or all. `scaled_reference.py` says what they mean in plain PyTorch on any device; `scaled_cpu.py` has the same
compiled for a CPU, and `gpu/` products in Triton, of codes with codes too. Any other product decodes a few rows at a time, as in
`__init__.py`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from ..backend import Backend, uses_triton
from . import integers_cpu, scaled_reference
from .codes import CODE_TYPES, CodeType, Scaled
from .rounding import Rounding
from .scratch import scratch

__all__ = ["CODE_TYPES", "CodeType", "Scaled", "dequantize", "multiply", "rows"]

SCRATCH = {"cpu": 1 << 18, "cuda": 1 << 24}  # numbers that are unpacked at a time; on a CPU they stay in the cache of a core


def multiply(x: Tensor, matrix: Scaled, rounding: Rounding | None = None, *, backend: Backend = "auto") -> Tensor:
    """(x, rounded) W^T, [num_rows of x, rows], in the dtype of x [num_rows, columns]. On CUDA nothing is asked of the device.

    Weights are rounded to the dtype of x, and products summed in float32, but for codes of 8 bits times codes of 8 bits: those are
    multiplied as they are, by Triton, and integers on a CPU too. On a CPU other products are computed in float32, whatever the
    dtype of x, but for backend="triton". Raises ValueError for a backend that cannot run.
    """
    if not len(x):
        return x.new_empty((0, matrix.num_rows))
    if uses_triton(backend, x.device):
        return _multiply_by_triton(x, matrix, rounding)
    if rounding is not None and x.device.type == "cpu" and integers_cpu.can_multiply(matrix, rounding):
        return integers_cpu.multiply(x, matrix, rounding)
    x = x if rounding is None else rounding(x)
    given = x if matrix.order is None else x.index_select(1, matrix.order)
    if x.device.type == "cpu":
        return _multiply_on_cpu(given.float(), matrix).to(x.dtype)
    return multiply_in_pieces(given, matrix)


def _multiply_by_triton(x: Tensor, matrix: Scaled, rounding: Rounding | None) -> Tensor:
    from .gpu.product import multiply_codes
    from .gpu.rounded import can_multiply, multiply_rounded

    if rounding is not None and can_multiply(matrix, rounding):
        return multiply_rounded(x, matrix, rounding)
    x = x if rounding is None else rounding(x)
    return multiply_codes(x if matrix.order is None else x.index_select(1, matrix.order), matrix)


def multiply_in_pieces(x: Tensor, matrix: Scaled) -> Tensor:
    """`multiply` in plain PyTorch on any device, of columns in the order of the codes."""
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
            found = scaled_reference.decode(matrix.rows(slice(0, matrix.num_rows)))
    return found if matrix.order is None else torch.empty_like(found).index_copy_(1, matrix.order, found)


def _step(matrix: Scaled) -> int:
    return min(matrix.num_rows, max(16, SCRATCH["cpu"] // matrix.num_columns))


def _multiply_on_cpu(x: Tensor, matrix: Scaled) -> Tensor:
    step = _step(matrix)
    out, unpacked = x.new_empty(len(x), matrix.num_rows), scratch.of(step, matrix.num_columns)
    for begin, piece in matrix.pieces(step):
        weights = unpacked[: piece.num_rows]
        _decode(piece, weights)
        torch.mm(x, weights.T, out=out[:, begin : begin + piece.num_rows])
    return out


def _decode(piece: Scaled, out: Tensor) -> None:
    from .scaled_cpu import decode  # here, so that only who has packed weights waits for Numba

    decode(piece, out)

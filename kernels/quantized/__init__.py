"""Products with matrices that stay packed in blocks, as GGUF has them: the blocks become numbers a few rows at a time.

`blocks.py` says what a packed matrix is, `reference.py` what its blocks mean, in plain PyTorch on any device; `block_loops.py` has
the same as loops for a CPU, and `gpu/` products in Triton, which decode a tile in registers. Any other product decodes as many rows
as fit into a nearby cache, multiplies by them, and goes on with the next rows in the same place, so that no more than that is ever
unpacked. On a CPU these products are the exact ones: `kernels/cpu` has quicker ones, of activations that are rounded to 8 bits.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from . import reference
from .blocks import BLOCK_TYPES, BlockType, Packed
from .scratch import scratch

__all__ = ["BLOCK_TYPES", "BlockType", "Packed", "dequantize", "multiply", "rows"]

CPU_SCRATCH = 1 << 18  # weights that are unpacked at a time: 1 MB, what stays in the cache of a core
GPU_SCRATCH = 1 << 24


def multiply(x: Tensor, matrix: Packed) -> Tensor:
    """x W^T, [num_rows of x, num_rows of W], in the dtype of x [num_rows, columns]. On CUDA nothing is asked of the device.

    On a CPU the product is computed in float32, whatever the dtype of x.
    """
    if x.device.type == "cpu":
        return _multiply_on_cpu(x.float(), matrix).to(x.dtype)
    return multiply_in_pieces(x, matrix)


def multiply_in_pieces(x: Tensor, matrix: Packed) -> Tensor:
    """`multiply` in plain PyTorch on any device."""
    step = max(1, GPU_SCRATCH // matrix.num_columns)
    parts = (Packed(matrix.type, part) for part in matrix.data.split(step))
    return torch.cat([linear(x, reference.dequantize(part).to(x.dtype)) for part in parts], dim=1)


def rows(matrix: Packed, indices: Tensor) -> Tensor:
    """Rows of the matrix, float32 [num_indices, columns]."""
    return dequantize(Packed(matrix.type, matrix.data.index_select(0, indices)))


def dequantize(matrix: Packed) -> Tensor:
    """The whole matrix, float32 [num_rows, columns]."""
    if matrix.data.device.type != "cpu":
        return reference.dequantize(matrix)
    out = torch.empty(matrix.num_rows, matrix.num_columns)
    _decode(matrix.type, matrix.data, out)
    return out


def _multiply_on_cpu(x: Tensor, matrix: Packed) -> Tensor:
    if matrix.type.name == "F32":
        return x @ matrix.data.view(torch.float32).T
    step = min(matrix.num_rows, max(16, CPU_SCRATCH // matrix.num_columns))
    out, unpacked = x.new_empty(len(x), matrix.num_rows), scratch.of(step, matrix.num_columns)
    for begin in range(0, matrix.num_rows, step):
        data = matrix.data[begin : begin + step]
        weights = unpacked[: len(data)]
        _decode(matrix.type, data, weights)
        torch.mm(x, weights.T, out=out[:, begin : begin + step])
    return out


FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # blocks of one weight


def _decode(kind: BlockType, data: Tensor, out: Tensor) -> None:
    if kind.name in FLOATS:
        out.copy_(data.view(FLOATS[kind.name]))
        return
    from .cpu import decode  # here, so that only who has packed weights waits for Numba

    decode(kind.name, data.numpy(), out.numpy())

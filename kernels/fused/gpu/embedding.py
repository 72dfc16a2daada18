"""Rows of the embedding table, in pieces."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def embedding_kernel(out, token_ids, table, scale, row_stride, width, BLOCK: tl.constexpr):
    """out[row, :] = table[token_ids[row], :] * scale, computed in fp32; zeros where the id is negative.

    out: [num_tokens, width], contiguous; token_ids: integers [num_tokens]; table: [vocab, width], rows `row_stride` apart.
    Launched by `launch_embedding` with the grid (num_tokens, width / BLOCK): a program writes BLOCK numbers of one row.
    """
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    token_id = tl.load(token_ids + row).to(tl.int64)
    is_read = column < tl.where(token_id >= 0, width, 0)
    number = tl.load(table + token_id * row_stride + column, mask=is_read, other=0.0).to(tl.float32) * scale
    tl.store(out + row * width + column, number.to(out.dtype.element_ty), mask=column < width)


def launch_embedding(token_ids: Tensor, table: Tensor, scale: float) -> Tensor:
    """`embedding` in one launch. The arguments are checked."""
    width = table.shape[1]
    out = table.new_empty(len(token_ids), width)
    if out.numel():
        embedding_kernel[len(token_ids), triton.cdiv(width, BLOCK)](
            out, token_ids.contiguous(), table, scale, table.stride(0), width, BLOCK=BLOCK, num_warps=4
        )
    return out

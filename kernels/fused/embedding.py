"""Rows of the embedding table."""

from __future__ import annotations

import torch
from torch import Tensor

from ..backend import Backend, uses_triton

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def embedding(token_ids: Tensor, table: Tensor, *, scale: float = 1.0, backend: Backend = "auto") -> Tensor:
    """[num_tokens, width] of the table's dtype: table[token_ids] * scale; zeros for negative ids, which pad a batch.

    token_ids: int32 or int64 [num_tokens], below the table's length. table: [vocab, width]. Gemma scales by sqrt(width).
    """
    if token_ids.ndim != 1 or token_ids.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"token_ids must be int32 or int64 [num_tokens], got {token_ids.dtype} {tuple(token_ids.shape)}")
    if table.ndim != 2 or table.stride(1) != 1 or table.dtype not in DTYPES:
        raise ValueError(
            "table must be float32, bfloat16 or float16 [vocab, width], contiguous within a row, "
            f"got {table.dtype} {tuple(table.shape)}"
        )
    if not uses_triton(backend, table.device):
        return embedding_reference(token_ids, table, scale)
    from .gpu.embedding import launch_embedding

    return launch_embedding(token_ids, table, scale)


def embedding_reference(token_ids: Tensor, table: Tensor, scale: float) -> Tensor:
    rows = table[token_ids.clamp(min=0)].float() * scale
    return torch.where(token_ids[:, None] >= 0, rows, 0).to(table.dtype)

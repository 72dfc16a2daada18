"""Codes with scales as numbers, in plain PyTorch on any device: what `scaled_cpu.py` computes, the obvious way."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from .codes import CODE_TYPES, CodeType, Scaled


def decode(piece: Scaled) -> Tensor:
    """The numbers of rows whose blocks have one row each, float32 [rows, columns] in the order of the codes."""
    values = values_of(piece.type.name, piece.data.device)[codes_of(piece).long()]
    zeros = piece.type.middle if piece.zeros is None else _spread(piece, piece.zeros)
    return (values - zeros) * _spread(piece, piece.scales)


def codes_of(piece: Scaled) -> Tensor:
    """The codes one by one, uint8 [rows, columns]."""
    return unpacked(piece.data, piece.type, piece.num_columns)


def unpacked(data: Tensor, kind: CodeType, columns: int) -> Tensor:
    """Codes uint8 [rows, columns] out of rows of bytes."""
    if kind.bits == 8:
        return data[:, :columns]
    shifts = torch.arange(8, dtype=torch.uint8, device=data.device)
    bits = ((data[:, :, None] >> shifts) & 1).flatten(1)[:, : columns * kind.bits].unflatten(1, (columns, kind.bits))
    return (bits << shifts[: kind.bits]).sum(dim=2, dtype=torch.uint8)


def packed(codes: Tensor, kind: CodeType) -> Tensor:
    """Rows of bytes of codes uint8 [rows, columns]: `unpacked` the other way."""
    if kind.bits == 8:
        return codes.contiguous()
    shifts = torch.arange(8, dtype=torch.uint8, device=codes.device)
    bits = ((codes[:, :, None] >> shifts[: kind.bits]) & 1).flatten(1)
    bits = torch.nn.functional.pad(bits, (0, 8 * kind.row_bytes(codes.shape[1]) - bits.shape[1]))
    return (bits.unflatten(1, (-1, 8)) << shifts).sum(dim=2, dtype=torch.uint8)


def _spread(piece: Scaled, of_blocks: Tensor) -> Tensor:
    return of_blocks.float().repeat_interleave(piece.block[1], dim=1)[:, : piece.num_columns]


@cache
def values_of(name: str, device: torch.device) -> Tensor:
    """The numbers of all codes on a device, put there once: a CUDA graph cannot capture it."""
    return torch.tensor(CODE_TYPES[name].values, dtype=torch.float32, device=device)

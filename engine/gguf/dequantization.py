"""Stored tensors as numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from ...kernels.quantized import BLOCK_TYPES, Packed, dequantize
from .reader import StoredTensor


def dequantized(stored: StoredTensor) -> Tensor:
    """float32, of the shape of `stored`. Raises NotImplementedError for a type that nothing decodes."""
    if stored.type in BLOCK_TYPES:
        matrix = Packed(BLOCK_TYPES[stored.type], stored.data.reshape(-1, stored.data.shape[-1]))
        return dequantize(matrix).view(stored.shape)
    import gguf

    return torch.from_numpy(gguf.dequantize(stored.data.numpy(), gguf.GGMLQuantizationType[stored.type]))

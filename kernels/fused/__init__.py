"""The small operations between the matrix products of a decoder: each reads and writes its arrays once.

A decode step of a small model is hundreds of launches of a few microseconds, so fewer of them count more than fast ones. Each file
has one operation: the function that chooses, and its twin in plain PyTorch; `gpu/` has the kernels. All compute in fp32 and round
once, when they store.
"""

from .embedding import embedding
from .gated_activation import Activation, gated_activation
from .interface import HeadNorm, Rotation
from .rms_norm import add_rms_norm, rms_norm
from .rope import rotate_and_cache

__all__ = [
    "Activation",
    "HeadNorm",
    "Rotation",
    "add_rms_norm",
    "embedding",
    "gated_activation",
    "rms_norm",
    "rotate_and_cache",
]

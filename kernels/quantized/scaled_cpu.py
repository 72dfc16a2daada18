"""Codes with scales as numbers on a CPU: which loop decodes a matrix."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import scaled_loops as loops
from .codes import CODE_TYPES, Scaled


def decode(piece: Scaled, out: Tensor) -> None:
    """Write the numbers of rows whose blocks have one row each into out, float32 [rows, columns], in the order of the codes."""
    kind, width = piece.type, piece.block[1]
    scales = _floats(piece.scales)
    zeros = np.full(scales.shape, np.float32(kind.middle)) if piece.zeros is None else _floats(piece.zeros)
    is_even = width % 2 == 0 and piece.num_columns % 2 == 0
    if kind.bits == 4 and is_even:
        function = loops.integers4 if kind.name == "uint4" else loops.values4
    elif kind.bits == 8:
        function = loops.floats8 if kind.name == "float8" else loops.integers8
    elif kind.name.startswith("uint") and width % 8 == 0 and piece.num_columns % 8 == 0:
        function = loops.eights
    else:
        function = loops.any_bits
    function(piece.data.numpy(), scales, zeros, _values(kind.name), kind.bits, width, out.numpy())


def _floats(tensor: Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor.to(torch.float32).numpy())


@cache
def _values(name: str) -> NDArray[Any]:
    return np.array(CODE_TYPES[name].values, np.float32)

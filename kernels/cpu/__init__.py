"""Products with matrices in blocks at the speed of memory, compiled for the instructions of a CPU.

A product of few rows costs what reading the matrix costs. So blocks are never written out as numbers: activations are rounded to 8
bits once, 32 at a time, and integers are multiplied by integers (as llama.cpp does). Matrices in floating point are multiplied by
activations as they are.

    native/    C: `kernel.h` has the products, `between.h` what lies between them, `pick.h` the most probable tokens, each written
               once; simd_*.h what an instruction set calls its instructions (AVX-512 with VNNI, AVX2, NEON); `products.c`,
               `between.c`, `pick.c` and `decoder.c` what is called from here; `threads.c` the pool
    between.py norms, turned heads, attention, gates
    decoder.py all layers of a step in one call
    library.py where the compiled library comes from, and when there is none
    twin.py    the same numbers, bit by bit, in plain NumPy

Every instruction set, number of threads and number of rows gives the same bits: what one row becomes does not depend on the others.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from ..quantized.blocks import Packed
from .library import Matrix, loaded

__all__ = ["Product", "is_available", "use_instructions"]

TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4", "F32", "F16", "BF16")
FLOAT_TYPES = ("F32", "F16", "BF16")
FEW_FLOATS = 16  # rows of activations; with AVX2 more are better off with a product that is blocked for them
WIDE = 16  # lanes of AVX-512
LEAST_ROWS = 16  # of a matrix of integers: as many as are computed together


def is_available() -> bool:
    """Whether there is a library for this processor. The first call may compile it."""
    return loaded() is not None


class Product:
    """The product with matrices that stand one under another, of the same width, in blocks of any types.

    It may be called from several threads. `order` int64 [rows]: which row of the parts each row is; None: as they are. Raises
    RuntimeError where no library `is_available`.
    """

    def __init__(self, parts: Sequence[Packed], order: Tensor | None = None) -> None:
        found = loaded()
        if found is None:
            raise RuntimeError("no compiled products for this processor")
        self._multiply, self._lanes = found.maskwright_multiply, found.maskwright_lanes
        self._kept = [_at_least(part, LEAST_ROWS) for part in parts]  # whose memory is pointed to
        self.has_floats = any(part.type.name in FLOAT_TYPES for part in parts)
        self.num_columns, self.num_rows = parts[0].num_columns, sum(part.num_rows for part in parts)
        self.width = sum(part.num_rows for part in self._kept)  # of what is computed: more, where a part is filled up
        firsts = [sum(part.num_rows for part in self._kept[:index]) for index in range(len(parts))]
        matrices = [_matrix(part, first) for part, first in zip(self._kept, firsts, strict=True)]
        self._matrices, self._num_parts = (Matrix * len(parts))(*matrices), len(parts)
        self._places = None if order is None and self.width == self.num_rows else self._places_of(parts, order)

    def _places_of(self, parts: Sequence[Packed], order: Tensor | None) -> Tensor:
        """Where each column of what is computed goes, int32; what fills up goes behind all others."""
        order = torch.arange(self.num_rows) if order is None else order
        is_real = torch.cat([torch.arange(kept.num_rows) < part.num_rows for kept, part in zip(self._kept, parts, strict=True)])
        places = torch.empty(self.width, dtype=torch.int32)
        places[~is_real] = torch.arange(self.num_rows, self.width, dtype=torch.int32)
        real = torch.empty(self.num_rows, dtype=torch.int32)
        real[order] = torch.arange(self.num_rows, dtype=torch.int32)
        places[is_real] = real
        return places

    def is_good_for(self, num_rows: int) -> bool:
        """Whether nothing else is known to multiply as many rows of activations faster."""
        return not self.has_floats or num_rows <= FEW_FLOATS or bool(self._lanes() == WIDE)

    @property
    def addresses(self) -> tuple[int, int | None]:
        """Of the table of matrices, and of where each column goes, None: where it is."""
        return ctypes.addressof(self._matrices), None if self._places is None else self._places.data_ptr()

    @property
    def num_parts(self) -> int:
        return self._num_parts

    def __call__(self, x: Tensor) -> Tensor:
        """x W^T, float32 [num_rows of x, num_rows], of x [num_rows, num_columns] on a CPU, by as many threads as PyTorch has."""
        x = x if x.dtype == torch.float32 else x.float()
        x = x if x.stride(1) == 1 else x.contiguous()
        num_rows = x.shape[0]  # len(x) takes a microsecond
        out = torch.empty(num_rows, self.width)
        places = None if self._places is None else self._places.data_ptr()
        given = (x.data_ptr(), num_rows, x.stride(0), out.data_ptr(), self.width, places)
        if num_rows and self._multiply(self._matrices, self._num_parts, *given, torch.get_num_threads()) != 0:
            raise MemoryError(f"no memory for {num_rows} rows of {self.num_columns} activations")
        return out if self.width == self.num_rows else out[:, : self.num_rows]


def _matrix(part: Packed, first_column: int) -> Matrix:
    data = part.data
    return Matrix(data.data_ptr(), part.num_rows, part.num_columns, data.stride(0), TYPES.index(part.type.name), first_column)


def _at_least(part: Packed, num_rows: int) -> Packed:
    """The matrix, with zeros under it where it has fewer rows, and its rows whole."""
    data = part.data if part.data.stride(1) == 1 else part.data.contiguous()
    if part.num_rows >= num_rows or part.type.name in FLOAT_TYPES:
        return Packed(part.type, data)
    return Packed(part.type, torch.cat((data, data.new_zeros(num_rows - len(data), data.shape[1]))))


def use_instructions(name: str) -> bool:
    """Compute by "avx512", "avx2", "neon" or "auto", the best that there is, from here on; False where the processor lacks them."""
    found = loaded()
    return found is not None and bool(found.maskwright_use(ctypes.c_char_p(name.encode())))

"""Products with packed matrices at the speed of memory, compiled for the instructions of a CPU.

A product of few rows costs what reading the matrix costs. So blocks are never written out as numbers: activations are rounded to 8
bits once, 32 at a time, and integers are multiplied by integers (as llama.cpp does). Matrices in floating point are multiplied by
activations as they are. Matrices of codes with scales beside them are either (`codes.py`).

    native/    C: `kernel.h` has the products, `between.h` and `attention.h` what lies between them, `pick.h` draws, each
               written once; simd_*.h what an instruction set calls its instructions (AVX-512 with VNNI, AVX2, NEON);
               `avx512_bf16.c` numbers of 8 bits where a processor has tables for them; `products.c`, `between.c`, `pick.c`
               and `decoder.c` what is called from here; `threads.c` the pool
    codes.py   which matrices of codes are multiplied here, and how C finds their scales
    between.py norms, turned heads, attention, gates
    decoder.py all layers of a step in one call
    library.py where the compiled library comes from, and when there is none
    twin.py    the same numbers, bit by bit, in plain NumPy

Every instruction set, number of threads and number of rows gives the same bits of a product: what one row becomes does not depend
on the others. Attention has its own order of sums in each instruction set, and the same bits with any threads and rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from ..quantized.blocks import Packed
from ..quantized.codes import Scaled
from ..quantized.rounding import Rounding
from .codes import CODES, Codes, Given, Run, codes_of, fits, input_of, table_entry
from .library import TYPES, Matrix, loaded

__all__ = ["Product", "can_multiply", "is_available", "matrix_of", "use_instructions"]

FLOAT_TYPES = ("F32", "F16", "BF16", "FLOAT8")
FEW_FLOATS = 16  # rows of activations; with AVX2 more are better off with a product that is blocked for them
WIDE = 16  # lanes of AVX-512
LEAST_ROWS = 16  # of a matrix of integers: as many as are computed together


def is_available() -> bool:
    """Whether there is a library for this processor. The first call may compile it."""
    return loaded() is not None


def can_multiply(part: Packed | Scaled, rounding: Rounding | None = None) -> bool:
    """Whether a `Product` can have this part, whose activations are rounded so."""
    return fits(part, rounding) if isinstance(part, Scaled) else rounding is None


class Product:
    """The product with matrices that stand one under another, of the same width, in blocks of any types, or in codes.

    It may be called from several threads. `order` int64 [rows]: which row of the parts each row is; None: as they are. `roundings`:
    what is done to activations before, for each part that `can_multiply`. Raises RuntimeError where no library `is_available`.
    """

    def __init__(
        self, parts: Sequence[Packed | Scaled], order: Tensor | None = None, roundings: Sequence[Rounding | None] | None = None
    ) -> None:
        found = loaded()
        if found is None:
            raise RuntimeError("no compiled products for this processor")
        self._multiply, self._lanes = found.maskwright_multiply, found.maskwright_lanes
        self._kept = [_at_least(part, LEAST_ROWS) if isinstance(part, Packed) else codes_of(part) for part in parts]
        self.has_floats = any(TYPES[_number(part)] in FLOAT_TYPES for part in parts)
        self.num_columns, self.num_rows = parts[0].num_columns, sum(part.num_rows for part in parts)
        heights = [_height(part) for part in self._kept]
        self.width = sum(heights)  # of what is computed: more, where a part is filled up
        matrices = [_matrix(part, sum(heights[:index])) for index, part in enumerate(self._kept)]
        given = [Given(part.order if isinstance(part, Scaled) else None) for part in parts]
        if roundings is not None:
            given = [each._replace(rounding=rounding) for each, rounding in zip(given, roundings, strict=True)]
        self._runs, self._pointed = _runs(matrices, given)
        self.num_runs, self._table = len(self._runs), ctypes.addressof(self._runs)
        self._places = None if order is None and self.width == self.num_rows else self._places_of(parts, order)

    def _places_of(self, parts: Sequence[Packed | Scaled], order: Tensor | None) -> Tensor:
        """Where each column of what is computed goes, int32; what fills up goes behind all others."""
        order = torch.arange(self.num_rows) if order is None else order
        is_real = torch.cat([torch.arange(_height(kept)) < part.num_rows for kept, part in zip(self._kept, parts, strict=True)])
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
        return self._table, None if self._places is None else self._places.data_ptr()

    def __call__(self, x: Tensor) -> Tensor:
        """x W^T, float32 [num_rows of x, num_rows], of x [num_rows, num_columns] on a CPU, by as many threads as PyTorch has."""
        x = x if x.dtype == torch.float32 else x.float()
        x = x if x.stride(1) == 1 else x.contiguous()
        num_rows = x.shape[0]  # len(x) takes a microsecond
        out = torch.empty(num_rows, self.width)
        table, places = self.addresses
        call = (table, self.num_runs, x.data_ptr(), num_rows, x.stride(0), out.data_ptr(), self.width, places)
        if num_rows and self._multiply(*call, torch.get_num_threads()) != 0:
            raise MemoryError(f"no memory for {num_rows} rows of {self.num_columns} activations")
        return out if self.width == self.num_rows else out[:, : self.num_rows]


def _runs(matrices: Sequence[Matrix], given: Sequence[Given]) -> tuple[ctypes.Array[Run], list[object]]:
    """(a table of matrices by what they are given, all that it points to)."""
    groups: list[tuple[Given, list[Matrix]]] = []
    for matrix, each in zip(matrices, given, strict=True):
        group = next((members for other, members in groups if other.is_same(each)), None)
        if group is None:
            groups.append((each, group := []))
        group.append(matrix)
    runs, kept = [], list[object](given)
    for each, members in groups:
        table, made = (Matrix * len(members))(*members), input_of(each, members[0].num_columns)
        kept += [table, made]
        runs.append(Run(ctypes.addressof(table), None if made is None else ctypes.addressof(made), len(members)))
    return (Run * len(runs))(*runs), kept


def _number(part: Packed | Scaled) -> int:
    return TYPES.index(part.type.name if isinstance(part, Packed) else CODES[part.type.name])


def _height(part: Packed | Codes) -> int:
    return part.num_rows if isinstance(part, Packed) else part.matrix.num_rows


def _matrix(part: Packed | Codes, first_column: int) -> Matrix:
    if isinstance(part, Codes):
        return table_entry(part, first_column)
    return matrix_of(part, first_column)


def matrix_of(part: Packed, first_column: int = 0) -> Matrix:
    """How C sees a matrix of blocks or numbers, whose memory is not kept by this."""
    data = part.data
    return Matrix(data.data_ptr(), part.num_rows, part.num_columns, data.stride(0), _number(part), first_column)


def _at_least(part: Packed, num_rows: int) -> Packed:
    """The matrix, with zeros under it where it has fewer rows, and its rows whole."""
    data = part.data if part.data.stride(1) == 1 else part.data.contiguous()
    if part.num_rows >= num_rows or part.type.name in FLOAT_TYPES:
        return Packed(part.type, data)
    return Packed(part.type, torch.cat((data, data.new_zeros(num_rows - len(data), data.shape[1]))))


def use_instructions(name: str) -> bool:
    """Compute by "avx512bf16", "avx512", "avx2", "neon" or "auto", the best that there is, from here on.

    False where the processor lacks them.
    """
    found = loaded()
    return found is not None and bool(found.maskwright_use(ctypes.c_char_p(name.encode())))

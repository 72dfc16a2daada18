"""AWQ in the layout that is called "gemm", as AutoAWQ writes it (arXiv:2306.00978)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ...kernels.quantized.scaled import Scaled
from ...kernels.quantized.scaled_reference import packed, unpacked
from .scheme import FLOATS, BadTensor, Stored, bytes_of, unsigned

BITS, PER_WORD = 4, 8
_PLACE = (0, 4, 1, 5, 2, 6, 3, 7)  # of each of 8 rows in a word, which has rows 0, 2, 4, 6, 1, 3, 5, 7
_CODES_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class Awq:
    """Codes of eight rows in a word; a scale and a zero point for each group of columns."""

    is_in_place: ClassVar[bool] = False
    group_size: int  # columns; -1: all

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        if rows % PER_WORD:
            raise BadTensor("qweight", f"cannot hold {rows} rows: {PER_WORD} of them make a word")
        groups = -(-columns // self._width(columns))
        return (
            Stored(("qweight",), ((columns, rows // PER_WORD),), ("I32",)),
            Stored(("qzeros",), ((groups, rows // PER_WORD),), ("I32",)),
            Stored(("scales",), ((groups, rows),), FLOATS),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        kind = unsigned(BITS)
        step = max(1, _CODES_AT_A_TIME // (PER_WORD * columns))
        pieces = (packed(_rows(part), kind) for part in tensors["qweight"].split(step, dim=1))
        zeros = _rows(tensors["qzeros"])
        scales = tensors["scales"].T.contiguous()
        return Scaled(kind, torch.cat(list(pieces)), scales, columns, (1, self._width(columns)), zeros)

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None

    def _width(self, columns: int) -> int:
        return columns if self.group_size == -1 else self.group_size


def _rows(words: Tensor) -> Tensor:
    """Codes uint8 [8 m, n] of words int32 [n, m]."""
    codes = unpacked(bytes_of(words), unsigned(BITS), PER_WORD * words.shape[1])
    return codes.unflatten(1, (-1, PER_WORD))[:, :, list(_PLACE)].flatten(1).T.contiguous()

"""How a checkpoint stores one quantised matrix: the interface of all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from ...kernels.quantized.rounding import Rounding
from ...kernels.quantized.scaled import CODE_TYPES, CodeType, Scaled
from ...kernels.quantized.scaled_reference import packed, unpacked

Shape = tuple[int, ...]
FLOATS = ("F32", "F16", "BF16")  # as safetensors name them
_CODES_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a quantised matrix."""

    names: tuple[str, ...]  # behind the module's; the first is ours, others are what it is called elsewhere
    shapes: tuple[Shape, ...]  # that it may have
    dtypes: tuple[str, ...]  # as safetensors name them
    is_optional: bool = False


class BadTensor(Exception):
    """A tensor whose content cannot be: its name behind the module's, and what is wrong."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.name, self.reason = name, reason


class Scheme(Protocol):
    """How matrices are stored, with the numbers that config.json gives."""

    is_in_place: ClassVar[bool]  # whether codes are used where they lie

    def stored(self, rows: int, columns: int) -> Sequence[Stored]:
        """The tensors of a matrix, the one with the codes first. Raises BadTensor for a size that the format cannot store."""

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        """The matrix of `stored` tensors that were checked, by their first names. Raises BadTensor."""

    def rounding(self, tensors: Mapping[str, Tensor]) -> Rounding | None:
        """What is done to its input; None: nothing. Raises BadTensor."""


def unsigned(bits: int) -> CodeType:
    return CODE_TYPES[f"uint{bits}"]


def words(count: int, bits: int) -> int:
    """32-bit words that so many codes take."""
    return -(-count * bits // 32)


def bytes_of(words: Tensor) -> Tensor:
    """int32 [n, m] as bytes [n, 4 m], lowest first; a view."""
    return words.contiguous().view(torch.uint8)


def zeros_of(words: Tensor, bits: int, rows: int, shift: int = 0) -> Tensor | None:
    """Zero points of int32 [groups, words], uint8 [rows, groups], `shift` added modulo 2^bits; None where all are in the middle."""
    zeros = (unpacked(bytes_of(words), unsigned(bits), rows) + shift) & ((1 << bits) - 1)
    return None if bool((zeros == unsigned(bits).middle).all()) else zeros.T.contiguous()


def order_of(groups: Tensor, size: int, count: int, name: str) -> Tensor | None:
    """Columns in the order of their groups, of the group of each column, int [columns]; None where they are in it.

    Raises BadTensor, naming `name`, where a group is none of `count`, or has not `size` columns.
    """
    columns = len(groups)
    wanted = torch.arange(columns) // size
    found = groups.long()
    if columns and not 0 <= int(found.min()) <= int(found.max()) < count:
        raise BadTensor(name, f"holds {int(found.min())} to {int(found.max())}; there are groups 0 to {count - 1}")
    if torch.equal(found, wanted):
        return None
    order = found.argsort(stable=True)
    if not torch.equal(found[order], wanted):
        raise BadTensor(name, f"has groups of other sizes than {size} columns")
    return order


def reordered(data: Tensor, kind: CodeType, order: Tensor) -> Tensor:
    """Rows of codes with their columns in another order, made a few rows at a time."""
    step = max(1, _CODES_AT_A_TIME // len(order))
    pieces = (packed(unpacked(part, kind, len(order))[:, order], kind) for part in data.split(step))
    return torch.cat(list(pieces))


def shaped_scales(scales: Tensor, rows: int, columns: int, block: tuple[int, int] | None = None) -> tuple[Tensor, tuple[int, int]]:
    """(scales as a matrix, its block) of one scale for all, one for each row, or one for each `block`."""
    if scales.numel() == 1:
        return scales.reshape(1, 1), (rows, columns)
    if block is not None:
        return scales, block
    return scales.reshape(rows, 1), (1, columns)

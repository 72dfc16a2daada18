"""The block types of GGUF whose matrices are multiplied as they are stored, and a matrix that is stored so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class BlockType:
    """How weights are packed: every `num_weights` of a row in `num_bytes` bytes, scales included."""

    name: str
    num_weights: int
    num_bytes: int

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row. Blocks do not reach from one row into the next."""
        return columns // self.num_weights * self.num_bytes


BLOCK_TYPES: Mapping[str, BlockType] = {
    name: BlockType(name, num_weights, num_bytes)
    for name, num_weights, num_bytes in (
        ("F32", 1, 4),
        ("F16", 1, 2),
        ("BF16", 1, 2),
        ("Q4_0", 32, 18),
        ("Q4_1", 32, 20),
        ("Q5_0", 32, 22),
        ("Q5_1", 32, 24),
        ("Q8_0", 32, 34),
        ("Q2_K", 256, 84),
        ("Q3_K", 256, 110),
        ("Q4_K", 256, 144),
        ("Q5_K", 256, 176),
        ("Q6_K", 256, 210),
        ("IQ4_NL", 32, 18),
        ("MXFP4", 32, 17),
    )
}


@dataclass(frozen=True, slots=True)
class Packed:
    """A matrix [rows, columns] whose rows are blocks."""

    type: BlockType
    data: Tensor  # uint8 [rows, row_bytes], contiguous; may lie in a mapped file

    @property
    def num_rows(self) -> int:
        return self.data.shape[0]

    @property
    def num_columns(self) -> int:
        return self.data.shape[1] // self.type.num_bytes * self.type.num_weights

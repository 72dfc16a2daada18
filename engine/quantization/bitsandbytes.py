"""bitsandbytes: NF4 (QLoRA, arXiv:2305.14314) and INT8 (arXiv:2208.07339)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ...kernels.quantized.scaled import CODE_TYPES, Scaled
from .scheme import FLOATS, BadTensor, Stored

_STATE = "weight.quant_state.bitsandbytes__nf4"


@dataclass(frozen=True, slots=True)
class Nf4:
    """Two codes a byte, the first in the upper bits, with a largest magnitude for each 64, perhaps in 8 bits itself."""

    is_in_place: ClassVar[bool] = False

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        count = rows * columns
        some = tuple((size,) for size in sorted({-(-count // block) for block in (64, 128, 256, 512, 1024, 2048, 4096)}))
        nested = tuple((size,) for size in sorted({-(-shape[0] // 256) for shape in some}))
        return (
            Stored(("weight",), ((-(-count // 2), 1), (1, -(-count // 2))), ("U8",)),
            Stored(("weight.absmax",), some, ("F32", "U8")),
            Stored(("weight.quant_map",), ((16,),), ("F32",)),
            Stored((_STATE,), tuple((size,) for size in range(1, 1024)), ("U8",)),
            Stored(("weight.nested_absmax",), nested, ("F32",), is_optional=True),
            Stored(("weight.nested_quant_map",), ((256,),), ("F32",), is_optional=True),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        kind, state = CODE_TYPES["nf4"], _state(tensors[_STATE])
        if not torch.allclose(tensors["weight.quant_map"], torch.tensor(kind.values), atol=1e-6):
            raise BadTensor("weight.quant_map", "is not that of NF4")
        size = _integer(state, "blocksize")
        if columns % size or tensors["weight.absmax"].numel() != rows * columns // size:
            raise BadTensor("weight.absmax", f"does not divide rows of {columns} columns into blocks of {size}")
        scales = _largest(tensors, state).view(rows, columns // size)
        codes = tensors["weight"].reshape(rows, columns // 2)
        return Scaled(kind, (codes << 4) | (codes >> 4), scales, columns, (1, size))

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Int8:
    """A byte each, with the largest magnitude of each row. Inputs stay as they are: nothing has to be taken out of them."""

    is_in_place: ClassVar[bool] = True

    def stored(self, rows: int, columns: int) -> tuple[Stored, ...]:
        return (
            Stored(("weight",), ((rows, columns),), ("I8",)),
            Stored(("SCB", "weight.SCB"), ((rows,),), FLOATS),
            Stored(("weight_format",), ((), (1,)), ("U8",), is_optional=True),
        )

    def matrix(self, tensors: Mapping[str, Tensor], rows: int, columns: int) -> Scaled:
        if "weight_format" in tensors and tensors["weight_format"].item() != 0:
            raise BadTensor("weight_format", "names an order of a GPU; only rows as they are (0) are read")
        scales = (tensors["SCB"].float() / 127).view(rows, 1)
        return Scaled(CODE_TYPES["int8"], tensors["weight"].view(torch.uint8), scales, columns, (1, columns))

    def rounding(self, tensors: Mapping[str, Tensor]) -> None:
        return None


def _state(tensor: Tensor) -> Mapping[str, Any]:
    try:
        found = json.loads(bytes(tensor.tolist()))
    except ValueError as error:
        raise BadTensor(_STATE, f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadTensor(_STATE, "is no JSON object")
    return found


def _integer(state: Mapping[str, Any], name: str) -> int:
    value = state.get(name)
    if type(value) is not int or value < 1:
        raise BadTensor(_STATE, f'has "{name}" {value!r}; it must be a positive integer')
    return value


def _largest(tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> Tensor:
    """The largest magnitude of each block, float32."""
    stored = tensors["weight.absmax"]
    if stored.dtype != torch.uint8:
        return stored
    size, offset = _integer(state, "nested_blocksize"), state.get("nested_offset")
    if "weight.nested_absmax" not in tensors or "weight.nested_quant_map" not in tensors:
        raise BadTensor("weight.nested_absmax", "or weight.nested_quant_map is missing; weight.absmax has 8 bits")
    if not isinstance(offset, int | float) or tensors["weight.nested_absmax"].numel() != -(-stored.numel() // size):
        raise BadTensor("weight.nested_absmax", f"does not go with blocks of {size} and an offset of {offset!r}")
    numbers = tensors["weight.nested_quant_map"][stored.long()]
    return numbers * tensors["weight.nested_absmax"].repeat_interleave(size)[: stored.numel()] + offset

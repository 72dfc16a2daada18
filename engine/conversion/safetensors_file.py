"""A safetensors file written tensor by tensor, so that no more than one is in memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_NAMES: Mapping[torch.dtype, str] = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float8_e4m3fn: "F8_E4M3",
    torch.int64: "I64", torch.int32: "I32", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
Entry = tuple[str, torch.dtype, tuple[int, ...]]


def write_safetensors(path: Path, entries: Iterable[Entry], tensors: Iterable[Tensor]) -> None:
    """Write `tensors`, of which `entries` say name, dtype and shape, in the same order."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    expected, end = [], 0
    for name, dtype, shape in entries:
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        expected.append((name, dtype, tuple(shape)))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for (name, dtype, shape), tensor in zip(expected, tensors, strict=True):
            assert (tensor.dtype, tuple(tensor.shape)) == (dtype, shape), name
            file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)

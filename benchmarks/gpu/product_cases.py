"""Products with packed matrices, of the shapes of Llama-3.1-8B: the bytes of the weights over time. `run.py` runs it.

With few rows of x a product cannot but read the packed weights once, so its floor is their bytes over the card's copy bandwidth.
Beside it is the product of a matrix in bfloat16, by torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from cases import Case, Line
from timing import Clock
from torch import Tensor
from torch.nn.functional import linear

from maskwright.kernels.backend import Backend
from maskwright.kernels.quantized import BLOCK_TYPES, Packed, multiply, scaled
from maskwright.kernels.quantized.rounding import Rounding
from maskwright.kernels.quantized.scaled import CODE_TYPES, Scaled

SHAPES = ((4096, 4096), (28_672, 4096), (4096, 14_336))  # (rows, columns): output, gate and up, down
ROWS = (1, 8, 16, 64, 256, 512)  # of x


class Kind(NamedTuple):
    """Codes: `block` has a scale, 0 stands for all rows or columns."""

    name: str
    block: tuple[int, int] = (1, 0)
    rounding: Rounding | None = None

    @property
    def label(self) -> str:
        if self.name in BLOCK_TYPES:
            return self.name
        block = f" {self.block[0]}x{self.block[1] or 'row'}"
        return self.name + block + ("" if self.rounding is None else f", inputs in {self.rounding.grid}")


BLOCKS = tuple(Kind(name) for name in BLOCK_TYPES if name != "F32")
CODES = (
    Kind("uint4", (1, 128)),
    Kind("uint4", (1, 32)),
    Kind("uint8"),
    Kind("float8", (128, 128)),
    Kind("float4", (1, 32)),
    Kind("nf4", (1, 64)),
    Kind("float8", (1, 0), Rounding("float8")),
    Kind("float8", (128, 128), Rounding("float8", group=128)),
    Kind("int8", (1, 0), Rounding("int8")),
    Kind("int8", (1, 0), Rounding("int8", is_symmetric=False)),
)
OF_ALL_SHAPES = ("Q4_0", "Q8_0", "Q4_K", "Q6_K", "uint4 1x128", "uint8 1xrow", "float8 1xrow, inputs in float8")


def cases(clock: Clock, bandwidth: float, backend: Backend, *, quick: bool, smoke: bool) -> Iterator[Case]:
    """The shapes that are read most first; most kinds have one shape."""
    shapes = ((96, 512),) if smoke else SHAPES[1:2] if quick else (SHAPES[1], SHAPES[0], SHAPES[2])
    kinds = (*BLOCKS, *CODES)[:: 4 if smoke else 1]
    for shape in shapes:
        yield Case(_what("bfloat16", shape), partial(_dense, shape, clock, bandwidth, smoke))
        for kind in kinds:
            if shape == shapes[0] or kind.label in OF_ALL_SHAPES:
                yield Case(_what(kind.label, shape), partial(_packed, kind, shape, clock, bandwidth, backend, smoke))


def _what(label: str, shape: tuple[int, int]) -> Line:
    return {"what": "product", "weights": label, "matrix": list(shape)}


def _dense(shape: tuple[int, int], clock: Clock, bandwidth: float, smoke: bool) -> Iterator[Line]:
    weights = torch.randn(shape, dtype=torch.bfloat16, device=clock.device)
    yield from _lines(lambda x: linear(x, weights), weights.nbytes, shape, clock, bandwidth, smoke)


def _packed(
    kind: Kind, shape: tuple[int, int], clock: Clock, bandwidth: float, backend: Backend, smoke: bool
) -> Iterator[Line]:
    rows, columns = shape
    if kind.name in BLOCK_TYPES:
        block_type = BLOCK_TYPES[kind.name]
        blocks = Packed(block_type, _bytes(rows, block_type.row_bytes(columns), clock.device))
        yield from _lines(lambda x: multiply(x, blocks, backend=backend), blocks.data.nbytes, shape, clock, bandwidth, smoke)
        return
    block = (kind.block[0], kind.block[1] or columns)
    scales = torch.rand(-(-rows // block[0]), -(-columns // block[1]), device=clock.device).bfloat16()
    code_type = CODE_TYPES[kind.name]
    codes = Scaled(code_type, _bytes(rows, code_type.row_bytes(columns), clock.device), scales, columns, block)
    size = sum(tensor.nbytes for tensor in codes.tensors.values())
    product = partial(scaled.multiply, matrix=codes, rounding=kind.rounding, backend=backend)
    yield from _lines(product, size, shape, clock, bandwidth, smoke)


def _bytes(rows: int, columns: int, device: torch.device) -> Tensor:
    """Below 64, so that no scale is infinite and none no number."""
    return torch.randint(64, (rows, columns), dtype=torch.uint8, device=device)


def _lines(
    product: Callable[[Tensor], Tensor], size: int, shape: tuple[int, int], clock: Clock, bandwidth: float, smoke: bool
) -> Iterator[Line]:
    for num_rows in (1, 20) if smoke else ROWS:
        x = torch.randn(num_rows, shape[1], device=clock.device).bfloat16()
        seconds, captured = clock.seconds(partial(product, x))
        yield {
            "rows": num_rows, "us": seconds * 1e6, "gigabytes_per_second": size / seconds / 1e9,
            "share_of_copy_bandwidth": size / seconds / bandwidth,
            "teraflops": 2 * num_rows * shape[0] * shape[1] / seconds / 1e12, "graph": captured,
        }  # fmt: skip

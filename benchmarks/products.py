"""Products of few rows with packed matrices beside a plain read of the same bytes: gigabytes of weights a second, by type.

    python benchmarks/products.py [--types Q4_0 INT4 ...] [--rows 1 4 16] [--threads 1 2] [--megabytes 96] [--out FILE.json]

A product of one row has to read its matrix once, so what it can reach is what reading alone reaches: a sum of the same bytes as
integers of 64 bits, which PyTorch computes with as many threads. Both are measured in turns; a figure is the median of the rounds.
Matrices are larger than the caches, of 2,048 columns and random codes. Bytes of scales and zero points beside codes count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the package does: threads of PyTorch do not spin beside those of products

import numpy as np
import torch
from cpu import environment, random_rows
from result_files import count, errors_as_messages, result_file
from rich.console import Console
from rich.table import Table
from torch import Tensor

from maskwright.kernels import cpu
from maskwright.kernels.quantized import BLOCK_TYPES, BlockType, Packed
from maskwright.kernels.quantized.codes import CODE_TYPES, Scaled

COLUMNS = 2048
ROUNDS = 25
CODES: Mapping[str, tuple[str, int, bool]] = {  # type of codes, columns with a scale, whether zero points are stored
    "INT8": ("int8", COLUMNS, False), "FP8": ("float8", COLUMNS, False), "INT4": ("uint4", 32, False), "GPTQ": ("uint4", 128, True),
    "NF4": ("nf4", 64, False), "MXFP4 (codes)": ("float4", 32, False),
    **{f"GPTQ {bits} bits": (f"uint{bits}", 128, True) for bits in (2, 3, 5, 6, 7)},
}  # fmt: skip


def matrix_of(name: str, num_bytes: int) -> Packed | Scaled:
    """Of as many bytes, but for scales beside them; of small numbers, none of which is subnormal."""
    rng = np.random.default_rng(0)
    kind = BLOCK_TYPES[name] if name in BLOCK_TYPES else CODE_TYPES[CODES[name][0]]
    row_bytes = kind.row_bytes(COLUMNS)
    rows = num_bytes // row_bytes // 16 * 16
    if isinstance(kind, BlockType):
        return Packed(kind, torch.from_numpy(random_rows(rng, name, rows, row_bytes)))
    _, group, has_zeros = CODES[name]
    data = torch.from_numpy(rng.integers(0, 126 if kind.name == "float8" else 256, (rows, row_bytes), dtype=np.uint8))
    scales = (torch.rand(rows, COLUMNS // group, generator=torch.Generator().manual_seed(0)) + 0.01).half()
    zeros = torch.full(scales.shape, kind.middle, dtype=torch.uint8) if has_zeros else None
    return Scaled(kind, data, scales, COLUMNS, (1, group), zeros)


def tensors_of(matrix: Packed | Scaled) -> list[Tensor]:
    return [matrix.data] if isinstance(matrix, Packed) else list(matrix.tensors.values())


def measured(matrix: Packed | Scaled, rows: list[int]) -> dict[str, float]:
    """Gigabytes a second: "read", and of a product of so many rows."""
    tensors = tensors_of(matrix)
    words = [tensor.flatten().view(torch.int64) for tensor in tensors]
    size = sum(tensor.nbytes for tensor in tensors) / 1e9
    product = cpu.Product([matrix])
    calls: dict[str, Callable[[], Any]] = {"read": lambda: [word.sum() for word in words]}
    for num_rows in rows:
        calls[str(num_rows)] = partial(product, torch.randn(num_rows, COLUMNS))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS + 2):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if number >= 2:  # the first ones warm up
                times[name].append(time.perf_counter() - begin)
    return {name: size / statistics.median(of) for name, of in times.items()}


def main() -> None:
    names = [*BLOCK_TYPES, *CODES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", nargs="+", choices=names, default=names, metavar="TYPE", help=", ".join(names))
    parser.add_argument("--rows", nargs="+", type=count, default=[1], help="of activations")
    parser.add_argument("--threads", nargs="+", type=count, default=[1, 2])
    parser.add_argument("--megabytes", type=count, default=96, help="of a matrix")
    parser.add_argument("--out", type=result_file, metavar="FILE.json")
    options = parser.parse_args()
    if not cpu.is_available():
        raise SystemExit("error: no compiled products here: this needs a C compiler, and a processor with AVX2 or DotProd")
    results: dict[str, dict[str, dict[str, float]]] = {}
    ratio_names = [f"{num_rows} / read" for num_rows in options.rows]
    table = Table("type", "threads", "read", *(f"{num_rows} row(s)" for num_rows in options.rows), *ratio_names)
    for name in options.types:
        matrix = matrix_of(name, options.megabytes << 20)
        if not cpu.can_multiply(matrix):
            print(f"{name}: not multiplied in compiled code")
            continue
        for threads in options.threads:
            torch.set_num_threads(threads)
            found = measured(matrix, options.rows)
            results.setdefault(name, {})[str(threads)] = found
            ratios = [found[str(num_rows)] / found["read"] for num_rows in options.rows]
            table.add_row(name, str(threads), *(f"{value:.1f}" for value in found.values()), *(f"{ratio:.2f}" for ratio in ratios))
    Console().print(table)
    if options.out is not None:
        where = environment(max(options.threads), ("numpy", "torch"))
        text = json.dumps({"environment": where, "gigabytes a second": results}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    with errors_as_messages():
        main()

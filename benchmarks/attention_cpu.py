"""Attention of one token to a long context beside a plain read of the same keys and values, on a CPU: gigabytes a second.

    python benchmarks/attention_cpu.py [--shapes 9x3x64 16x8x128 ...] [--types bf16 fp8 ...] [--tokens 8192] [--threads 1 2]
                                       [--out FILE.json]

A shape is heads of queries x heads of keys x width. Attention has to read keys and values once, so what it can reach is what
reading alone reaches: a sum of the same bytes as integers of 64 bits, which PyTorch computes with as many threads. Both are
measured in turns, layer after layer, on a cache that is larger than the processor's; a figure is the median of the rounds. Blocks
have 16 tokens, and stand in any order.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the package does

import torch
from cpu import environment
from result_files import count, errors_as_messages, result_file
from rich.console import Console
from rich.table import Table

from maskwright.engine.kv_cache.tensors import KVCache, LayerShape
from maskwright.kernels import cpu
from maskwright.kernels.cpu import between

BLOCK_SIZE, ROUNDS, LEAST_BYTES = 16, 15, 128 << 20
TYPES: Mapping[str, torch.dtype] = {
    "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn,
}  # fmt: skip


def cache_of(dtype: torch.dtype, kv_heads: int, width: int, tokens: int) -> KVCache:
    """Of random numbers, in as many layers as caches of the processor do not hold."""
    layer_bytes = 2 * tokens * kv_heads * width * dtype.itemsize
    layers = [LayerShape(kv_heads, width, width)] * max(2, -(-LEAST_BYTES // layer_bytes))
    cache = KVCache.of_layers(layers, tokens // BLOCK_SIZE, BLOCK_SIZE, torch.float32, torch.device("cpu"), dtype)
    generator = torch.Generator().manual_seed(0)
    for tensor in (*cache.key_places, *cache.value_places):
        tensor.copy_(torch.randn(tensor.shape, generator=generator).to(dtype))
    return cache


def measured(cache: KVCache, heads: int, tokens: int) -> dict[str, float]:
    """Gigabytes a second: "read" and "attention"."""
    kv_heads, width = cache.keys[0].shape[2:]
    table = torch.randperm(tokens // BLOCK_SIZE, generator=torch.Generator().manual_seed(0))[None]
    query, lengths = torch.randn(1, heads, width), torch.tensor([tokens])
    size = 2 * tokens * kv_heads * width * cache.keys[0].element_size() / 1e9
    pairs = list(zip(cache.keys, cache.values, strict=True))
    words = [[tensor.view(torch.uint8).flatten().view(torch.int64) for tensor in pair] for pair in pairs]
    calls: dict[str, Callable[[int], Any]] = {
        "read": lambda layer: [word.sum() for word in words[layer]],
        "attention": lambda layer: between.attend(query, pairs[layer], table, lengths, tokens, width**-0.5, None),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS + 2):
        for name, call in calls.items():
            for layer in range(len(words)):
                begin = time.perf_counter()
                call(layer)
                if number >= 2:  # the first ones warm up
                    times[name].append(time.perf_counter() - begin)
    return {name: size / statistics.median(of) for name, of in times.items()}


def shape_of(text: str) -> tuple[int, int, int]:
    """An argument's value: heads of queries, heads of keys and the width of one."""
    found = tuple(map(count, text.split("x")))
    if len(found) != 3 or found[0] % found[1]:
        raise argparse.ArgumentTypeError(f"{text}: three numbers with an x between them, heads that can share those of keys")
    return found


def context(text: str) -> int:
    """An argument's value: tokens that fill blocks."""
    if count(text) % BLOCK_SIZE:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of {BLOCK_SIZE}")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", type=shape_of, default=[(9, 3, 64), (16, 8, 128), (32, 8, 128)], metavar="HxKxD")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["bf16", "fp8"])
    parser.add_argument("--tokens", type=context, default=8192, help="of context, a multiple of 16")
    parser.add_argument("--threads", nargs="+", type=count, default=[1, 2])
    parser.add_argument("--out", type=result_file, metavar="FILE.json")
    options = parser.parse_args()
    if not cpu.is_available():
        raise SystemExit("error: no compiled attention here: this needs a C compiler, and a processor with AVX2 or DotProd")
    results: dict[str, dict[str, float]] = {}
    table = Table("heads x of keys x width", "type", "threads", "read", "attention", "attention / read")
    for heads, kv_heads, width in options.shapes:
        shape = f"{heads}x{kv_heads}x{width}"
        for name in options.types:
            cache = cache_of(TYPES[name], kv_heads, width, options.tokens)
            for threads in options.threads:
                torch.set_num_threads(threads)
                found = results[f"{shape} {name} {threads}"] = measured(cache, heads, options.tokens)
                ratio = found["attention"] / found["read"]
                table.add_row(shape, name, str(threads), *(f"{value:.1f}" for value in found.values()), f"{ratio:.2f}")
    Console().print(table)
    if options.out is not None:
        where = environment(max(options.threads), ("numpy", "torch"))
        text = json.dumps({"environment": where, "tokens": options.tokens, "gigabytes a second": results}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    with errors_as_messages():
        main()

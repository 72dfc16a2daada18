"""What `prefill.py` and `decode.py` share: models of a given shape, one process for each variant, tables and plots.

A variant is a layout of the KV cache and a way to attend: paged or contiguous, fused, streaming or naive. Each runs in a process of
its own, lengths in rising order, so that the process's peak memory over weights and cache is that of the length just measured.
Weights are random: neither time nor memory depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from random_weights import random_weights
from result_files import can_plot, count, pyplot, result_file
from rich.console import Console
from rich.table import Table

from maskwright.engine.attention.methods import METHODS
from maskwright.engine.device.profiling import profiled
from maskwright.engine.kv_cache.layouts import KV_LAYOUTS, LayoutRequest, tokens_per_block
from maskwright.engine.models.architecture import DTYPES, ModelSpec
from maskwright.engine.models.decoder import Decoder, ForwardBatch
from maskwright.engine.models.spec import spec_from_config

BLOCK_SIZE = 16  # tokens, of a paged cache
SHAPES: dict[str, dict[str, int]] = {  # of Qwen3
    "small": {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 8, "head_dim": 32},
    "0.6b": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "head_dim": 128},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "head_dim": 128},
}  # fmt: skip
VOCAB_SIZE = {"small": 4096, "0.6b": 151_936, "8b": 151_936}


class Variant(NamedTuple):
    layout: str
    method: str

    @property
    def label(self) -> str:
        return f"{self.layout}, {self.method}"


VARIANTS = [Variant(layout, method) for layout in KV_LAYOUTS for method in METHODS]
NAMES = [f"{variant.layout}-{variant.method}" for variant in VARIANTS]


class Setup:
    """One variant with room for `batch` sequences of `longest` tokens."""

    def __init__(self, variant: Variant, shape: str, dtype: str, device: str, batch: int, longest: int) -> None:
        config = {"architectures": ["Qwen3ForCausalLM"], "vocab_size": VOCAB_SIZE[shape], "num_key_value_heads": 8}
        spec = spec_from_config({**config, **SHAPES[shape], "max_position_embeddings": longest})
        where, kind = torch.device(device), DTYPES[dtype]
        assert isinstance(spec, ModelSpec)
        self.decoder = Decoder(spec, random_weights(spec, kind, where))
        self.attend = METHODS[variant.method]
        block_size = tokens_per_block(variant.layout, LayoutRequest(BLOCK_SIZE, longest))
        per_sequence = -(-longest // block_size)
        self.tables = [list(range(row * per_sequence, (row + 1) * per_sequence)) for row in range(batch)]
        self.cache = self.decoder.allocate_cache(batch * per_sequence, block_size)
        for tensor in self.cache.tensors:
            tensor.zero_()  # all its pages are there from now on

    def forward(self, spans: list[tuple[int, int, list[int]]]) -> torch.Tensor:
        """One step with arbitrary tokens; logits of the last token of each span."""
        counts = torch.tensor([num_new for _, num_new, _ in spans])
        positions = torch.cat([torch.arange(past, past + new) for past, new, _ in spans])
        device = self.decoder.device
        batch = ForwardBatch(
            (positions % 1000).to(device),
            positions.to(device),
            (counts.cumsum(0) - 1).to(device),
            self.decoder.plan(spans, self.cache, self.attend),
        )
        return self.decoder.forward(batch, self.cache)

    def seconds(self, action: Callable[[], object], repeats: int) -> float:
        """The median over `repeats`, after one that is not counted."""
        times = []
        for _ in range(repeats + 1):
            begun = time.perf_counter()
            action()
            if self.decoder.device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begun)
        return median(times[1:])

    def peak_bytes(self) -> int:
        if self.decoder.device.type == "cuda":
            return torch.cuda.max_memory_allocated()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def parser(description: str | None, lengths: list[int]) -> argparse.ArgumentParser:
    """The options of both benchmarks."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shape", choices=SHAPES, default="small")
    options.add_argument("--device", type=device, default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--dtype", choices=DTYPES, default="bfloat16" if torch.cuda.is_available() else "float32")
    options.add_argument("--lengths", type=count, nargs="+", default=lengths, help="tokens")
    options.add_argument("--repeats", type=count, default=3)
    options.add_argument("--variants", nargs="+", default=NAMES, choices=NAMES)
    options.add_argument("--profile", type=Path, help="write a trace of torch.profiler for each variant below this folder")
    options.add_argument("--out", type=result_file, help="results as JSON; the plot goes beside it, as .svg")
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return options


def device(text: str) -> str:
    """An argument's value: a device on which PyTorch computes."""
    try:
        torch.zeros(1, device=text)
    except (RuntimeError, AssertionError) as error:  # a build for CPUs asserts
        raise argparse.ArgumentTypeError(f"{text} cannot be used: {str(error).splitlines()[0]}") from None
    return text


def main(options: argparse.Namespace, title: str, measure: Callable[[Setup, int], Callable[[], object]]) -> None:
    """Measure every variant at every length. `measure(setup, length)` prepares, and returns what is to be timed."""
    if options.worker:
        json.dump(_work(options, measure), sys.stdout)
        return
    is_plotted = options.out is not None and can_plot()
    results: dict[str, Any] = {
        "title": title,
        "machine": f"{platform.processor() or platform.machine()}, {options.device}, torch {torch.__version__}",
        "shape": options.shape,
        "dtype": options.dtype,
        "date": date.today().isoformat(),
        "lengths": sorted(options.lengths),
        "variants": {},
    }
    for name in options.variants:
        results["variants"][name] = _in_a_process(name)
    _print(results)
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1))
    if is_plotted:
        _plot(results).savefig(options.out.with_suffix(".svg"))


def _in_a_process(name: str) -> list[dict[str, float]]:
    command = [sys.executable, *sys.argv, "--worker", "--variants", name]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode:  # it has said why
        raise SystemExit(f"error: the process that measures {name} ended with {done.returncode}")
    points: list[dict[str, float]] = json.loads(done.stdout)
    return points


def _work(options: argparse.Namespace, measure: Callable[[Setup, int], Callable[[], object]]) -> list[dict[str, float]]:
    layout, method = options.variants[0].split("-")
    batch = getattr(options, "batch", 1)
    setup = Setup(Variant(layout, method), options.shape, options.dtype, options.device, batch, max(options.lengths))
    measure(setup, 2)()  # what is set up at the first call
    before, points = setup.peak_bytes(), []
    for length in sorted(options.lengths):
        action = measure(setup, length)
        points.append({"seconds": setup.seconds(action, options.repeats), "bytes": setup.peak_bytes() - before})
    with profiled(options.profile / options.variants[0]) if options.profile else nullcontext():
        measure(setup, max(options.lengths))()
    return points


def _print(results: dict[str, Any]) -> None:
    table = Table(title=f"{results['title']}: {results['shape']}, {results['dtype']}, {results['machine']}")
    table.add_column("variant")
    for length in results["lengths"]:
        table.add_column(f"{length} tokens", justify="right")
    for name, points in results["variants"].items():
        table.add_row(name, *(f"{p['seconds'] * 1e3:.2f} ms, {p['bytes'] / 2**20:.0f} MiB" for p in points))
    Console().print(table)


def _plot(results: dict[str, Any]) -> Any:
    """Latency and peak memory over the length, one line a variant."""
    figure, axes = pyplot().subplots(1, 2, figsize=(12, 4.4), layout="constrained")
    colours = dict(zip(METHODS, ("#2c6e49", "#f2a65a", "#c8553d"), strict=True))
    for name, points in results["variants"].items():
        layout, method = name.split("-")
        style = {"color": colours[method], "linestyle": "-" if layout == "paged" else "--", "label": name}
        axes[0].plot(results["lengths"], [p["seconds"] * 1e3 for p in points], marker=".", **style)
        axes[1].plot(results["lengths"], [p["bytes"] / 2**20 for p in points], marker=".", **style)
    axes[0].set(title=results["title"], xscale="log", yscale="log", xlabel="tokens", ylabel="milliseconds")
    axes[1].set(title="peak memory over weights and cache", xscale="log", xlabel="tokens", ylabel="MiB")
    axes[1].set_yscale("symlog", linthresh=1)
    for axis in axes:
        axis.grid(True, which="major", alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure

"""Times the GPU kernels: sampler, automaton, a constrained step against a free one, attention, decode steps of whole models.

    python benchmarks/gpu/run.py                                         # everything
    python benchmarks/gpu/run.py --quick                                 # fewer sizes
    python benchmarks/gpu/run.py --parts sampler --batch 64 --vocabulary 131072 --dtype bfloat16
    python benchmarks/gpu/run.py --smoke                                 # tiny shapes, on any machine: does it still run?

Results are kept as JSON in benchmarks/results/, with the device and all versions, and plots beside it. At the end every bar is
printed as met, missed or not measured. Without a GPU only --smoke makes sense: the kernels then run in Triton's interpreter, and
the figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported, below

import automaton_cases
import sampler_cases
import step_cases
from attention import measure_attention
from bars import bars
from decode_cases import measure_decode
from measure import copy_bandwidth, keep, machine
from timing import Clock

PARTS = ("sampler", "automaton", "step", "attention", "decode")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def measure_sampler(options: argparse.Namespace, clock: Clock, bandwidth: float) -> Iterator[dict[str, Any]]:
    for dtype in options.dtype:
        for vocab_size in options.vocabulary:
            for batch in options.batch:
                floor = batch * vocab_size * DTYPES[dtype].itemsize / bandwidth
                for kind in sampler_cases.KINDS:
                    inputs = sampler_cases.make_inputs(kind, batch, vocab_size, DTYPES[dtype], clock.device)
                    for name, call in sampler_cases.ways(inputs, kind, options.backend):
                        seconds, captured = clock.seconds(call)
                        yield {
                            "what": "sampler", "kind": kind.name, "by": name, "filters": bool(kind.top_k or kind.top_p < 1),
                            "edits": bool(kind.num_edits), "dtype": dtype, "vocabulary": vocab_size,
                            "batch": batch, "us": seconds * 1e6, "logits_gb_s": floor * bandwidth / seconds / 1e9,
                            "times_floor": seconds / floor, "graph": captured,
                        }  # fmt: skip


def measure_automaton(options: argparse.Namespace, clock: Clock) -> Iterator[dict[str, Any]]:
    for vocab_size in options.vocabulary:
        for what, call in automaton_cases.ways(options.batch, vocab_size, clock.device, options.backend):
            seconds, captured = clock.seconds(call)
            yield {**what, "vocabulary": vocab_size, "us": seconds * 1e6, "graph": captured}


def measure_steps(options: argparse.Namespace, clock: Clock) -> Iterator[dict[str, Any]]:
    for dtype in options.dtype:
        for vocab_size in options.vocabulary:
            for what, call in step_cases.ways(options.batch, vocab_size, DTYPES[dtype], clock.device, options.backend):
                seconds, captured = clock.seconds(call)
                yield {**what, "dtype": dtype, "vocabulary": vocab_size, "us": seconds * 1e6, "graph": captured}


def measure_models(options: argparse.Namespace, clock: Clock, bandwidth: float) -> Iterator[dict[str, Any]]:
    batches = [batch for batch in options.batch if batch <= 256]
    return measure_decode(batches, options.context, clock.device, bandwidth, clock, smoke=options.smoke)


def measure(options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    clock = Clock(device, options.repeats)
    bandwidth = copy_bandwidth(device, 1 << (20 if options.smoke else 30))
    print(f"copy bandwidth {bandwidth / 1e9:.0f} GB/s")
    results: dict[str, Any] = {"machine": machine(device), "copy_gigabytes_per_second": bandwidth / 1e9, "backend": options.backend}
    results |= {"lines": [], "attention": []}
    lines = {
        "sampler": measure_sampler(options, clock, bandwidth),
        "automaton": measure_automaton(options, clock),
        "step": measure_steps(options, clock),
        "decode": measure_models(options, clock, bandwidth),
    }
    for part in options.parts:
        for line in lines.get(part, ()):
            results["lines"].append(line)
            print("  ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in line.values()), flush=True)
    if "attention" in options.parts:
        for entry in measure_attention(device, bandwidth, quick=options.quick, smoke=options.smoke):
            results["attention"].append(entry)
            print(*(entry["model"].values()), *entry["decode"], *entry["prefill"], sep="\n  ", flush=True)
    results["bars"] = [bar.described() for bar in bars(results)]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--batch", type=int, nargs="+", help="of all but attention; default: 1 to 512, of decode steps to 256")
    parser.add_argument("--vocabulary", type=int, nargs="+", help="default: 32,000 to 262,144")
    parser.add_argument("--context", type=int, nargs="+", help="tokens, of decode steps; default: 512 to 32,768")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32"], choices=list(DTYPES), help="of the logits")
    parser.add_argument("--backend", default="triton", choices=["triton", "reference"], help="of all but attention")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/gpu-DEVICE-DATE.json")
    parser.add_argument("--quick", action="store_true", help="fewer batches, vocabularies and contexts")
    parser.add_argument("--smoke", action="store_true", help="tiny shapes, one repeat, wherever this runs")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type != "cuda" and not options.smoke:
        parser.error("there is no CUDA device; --smoke runs tiny shapes anywhere")
    if options.smoke:
        options.batch, options.vocabulary, options.dtype, options.repeats = [2], [300], ["bfloat16"], 1
        options.context = [3]
    options.context = options.context or ([4096] if options.quick else [512, 4096, 32_768])
    options.batch = options.batch or ([1, 64, 256] if options.quick else [1, 4, 16, 64, 128, 256, 512])
    options.vocabulary = options.vocabulary or ([131_072] if options.quick else [32_000, 128_256, 151_936, 262_144])
    results = measure(options, device)
    path = keep(results, "gpu", options.out)
    print(*bars(results), f"kept in {path}", sep="\n")
    try:
        from plots import write_plots
    except ImportError:
        print("no plots: they need matplotlib (pip install matplotlib, then benchmarks/gpu/plots.py)")
    else:
        print(*write_plots(path), sep="\n")


if __name__ == "__main__":
    main()

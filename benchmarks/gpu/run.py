"""Times the GPU kernels, with what one read of the logits would cost at the card's measured copy bandwidth beside them.

    python benchmarks/gpu/run.py                              # everything; a few minutes on a large card
    python benchmarks/gpu/run.py --batch 64 --vocabulary 131072 --dtype bfloat16
    python benchmarks/gpu/run.py --smoke                      # tiny shapes, on any machine: does it still run?

Every line of the result is one batch of one kind: microseconds (median), logits read in GB/s, and the ratio to the floor. Results
are kept as JSON under benchmarks/results/, with the device and all versions. Without a GPU only --smoke makes sense: the kernels
then run in Triton's interpreter (TRITON_INTERPRET=1), or with --backend reference in plain PyTorch.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported, below

import automaton_cases
import sampler_cases
from timing import Clock, copy_bandwidth, machine

RESULTS = Path(__file__).resolve().parents[1] / "results"
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
                            "what": "sampler", "kind": kind.name, "by": name, "dtype": dtype, "vocabulary": vocab_size,
                            "batch": batch, "us": seconds * 1e6, "logits_gb_s": floor * bandwidth / seconds / 1e9,
                            "times_floor": seconds / floor, "graph": captured,
                        }  # fmt: skip


def measure_automaton(options: argparse.Namespace, clock: Clock) -> Iterator[dict[str, Any]]:
    for vocab_size in options.vocabulary:
        for what, call in automaton_cases.ways(options.batch, vocab_size, clock.device, options.backend):
            seconds, captured = clock.seconds(call)
            yield {**what, "vocabulary": vocab_size, "us": seconds * 1e6, "graph": captured}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16, 64, 128, 256, 512])
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[32_000, 128_256, 151_936, 262_144])
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32"], choices=list(DTYPES))
    parser.add_argument("--backend", default="triton", choices=["triton", "reference"])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/gpu-DEVICE-DATE.json")
    parser.add_argument("--smoke", action="store_true", help="tiny shapes, one repeat, wherever this runs")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type != "cuda" and not options.smoke:
        parser.error("there is no CUDA device; --smoke runs tiny shapes anywhere")
    if options.smoke:
        options.batch, options.vocabulary, options.dtype, options.repeats = [2], [300], ["bfloat16"], 1
    clock = Clock(device, options.repeats)
    bandwidth = copy_bandwidth(clock, 1 << (20 if options.smoke else 30))
    print(f"copy bandwidth {bandwidth / 1e9:.0f} GB/s")
    lines = []
    for line in (*measure_sampler(options, clock, bandwidth), *measure_automaton(options, clock)):
        lines.append(line)
        print("  ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in line.values()), flush=True)
    today = datetime.date.today().isoformat()
    about = machine(device)
    out = options.out or RESULTS / f"gpu-{about['device'].replace(' ', '-').lower()}-{today}.json"
    result = {"date": today, "machine": about, "copy_bytes_per_second": bandwidth, "backend": options.backend, "lines": lines}
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"kept in {out}")


if __name__ == "__main__":
    main()

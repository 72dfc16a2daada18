"""Tests and times the GPU kernels: sampler, automaton, constrained steps against free ones, attention, products
with packed weights, decode steps of models.

    python benchmarks/gpu/run.py                                         # everything, in about 10 minutes
    python benchmarks/gpu/run.py --quick                                 # fewer sizes, in about 2
    python benchmarks/gpu/run.py --parts sampler --batch 64 --vocabulary 131072 --dtype bfloat16
    python benchmarks/gpu/run.py --smoke                                 # tiny shapes, on any machine: does it still run?

Each part runs in a process of its own and has so many seconds; what fails is reported, and the rest still runs. Lines are kept as
they come, in NAME-PART.jsonl; at the end they are joined into one JSON file in benchmarks/results/, with the device and all
versions, and plots beside it, and every bar is printed as met, missed or not measured. Without a GPU only --smoke makes sense: the
kernels then run in Triton's interpreter, and the figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported, below

from bars import bars
from cases import Case, Line, measure_cases
from children import measured_apart
from measure import copy_bandwidth, keep, machine, results_path
from timing import Clock

ROOT = Path(__file__).resolve().parents[2]
SECONDS = {  # and --quick: a quarter
    "tests": 120, "sampler": 130, "automaton": 15, "step": 45, "attention": 90, "products": 90, "decode": 60,
}  # fmt: skip
PARTS = tuple(SECONDS)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TESTS = ("tests/kernels", "tests/sampling/test_gpu_sampler.py", "tests/engine")


def cases_of(part: str, options: argparse.Namespace) -> Iterable[Case]:
    """Only what this part needs is imported."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock, backend, bandwidth = Clock(device, options.repeats), options.backend, options.bandwidth
    batches, vocabularies, dtypes = options.batch, options.vocabulary, [DTYPES[name] for name in options.dtype]
    if part == "sampler":
        import sampler_cases

        kinds = sampler_cases.KINDS[:: 3 if options.smoke else 1]
        return sampler_cases.cases(batches, vocabularies, dtypes, clock, bandwidth, backend, kinds)
    if part == "automaton":
        import automaton_cases

        return automaton_cases.cases(batches, vocabularies, clock, backend)
    if part == "step":
        import step_cases

        return step_cases.cases(batches, vocabularies, dtypes, clock, backend)
    if part == "attention":
        import attention

        return attention.cases(device, bandwidth, quick=options.quick, smoke=options.smoke)
    if part == "products":
        import product_cases

        return product_cases.cases(clock, bandwidth, backend, quick=options.quick, smoke=options.smoke)
    import decode_cases

    few = [batch for batch in batches if batch <= 64]
    return decode_cases.cases(few, options.context, clock, bandwidth, smoke=options.smoke)


def run_tests(options: argparse.Namespace, seconds: float) -> Line:
    """The tests of kernels and engine, natively where there is a GPU; the whole output is beside the results."""
    log = options.out.with_name(f"{options.out.stem}-tests.log")
    paths = ["tests/kernels/test_backend.py"] if options.smoke else list(TESTS[: 2 if options.quick else None])
    workers = ["-n", str(min(8, os.cpu_count() or 1))] if find_spec("xdist") and not options.smoke else []
    call = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"  # unlike -m, which puts the checkout on the path
    command = [sys.executable, "-c", call, "-q", "-rfE", "--tb=short", *workers, *paths]
    begun = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        try:
            output = {"stdout": file, "stderr": subprocess.STDOUT}
            status: int | None = subprocess.run(command, cwd=ROOT, timeout=seconds, **output).returncode
        except subprocess.TimeoutExpired:
            status = None
    said = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    failed = [line for line in said if line.startswith(("FAILED", "ERROR"))]
    return {
        "what": "tests", "status": "the time was up" if status is None else status, "seconds": time.perf_counter() - begun,
        "summary": said[-1] if said else "", "failed": failed[:50],
    }  # fmt: skip


def measure_part(part: str, options: argparse.Namespace) -> list[Line]:
    seconds = SECONDS[part] * (options.seconds / sum(SECONDS.values()))
    print(f"---- {part}, {seconds:.0f} s at most", flush=True)
    if part == "tests":
        return [run_tests(options, seconds)]
    out = options.out.with_name(f"{options.out.stem}-{part}.jsonl")
    out.unlink(missing_ok=True)

    def command(first: int, left: float) -> Sequence[str]:
        same = ["--repeats", options.repeats, "--backend", options.backend, "--bandwidth", options.bandwidth]
        for name in ("batch", "vocabulary", "context", "dtype"):
            same += [f"--{name}", *getattr(options, name)]
        same += ["--quick"] * options.quick + ["--smoke"] * options.smoke
        own = ["--only", part, "--first", first, "--seconds", left, "--out", out]
        return [sys.executable, *(["-W", "ignore"] if options.smoke else []), __file__, *map(str, [*same, *own])]

    return measured_apart(command, part, out, seconds)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, written down after every part."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options.out = options.out or results_path("gpu", machine(device))
    options.bandwidth = copy_bandwidth(device, 1 << (20 if options.smoke else 30))
    if device.type == "cuda":
        torch.cuda.empty_cache()
    print(f"copy bandwidth {options.bandwidth / 1e9:.0f} GB/s")
    results: dict[str, Any] = {"machine": machine(device), "copy_gigabytes_per_second": options.bandwidth / 1e9}
    results |= {"backend": options.backend, "lines": []}
    for part in options.parts:
        try:
            results["lines"] += measure_part(part, options)
        except Exception as error:
            results["lines"].append({"what": "failed", "part": part, "error": repr(error)})
        results["bars"] = [bar.described() for bar in bars(results)]
        keep(results, options.out)
    return results


def understood() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--batch", type=int, nargs="+", help="of all but attention; default: 1 to 512, of decode steps to 64")
    parser.add_argument("--vocabulary", type=int, nargs="+", help="default: 32,000 to 262,144")
    parser.add_argument("--context", type=int, nargs="+", help="tokens, of decode steps; default: 512 to 32,768")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16"], choices=list(DTYPES), help="of the logits")
    parser.add_argument("--backend", default="triton", choices=["triton", "reference"], help="of all but attention")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, help="for all parts together; default: 550, or a quarter with --quick")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/gpu-DEVICE-DATE.json")
    parser.add_argument("--quick", action="store_true", help="fewer batches, vocabularies and contexts")
    parser.add_argument("--smoke", action="store_true", help="tiny shapes, one repeat, wherever this runs")
    for name, kind in {"--only": str, "--first": int, "--bandwidth": float}.items():  # how the processes of the parts are called
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not torch.cuda.is_available() and not options.smoke:
        parser.error("there is no CUDA device; --smoke runs tiny shapes anywhere")
    if options.smoke:
        options.batch, options.vocabulary, options.dtype, options.repeats, options.context = [1], [300], ["bfloat16"], 1, [3]
    options.context = options.context or ([4096] if options.quick else [4096, 512, 32_768])
    options.batch = options.batch or ([1, 64, 256] if options.quick else [1, 8, 64, 128, 256, 512])
    options.vocabulary = options.vocabulary or ([131_072] if options.quick else [151_936, 128_256, 262_144, 32_000])
    if options.seconds is None:
        options.seconds = 1800 if options.smoke else sum(SECONDS.values()) / (4 if options.quick else 1)
    return options


def main() -> None:
    options = understood()
    if options.only:
        measure_cases(cases_of(options.only, options), options.out, first=options.first, seconds=options.seconds)
        return
    results = measure(options)
    wrong = [line for line in results["lines"] if line["what"] in ("failed", "skipped")]
    tests = [line for line in results["lines"] if line["what"] == "tests"]
    print(*tests, *wrong, *bars(results), f"kept in {options.out}", sep="\n")
    try:
        from plots import write_plots

        print(*write_plots(options.out), sep="\n")
    except ImportError:
        print("no plots: they need matplotlib (pip install matplotlib, then benchmarks/gpu/plots.py)")
    except Exception as error:
        print(f"no plots: {error!r}; the figures are kept, so benchmarks/gpu/plots.py can be run again")


if __name__ == "__main__":
    main()

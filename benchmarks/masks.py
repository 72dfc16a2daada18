"""Coverage, compile time and mask time on real JSON Schemas, for every engine that is installed, in one run.

    python benchmarks/masks.py --tokenizer FOLDER --schemas FILE.jsonl[.xz] [--count 200] [--seed 0] [--out RESULTS.json]

Each line of the schemas file is {"name", "schema", "tests": [{"valid", "data"}]} as in MaskBench. All instances of a schema, valid
and invalid, are written as `json.dumps` does by default (but characters beyond ASCII as they are), and their tokens are fed one by
one with a mask before each, until the engine refuses one. Every engine sees the same schemas, vocabulary and tokens, with a fresh
matcher for every text. *Cold* is the first pass after one compile of the schema, *warm* a second one.

Random walks through each schema (`--walks`) count as dead ends where a mask is empty, or a token of it is refused. A cold start is
the time from the start of a process to the first mask of a schema of ten fields, without the loading of the tokenizer: with caches
that are empty, and once more.

Times are processor time of all threads, but for cold starts, which are by the clock. Coverage stands beside speed, because
refusing is fast: a schema passes when all its valid instances are accepted and all its invalid ones are not. Each engine runs in
processes of its own, with a limit of time per schema and one of memory, so a peer that crashes or hangs is counted and the run goes
on.

What an engine refuses is often what is slow: a second table has the schemas alone that all engines in the run compile.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES, load_tokenizer, percentiles
from result_files import (
    amount,
    chosen,
    count,
    errors_as_messages,
    require_engines,
    result_file,
    size,
    there,
    tokenizer_folder,
)
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

CURVE = [*range(99), *(99 + k / 10 for k in range(10)), 99.95, 99.99, 100]  # percentiles kept for plots
DEFAULT = [key for key in ENGINES if key != "maskwright-any"]
WORKER = Path(__file__).with_name("mask_worker.py")
TEN_FIELDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"}, "name": {"type": "string", "maxLength": 40}, "email": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150}, "score": {"type": "number"}, "active": {"type": "boolean"},
        "role": {"enum": ["admin", "user", "guest"]}, "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, "note": {},
    },
    "required": ["id", "name"],
}  # fmt: skip
VERDICTS = ("passed", "refused", "timed_out", "crashed", "valid_rejected", "invalid_accepted")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "TOKENIZERS_PARALLELISM": "false"
}


def read_cases(path: Path, count: int, seed: int, encode: Callable[[str], list[int]]) -> list[dict[str, Any]]:
    """A random sample of the schemas that have a valid instance, with the tokens of all their instances."""
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
    cases = [json.loads(line) for line in text.split("\n") if line]
    with_valid = [case for case in cases if any(test["valid"] for test in case["tests"])]
    random.Random(seed).shuffle(with_valid)
    return [
        {
            "name": case["name"],
            "schema": json.dumps(case["schema"]),
            "instances": [{"valid": test["valid"], "tokens": encode(as_text(test["data"]))} for test in case["tests"]],
        }
        for case in with_valid[:count]
    ]


def as_text(value: Any) -> str:
    """As Python's `json` writes it by default, characters beyond ASCII as they are."""
    return json.dumps(canonical(value), ensure_ascii=False)


def canonical(value: Any) -> Any:
    """The same value with numbers that are integers written as such, which all engines read alike."""
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def measure(keys: list[str], cases: list[dict[str, Any]], arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """What each engine, by its name, did with each case. They take turns, a batch of cases each: when the machine is slower for a
    while, it is so for all."""
    names: dict[str, str] = {}
    found: dict[str, list[dict[str, Any]]] = {key: [] for key in keys}
    with Progress() as progress:
        tasks = {key: progress.add_task(key, total=len(cases)) for key in keys}
        for end in range(arguments.batch, len(cases) + arguments.batch, arguments.batch):
            for key in keys:
                while len(found[key]) < min(end, len(cases)):
                    lines = _worker(key, cases[len(found[key]) : end], arguments)
                    names[key] = next(lines)["name"]
                    for outcome in lines:
                        found[key].append(outcome)
                        progress.advance(tasks[key])
    return {names[key]: found[key] for key in keys}


def _worker(key: str, cases: list[dict[str, Any]], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The lines of a worker process; when it dies, its last case is counted as timed out or crashed and the rest is not done."""
    job = {"engine": key, "tokenizer": str(arguments.tokenizer), "cases": cases}
    job |= {"seconds": arguments.seconds, "gigabytes": arguments.gigabytes, "walks": arguments.walks}
    command = [sys.executable, str(WORKER)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if arguments.quiet else None,
        text=True, env=os.environ | _ONE_THREAD,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        count = -1  # the first line is the name
        for line in process.stdout:
            count += 1
            yield json.loads(line)
        code = process.wait()
    if count < 0:
        raise SystemExit(f"{key} does not start; is it installed?")
    if count < len(cases):
        yield {"timed_out" if code in (-signal.SIGPROF, -signal.SIGALRM) else "crashed": f"exit status {code}"}


def cold_start(key: str, tokenizer: Path) -> tuple[float, float]:
    """Seconds to the first mask of a new process, in an empty and in a filled cache."""
    with tempfile.TemporaryDirectory() as caches:
        first, second = (_seconds_to_first_mask(key, tokenizer, caches) for _ in range(2))
    return first, second


def _seconds_to_first_mask(key: str, tokenizer: Path, caches: str) -> float:
    job = {"engine": key, "tokenizer": str(tokenizer), "is_cold_start": True, "schema": json.dumps(TEN_FIELDS), "gigabytes": 32}
    variables = dict.fromkeys(("XDG_CACHE_HOME", "MASKWRIGHT_VOCABULARIES", "NUMBA_CACHE_DIR"), caches)
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(WORKER)], input=json.dumps(job), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | _ONE_THREAD | variables, check=True,
    )  # fmt: skip
    return time.perf_counter() - begun - float(json.loads(done.stdout)["tokenizer_s"])


def verdict(outcome: dict[str, Any]) -> list[str]:
    """The classes of VERDICTS that a schema falls into: one, or both kinds of wrong."""
    return [name for name in VERDICTS[1:] if outcome.get(name)] or ["passed"]


def compiled_by_all(outcomes: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The same for those cases that every engine compiled."""
    common = [all("compile_us" in each for each in of_case) for of_case in zip(*outcomes.values(), strict=True)]
    return {name: list(itertools.compress(found, common)) for name, found in outcomes.items()}


def summarise(name: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    def gathered(key: str) -> list[float]:
        return [value for outcome in outcomes for value in outcome.get(key, [])]

    verdicts = [one for outcome in outcomes for one in verdict(outcome)]
    times = {
        "compile_and_first_mask_us": [outcome["compile_us"] for outcome in outcomes if "compile_us" in outcome],
        "cold_us": gathered("cold_us"),
        "warm_us": gathered("warm_us"),
        "batch_step_us": gathered("step_us"),
        "batch_row_step_us": gathered("row_step_us"),
    }
    return {
        "engine": name,
        "schemas": len(outcomes),
        **{verdict: verdicts.count(verdict) for verdict in VERDICTS},
        "masks": len(times["cold_us"]),
        "walks": len(gathered("dead_ends")),
        "dead_ends": int(sum(gathered("dead_ends"))),
        **{key: percentiles(values) for key, values in times.items()},
        "curves": {key: np.percentile(values, CURVE).round(2).tolist() for key, values in times.items() if values},
    }


def print_table(summaries: list[dict[str, Any]], title: str = "JSON Schema") -> None:
    table = Table(title=f"{title}, microseconds of processor time")
    headings = [
        "engine",
        "passed",
        "refused",
        "time",
        "crash",
        "valid\nrejected",
        "invalid\naccepted",
        "compile + first\np50",
    ]
    headings += ["p99", "max", "cold\nmean", "p50", "p99", "p99.9", "max", "warm\nmean", "p99", "batch\ncopied", "rows"]
    headings += ["dead\nends", "cold start\nempty, s", "again, s"]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for one in summaries:
        figures = [
            (one["compile_and_first_mask_us"], ("p50", "p99", "max")),
            (one["cold_us"], ("mean", "p50", "p99", "p99.9", "max")),
            (one["warm_us"], ("mean", "p99")),
            (one["batch_step_us"], ("mean",)),
            (one["batch_row_step_us"], ("mean",)),
        ]
        cells = [_shown(values.get(key)) for values, keys in figures for key in keys]
        cells += [f"{one['dead_ends']} of {one['walks']}" if one["walks"] else "-"]
        cells += [_shown(seconds) for seconds in one.get("cold_start_s", (None, None))]
        table.add_row(one["engine"], *(str(one[key]) for key in VERDICTS), *cells)
    Console(width=220).print(table)


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def machine() -> str:
    """The processor in words."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores, {model}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--schemas", type=there, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--count", type=count, default=200, help="schemas in the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", default=DEFAULT, choices=list(ENGINES))
    parser.add_argument("--seconds", type=size, default=30, help="processor time for one schema")
    parser.add_argument("--gigabytes", type=size, default=6, help="memory of a worker process")
    parser.add_argument("--batch", type=count, default=100, help="schemas for one worker process")
    parser.add_argument("--walks", type=amount, default=2, help="random walks through each schema")
    parser.add_argument("--cold-start", action="store_true", help="measure it, too")
    parser.add_argument("--quiet", action="store_true", help="hide what engines print")
    parser.add_argument("--note", default="", help="kept with the results: what else ran on the machine")
    parser.add_argument("--out", type=result_file, help="write all figures here as JSON")
    arguments = parser.parse_args()
    require_engines(arguments.engines, option="--engines")
    tokenizer = load_tokenizer(arguments.tokenizer)

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    cases = chosen(read_cases(arguments.schemas, arguments.count, arguments.seed, encode), "--schemas")
    outcomes = measure(arguments.engines, cases, arguments)
    summaries = [summarise(name, found) for name, found in outcomes.items()]
    for key, one in zip(arguments.engines, summaries, strict=True):
        if arguments.cold_start:
            one["cold_start_s"] = cold_start(key, arguments.tokenizer)
    of_common = [summarise(name, found) for name, found in compiled_by_all(outcomes).items()]
    if arguments.out:
        about = {"date": date.today().isoformat(), "machine": machine(), "note": arguments.note,
                 "python": platform.python_version(), "tokenizer": arguments.tokenizer.name, "vocabulary": len(tokenizer),
                 "schemas": len(cases), "seed": arguments.seed, "seconds": arguments.seconds}  # fmt: skip
        verdicts = {name: zip(cases, map(verdict, found), strict=True) for name, found in outcomes.items()}
        wrong = {name: {case["name"]: one for case, one in of if one != ["passed"]} for name, of in verdicts.items()}
        results = {"about": about, "percentiles": CURVE, "summaries": summaries, "compiled_by_all": of_common, "not_passed": wrong}
        arguments.out.write_text(json.dumps(results) + "\n")
    print_table(summaries)
    print_table(of_common, f"The {of_common[0]['schemas']} JSON Schemas that all compile")


if __name__ == "__main__":
    with errors_as_messages():
        main()

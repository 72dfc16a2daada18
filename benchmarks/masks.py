"""Compile time and mask time on real JSON Schemas, for every engine that is installed, in one run.

    python benchmarks/masks.py --tokenizer FOLDER --schemas FILE.jsonl[.xz] [--count 200] [--out RESULTS.json]

Each line of the schemas file is {"name", "schema", "tests": [{"valid", "data"}]} as in MaskBench. For every schema with a valid
instance whose compact text an engine accepts, its canonical tokens are fed one by one; a mask is computed before each. Every
engine sees the same schemas, tokenizer and texts, on one thread, with a fresh matcher for every pass over a document and nothing
warmed for the schema. The first of three passes is reported by itself, and so is the lesser time of the other two, which finds
what an engine keeps between sequences. Times are of the thread's processor time. Coverage stands beside speed: declining is fast.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import platform
import random
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from engines import ENGINES, Engine, Matcher, load_tokenizer, percentiles
from rich.console import Console
from rich.progress import track
from rich.table import Table

PASSES = 3


def read_schemas(path: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """A random sample of the schemas that have a valid instance."""
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
    cases = [json.loads(line) for line in text.split("\n") if line]
    with_valid = [case for case in cases if any(test["valid"] for test in case["tests"])]
    random.Random(seed).shuffle(with_valid)
    return with_valid[:count]


def measure(engine: Engine, case: dict[str, Any], encode: Callable[[str], list[int]]) -> dict[str, Any]:
    """Times of one engine on one schema, in microseconds; "declined" or "rejected" when it did not get through."""
    gc.collect()
    gc.disable()
    try:
        return _measure(engine, case, encode)
    finally:
        gc.enable()


def _measure(engine: Engine, case: dict[str, Any], encode: Callable[[str], list[int]]) -> dict[str, Any]:
    begun = time.thread_time_ns()
    try:
        make = engine.compile(json.dumps(case["schema"]))
        make().mask()
    except Exception as error:  # whatever a peer raises for a schema it declines
        return {"verdict": "declined", "reason": f"{type(error).__name__}: {error}"[:200]}
    compile_us = (time.thread_time_ns() - begun) / 1e3
    cold: list[float] = []
    warm: list[float] = []
    for test in case["tests"]:
        if test["valid"]:
            tokens = encode(json.dumps(canonical(test["data"]), ensure_ascii=False, separators=(",", ":")))
            passes = [_document(make(), tokens) for _ in range(PASSES)]
            if any(times is None for times in passes):
                return {"verdict": "rejected", "compile_us": compile_us}
            cold += passes[0] or []
            warm += [min(times) for times in zip(*(times for times in passes[1:] if times), strict=True)]
    return {"verdict": "passed", "compile_us": compile_us, "cold_us": cold, "warm_us": warm}


def canonical(value: Any) -> Any:
    """The same value with numbers that are integers written as such, which all engines read alike."""
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _document(matcher: Matcher, tokens: list[int]) -> list[float] | None:
    """The mask time before each token; None when the engine rejects the document."""
    times = []
    for token_id in tokens:
        begun = time.thread_time_ns()
        matcher.mask()
        times.append((time.thread_time_ns() - begun) / 1e3)
        if not matcher.accept(token_id):
            return None
    return times if matcher.finished() else None


def summarise(name: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    def gathered(key: str) -> list[float]:
        return [value for outcome in outcomes for value in outcome.get(key, [])]

    verdicts = [outcome["verdict"] for outcome in outcomes]
    return {
        "engine": name,
        "schemas": len(outcomes),
        **{verdict: verdicts.count(verdict) for verdict in ("passed", "rejected", "declined")},
        "masks": len(gathered("cold_us")),
        "compile_and_first_mask_us": percentiles([outcome["compile_us"] for outcome in outcomes if "compile_us" in outcome]),
        "first_pass_us": percentiles(gathered("cold_us")),
        "later_passes_us": percentiles(gathered("warm_us")),
    }


def print_table(summaries: list[dict[str, Any]]) -> None:
    caption = "first pass: nothing seen before; later: least of two"
    table = Table(title="JSON Schema masks, microseconds, one thread", caption=caption)
    headings = ["engine", "passed", "rejected", "declined", "compile p50", "p99", "max"]
    headings += ["mask mean", "p50", "p99", "p99.9", "max", "later mean", "p99"]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for one in summaries:
        figures = [
            (one["compile_and_first_mask_us"], ("p50", "p99", "max")),
            (one["first_pass_us"], ("mean", "p50", "p99", "p99.9", "max")),
            (one["later_passes_us"], ("mean", "p99")),
        ]
        cells = [f"{values[key]:,.0f}" for values, keys in figures for key in keys]
        table.add_row(one["engine"], *(str(one[key]) for key in ("passed", "rejected", "declined")), *cells)
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--schemas", type=Path, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--out", type=Path, help="write all figures here as JSON")
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.tokenizer)
    cases = read_schemas(arguments.schemas, arguments.count, arguments.seed)

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    summaries, outcomes = [], {}
    for key in arguments.engines:
        engine = ENGINES[key](tokenizer)
        found = [measure(engine, case, encode) for case in track(cases, description=engine.name)]
        summaries.append(summarise(engine.name, found))
        outcomes[engine.name] = {case["name"]: outcome["verdict"] for case, outcome in zip(cases, found, strict=True)}
    print_table(summaries)
    if arguments.out:
        about = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine(),
                 "python": platform.python_version(), "vocabulary": len(tokenizer), "schemas": arguments.count,
                 "seed": arguments.seed}  # fmt: skip
        arguments.out.write_text(json.dumps({"about": about, "summaries": summaries, "verdicts": outcomes}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The server under an open-loop load: requests arrive when they do, whether the server keeps up or not.

    python benchmarks/serve.py [--quick] [--seconds 60] [--loads 0.4 0.8] [--out benchmarks/results/serve-DATE.json]
    python benchmarks/serve.py --plot benchmarks/results/serve-DATE.json

1. capacity: tokens a second with --batch streams of free text at all times. The rates below are shares of it (--loads).
2. shares: arrivals are a Poisson process; 0, 20, 80 and 100 % of them ask for JSON of a schema, which is one of eight that come
   again and again, or one that was never seen before. Of each run: time to first text, time between chunks of text, tokens a
   second, and how long the engine's steps took, to p99.9.
3. interference: half of --batch streams of free text, and every two seconds, in every other window of ten, a schema that was never
   seen: time between their chunks with and without, for a schema of 10 definitions and one of 150.

Client and server are two processes and share the machine. --quick takes less than three minutes. Needs matplotlib for the plots.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from load_client import Reply, ask, server, stream
from result_files import can_plot, count, errors_as_messages, pyplot, result_file, size, there
from rich.console import Console
from rich.table import Table

SHARES = (0.0, 0.2, 0.8, 1.0)
WORDS = ("name", "city", "street", "country", "note", "title", "label", "status", "code", "unit", "price", "owner", "brand")
MAX_TOKENS = 32
PERCENTILES = (50, 90, 99, 99.9)

console = Console()


def free_text(chance: random.Random) -> dict[str, Any]:
    prompt = " ".join(chance.choices(WORDS, k=12))
    messages = [{"role": "user", "content": prompt}]
    return {"messages": messages, "max_tokens": MAX_TOKENS, "ignore_eos": True, "seed": chance.getrandbits(32)}


def structured(chance: random.Random, number: int | None) -> dict[str, Any]:
    """A request for a schema: number None is one that nobody has sent."""
    names = random.Random(number) if number is not None else chance
    tag = number if number is not None else chance.getrandbits(60)
    schema = _record([f"{names.choice(WORDS)}_{tag:x}_{place}" for place in range(3)], names)
    prompt = " ".join(chance.choices(WORDS, k=12))
    response_format = {"type": "json_schema", "json_schema": {"name": "record", "schema": schema}}
    return {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 200,
        "response_format": response_format,
        "seed": chance.getrandbits(32),
    }


def _record(names: Sequence[str], chance: random.Random) -> dict[str, Any]:
    kinds = [{"type": "integer", "minimum": 0, "maximum": 999}, {"enum": ["open", "closed", "new"]}, {"type": "boolean"}]
    kinds.append({"type": "string", "maxLength": 12})
    properties = {name: chance.choice(kinds) for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


def large(chance: random.Random, num_definitions: int) -> dict[str, Any]:
    """A schema that nobody has sent, of which only a number has to be generated."""
    definitions = {}
    for place in range(num_definitions):
        record = _record([f"{chance.choice(WORDS)}_{chance.getrandbits(40):x}" for _ in range(6)], chance)
        record["properties"]["next"] = {"$ref": f"#/$defs/d{(place + 1) % num_definitions}"}
        definitions[f"d{place}"] = record
    schema = {"$defs": definitions, "anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"$ref": "#/$defs/d0"}]}
    return {**free_text(chance), "ignore_eos": False, "max_tokens": 400, "json_schema": schema}


async def capacity(port: int, batch: int, seconds: float) -> float:
    """Tokens a second with `batch` requests at all times."""
    chance, deadline = random.Random(0), time.perf_counter() + seconds

    async def one() -> int:
        count = 0
        while time.perf_counter() < deadline:
            count += (await stream(port, free_text(chance))).num_tokens
        return count

    begun = time.perf_counter()
    counts = await asyncio.gather(*(one() for _ in range(batch)))
    return sum(counts) / (time.perf_counter() - begun)


async def open_loop(port: int, rate: float, seconds: float, share: float, is_unique: bool, seed: int) -> list[Reply]:
    """Replies to the requests that arrived within `seconds`."""
    chance, arriving, running = random.Random(seed), random.Random(seed + 1), []
    begun = time.perf_counter()
    due = begun
    while (due := due + arriving.expovariate(rate)) < begun + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        is_structured = arriving.random() < share
        body = structured(chance, None if is_unique else arriving.randrange(8)) if is_structured else free_text(chance)
        running.append(asyncio.create_task(stream(port, body, "structured" if is_structured else "free")))
    return list(await asyncio.gather(*running))


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    if not len(seconds):
        return {}
    measured = {f"p{q:g}": round(float(np.percentile(seconds, q)) * 1e3, 2) for q in PERCENTILES}
    return {**measured, "max": round(max(seconds) * 1e3, 2), "count": len(seconds)}


def summary(replies: Sequence[Reply], steps: Sequence[float], begun: float) -> dict[str, Any]:
    whole = [reply for reply in replies if reply.is_whole]
    last = max((reply.ended for reply in whole), default=begun)
    kinds = {}
    for label in ("free", "structured"):
        some = [reply for reply in whole if reply.label == label and reply.times]
        if some:
            gaps = [gap for reply in some for gap in reply.gaps]
            kinds[label] = {"first_text_ms": milliseconds([reply.first for reply in some]), "between_ms": milliseconds(gaps)}
    return {
        "requests": len(replies),
        "lost": len(replies) - len(whole),
        "errors": sorted({reply.error for reply in replies if reply.error})[:5],
        "tokens_per_second": round(sum(reply.num_tokens for reply in whole) / max(last - begun, 1e-9), 1),
        "step_ms": milliseconds(steps),
        **kinds,
    }


def measure_shares(port: int, tokens_per_second: float, loads: Sequence[float], seconds: float) -> list[dict[str, Any]]:
    results = []
    for load in loads:
        rate = load * tokens_per_second / MAX_TOKENS
        for share in SHARES:
            for is_unique in (False, True) if share else (False,):
                ask(port, "/bench/steps")
                begun = time.perf_counter()
                replies = asyncio.run(open_loop(port, rate, seconds, share, is_unique, seed=len(results)))
                kind = "never seen" if is_unique else "repeated"
                run = {"load": load, "requests_per_second": round(rate, 2), "share": share, "schemas": kind if share else "none"}
                results.append(run | summary(replies, ask(port, "/bench/steps"), begun))
                console.print(f"load {load:.0%}, {share:.0%} structured, {run['schemas']}: {results[-1]['step_ms']}")
    return results


async def interfered(port: int, batch: int, seconds: float, num_definitions: int, seed: int) -> dict[str, Any]:
    chance, deadline, running = random.Random(seed), time.perf_counter() + seconds, True
    gaps: dict[bool, list[float]] = {False: [], True: []}
    compile_seconds = []

    def is_disturbed(moment: float) -> bool:
        return int((deadline - moment) / 10) % 2 == 0

    async def neighbour() -> None:
        while running:
            reply = await stream(port, {**free_text(chance), "max_tokens": 256})
            for before, after in zip(reply.times, reply.times[1:], strict=False):
                if is_disturbed(before) == is_disturbed(after):
                    gaps[is_disturbed(before)].append(after - before)

    async def newcomer() -> None:
        reply = await stream(port, large(chance, num_definitions))
        compile_seconds.append(reply.first if reply.times else float("nan"))

    neighbours, newcomers = [asyncio.create_task(neighbour()) for _ in range(batch)], []
    while (now := time.perf_counter()) < deadline:
        if is_disturbed(now):
            newcomers.append(asyncio.create_task(newcomer()))
        await asyncio.sleep(2)
    running = False
    await asyncio.gather(*neighbours, *newcomers)
    return {
        "definitions": num_definitions,
        "batch": batch,
        "newcomers_first_text_ms": milliseconds(compile_seconds),
        "between_ms_without": milliseconds(gaps[False]),
        "between_ms_with": milliseconds(gaps[True]),
    }


def shown(results: dict[str, Any]) -> Table:
    columns = ("load", "structured", "schemas", "lost", "first text p50/p99", "between p50/p99/p99.9", "tokens/s")
    title = f"milliseconds; capacity {results['capacity_tokens_per_second']:.0f} tokens/s"
    table = Table(*columns, "step p50/p99/p99.9", title=title)

    def cell(measured: dict[str, float], *names: str) -> str:
        return " / ".join(f"{measured[name]:.1f}" if measured else "-" for name in names)

    for run in results["shares"]:
        kinds = [run[label] for label in ("free", "structured") if label in run]
        first = "\n".join(cell(kind["first_text_ms"], "p50", "p99") for kind in kinds)
        between = "\n".join(cell(kind["between_ms"], "p50", "p99", "p99.9") for kind in kinds)
        figures = (f"{run['tokens_per_second']:.0f}", cell(run["step_ms"], "p50", "p99", "p99.9"))
        table.add_row(f"{run['load']:.0%}", f"{run['share']:.0%}", run["schemas"], f"{run['lost']}", first, between, *figures)
    return table


def plot(results: dict[str, Any], path: Path) -> None:
    """Time to first text, time between chunks and step time over the share of structured requests; interference beside it."""
    figure, axes = pyplot().subplots(1, 4, figsize=(18, 4.4), layout="constrained")
    load = max(run["load"] for run in results["shares"])
    heaviest = [run for run in results["shares"] if run["load"] == load]
    for axis, (title, key) in zip(axes, (("time to first text", "first_text_ms"), ("between chunks", "between_ms")), strict=False):
        for label, color in (("free", "#4c956c"), ("structured", "#c8553d")):
            for schemas, style in (("repeated", "-"), ("never seen", "--")):
                runs = [run for run in heaviest if run["schemas"] in (schemas, "none") and label in run]
                for quantile, alpha in (("p50", 1.0), ("p99", 0.45)):
                    values = [run[label][key].get(quantile) for run in runs]
                    name = f"{label}, {schemas}, {quantile}"
                    axis.plot([run["share"] * 100 for run in runs], values, style, marker="o", color=color, alpha=alpha, label=name)
        axis.set(title=f"{title}, load {load:.0%}", xlabel="structured requests, %", ylabel="ms", yscale="log")
    axes[0].legend(fontsize=6)
    for schemas, style in (("repeated", "-"), ("never seen", "--")):
        runs = [run for run in heaviest if run["schemas"] in (schemas, "none")]
        for quantile, alpha in (("p50", 1.0), ("p99", 0.6), ("p99.9", 0.3)):
            values = [run["step_ms"][quantile] for run in runs]
            shares = [run["share"] * 100 for run in runs]
            axes[2].plot(shares, values, style, marker="o", color="#33658a", alpha=alpha, label=f"{schemas}, {quantile}")
    axes[2].set(title="engine step", xlabel="structured requests, %", ylabel="ms", yscale="log")
    axes[2].legend(fontsize=6)
    for place, run in enumerate(results["interference"]):
        for shift, (key, color) in enumerate((("between_ms_without", "#4c956c"), ("between_ms_with", "#c8553d"))):
            values = [run[key][quantile] for quantile in ("p50", "p99", "p99.9")]
            positions = [place * 8 + each * 2.4 + shift for each in range(3)]
            axes[3].bar(positions, values, color=color, label=key.removeprefix("between_ms_") if not place else None)
    places = [place * 8 + each * 2.4 + 0.5 for place in range(len(results["interference"])) for each in range(3)]
    names = [f"{q}\n{run['definitions']} defs" for run in results["interference"] for q in ("p50", "p99", "p99.9")]
    axes[3].set_xticks(places, names, fontsize=7)
    axes[3].set(title="neighbours of never-seen schemas", ylabel="ms", yscale="log")
    axes[3].legend(fontsize=7)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=size, default=60.0, help="of each run")
    parser.add_argument("--loads", type=size, nargs="+", default=[0.4, 0.8], help="shares of the capacity")
    parser.add_argument("--batch", type=count, default=16)
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, default=Path(__file__).parent / "results" / f"serve-{date.today()}.json")
    parser.add_argument("--plot", type=there)
    options = parser.parse_args()
    if options.plot is not None:
        plot(json.loads(options.plot.read_text()), options.plot.with_suffix(".svg"))
        return
    is_plotted = can_plot()
    seconds, loads = (8.0, [0.6]) if options.quick else (options.seconds, options.loads)
    results: dict[str, Any] = {
        "date": str(date.today()),
        "cpus": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "load_average_before": os.getloadavg(),
        "note": options.note,
        "seconds": seconds,
    }
    with server() as port:
        asyncio.run(capacity(port, options.batch, 3.0))  # everything is compiled and cached once
        results["capacity_tokens_per_second"] = asyncio.run(capacity(port, options.batch, seconds / 2))
        results["shares"] = measure_shares(port, results["capacity_tokens_per_second"], loads, seconds)
        sizes = (10, 150)
        results["interference"] = [
            asyncio.run(interfered(port, options.batch // 2, max(20.0, seconds), size, seed)) for seed, size in enumerate(sizes)
        ]
    results["load_average_after"] = os.getloadavg()
    console.print(shown(results))
    for run in results["interference"]:
        console.print(run)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"written: {options.out}")
    if is_plotted:
        plot(results, options.out.with_suffix(".svg"))
        console.print(f"written: {options.out.with_suffix('.svg')}")


if __name__ == "__main__":
    with errors_as_messages():
        main()

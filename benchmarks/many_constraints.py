"""What many constraints cost one process: memory of each, growth behind eviction, whether compiles and masks disturb each other.

    python benchmarks/many_constraints.py --tokenizer FOLDER [--count 1000] [--kept 200] [--shared]

Schemas are made up: each has members of its own, and with --shared all have the same thirty definitions beside them. *Bytes* are
what the process grew by (resident memory) when one constraint more was compiled, asked for its first mask and kept. *Eviction*: the
others go through a cache that holds few; the process should not grow. *Threads*: masks that four threads get in a second, alone
and while two others compile, and the longest of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from engines import load_tokenizer
from result_files import optional

from maskwright.constraints import Compiler, JsonSchema, Vocabulary

psutil = optional("psutil")

MASKING, COMPILING, SECONDS = 4, 2, 2.0


def schema(number: int, shared: bool) -> str:
    """One of many different schemas."""
    kinds = ("string", "integer", "boolean", "null")
    members: dict[str, Any] = {f"field_{number}_{k}": {"type": kind} for k, kind in enumerate(kinds)}
    members["when"] = {"type": "string", "format": "date-time"}
    if shared:
        members["part"] = {"$ref": f"#/$defs/d{number % 30}"}
    defs = {f"d{k}": {"type": "object", "properties": {f"p{k}_{j}": {"type": "number"} for j in range(8)}} for k in range(30)}
    document = {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
    return json.dumps(document | ({"$defs": defs} if shared else {}))


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def growth(make: Callable[[int], object], count: int) -> tuple[list[object], np.ndarray[Any, Any]]:
    """(what was made, bytes that the process grew by for each)."""
    kept, grown = [], np.zeros(count)
    for number in range(count):
        before = resident()
        kept.append(make(number))
        grown[number] = resident() - before
    return kept, grown


def masks_of(compiler: Compiler, stop: threading.Event, times: list[float], number: int) -> None:
    """Ask for masks along texts that were not met before, until it is enough."""
    rng, constraint = np.random.default_rng(number), compiler.compile(JsonSchema(schema(10**6 + number, False)))
    state = constraint.start()
    while not stop.is_set():
        begun = time.perf_counter()
        bits = np.flatnonzero(np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little"))
        times.append(time.perf_counter() - begun)
        after = constraint.advance(state, int(rng.choice(bits)))
        state = constraint.start() if after is None or constraint.is_accepting(after) else after


def compiles(compiler: Compiler, stop: threading.Event, numbers: Iterator[int], done: list[int], shared: bool) -> None:
    while not stop.is_set():
        compiler.compile(JsonSchema(schema(next(numbers), shared)))
        done.append(1)


def threads(compiler: Compiler, masking: int, compiling: int, shared: bool) -> tuple[float, float, float, float]:
    """(masks a second, their p99 and longest in ms, compiles a second)."""
    stop, times, done = threading.Event(), [list[float]() for _ in range(masking)], list[int]()
    work = [threading.Thread(target=masks_of, args=(compiler, stop, of, k)) for k, of in enumerate(times)]
    first = iter(range(2 * 10**6 + 10**5 * (masking + 10 * compiling), 10**9))
    work += [threading.Thread(target=compiles, args=(compiler, stop, first, done, shared)) for _ in range(compiling)]
    for one in work:
        one.start()
    time.sleep(SECONDS)
    stop.set()
    for one in work:
        one.join()
    every = np.array([each for of in times for each in of] or [0.0]) * 1e3
    return len(every) / SECONDS, float(np.percentile(every, 99)), float(every.max()), len(done) / SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--count", type=int, default=1000, help="different schemas")
    parser.add_argument("--kept", type=int, default=200, help="of them that stay alive")
    parser.add_argument("--shared", action="store_true", help="all schemas have the same definitions")
    arguments = parser.parse_args()
    compiler = Compiler(Vocabulary.from_tokenizer(load_tokenizer(arguments.tokenizer)), cache_bytes=64 << 20)

    def ready(number: int) -> object:
        constraint = compiler.compile(JsonSchema(schema(number, arguments.shared)))
        constraint.mask(constraint.start())
        return constraint

    for number in range(20):
        ready(-1 - number)
    kept, grown = growth(ready, arguments.kept)
    print(f"kept {len(kept)}: KB a constraint, median {np.median(grown) / 1024:.0f}, p99 {np.percentile(grown, 99) / 1024:.0f}, "
          f"mean {grown.mean() / 1024:.0f}")  # fmt: skip
    del kept
    gc.collect()
    begun, marks = time.perf_counter(), []
    for number in range(arguments.kept, arguments.count):
        ready(number)
        if number % max((arguments.count - arguments.kept) // 5, 1) == 0:
            marks.append(resident() >> 20)
    took = (time.perf_counter() - begun) / max(arguments.count - arguments.kept, 1)
    print(f"through a cache of 64 MB: {took * 1e3:.2f} ms each, MB resident on the way {marks}")
    for masking, compiling in ((1, 0), (MASKING, 0), (0, 1), (0, COMPILING), (MASKING, COMPILING)):
        rate, p99, longest, compiled = threads(compiler, masking, compiling, arguments.shared)
        masks = f"{rate:,.0f}/s, p99 {p99:.2f} ms, longest {longest:.1f}"
        print(f"{masking} threads ask for masks: {masks}; {compiling} compile: {compiled:,.0f}/s")


if __name__ == "__main__":
    main()

"""What many constraints cost one process: memory of each, growth behind eviction, whether compiles and masks disturb each other.

    python benchmarks/many_constraints.py --tokenizer FOLDER [--count 1000] [--kept 200] [--shared] [--engine llguidance]

Schemas are made up: each has members of its own, and with --shared all have the same thirty definitions beside them. *Bytes* are
what the process grew by (resident memory) when one constraint more was compiled, asked for its first mask and kept. *Eviction*: the
others go through a cache that holds few (an engine without one drops each); the process should not grow. *Threads*, of this project
alone: masks that four threads get in a second, alone and while two others compile, and the longest of them. Each thread has schemas
of its own, compiled before, and texts that were drawn before: a draw from a mask holds the interpreter a hundred times as long as
the mask. *Batches*: the masks of many texts at once, one by one and together in threads of compiled code (`make_masks`).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from engines import ENGINES, load_tokenizer
from result_files import count, errors_as_messages, optional, tokenizer_folder

from maskwright.constraints import Compiler, Constraint, JsonSchema, Vocabulary
from maskwright.constraints.runtime.mask_batches import make_masks

psutil = optional("psutil")

MASKING, COMPILING, SECONDS = 4, 2, 2.0
BATCHES, THREADS = (8, 16, 32, 64, 200), (2, 4)
TOKENS = 200  # after so many a text is cut off


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


def trim() -> None:
    """Give free memory back to the system, where the C library can: else what is made takes room that the process has already."""
    gc.collect()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)


def growth(make: Callable[[int], object], count: int) -> tuple[list[object], np.ndarray[Any, Any]]:
    """(what was made, bytes that the process grew by for each)."""
    trim()
    kept, grown = [], np.zeros(count)
    for number in range(count):
        before = resident()
        kept.append(make(number))
        grown[number] = resident() - before
    return kept, grown


def drawn(compiler: Compiler, number: int) -> tuple[JsonSchema, list[int]]:
    """A schema, and the tokens of a random text of it."""
    rng, source, tokens = np.random.default_rng(number), JsonSchema(schema(10**6 + number, False)), list[int]()
    constraint = compiler.compile(source)
    state: Any = constraint.start()
    while len(tokens) < TOKENS and not constraint.is_accepting(state):
        bits = np.flatnonzero(np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little"))
        tokens.append(int(rng.choice(bits)))
        state = constraint.advance(state, tokens[-1])
    return source, tokens


def masks_of(texts: list[tuple[Constraint, list[int]]], times: list[float]) -> None:
    """Ask for the masks along texts, by constraints that have not met them."""
    for constraint, tokens in texts:
        state: Any = constraint.start()
        for token in tokens:
            begun = time.perf_counter()
            constraint.mask(state)
            times.append(time.perf_counter() - begun)
            state = constraint.advance(state, token)


def compiles(compiler: Compiler, stop: threading.Event, numbers: Iterator[int], done: list[int], shared: bool) -> None:
    while not stop.is_set():
        compiler.compile(JsonSchema(schema(next(numbers), shared)))
        done.append(1)


def threads(
    compiler: Compiler, drawn_texts: list[tuple[JsonSchema, list[int]]], masking: int, compiling: int, shared: bool
) -> tuple[float, float, float, float]:
    """(masks a second, their p99 and longest in ms, compiles a second)."""
    fresh = Compiler(compiler.vocabulary)
    stop, times, done = threading.Event(), [list[float]() for _ in range(masking)], list[int]()
    share = [[(fresh.compile(source), tokens) for source, tokens in drawn_texts[k::MASKING]] for k in range(masking)]
    work = [threading.Thread(target=masks_of, args=each) for each in zip(share, times, strict=True)]
    first = iter(range(2 * 10**6 + 10**5 * (masking + 10 * compiling), 10**9))
    others = [threading.Thread(target=compiles, args=(compiler, stop, first, done, shared)) for _ in range(compiling)]
    begun = time.perf_counter()
    for one in (*work, *others):
        one.start()
    for one in work:
        one.join()
    if not work:
        time.sleep(SECONDS)
    seconds = time.perf_counter() - begun
    stop.set()
    for one in others:
        one.join()
    every = np.array([each for of in times for each in of] or [0.0]) * 1e3
    num_masks = sum(map(len, times))
    return num_masks / seconds, float(np.percentile(every, 99)), float(every.max()), len(done) / seconds


def batches(
    compiler: Compiler, drawn_texts: list[tuple[JsonSchema, list[int]]], size: int, num_threads: int
) -> tuple[float, float]:
    """(masks a second, the share of them that were met first): so many texts go on together, a token each between their masks, and
    their constraints have not met them before. By the clock, of masks alone."""
    fresh = Compiler(compiler.vocabulary, cache_bytes=0)
    seconds, num_masks, num_first = 0.0, 0, 0
    for first in range(0, len(drawn_texts) - size + 1, size):
        texts = [(fresh.compile(source), tokens) for source, tokens in drawn_texts[first : first + size]]
        states: list[Any] = [constraint.start() for constraint, _ in texts]
        for step in range(max(len(tokens) for _, tokens in texts)):
            rows = [k for k, (_, tokens) in enumerate(texts) if step < len(tokens)]
            begun = time.perf_counter()
            make_masks([(texts[k][0], states[k]) for k in rows], num_threads)
            for k in rows:
                texts[k][0].mask(states[k])
            seconds += time.perf_counter() - begun
            num_masks += len(rows)
            for k in rows:
                states[k] = texts[k][0].advance(states[k], texts[k][1][step])
        num_first += sum(constraint.num_mask_misses for constraint, _ in texts)
    return num_masks / seconds, num_first / num_masks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--count", type=count, default=1000, help="different schemas")
    parser.add_argument("--kept", type=count, default=200, help="of them that stay alive")
    parser.add_argument("--shared", action="store_true", help="all schemas have the same definitions")
    parser.add_argument("--texts", type=count, default=200, help="random texts whose masks threads ask for")
    parser.add_argument("--engine", default="maskwright", choices=list(ENGINES), help="another one: memory alone")
    arguments = parser.parse_args()
    tokenizer = load_tokenizer(arguments.tokenizer)
    is_other = arguments.engine != "maskwright"
    compiler = Compiler(Vocabulary.from_tokenizer(tokenizer), cache_bytes=64 << 20)
    other = ENGINES[arguments.engine](tokenizer) if is_other else None

    def ready(number: int) -> object:
        text = schema(number, arguments.shared)
        if other is not None:
            make = other.compile(text)
            matcher = make()
            matcher.mask()
            return make, matcher
        constraint = compiler.compile(JsonSchema(text))
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
    print(f"{'dropped' if is_other else 'through a cache of 64 MB'}: {took * 1e3:.2f} ms each, MB resident on the way {marks}")
    if is_other:
        return
    texts = [drawn(compiler, number) for number in range(arguments.texts)]
    gc.collect()
    gc.freeze()  # as the server does: a full collection, which compiles set off, holds all threads for 50 ms
    for masking, compiling in ((1, 0), (MASKING, 0), (0, 1), (0, COMPILING), (MASKING, COMPILING)):
        rate, p99, longest, compiled = threads(compiler, texts, masking, compiling, arguments.shared)
        masks = f"{rate:,.0f}/s, p99 {p99:.2f} ms, longest {longest:.1f}"
        print(f"{masking} threads ask for masks: {masks}; {compiling} compile: {compiled:,.0f}/s")
    for size in (size for size in BATCHES if size <= len(texts)):
        alone, share = batches(compiler, texts, size, 1)
        told = ", ".join(f"{count} threads {batches(compiler, texts, size, count)[0] / alone:.2f} times that" for count in THREADS)
        print(f"{size} texts at a time, {share:.0%} of masks met first: one by one {alone:,.0f}/s; {told}")


if __name__ == "__main__":
    with errors_as_messages():
        main()

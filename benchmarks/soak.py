"""Does the server lose anything, and does it grow?

    python benchmarks/soak.py [--streams 500] [--requests 10000] [--together 64] [--out benchmarks/results/soak-DATE.json]

1. --streams streams at once, of free text, JSON schemas, regular expressions, choices and grammars: every one has to end whole, and
   with text that satisfies its constraint.
2. --requests requests, --together at a time: half of free text, a quarter with one of 8 constraints, a quarter with a constraint
   that nobody has sent before; one of 20 goes away in the middle. After every twentieth of them the server's memory and its number
   of Python objects are read. Growth is the slope of a line through the second half of these readings; until then compiled
   constraints have filled their cache, which here has --cache-mb (with the default of 1024 it takes some 14,000 requests).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from load_client import Reply, ask, server, stream
from result_files import count, errors_as_messages, result_file
from rich.console import Console

Check = Callable[[str], bool]

console = Console()


def sampling_input(chance: random.Random, number: int | None) -> tuple[dict[str, Any], Check]:
    """A constraint and what holds for its texts; number None is one that nobody has sent."""
    tag = f"{chance.getrandbits(48):x}" if number is None else f"k{number}"
    schema = {
        "type": "object",
        "properties": {tag: {"type": "integer", "minimum": 0, "maximum": 99}, "open": {"type": "boolean"}},
        "required": [tag, "open"],
        "additionalProperties": False,
    }
    kinds: list[tuple[dict[str, Any], Check]] = [
        ({"json_schema": schema}, lambda text: jsonschema.validate(json.loads(text), schema) is None),
        ({"regex": f"{tag}-[a-z]{{2,6}}"}, lambda text: re.fullmatch(f"{tag}-[a-z]{{2,6}}", text) is not None),
        ({"guided_choice": [tag, f"{tag}{tag}"]}, lambda text: text in (tag, tag + tag)),
        ({"grammar": f'root ::= "{tag}" digit\ndigit ::= [0-9]'}, lambda text: re.fullmatch(f"{tag}[0-9]", text) is not None),
    ]
    return kinds[chance.randrange(4) if number is None else number % 4]


def asked(chance: random.Random, max_tokens: int, constraint: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"item {chance.getrandbits(30)}"}]
    budget = {"max_tokens": 60} if constraint else {"max_tokens": max_tokens, "ignore_eos": True}
    return {"messages": messages, "seed": chance.getrandbits(32), **budget, **constraint}


async def at_once(port: int, count: int) -> dict[str, Any]:
    chance, bodies, checks = random.Random(1), [], []
    for number in range(count):
        constraint, check = sampling_input(chance, number % 40 // 5) if number % 5 else ({}, bool)
        bodies.append(asked(chance, 40, constraint))
        checks.append(check)
    begun = time.perf_counter()
    replies = await asyncio.gather(*(stream(port, body) for body in bodies))
    seconds = time.perf_counter() - begun
    wrong = [reply for reply, check in zip(replies, checks, strict=True) if not (reply.is_whole and check(reply.text))]
    return {
        "streams": count,
        "lost_or_wrong": len(wrong),
        "errors": sorted({str(reply.error) for reply in wrong})[:5],
        "tokens": sum(reply.num_tokens for reply in replies),
        "seconds": round(seconds, 1),
        "most_open_together": _most_together(replies),
    }


def _most_together(replies: list[Reply]) -> int:
    """Streams that had begun to speak and had not ended, at the most."""
    spoken = [reply for reply in replies if reply.times]
    marks = sorted([(reply.times[0], 1) for reply in spoken] + [(reply.ended, -1) for reply in spoken])
    return int(np.cumsum([mark for _, mark in marks]).max(initial=0))


async def one_after_another(port: int, count: int, together: int) -> dict[str, Any]:
    chance, readings, lost = random.Random(2), [], 0
    every = max(count // 20, 1)
    for start in range(0, count, every):
        waiting = [_body(chance, number) for number in range(start, min(start + every, count))]

        async def work(bodies: list[tuple[dict[str, Any], Check, bool]]) -> int:
            failures = 0
            while bodies:
                body, check, is_left = bodies.pop()
                if is_left:
                    await _leave(port, body)
                    continue
                reply = await stream(port, body)
                failures += not (reply.is_whole and check(reply.text))
            return failures

        lost += sum(await asyncio.gather(*(work(waiting) for _ in range(together))))
        readings.append({"requests": min(start + every, count), **await asyncio.to_thread(ask, port, "/bench/memory")})
        console.print(readings[-1])
    half = readings[len(readings) // 2 :]
    slopes = {key: _slope(half, key) for key in ("resident_bytes", "objects")}
    return {"requests": count, "together": together, "lost_or_wrong": lost, "growth_a_request": slopes, "readings": readings}


def _body(chance: random.Random, number: int) -> tuple[dict[str, Any], Check, bool]:
    is_left = number % 20 == 7
    constraint, check = ({}, bool) if number % 2 else sampling_input(chance, None if number % 4 else number // 4 % 8)
    return asked(chance, 200 if is_left else 6, constraint), check, is_left


async def _leave(port: int, body: dict[str, Any]) -> None:
    """A client that goes after a moment."""
    task = asyncio.create_task(stream(port, body))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _slope(readings: list[dict[str, Any]], key: str) -> float:
    if len(readings) < 2:
        return 0.0
    return round(float(np.polyfit([each["requests"] for each in readings], [each[key] for each in readings], 1)[0]), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=count, default=500)
    parser.add_argument("--requests", type=count, default=10_000)
    parser.add_argument("--together", type=count, default=64)
    parser.add_argument("--cache-mb", type=count, default=64)
    parser.add_argument("--max-sequences", type=count, default=512, help="in the batch of the first part")
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, default=Path(__file__).parent / "results" / f"soak-{date.today()}.json")
    options = parser.parse_args()
    results: dict[str, Any] = {"date": str(date.today()), "cpus": os.cpu_count(), "note": options.note}
    if options.streams:
        with server(max_sequences=options.max_sequences, max_batch_tokens=max(options.max_sequences, 512)) as port:
            results["at_once"] = asyncio.run(at_once(port, options.streams))
            console.print(results["at_once"])
    if options.requests:
        with server(constraint_cache_bytes=options.cache_mb << 20) as port:
            results["one_after_another"] = asyncio.run(one_after_another(port, options.requests, options.together))
            console.print(results["one_after_another"]["growth_a_request"])
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"written: {options.out}")


if __name__ == "__main__":
    with errors_as_messages():
        main()

"""What neighbours notice of a client whose schemas compile for seconds, each a new one.

    python benchmarks/slow_schemas.py [--attackers 50] [--seconds 60] [--out benchmarks/results/slow-schemas-DATE.json]

A neighbour asks KNOWN_A_NEW times for a schema that is compiled already, then for a small one that nobody has sent, and waits for
each whole answer, a few tokens. That is measured in rounds, in turns without and with --attackers requests under way from another
key, each a `oneOf` of 120 objects `{k: {type: string, pattern}, z: integer}`, which is refused behind one to two seconds of
processor time, for its 119 conditions on one value; half of them are dropped after 0.3 s and sent anew with another schema.
Neighbour, attackers, server and compile processes are processes of their own, and share the machine; attackers, who would have
machines of their own, stand behind all others on it, and what they send is made by one replacement.

A p99 is the few slowest of many answers: how sure the ratio is, is told by that of each half of the rounds, and by an interval that
holds it in nine of ten resamplings of the answers, in runs of RUN that came one after another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from load_client import server
from result_files import count, errors_as_messages, result_file, size
from rich.console import Console

ROUNDS = 4
KNOWN_A_NEW = 4
REST_SECONDS = 0.02  # of the neighbour between two requests
BEGIN_SECONDS, END_SECONDS = 2.0, 0.5  # until all attackers have asked; until what they asked has been given up
KNOWN_BAR, NEW_BAR = 1.2, 200.0  # times idle p99; milliseconds
RUN, RESAMPLINGS = 10, 1000
ATTACKER_NICENESS = 19
console = Console()
Times = dict[str, list[float]]  # milliseconds by label


def known() -> bytes:
    return record("open")


def new(chance: random.Random) -> bytes:
    return record(f"k{chance.getrandbits(48):x}")


def record(name: str) -> bytes:
    return asked({"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name], "additionalProperties": False})


def asked(schema: dict[str, Any]) -> bytes:
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 0, "max_tokens": 40, "json_schema": schema}
    return json.dumps(body).encode()


_KINDS = [{"k": {"type": "string", "pattern": f"^.*NUMBER{i:03}.*$"}, "z": {"type": "integer"}} for i in range(120)]
_SLOW = asked({"oneOf": [{"type": "object", "properties": properties} for properties in _KINDS]})


def slow(chance: random.Random) -> bytes:
    return _SLOW.replace(b"NUMBER", b"%012d" % chance.getrandbits(39))


async def answered(port: int, content: bytes, key: str) -> tuple[int, float]:
    """(status, milliseconds) of one request over a connection of its own."""
    begun = time.perf_counter()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        status = int((await reader.readline()).split()[1])
        await reader.read()
    finally:
        writer.close()
    return status, (time.perf_counter() - begun) * 1e3


async def neighbour(port: int, seconds: float, chance: random.Random) -> Times:
    found: Times = defaultdict(list)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for label, body in [*[("known", known())] * KNOWN_A_NEW, ("new", new(chance))]:
            status, milliseconds = await answered(port, body, "neighbour")
            found[label if status == 200 else "wrong"].append(milliseconds)
            await asyncio.sleep(REST_SECONDS)
    return found


# ---- the attackers, in a process of their own


async def attacker(port: int, chance: random.Random, leaves: bool) -> None:
    while True:
        asking = asyncio.create_task(answered(port, slow(chance), "attacker"))
        try:
            await asyncio.wait({asking}, timeout=0.3 if leaves else None)
        finally:
            asking.cancel()  # also when the attack ends: nothing of it waits on into the idle round
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.sleep(chance.uniform(0.3, 1.5))


async def attack(port: int, attackers: int, chance: random.Random) -> None:
    await asyncio.gather(*(attacker(port, chance, leaves=number % 2 == 1) for number in range(attackers)))


async def attack_when_told(port: int, attackers: int, orders: Connection) -> None:
    chance = random.Random(0)
    while await asyncio.to_thread(orders.recv):
        attacking = asyncio.create_task(attack(port, attackers, chance))
        await asyncio.to_thread(orders.recv)
        attacking.cancel()
        await asyncio.gather(attacking, return_exceptions=True)


def attack_process(port: int, attackers: int, orders: Connection) -> None:
    """orders: one to begin, the next to end, and so on; one that is False for good."""
    os.nice(ATTACKER_NICENESS)
    asyncio.run(attack_when_told(port, attackers, orders))


# ---- figures


def percentile(times: Iterable[float], q: float) -> float:
    return float(np.percentile(list(times), q))


def summary(rounds: list[Times]) -> dict[str, Any]:
    times = {label: [each for found in rounds for each in found[label]] for label in ("known", "new")}
    told = {label: {f"p{q}": round(percentile(each, q), 1) for q in (50, 90, 99, 100)} for label, each in times.items()}
    answers = {f"{label}_answered": len(each) for label, each in times.items()}
    return {**told, **answers, "wrong": sum(len(found["wrong"]) for found in rounds)}


def ratio(idle: list[Times], attacked: list[Times]) -> float:
    """The p99 of the known schema, attacked, over that of idle."""
    p99 = [percentile((each for found in rounds for each in found["known"]), 99) for rounds in (attacked, idle)]
    return round(p99[0] / p99[1], 2)


def interval(idle: list[Times], attacked: list[Times]) -> tuple[float, float]:
    """In which the ratio lies in nine of ten resamplings."""
    chance, p99 = np.random.default_rng(0), []
    for rounds in (attacked, idle):
        times = np.array([each for found in rounds for each in found["known"]])
        runs = times[: len(times) // RUN * RUN].reshape(-1, RUN)
        drawn = runs[chance.integers(0, len(runs), (RESAMPLINGS, len(runs)))]
        p99.append(np.percentile(drawn.reshape(RESAMPLINGS, -1), 99, axis=1))
    low, high = np.percentile(p99[0] / p99[1], (5, 95))
    return round(float(low), 2), round(float(high), 2)


async def measured(port: int, seconds: float, orders: Connection) -> tuple[list[Times], list[Times]]:
    """(what was found idle, attacked), by rounds."""
    chance, idle, attacked = random.Random(1), list[Times](), list[Times]()
    await neighbour(port, 3.0, chance)
    for _ in range(ROUNDS):
        idle.append(await neighbour(port, seconds / ROUNDS, chance))
        orders.send(True)
        await asyncio.sleep(BEGIN_SECONDS)
        attacked.append(await neighbour(port, seconds / ROUNDS, chance))
        orders.send(True)
        await asyncio.sleep(END_SECONDS)
    orders.send(False)
    return idle, attacked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attackers", type=count, default=50)
    parser.add_argument("--seconds", type=size, default=60.0, help="without, and with the attack")
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, default=Path(__file__).parent / "results" / f"slow-schemas-{date.today()}.json")
    options = parser.parse_args()
    context = get_context("spawn")
    orders, theirs = context.Pipe()
    with server() as port:
        process = context.Process(target=attack_process, args=(port, options.attackers, theirs), daemon=True)
        process.start()
        idle, attacked = asyncio.run(measured(port, options.seconds, orders))
        process.join()
    half = ROUNDS // 2
    halves = [ratio(idle[part], attacked[part]) for part in (slice(half), slice(half, None))]
    results = {"idle": summary(idle), "attacked": summary(attacked)}
    machine = {"date": str(date.today()), "cpus": os.cpu_count(), "load_average": os.getloadavg(), "note": options.note}
    bars = {"known_p99_over_idle": ratio(idle, attacked), "interval": interval(idle, attacked), "halves": halves}
    bars |= {"known_bar": KNOWN_BAR, "new_p99_ms": results["attacked"]["new"]["p99"], "new_bar_ms": NEW_BAR}
    told = {**machine, "attackers": options.attackers, "seconds": options.seconds, **bars, **results}
    console.print(told)
    options.out.write_text(json.dumps(told, indent=1) + "\n")
    console.print(f"written: {options.out}")


if __name__ == "__main__":
    with errors_as_messages():
        main()

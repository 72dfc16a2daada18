"""What neighbours notice of a client whose schemas compile for seconds, each a new one.

    python benchmarks/slow_schemas.py [--attackers 50] [--seconds 60] [--out benchmarks/results/slow-schemas-DATE.json]

A neighbour asks in turn for a schema that is compiled already and for a small one that nobody has sent, and waits for the whole
answer, a few tokens. That is measured in rounds, without and with --attackers requests under way from another key, each a `oneOf`
of 120 objects `{k: {type: string, pattern}, z: integer}`, which is refused behind one to two seconds of processor time, for its 119
conditions on one value; half of them are dropped after 0.3 s and sent anew with another schema. Neighbour, attackers, server and
compile processes are processes of their own, and share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections import defaultdict
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from load_client import server
from result_files import result_file
from rich.console import Console

ROUNDS = 4
BEGIN_SECONDS = 2.0  # until all attackers have asked
KNOWN_BAR, NEW_BAR = 1.2, 200.0  # times idle p99; milliseconds
console = Console()


def known() -> dict[str, Any]:
    return record("open")


def new(chance: random.Random) -> dict[str, Any]:
    return record(f"k{chance.getrandbits(48):x}")


def record(name: str) -> dict[str, Any]:
    return asked({"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name], "additionalProperties": False})


def slow(chance: random.Random) -> dict[str, Any]:
    first = chance.getrandbits(40)
    kinds = [{"k": {"type": "string", "pattern": f"^.*{first + i}.*$"}, "z": {"type": "integer"}} for i in range(120)]
    return asked({"oneOf": [{"type": "object", "properties": properties} for properties in kinds]})


def asked(schema: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x"}], "temperature": 0, "max_tokens": 40, "json_schema": schema}


async def answered(port: int, body: dict[str, Any], key: str) -> tuple[int, float]:
    """(status, milliseconds) of one request over a connection of its own."""
    begun, content = time.perf_counter(), json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        status = int((await reader.readline()).split()[1])
        await reader.read()
    finally:
        writer.close()
    return status, (time.perf_counter() - begun) * 1e3


async def neighbour(port: int, seconds: float, chance: random.Random, found: dict[str, list[float]]) -> None:
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for label, body in (("known", known()), ("new", new(chance))):
            status, milliseconds = await answered(port, body, "neighbour")
            found[label if status == 200 else "wrong"].append(milliseconds)
            await asyncio.sleep(0.02)


def summary(found: dict[str, list[float]]) -> dict[str, Any]:
    times = {label: found[label] for label in ("known", "new")}
    told = {label: {f"p{q}": round(float(np.percentile(each, q)), 1) for q in (50, 90, 99, 100)} for label, each in times.items()}
    return {**told, "answered": sum(map(len, times.values())), "wrong": len(found["wrong"])}


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


def attacking(port: int, attackers: int, seed: int) -> None:
    """Goes on until the process is ended: what it does is not on the clock of the neighbour."""
    asyncio.run(attack(port, attackers, random.Random(seed)))


async def measured(port: int, attackers: int, seconds: float) -> dict[str, Any]:
    chance, idle, attacked = random.Random(1), defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    await neighbour(port, 3.0, chance, defaultdict(list))
    for number in range(ROUNDS):
        await neighbour(port, seconds / ROUNDS, chance, idle)
        process = get_context("spawn").Process(target=attacking, args=(port, attackers, number))
        process.start()
        await asyncio.sleep(BEGIN_SECONDS)
        await neighbour(port, seconds / ROUNDS, chance, attacked)
        process.kill()
        await asyncio.to_thread(process.join)
        await asyncio.sleep(0.5)
    return {"idle": summary(idle), "attacked": summary(attacked)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attackers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="without, and with the attack")
    parser.add_argument("--note", default="", help="about the machine, kept with the results")
    parser.add_argument("--out", type=result_file, default=Path(__file__).parent / "results" / f"slow-schemas-{date.today()}.json")
    options = parser.parse_args()
    with server() as port:
        results = asyncio.run(measured(port, options.attackers, options.seconds))
    ratio = results["attacked"]["known"]["p99"] / results["idle"]["known"]["p99"]
    machine = {"date": str(date.today()), "cpus": os.cpu_count(), "load_average": os.getloadavg(), "note": options.note}
    bars = {"known_p99_over_idle": round(ratio, 2), "known_bar": KNOWN_BAR}
    bars |= {"new_p99_ms": results["attacked"]["new"]["p99"], "new_bar_ms": NEW_BAR}
    told = {**machine, "attackers": options.attackers, "seconds": options.seconds, **bars, **results}
    console.print(told)
    options.out.write_text(json.dumps(told, indent=1) + "\n")
    console.print(f"written: {options.out}")


if __name__ == "__main__":
    main()

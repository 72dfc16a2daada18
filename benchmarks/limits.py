"""What compiling hostile sources takes beside `Limits.seconds` and `Limits.bytes`, each in its own process.

    python benchmarks/limits.py [--seconds 0.5 2] [--megabytes 64] [--only NAME] [--out benchmarks/results/limits-DATE.json]

A child compiles small sources first, and is then given the hostile one, once for each limit: with each of --seconds, and with
--megabytes and 20 seconds. Printed are the processor time of its thread, the most that was resident beyond what was before, by how
much what is limited exceeds the limit, and what became of it: a constraint, or the limit that was met. Compiling loops, where there
is no machine code of them, is left out of the time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hostile_further import FURTHER
from hostile_sources import FAMILIES, closed, tools
from result_files import count, errors_as_messages, result_file, size

from maskwright.constraints import (
    Choice,
    Compiler,
    ConstraintError,
    ConstraintLimit,
    Gbnf,
    JsonSchema,
    Lark,
    Limits,
    Regex,
    Vocabulary,
)
from maskwright.foundation.compiled_loops.compile_time import seconds_spent

MEGABYTE = 1 << 20
SECONDS_BESIDE_BYTES = 20.0
GRACE = 0.1  # of a limit, by which it may be exceeded
ALL = FAMILIES | FURTHER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=count, nargs="*", default=[64])
    parser.add_argument("--seconds", type=size, nargs="*", default=[0.5, 2.0])
    parser.add_argument("--only", default="", help="families with this in their names")
    parser.add_argument("--out", type=result_file)
    options = parser.parse_args()
    kinds = [("seconds", seconds, Limits(seconds=seconds)) for seconds in options.seconds]
    kinds += [("bytes", num, Limits(bytes=num * MEGABYTE, seconds=SECONDS_BESIDE_BYTES)) for num in options.megabytes]
    rows = [
        row_of(name, limit, value, limits)
        for name in ALL if options.only in name for limit, value, limits in kinds
    ]  # fmt: skip
    beyond = [row for row in rows if row["beyond"] is None or row["beyond"] > GRACE]
    print(f"{len(rows)} compiles, {len(beyond)} beyond a tenth")
    if options.out:
        told = {"python": platform.python_version(), "processor": platform.machine(), "rows": rows}
        write(options.out, told)


def row_of(name: str, limit: str, value: float, limits: Limits) -> dict[str, Any]:
    """What became of one compile; `beyond` is the share by which the limit was exceeded, negative below it, None where it died."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=measure, args=(name, limits, theirs))
    child.start()
    theirs.close()
    row: dict[str, Any] = {"family": name, "limit": limit, "value": value, "beyond": None}
    try:
        num_bytes, seconds, told = ours.recv()
        megabytes = num_bytes / MEGABYTE
        taken = seconds if limit == "seconds" else megabytes
        row |= {"seconds": round(seconds, 3), "megabytes": round(megabytes, 1), "beyond": round(taken / value - 1, 3), "told": told}
        mark = f"{100 * row['beyond']:+4.0f} %" if taken > value else ""
        print(f"{limit:7} {value:5g}: {seconds:6.2f} s {row['megabytes']:7.1f} MB {mark:7} {name}: {told}", flush=True)
    except EOFError:
        print(f"{limit:7} {value:5g}: died {name}", flush=True)
    child.join()
    return row


def measure(name: str, limits: Limits, found: Connection) -> None:
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
    warmed = Compiler(vocabulary)
    warmed.compile(JsonSchema(closed({"a": {"type": "string", "pattern": "a.*b"}, "b": {"type": "integer"}})))
    grammars = Gbnf('root ::= "a" root? "b"'), Lark('start: "a" | A\nA: /b+/'), Regex("(?=a.*b)[a-z]+")
    for small in (*grammars, Choice(["a", "b"]), tools(1)):
        warmed.compile(small)
    source, compiler = ALL[name](), Compiler(vocabulary, limits)
    before, begun = resident(), worked()
    try:
        compiler.compile(source)
        told = "compiles"
    except ConstraintLimit as error:
        told = f"limit {error.limit}"
    except ConstraintError as error:
        told = str(error)[:60]
    found.send((resident() - before, worked() - begun, told))


def worked() -> float:
    return time.thread_time() - seconds_spent()


def resident() -> int:
    """The most bytes that the process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def write(path: Path, told: dict[str, Any]) -> None:
    """One row a line."""
    rows = ",\n  ".join(json.dumps(row) for row in told.pop("rows"))
    path.write_text(json.dumps(told)[:-1] + f', "rows": [\n  {rows}\n]}}\n')


if __name__ == "__main__":
    with errors_as_messages():
        main()

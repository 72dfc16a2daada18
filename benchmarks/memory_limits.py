"""What compiling hostile sources takes of memory, beside `Limits.bytes`: each in a process of its own.

    python benchmarks/memory_limits.py [--megabytes 64] [--seconds 20] [--only NAME]

A child compiles a small schema first, and is then given the hostile one. Printed are the most that was resident beyond that, and
what became of it: a constraint, or the limit that was met.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    Gbnf,
    JsonSchema,
    Limits,
    Regex,
    Vocabulary,
)

MEGABYTE = 1 << 20


def names(count: int) -> list[str]:
    return [f"n{k * 7919 % 100_003}" for k in range(count)]


def closed(members: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "additionalProperties": False, **others}


def nested(depth: int) -> Any:
    inner: Any = {"type": "string", "pattern": "^(a|b){1,9}c"}
    for level in range(depth):
        inner = closed({f"m{level}": inner, "x": {"anyOf": [inner, {"type": "null"}]}})
    return inner


def patterned(*patterns: str, **others: Any) -> JsonSchema:
    return JsonSchema({"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns], **others})


def in_pairs(count: int) -> JsonSchema:
    members = {f"{letter}{k}": {"type": "integer"} for k in range(count) for letter in "ab"}
    asked = {f"a{k}": [f"b{k * 7 % count}"] for k in range(count)}
    return JsonSchema(closed(members, dependentRequired=asked), property_order="any")


def in_a_chain(count: int) -> JsonSchema:
    conditions = [
        {"if": {"properties": {f"k{k}": {"const": True}}}, "then": {"required": [f"k{k + 1}"]}} for k in range(count - 1)
    ]
    members = {f"k{k}": {"type": "boolean"} for k in range(count)}
    return JsonSchema({"type": "object", "properties": members, "allOf": conditions}, property_order="any")


def one_of_each_two(count: int) -> JsonSchema:
    pairs = [{"oneOf": [{"required": [f"{letter}{k}"]} for letter in "ab"]} for k in range(count)]
    return JsonSchema({"allOf": pairs}, property_order="any")


def references(count: int) -> JsonSchema:
    def called(number: int) -> dict[str, str]:
        return {"$ref": f"#/$defs/d{number % count}"}

    rules = {f"d{k}": closed({"l": called(7 * k + 1), "r": called(3 * k + 2)}) for k in range(count)}
    return JsonSchema({"$defs": rules, **called(0)})


def rules(count: int) -> Gbnf:
    return Gbnf("root ::= r0\n" + "\n".join(f'r{k} ::= "a{k}" r{(31 * k + 1) % count}? | "b{k}"' for k in range(count)))


def branches(count: int) -> JsonSchema:
    return JsonSchema({"oneOf": [closed({"k": {"const": k}, f"m{k}": True}, required=["k"]) for k in range(count)]})


def kinds(count: int) -> JsonSchema:
    wanted = [{"contains": {"type": "string", "pattern": f"{k}$"}} for k in range(count)]
    return JsonSchema({"type": "array", "maxItems": 40, "allOf": wanted})


def many_patterns(count: int) -> JsonSchema:
    return JsonSchema(closed({f"a{k}": {"type": "string", "pattern": f"^[a-z]{{{k % 50}}}x{k}"} for k in range(count)}))


FAMILIES: dict[str, Callable[[], Any]] = {
    "an enum of 90,000 strings": lambda: JsonSchema({"enum": [f"value {k * k}" for k in range(90_000)]}),
    "60,000 members": lambda: JsonSchema(closed({name: {"type": "integer"} for name in names(60_000)})),
    "4,000 patterns": lambda: many_patterns(4_000),
    "3,000 branches": lambda: branches(3_000),
    "400 pairs of members": lambda: in_pairs(400),
    "patterns that multiply": lambda: patterned(*(f"[a-z].{{{k}}}x" for k in (9, 11, 13))),
    "words of a length": lambda: patterned(r"^(\S+\s+){490,990}\S+$", maxLength=8_000),
    "hosts that begin anywhere": lambda: patterned(r"(?=.*\d.{14}[a-f])^(?:[^.]{1,63}\.){1,127}$"),
    "20,000 words, repeated": lambda: Regex("(?:" + "|".join(names(20_000)) + "){2,900}"),
    "3,000 repetitions": lambda: Regex("|".join(f"{name}[a-m]{{2,7}}" for name in names(3_000))),
    "12,000 rules": lambda: rules(12_000),
    "30,000 alternatives": lambda: Gbnf("root ::= " + " | ".join(f'"{name}" root?' for name in names(30_000))),
    "objects in objects": lambda: JsonSchema(nested(14)),
    "a chain of conditions": lambda: in_a_chain(150),
    "one of each two": lambda: one_of_each_two(40),
    "12 kinds of items": lambda: kinds(12),
    "names by patterns": lambda: JsonSchema({"patternProperties": {f"{k}.*{k}": {"minLength": k} for k in range(24)}}),
    "numbers of three steps": lambda: JsonSchema({"allOf": [{"type": "number", "multipleOf": step} for step in (997, 1009, 1013)]}),
    "30,000 unique items": lambda: JsonSchema({"type": "array", "uniqueItems": True, "items": {"enum": names(30_000)}}),
    "5,000 references": lambda: references(5_000),
}


def measure(name: str, limits: Limits, found: Connection) -> None:
    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]), limits)
    compiler.compile(JsonSchema(closed({"a": {"type": "string", "pattern": "a.*b"}, "b": {"type": "integer"}})))
    compiler.compile(Gbnf('root ::= "a" root? "b"'))
    source = FAMILIES[name]()
    before, begun = resident(), time.thread_time()
    try:
        compiler.compile(source)
        told = "compiles"
    except ConstraintLimit as error:
        told = f"limit {error.limit}"
    except ConstraintError as error:
        told = str(error)[:60]
    found.send((resident() - before, time.thread_time() - begun, told))


def resident() -> int:
    """The most bytes that the process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    limits = Limits(bytes=options.megabytes * MEGABYTE, seconds=options.seconds)
    for name in FAMILIES:
        if options.only not in name:
            continue
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=measure, args=(name, limits, theirs))
        child.start()
        theirs.close()
        try:
            num_bytes, seconds, told = ours.recv()
            print(f"{num_bytes / MEGABYTE:8.1f} MB {seconds:7.2f} s  {name}: {told}", flush=True)
        except EOFError:
            print(f"      died             {name}", flush=True)
        child.join()


if __name__ == "__main__":
    main()

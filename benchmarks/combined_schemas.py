"""Random combinations of real schemas, for `random_walks.py`: keywords that meet in no schema as it was written.

    python benchmarks/combined_schemas.py --schemas dev.jsonl.xz --count 1500 --seed 3 --out combined.jsonl
    python benchmarks/random_walks.py --schemas combined.jsonl --order any --tokenizers FOLDER --walks walks.jsonl

Two schemas A and B stand under `$defs` and are combined at the root. Mostly B is a *twin* of A, the same with a few keywords left
out and counts off by one: nearly all that satisfies one satisfies the other, so what tells them apart is little, or nothing.
Lines are in the form of MaskBench, without values.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

from result_files import count, errors_as_messages, result_file, there
from schema_coverage import Case, read_schemas

TWINS = 0.7  # how often the second schema is a twin of the first one
LEFT_OUT = 0.04  # how often a keyword or name of a twin is
OFF_BY_ONE = 0.3  # how often a count of a twin is
LONGEST = 12_000  # characters of a schema's text
_NOT_MOVED = ('"$id"', '"id":"', "$dynamic", "$recursive", "$anchor")  # what refers to more than the text it stands in

A, B = ({"$ref": f"#/$defs/{name}"} for name in "ab")
Combination = Callable[[random.Random, list[str]], dict[str, Any]]  # of A and B; the names are of properties of A
COMBINATIONS: dict[str, Combination] = {
    "allOf": lambda rng, names: {"allOf": [A, B]},
    "anyOf": lambda rng, names: {"anyOf": [A, B]},
    "oneOf": lambda rng, names: {"oneOf": [A, B]},
    "not": lambda rng, names: {"allOf": [A, {"not": B}]},
    "neither or both": lambda rng, names: {"allOf": [A, {"not": {"oneOf": [A, B]}}]},
    "if": lambda rng, names: {"if": A, "then": B, "else": {"not": B}},
    "members": lambda rng, names: {
        "type": "object", "properties": {"x": {"oneOf": [A, B]}, "y": {"allOf": [B, {"not": A}]}},
        "required": rng.choice((["x"], ["y", "x"], [])),
    },
    "other members": lambda rng, names: {
        "type": "object", "properties": {"a": A}, "patternProperties": {"^[b-d]": B}, "minProperties": 2, "maxProperties": 4,
    },
    "names": lambda rng, names: {
        "allOf": [A], "propertyNames": {"pattern": rng.choice(("^[a-z]", "^.{2,12}$", "[aeiou]", "^(?!x)"))},
    },
    "dependent": lambda rng, names: {
        "allOf": [A], "dependentSchemas": {name: {"not": B} for name in names[:2]},
        "dependentRequired": {name: ["zz"] for name in names[-1:]},
    },
    "unevaluated": lambda rng, names: {"anyOf": [A, B], "unevaluatedProperties": rng.choice((False, {"type": "string"}))},
    "items": lambda rng, names: {"type": "array", "prefixItems": [A], "items": B, "minItems": rng.randint(0, 2), "maxItems": 4},
    "contains": lambda rng, names: {
        "type": "array", "items": B, "contains": A, "minContains": 1, "maxContains": rng.randint(1, 2), "maxItems": 3,
    },
    "unique": lambda rng, names: {
        "type": "array", "items": {"anyOf": [A, {"type": "integer"}]}, "uniqueItems": True, "minItems": 2, "maxItems": 3,
    },
}  # fmt: skip


def movable(cases: Iterable[Case]) -> list[tuple[str, dict[str, Any]]]:
    """Name and schema of those that can stand inside of another schema."""
    fit = (case for case in cases if len(case.schema) < LONGEST and not any(word in case.schema for word in _NOT_MOVED))
    schemas = ((case.name, json.loads(case.schema)) for case in fit)
    return [(name, schema) for name, schema in schemas if isinstance(schema, dict)]


def combined(schemas: list[tuple[str, dict[str, Any]]], rng: random.Random) -> tuple[str, dict[str, Any]]:
    """The name of a combination, and the schema."""
    (one, first), (two, second) = rng.sample(schemas, 2)
    if rng.random() < TWINS:
        two, second = "its twin", twin(first, rng)
    how = rng.choice(sorted(COMBINATIONS))
    properties = first.get("properties")
    names = list(properties) if isinstance(properties, dict) and properties else ["q"]
    defs = {"a": moved(first, "#/$defs/a"), "b": moved(second, "#/$defs/b")}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **COMBINATIONS[how](rng, names), "$defs": defs}
    return f"{how}: {one} and {two}", schema


def moved(value: Any, place: str) -> Any:
    """A part of a schema whose root stands at `place` now."""
    if isinstance(value, list):
        return [moved(item, place) for item in value]
    if not isinstance(value, dict):
        return value
    out = {name: moved(item, place) for name, item in value.items() if name != "$schema"}
    if isinstance(value.get("$ref"), str) and value["$ref"].startswith("#"):
        out["$ref"] = place + value["$ref"][1:]
    return out


def twin(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        return {name: twin(item, rng) for name, item in value.items() if rng.random() >= LEFT_OUT}
    if isinstance(value, list):
        return value if all(isinstance(item, str) for item in value) else [twin(item, rng) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < OFF_BY_ONE:
        return max(0, value + rng.choice((-1, 1)))
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=there, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--count", type=count, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=result_file, required=True, help="JSON lines are written here")
    options = parser.parse_args()
    schemas, rng = movable(read_schemas(options.schemas)), random.Random(options.seed)
    with options.out.open("w") as lines:
        for number in range(options.count):
            name, schema = combined(schemas, rng)
            lines.write(json.dumps({"name": f"{number} {name}", "schema": schema, "tests": []}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()

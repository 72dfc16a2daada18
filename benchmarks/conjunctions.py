"""Random conjunctions of patterns, formats, lengths and negations: how long they compile, and how long their masks take.

    python benchmarks/conjunctions.py --tokenizer FOLDER [--count 200] [--walks 5] [--seed 0]

A conjunction has two to five parts. Each that compiles is walked a few times, every token drawn evenly from the mask, for a while
freely and then with the least budget. Printed are milliseconds of processor time, walks that did not end in a valid text, and what
was refused.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from typing import Any

import numpy as np
from random_walks import one_of
from result_files import count, errors_as_messages, optional, tokenizer_folder
from transformers import AutoTokenizer

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, JsonSchema, Vocabulary

jsonschema_rs = optional("jsonschema_rs")

ATOMS = ["[A-Z]", "[a-z]", r"\d", r"\w", r"\s", "[^a-zA-Z0-9]", "[!-/]", "é", "ab", "-", "@", "[0-9a-f]"]
WHOLE = [
    r"^[\x20-\x7e]*$", r"^\S+( \S+){2,8}$", r"^(\S+\s+){9,19}\S+$", "^[a-z0-9]+(-[a-z0-9]+)*$", r"^[^\s]+$", "^(?!.*--)", "^[A-Z]",
]  # fmt: skip
FORMATS = ["email", "date", "date-time", "uri", "hostname", "ipv4", "ipv6", "uuid", "time", "duration", "json-pointer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True)
    parser.add_argument("--count", type=count, default=200)
    parser.add_argument("--walks", type=count, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    compiler = Compiler(Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(options.tokenizer)))
    compiler.compile(JsonSchema({"type": "string", "allOf": [{"pattern": "a"}, {"not": {"pattern": "b"}}], "maxLength": 9}))
    compiles: list[float] = []
    masks: list[float] = []
    outcomes: Counter[str] = Counter()
    for number in range(options.count):
        rng = random.Random(f"{options.seed} {number}")
        schema = conjunction(rng)
        begun = time.thread_time()
        try:
            constraint = compiler.compile(JsonSchema(schema))
        except ConstraintError as error:
            outcomes["refused: " + (error.limit if isinstance(error, ConstraintLimit) else error.reason)] += 1
            continue
        finally:
            compiles.append(time.thread_time() - begun)
        longest = len(masks)
        for _ in range(options.walks):
            outcomes[walk(constraint, schema, rng, masks)] += 1
        if max(masks[longest:]) > 0.1:
            print(f"{max(masks[longest:]) * 1e3:.0f} ms: {json.dumps(schema)}")
    print(json.dumps({"compile": figures(compiles), "masks": figures(masks), "outcomes": dict(outcomes)}, indent=1))


def conjunction(rng: random.Random) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(("pattern", "pattern", "count", "whole", "format", "not", "length"))
        if kind == "length":
            low = rng.randint(0, 20)
            parts.append({"minLength": low, "maxLength": low + rng.choice((0, 10, 50, 300))})
        elif kind == "format":
            parts.append({"format": rng.choice(FORMATS)})
        elif kind == "whole":
            parts.append({"pattern": rng.choice(WHOLE)})
        else:
            atom = rng.choice(ATOMS)
            counted, behind = f"(.*{atom}){{{rng.randint(2, 4)}}}", rng.choice(("", "", rng.choice(ATOMS), ".?b"))
            written = counted if kind == "count" else atom + behind
            parts.append({"not": {"pattern": written}} if kind == "not" else {"pattern": written})
    return {"type": "string", "allOf": parts}


def walk(constraint: Constraint, schema: dict[str, Any], rng: random.Random, masks: list[float]) -> str:
    """What a walk comes to. Adds the seconds of each mask."""
    state, text, budget, spent = constraint.start(), b"", None, 0
    free = rng.choice((0, 5, 20, 60))
    while True:
        if budget is None and spent >= free:
            budget = spent + constraint.min_tokens(state)
        begun = time.thread_time()
        mask = constraint.mask(state, None if budget is None else budget - spent)
        masks.append(time.thread_time() - begun)
        token = one_of(mask, rng)
        if token is None:
            return "dead end"
        if token in constraint.vocabulary.eos_token_ids:
            is_valid = jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(json.loads(text))
            return "valid" if is_valid else "not valid"
        after = constraint.advance(state, token)
        assert after is not None
        state, spent, text = after, spent + 1, text + (constraint.vocabulary.tokens[token] or b"")


def figures(seconds: list[float]) -> dict[str, float]:
    ranks = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "longest": 100}
    return {"number": len(seconds), **{name: round(1e3 * float(np.percentile(seconds, rank)), 3) for name, rank in ranks.items()}}


if __name__ == "__main__":
    with errors_as_messages():
        main()

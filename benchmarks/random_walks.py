"""Random walks through constraints: every token drawn evenly from the mask, until EOS is drawn or must be.

    python benchmarks/random_walks.py --schemas dev.jsonl.xz --tokenizer folder --sample 200 --seed 0

A walk without a budget draws evenly among the allowed tokens for a while and is then brought home by a budget. Walks with budgets
of min_tokens(start) plus 0, 1, 5 and 50 have to end within them. What comes out is parsed and checked by jsonschema-rs (or by
jsonschema, where that refuses the schema). Reported are dead ends (an empty mask), budgets overrun, and outputs that are not valid.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import numpy as np
from transformers import AutoTokenizer

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary

SLACKS = (0, 1, 5, 50)
FREE_TOKENS = 60  # of a walk without a budget, before it is brought home


def main() -> None:
    options = parse_arguments()
    vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(options.tokenizer))
    compiler = Compiler(vocabulary)
    rng = random.Random(options.seed)
    cases = read_cases(options.schemas)
    for number, case in enumerate(rng.sample(cases, min(options.sample, len(cases)))):
        if number % 20 == 19:
            print(f"{number} schemas: {dict(TOTALS)}", flush=True)
        started = time.process_time()
        try:
            source = JsonSchema(case["schema"], property_order=options.order)
            constraint = compiler.compile(source)
            outcomes = Counter(walk_all(constraint, case["schema"], rng, case["name"]))
        except ConstraintError as error:
            outcomes = Counter([f"refused: {error.keyword or type(error).__name__}"])
        TOTALS.update(outcomes)
        if time.process_time() - started > options.slow:
            print(f"slow: {case['name']} {time.process_time() - started:.1f} s", flush=True)
    for outcome, count in TOTALS.most_common():
        print(f"{count:6}  {outcome}")


TOTALS: Counter[str] = Counter()


def walk_all(constraint: Constraint, schema: Any, rng: random.Random, name: str) -> list[str]:
    least = constraint.min_tokens(constraint.start())
    outcomes = []
    for slack in (*SLACKS, None):
        text, fault = walk(constraint, rng, None if slack is None else least + slack)
        fault = fault or verdict(schema, text)
        if fault != "valid":
            print(f"{name}: slack {slack}: {fault}: {text[:300]!r}", flush=True)
        outcomes.append(fault)
    return outcomes


def walk(constraint: Constraint, rng: random.Random, budget: int | None) -> tuple[str, str]:
    """The text of a walk, and what went wrong with it."""
    state, data, spent = constraint.start(), b"", 0
    vocabulary = constraint.vocabulary
    while True:
        if budget is None and spent >= FREE_TOKENS:
            budget = spent + constraint.min_tokens(state)
        mask = constraint.mask(state, budget=None if budget is None else budget - spent)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if not allowed.size:
            return data.decode(errors="replace"), "dead end"
        token = int(rng.choice(allowed))
        if token in vocabulary.eos_token_ids:
            return data.decode(), ""
        after = constraint.advance(state, token)
        if after is None:
            return data.decode(errors="replace"), "an allowed token is refused"
        state, spent = after, spent + 1
        data += vocabulary.tokens[token] or b""
        if budget is not None and spent > budget:
            return data.decode(errors="replace"), "budget overrun"


def verdict(schema: Any, text: str) -> str:
    value = json.loads(text)
    try:
        valid = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
    except Exception:
        valid = jsonschema.validators.validator_for(schema)(schema).is_valid(value)
    return "valid" if valid else "not valid"


def read_cases(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as lines:
        return [json.loads(line) for line in lines]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--order", choices=["declared", "any"], default="declared")
    parser.add_argument("--slow", type=float, default=10.0, help="name schemas that take more seconds of processor time")
    return parser.parse_args()


if __name__ == "__main__":
    main()

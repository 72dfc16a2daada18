"""How long masks take of the hostile sources that compile, each in its own process; limits.py has what compiling takes.

    python benchmarks/hostile_masks.py --tokenizer FOLDER [--walks 10] [--only NAME] [--out FILE]

A walk draws each token evenly from the mask; every other one has a budget of a few tokens more than suffice. Printed are the
processor time of compiling, that of the longest mask, where it was, and whether a walk ended in a mask that is empty, in a token
that was allowed and not taken, or in a limit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from limits import ALL, worked, write
from result_files import chosen, count, errors_as_messages, result_file, tokenizer_folder
from transformers import AutoTokenizer

from maskwright.constraints import (
    Compiler,
    Constraint,
    ConstraintError,
    ConstraintLimit,
    JsonSchema,
    Limits,
    Vocabulary,
)

LIMITS = Limits(seconds=5.0)
TOKENS = 100  # of a walk
MORE_THAN_SUFFICE = (0, 1, 5, 20, 60)  # tokens
BAR = 0.1  # seconds of a mask
SECONDS = 40.0  # on the wall, for all walks of a family


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True)
    parser.add_argument("--walks", type=count, default=10)
    parser.add_argument("--only", default="", help="families with this in their names")
    parser.add_argument("--out", type=result_file)
    options = parser.parse_args()
    names = chosen([name for name in ALL if options.only in name], "--only")
    vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(options.tokenizer))
    small = Compiler(vocabulary).compile(JsonSchema({"type": "string", "pattern": "a.*b"}))
    small.mask(small.start())  # what all share is made
    rows = [row_of(name, vocabulary, options.walks) for name in names]
    told = [row for row in rows if "longest" in row]
    beyond = [row for row in told if row["longest"] > BAR]
    print(f"{len(told)} of {len(rows)} compile, {len(beyond)} with masks beyond {1000 * BAR:.0f} ms")
    if options.out:
        write(options.out, {"tokenizer": options.tokenizer.name, "rows": rows})


def row_of(name: str, vocabulary: Vocabulary, num_walks: int) -> dict[str, Any]:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=measure, args=(name, vocabulary, num_walks, theirs))
    child.start()
    theirs.close()
    try:
        row = {"family": name, **ours.recv()}
    except EOFError:
        row = {"family": name, "told": "died"}
    child.join()
    longest = f"{1000 * row['longest']:8.1f} ms {'!' if row['longest'] > BAR else ' '}" if "longest" in row else " " * 13
    print(f"{row.get('seconds', 0):6.2f} s {longest} {name}: {row['told']}", flush=True)
    return row


def measure(name: str, vocabulary: Vocabulary, num_walks: int, found: Connection) -> None:
    source, begun = ALL[name](), worked()
    try:
        constraint = Compiler(vocabulary, LIMITS).compile(source)
    except ConstraintError as error:
        told = f"limit {error.limit}" if isinstance(error, ConstraintLimit) else str(error)[:60]
        found.send({"seconds": round(worked() - begun, 3), "told": told})
        return
    seconds, until = worked() - begun, time.monotonic() + SECONDS
    longest, where, ends = 0.0, "", set[str]()
    for seed in range(num_walks):
        taken, at, end = walked(constraint, random.Random(seed), bool(seed % 2), until)
        ends.add(end)
        if taken > longest:
            longest, where = taken, f"token {at} of walk {seed}"
    told = ", ".join(filter(None, (where, *sorted(ends))))
    found.send({"seconds": round(seconds, 3), "longest": round(longest, 4), "told": told})


def walked(constraint: Constraint, rng: random.Random, has_budget: bool, until: float) -> tuple[float, int, str]:
    """(seconds of the longest mask, its place, what ended the walk before its time)."""
    state, longest, place = constraint.start(), 0.0, 0
    budget = constraint.min_tokens(state) + rng.choice(MORE_THAN_SUFFICE) if has_budget else None
    for at in range(TOKENS):
        if time.monotonic() > until:
            return longest, place, "no time left"
        left = None if budget is None else budget - at
        begun = worked()
        try:
            mask = constraint.mask(state, left)
        except ConstraintLimit as error:
            return longest, place, f"LIMIT {error.limit}"
        if (taken := worked() - begun) > longest:
            longest, place = taken, at
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if not allowed.size:
            return longest, place, "EMPTY MASK"
        token = int(allowed[rng.randrange(allowed.size)])
        if token in constraint.vocabulary.eos_token_ids:
            break
        after = constraint.advance(state, token)
        if after is None:
            return longest, place, "NOT TAKEN"
        state = after
    return longest, place, ""


if __name__ == "__main__":
    with errors_as_messages():
        main()

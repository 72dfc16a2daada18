"""What loading a compiled constraint saves, for large schemas of MaskBench: until the first mask, and for all masks of its texts.

    python benchmarks/saving.py --tokenizer FOLDER --schemas FILE.jsonl[.xz] [--count 5]

compile: source to first mask. load: file to first mask, with the grammar alone, and trusted with all that was found. pass: mask and
advance for every token of the schema's instances, after each. Milliseconds of wall time on one thread, best of three.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engines import load_tokenizer
from masks import read_cases
from result_files import chosen, count, errors_as_messages, there, tokenizer_folder
from rich.console import Console
from rich.table import Table

from maskwright.constraints import Choice, Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary, warm_up

ROUNDS = 3


def timed(make: Callable[[], Constraint], forget: Callable[[], object], texts: list[list[int]]) -> tuple[float, float]:
    """Milliseconds until the first mask, and for the texts after it; the best of some rounds. forget: empties the cache."""
    best = float("inf"), float("inf")
    for _ in range(ROUNDS):
        forget()
        begun = time.perf_counter()
        constraint = make()
        constraint.mask(constraint.start())
        first = time.perf_counter()
        walk(constraint, texts)
        best = min(best[0], 1e3 * (first - begun)), min(best[1], 1e3 * (time.perf_counter() - first))
    return best


def walk(constraint: Constraint, texts: list[list[int]]) -> None:
    for tokens in texts:
        state = constraint.start()
        for token_id in tokens:
            constraint.mask(state)
            after = constraint.advance(state, token_id)
            if after is None:
                break
            state = after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--schemas", type=there, required=True, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--count", type=count, default=5, help="schemas, the largest first")
    arguments = parser.parse_args()
    warm_up()
    tokenizer = load_tokenizer(arguments.tokenizer)
    read = read_cases(arguments.schemas, 10**6, 0, lambda text: list(tokenizer.encode(text, add_special_tokens=False)))
    cases = list(chosen(read, "--schemas"))
    cases.sort(key=lambda case: -len(case["schema"]))
    compiler = Compiler(Vocabulary.from_tokenizer(tokenizer), cache_bytes=0)
    table = Table("schema", "KB", "states", "file KB", "compile", "pass", "load", "pass", "trusted", "pass")
    for case in cases:
        row = measured(case, compiler)
        if row is not None:
            table.add_row(*row)
        if table.row_count == arguments.count:
            break
    Console(width=140).print(table)


def measured(case: dict[str, Any], compiler: Compiler) -> list[str] | None:
    """A row of the table; None for a schema that is refused."""
    texts = [one["tokens"] for one in case["instances"] if one["valid"]]
    source = JsonSchema(json.loads(case["schema"]), whitespace="flexible")
    try:
        constraint = compiler.compile(source)
    except ConstraintError:
        return None
    walk(constraint, texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        constraint.save(path)
        makers = (lambda: compiler.compile(source), lambda: compiler.load(path), lambda: compiler.load(path, trusted=True))
        times = [timed(make, lambda: compiler.compile(Choice(["x"])), texts) for make in makers]
        size = path.stat().st_size
    sizes = [f"{len(case['schema']) / 1e3:.0f}", str(constraint.statistics["states"]), f"{size / 1e3:.0f}"]
    return [case["name"], *sizes, *(f"{value:.1f}" for pair in times for value in pair)]


if __name__ == "__main__":
    with errors_as_messages():
        main()


"""Every format beside every other one, beside its negation, beside patterns and lengths: what each pair compiles, and its masks.

    python benchmarks/format_pairs.py --tokenizer FOLDER [--walks 10] [--only NAME] [--out FILE]

Each pair is compiled by itself and walked: every token is drawn evenly from the mask, for a while freely and then with the least
budget. Times are processor time, in milliseconds; what compiling loops takes, where there is no machine code of them, is in them.
Printed are the pairs beyond --compile or --mask, walks that did not end in a valid text, and how many of each kind compile.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from conjunctions import walk
from result_files import count, errors_as_messages, result_file, size, tokenizer_folder
from transformers import AutoTokenizer

from maskwright.constraints import Compiler, ConstraintError, ConstraintLimit, JsonSchema, Vocabulary

FORMATS = [
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
    "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer", "uuid", "regex",
]  # fmt: skip
PATTERNS = ["a", "^[a-z]", r"\d$", r"^\S+$", "^.{3,30}$", r"(.*\d){3}", "^(?!.*--)"]
LENGTHS = [{"minLength": 12}, {"maxLength": 40}, {"minLength": 30, "maxLength": 60}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True)
    parser.add_argument("--walks", type=count, default=10)
    parser.add_argument("--only", default="", help="pairs with this in their names")
    parser.add_argument("--compile", type=size, default=1000.0, help="milliseconds beyond which a compile is printed")
    parser.add_argument("--mask", type=size, default=100.0, help="milliseconds beyond which a mask is printed")
    parser.add_argument("--out", type=result_file)
    options = parser.parse_args()
    compiler = Compiler(Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(options.tokenizer)))
    warm_up = {"type": "string", "allOf": [{"format": "date"}, {"not": {"pattern": "b"}}], "maxLength": 12}
    measured(compiler, warm_up, options.walks, "")  # loads loops
    rows: list[dict[str, Any]] = []
    for kind, name, parts in pairs():
        if options.only not in name:
            continue
        row = {"kind": kind, "pair": name, **measured(compiler, {"type": "string", "allOf": parts}, options.walks, name)}
        rows.append(row)
        is_wrong = row["walks"] not in ({}, {"valid": options.walks})
        if row["compile_ms"] > options.compile or row["longest_mask_ms"] > options.mask or is_wrong:
            print(json.dumps(row, ensure_ascii=False), flush=True)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        of_kind = [row for row in rows if row["kind"] == kind]
        told = Counter(row["told"].split(":")[0] for row in of_kind)
        slowest, longest = (max(row[key] for row in of_kind) for key in ("compile_ms", "longest_mask_ms"))
        print(f"{kind:24} {dict(told)}, slowest compile {slowest:.0f} ms, longest mask {longest:.1f} ms")
    if options.out:
        lines = ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        options.out.write_text(f"[\n {lines}\n]\n")


def pairs() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """(kind, name, parts) of each pair."""
    for first, second in combinations(FORMATS, 2):
        yield "two formats", f"{first}, {second}", [{"format": first}, {"format": second}]
    for first, second in product(FORMATS, FORMATS):
        yield "not a format", f"{first}, not {second}", [{"format": first}, {"not": {"format": second}}]
    for name, pattern in product(FORMATS, PATTERNS):
        yield "a pattern", f"{name}, {pattern}", [{"format": name}, {"pattern": pattern}]
        yield "not a pattern", f"{name}, not {pattern}", [{"format": name}, {"not": {"pattern": pattern}}]
        yield "not, a pattern", f"not {name}, {pattern}", [{"not": {"format": name}}, {"pattern": pattern}]
    for name, length in product(FORMATS, LENGTHS):
        yield "a length", f"{name}, {length}", [{"format": name}, length]
        yield "not, a length", f"not {name}, {length}", [{"not": {"format": name}}, length]
    for name, length, pattern in product(FORMATS, LENGTHS[1:], PATTERNS[:3]):
        yield "a pattern and a length", f"{name}, {pattern}, {length}", [{"format": name}, {"pattern": pattern}, length]


def measured(compiler: Compiler, schema: dict[str, Any], walks: int, seed: str) -> dict[str, Any]:
    masks, found, begun = [0.0], Counter[str](), time.thread_time()
    try:
        constraint, told = compiler.compile(JsonSchema(schema)), "compiles"
    except ConstraintError as error:
        constraint, told = None, f"limit {error.limit}" if isinstance(error, ConstraintLimit) else f"refused: {error}"[:100]
    seconds = time.thread_time() - begun
    if constraint is not None:
        chance = random.Random(seed)
        found.update(walk(constraint, schema, chance, masks) for _ in range(walks))
        compiler.clear()
    return {
        "told": told, "compile_ms": round(1e3 * seconds, 1), "longest_mask_ms": round(1e3 * max(masks), 2), "walks": dict(found),
    }  # fmt: skip


if __name__ == "__main__":
    with errors_as_messages():
        main()

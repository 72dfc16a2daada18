"""Random walks through constraints: every token drawn evenly from the mask, until EOS is drawn or must be.

    python benchmarks/random_walks.py --schemas dev.jsonl.xz --suite FOLDER --tokenizers FOLDER ... --walks walks.jsonl

A walk without a budget draws evenly among the allowed tokens for a while and is then brought home by a budget. Walks with budgets
of min_tokens(start) plus 0, 1, 5 and 50 have to end within them. Where a budget is wide, a token is drawn from the mask without
budget first and taken if `min_tokens` behind it is within the budget: the same choice, and most often faster.

What comes out is parsed and checked by jsonschema-rs (or by jsonschema, where that refuses the schema). Counted are dead ends (an
empty mask), budgets overrun, and outputs that are not valid.

Every schema is walked with one tokenizer before any is with a second one. Each schema with its tokenizer is a line in `--walks`; a
run that is started again with the same file goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from jsonschema_specifications import REGISTRY
from numpy.typing import NDArray
from referencing import Resource
from referencing.jsonschema import DRAFT202012
from result_files import chosen, errors_as_messages, optional, result_file, size, there, tokenizer_folder
from schema_coverage import Case, read_remotes, read_schemas, read_suite
from transformers import AutoTokenizer
from workers import TimeUp

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.base.errors import ConstraintLimit

jsonschema_rs = optional("jsonschema_rs")

SLACKS = (0, 1, 5, 50, None)
FREE_TOKENS = 60  # of a walk without a budget, before it is brought home
WIDE = 6  # tokens beyond what suffices, from which on a draw without budget is tried first
TRIES = 4  # of them
BY_DRAFT = {"4": "Draft4", "6": "Draft6", "7": "Draft7", "2019-09": "Draft201909", "2020-12": "Draft202012"}

Verdict = Callable[[Any], bool]


def main() -> None:
    options = parse_arguments()
    cases = {f"{case.section} {case.name}": case for case in read_cases(options)}
    if options.names:
        cases = {name: case for name, case in cases.items() if any(part in name for part in options.names)}
    remotes = read_remotes(options.suite) if options.suite else ()
    walks = read_walks(options.walks)
    with options.walks.open("a") as lines:
        compilers: dict[str, Compiler] = {}
        for name, folder in plan(list(chosen(list(cases), "--names")), options.tokenizers, options.seed):
            if (name, folder.name) in walks or time.time() > options.until:
                continue
            if folder.name not in compilers:
                vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(folder))
                compilers[folder.name] = Compiler(vocabulary)
            walked = walk_case(compilers[folder.name], cases[name], remotes, options)
            walks[name, folder.name] = line = {"name": name, "tokenizer": folder.name, **walked}
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
            lines.flush()
    results = summarise(list(walks.values()), len(cases), options)
    print(json.dumps(results, indent=1, ensure_ascii=False))
    if options.output:
        options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def plan(names: list[str], folders: list[Path], seed: int) -> Iterator[tuple[str, Path]]:
    """Every schema with every tokenizer, such that all schemas have been walked once before one is a second time."""
    random.Random(seed).shuffle(names)
    for shift in range(len(folders)):
        for at, name in enumerate(names):
            yield name, folders[(at + shift) % len(folders)]


def walk_case(
    compiler: Compiler, case: Case, remotes: tuple[tuple[str, str], ...], options: argparse.Namespace
) -> dict[str, Any]:
    """The outcome of each walk, and the text of those that failed; stopped after `--seconds` of processor time."""
    started, is_suite = time.process_time(), case.section != "MaskBench"
    rng = random.Random(f"{options.seed} {case.section} {case.name} {compiler.vocabulary.size}")
    outcomes: list[str] = []
    failures: list[dict[str, Any]] = []
    signal.setitimer(signal.ITIMER_PROF, options.seconds)
    try:
        constraint = compiler.compile(JsonSchema(
            case.schema, draft=case.draft, property_order=options.order, resources=dict(remotes) if is_suite else {},
            formats="annotate" if is_suite else "assert",
        ))  # fmt: skip
        verdict = validator(case, remotes if is_suite else ())
        least = constraint.min_tokens(constraint.start())
        for slack in SLACKS:
            text, fault = walk(constraint, rng, None if slack is None else least + slack)
            fault = fault or judged(verdict, text)
            outcomes.append(fault)
            if fault != "valid":
                failures.append({"slack": slack, "fault": fault, "text": text[:2000]})
    except ConstraintError as error:
        what = error.limit if isinstance(error, ConstraintLimit) else error.keyword or error.reason
        is_empty = "no value satisfies" in error.reason or "nothing satisfies" in error.reason
        outcomes.append("no value" if is_empty else f"refused: {what}")
    except TimeUp:
        outcomes.append("stopped: out of time")
    except Exception as error:  # whatever it is, it is a failure of this schema
        outcomes.append(f"crashed: {type(error).__name__}")
        failures.append({"fault": repr(error)[:500]})
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"outcomes": outcomes, "failures": failures, "seconds": round(time.process_time() - started, 3)}


def walk(constraint: Constraint, rng: random.Random, budget: int | None) -> tuple[str, str]:
    """The text of a walk, and what went wrong with it."""
    state, data, spent = constraint.start(), b"", 0
    vocabulary = constraint.vocabulary
    while True:
        if budget is None and spent >= FREE_TOKENS:
            budget = spent + constraint.min_tokens(state)
        left = None if budget is None else budget - spent
        token = drawn(constraint, state, rng, left)
        if token is None:
            return data.decode(errors="replace"), "dead end"
        if token in vocabulary.eos_token_ids:
            return data.decode(), ""
        after = constraint.advance(state, token)
        if after is None:
            return data.decode(errors="replace"), "an allowed token is refused"
        state, spent = after, spent + 1
        data += vocabulary.tokens[token] or b""
        if budget is not None and spent > budget:
            return data.decode(errors="replace"), "budget overrun"


def drawn(constraint: Constraint, state: Any, rng: random.Random, left: int | None) -> int | None:
    """One of the tokens after which the output can be finished with `left` tokens in all; None when there is none."""
    if left is None or left >= constraint.min_tokens(state) + WIDE:
        mask = constraint.mask(state)
        for _ in range(1 if left is None else TRIES):
            token = one_of(mask, rng)
            after = None if token is None or left is None else constraint.advance(state, token)
            if after is None or constraint.min_tokens(after) < (left or 0):
                return token
    return one_of(constraint.mask(state, budget=left), rng)


def one_of(mask: NDArray[np.uint32], rng: random.Random) -> int | None:
    """One of the tokens of a mask, all alike; None when it is empty."""
    ends = np.cumsum(np.bitwise_count(mask), dtype=np.int64)
    if not ends[-1]:
        return None
    number = rng.randrange(int(ends[-1]))
    word = int(np.searchsorted(ends, number, side="right"))
    bits = [bit for bit in range(32) if int(mask[word]) >> bit & 1]
    return 32 * word + bits[number - int(ends[word])]


def judged(verdict: Verdict, text: str) -> str:
    return "valid" if verdict(json.loads(text)) else "not valid"


def validator(case: Case, remotes: tuple[tuple[str, str], ...]) -> Verdict:
    """What jsonschema-rs makes of values, or jsonschema where that does not take the schema. Formats are judged on MaskBench."""
    schema = json.loads(case.schema)
    assert_formats = case.section == "MaskBench"
    try:
        kind = jsonschema_rs.validator_for if case.draft is None else getattr(jsonschema_rs, f"{BY_DRAFT[case.draft]}Validator")
        registry = jsonschema_rs.Registry([(address, json.loads(text)) for address, text in remotes]) if remotes else None
        return kind(schema, validate_formats=assert_formats, registry=registry).is_valid  # type: ignore[no-any-return]
    except ValueError:
        default = getattr(jsonschema, f"{BY_DRAFT[case.draft or '2020-12']}Validator")
        known = ((address, Resource.from_contents(json.loads(text), DRAFT202012)) for address, text in remotes)
        judge = jsonschema.validators.validator_for(schema, default)(schema, registry=REGISTRY.with_resources(known))
        return judge.is_valid  # type: ignore[no-any-return]


def summarise(walks: list[dict[str, Any]], schemas: int, options: argparse.Namespace) -> dict[str, Any]:
    """Counts of walks by their outcome, for each tokenizer, and the failures."""
    tables: dict[str, Counter[str]] = {}
    for line in walks:
        tables.setdefault(line["tokenizer"], Counter()).update(line["outcomes"])
    return {
        "about": {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine(),
                  "python": platform.python_version(), "seed": options.seed, "seconds": options.seconds, "order": options.order},
        "schemas": {"all": schemas, "walked": len({line["name"] for line in walks}), "with a tokenizer": len(walks)},
        "walks": {name: dict(counter.most_common()) for name, counter in sorted(tables.items())},
        "slowest": [[line["name"], line["tokenizer"], line["seconds"]]
                    for line in sorted(walks, key=lambda line: -line["seconds"])[:20]],
        "failures": [{"name": line["name"], "tokenizer": line["tokenizer"], **failure}
                     for line in walks for failure in line["failures"]],
    }  # fmt: skip


def read_cases(options: argparse.Namespace) -> Iterator[Case]:
    if options.schemas:
        yield from read_schemas(options.schemas)
    if options.suite:
        yield from read_suite(options.suite, ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"), (), False)


def read_walks(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text.split("\n") if line]
    return {(line["name"], line["tokenizer"]): line for line in lines}


def _stop(*unused: object) -> None:
    raise TimeUp


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=there, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--suite", type=there, help="folder of the official JSON-Schema-Test-Suite")
    parser.add_argument("--tokenizers", type=tokenizer_folder, nargs="+", required=True, help="folders that transformers can load")
    parser.add_argument("--walks", type=Path, required=True, help="JSON lines that are read, then added to")
    parser.add_argument("--output", type=result_file, help="write the counts and failures here as JSON")
    parser.add_argument("--names", nargs="+", default=[], help="only schemas whose name contains one of these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--order", choices=["declared", "any"], default="declared")
    parser.add_argument("--seconds", type=size, default=20.0, help="of processor time, for one schema with one tokenizer")
    parser.add_argument("--until", type=float, default=float("inf"), help="begin no schema after this time (seconds since 1970)")
    options = parser.parse_args()
    if not options.schemas and not options.suite:
        parser.error("give --schemas, --suite, or both")
    signal.signal(signal.SIGPROF, _stop)
    return options


if __name__ == "__main__":
    with errors_as_messages():
        main()

"""Compile time and mask time on grammars of programming languages, for every engine that reads grammars, in one run.

    python benchmarks/grammar_masks.py --tokenizer FOLDER [--languages json sql c python] [--rounds 5] [--out RESULTS.json]

`grammars/` holds for each language the same grammar in GBNF for Maskwright, in EBNF for XGrammar, written as suits it (strings and
comments as rules that call themselves: with `( ... )*` its masks take a thousand times as long), and in Lark's notation for
llguidance, with terminals and ignored white space where one would write it so; and texts, separated by lines of `=====`. All
engines see the same tokens, one by one with a mask before each, and have to accept every text. Times as in `masks.py`: *cold* is
the first pass over the texts after a compile, *warm* a second one; each round compiles anew. Processor time, one thread.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from engines import load_tokenizer
from masks import CURVE, machine, measure, print_table, summarise
from result_files import count, errors_as_messages, require_engines, result_file, size, tokenizer_folder

FOLDER = Path(__file__).with_name("grammars")
LANGUAGES = {"json": "JSON", "sql": "SQL", "c": "C", "python": "Python"}
NOTATIONS = ("gbnf", "ebnf", "lark")
ENGINES = ("maskwright", "llguidance", "xgrammar")
_ENDS_WITH_LINE = {"python"}  # languages in which the end of the last line is part of the text


def read_case(language: str, encode: Callable[[str], list[int]]) -> dict[str, Any]:
    """The grammar in all notations, and the tokens of its texts."""
    end = "\n" if language in _ENDS_WITH_LINE else ""
    texts = (FOLDER / f"{language}.txt").read_text(encoding="utf-8").split("=====\n")
    return {
        "grammar": {notation: (FOLDER / f"{language}.{notation}").read_text(encoding="utf-8") for notation in NOTATIONS},
        "instances": [{"valid": True, "tokens": encode(text.removesuffix("\n") + end)} for text in texts],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=tokenizer_folder, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=list(LANGUAGES))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--rounds", type=count, default=5, help="compiles of every grammar")
    parser.add_argument("--seconds", type=size, default=60, help="processor time for one round")
    parser.add_argument("--gigabytes", type=size, default=6, help="memory of a worker process")
    parser.add_argument("--quiet", action="store_true", help="hide what engines print")
    parser.add_argument("--note", default="", help="kept with the results: what else ran on the machine")
    parser.add_argument("--out", type=result_file, help="write all figures here as JSON")
    arguments = parser.parse_args()
    require_engines(arguments.engines, option="--engines")
    arguments.walks = 0
    arguments.batch = arguments.rounds * len(arguments.languages)
    tokenizer = load_tokenizer(arguments.tokenizer)

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    cases = [case for language in arguments.languages for case in [read_case(language, encode)] * arguments.rounds]
    languages: dict[str, list[dict[str, Any]]] = {LANGUAGES[language]: [] for language in arguments.languages}
    for name, found in measure(arguments.engines, cases, arguments).items():
        for k, summaries in enumerate(languages.values()):
            summaries.append(summarise(name, found[k * arguments.rounds : (k + 1) * arguments.rounds]))
    for title, summaries in languages.items():
        print_table(summaries, title)
    if arguments.out:
        about = {"date": date.today().isoformat(), "machine": machine(), "note": arguments.note, "rounds": arguments.rounds}
        about |= {"python": platform.python_version(), "tokenizer": arguments.tokenizer.name, "vocabulary": len(tokenizer)}
        results = {"about": about, "percentiles": CURVE, "languages": languages}
        arguments.out.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()

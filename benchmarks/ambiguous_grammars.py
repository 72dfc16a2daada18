"""Small ambiguous grammars, made at random: which of them compile, and the most work that a byte of a text then takes.

    python benchmarks/ambiguous_grammars.py [--first 0] [--count 300] [--length 1000]

The grammars are those of the tests, the texts repeat themselves with other periods than those that compiling tries. Work is words
written for a byte, items, and pairs of stacks compared. Needs a checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from maskwright.constraints import Compiler, ConstraintError, Gbnf, UnsupportedKeyword, Vocabulary
from maskwright.constraints.runtime.growth import Form
from maskwright.constraints.token_automaton.token_automaton import Pumped

TEXTS = ((1, 32), (2, 50), (3, 32), (4, 100), (5, 32), (6, 40), (7, 32), (10, 32), (14, 100), (19, 60), (1, 1000))  # period, free
TOO_MUCH = 1_000_000  # words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--length", type=int, default=1000)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.constraints.grammar.ambiguous import small_grammar

    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
    refused, without_text, seconds, work = 0, 0, list[float](), dict[int, int]()
    for seed in range(options.first, options.first + options.count):
        begun = time.thread_time()
        try:
            constraint = compiler.compile(Gbnf(small_grammar(seed)))
        except ConstraintError as error:
            is_refused = isinstance(error, UnsupportedKeyword)
            refused, without_text = refused + is_refused, without_text + (not is_refused)
            seconds.append(time.thread_time() - begun)
            continue
        seconds.append(time.thread_time() - begun)
        with constraint.exclusively() as (automaton, _):
            form = Form(automaton.grammar, automaton.root, automaton.grammar.stacks_as_graph)
            work[seed] = max(most_work(form.automaton(automaton), *text, options.length) for text in TEXTS)
    hardest = sorted(work, key=lambda seed: -work[seed])[:8]
    print(json.dumps({
        "compiled": len(work), "refused": refused, "without a text": without_text,
        "compile seconds": {f"p{rank}": round(float(np.percentile(seconds, rank)), 3) for rank in (50, 90, 99, 100)},
        "most words a byte": {f"p{rank}": int(np.percentile(list(work.values()), rank)) for rank in (50, 90, 99, 100)},
        "hardest": {f"seed {seed}": work[seed] for seed in hardest},
    }, indent=1))  # fmt: skip


def most_work(automaton, period: int, free: int, length: int) -> int:
    pumped = Pumped(free, np.zeros(length + 1, np.int32), np.zeros(length, np.int32), np.full(length, -1, np.int32))
    pumped.states[0] = automaton.start
    read = automaton.pump(period, 1000 + period, 0, length, TOO_MUCH, pumped)
    return int(pumped.work[:read].max(initial=0))


if __name__ == "__main__":
    main()

"""Ambiguous grammars, made at random: which of them compile, and the most work that bytes of a text then take.

    python benchmarks/ambiguous_grammars.py [--families small expressions ...] [--first 0] [--count 300] [--length 1000]

The grammars are those of the tests, the texts others than those that compiling tries. Work is words written for a byte, items, and
pairs of stacks compared, on the average of as many bytes as compiling looks at together. Needs a checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from result_files import amount, count, errors_as_messages

from maskwright.constraints import Compiler, ConstraintError, Gbnf, UnsupportedKeyword, Vocabulary

TEXTS = ((1, 32), (2, 50), (3, 32), (4, 100), (5, 32), (6, 40), (7, 32), (10, 32), (14, 100), (19, 60), (1, 1000))  # period, free
TOO_MUCH = 1_000_000  # words


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.constraints.grammar.ambiguous import small_grammar
    from tests.constraints.grammar.ambiguous_families import FAMILIES, source_of
    from tests.constraints.grammar.growing import work_of

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=["small"], choices=["small", *FAMILIES])
    parser.add_argument("--first", type=amount, default=0)
    parser.add_argument("--count", type=count, default=300)
    parser.add_argument("--length", type=count, default=1000)
    options = parser.parse_args()
    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
    for family in options.families:
        without_text, refused, seconds, work = list[int](), dict[int, str](), list[float](), dict[int, int]()
        for seed in range(options.first, options.first + options.count):
            begun = time.thread_time()
            try:
                constraint = compiler.compile(Gbnf(small_grammar(seed)) if family == "small" else source_of(family, seed))
                seconds.append(time.thread_time() - begun)
                work[seed] = max(work_of(constraint, *text, options.length, TOO_MUCH) for text in TEXTS)
            except UnsupportedKeyword as error:
                refused[seed] = str(error)
                seconds.append(time.thread_time() - begun)
            except ConstraintError as error:
                without_text += [seed] if "nothing satisfies" in str(error) else []
                refused |= {} if "nothing satisfies" in str(error) else {seed: str(error)}
        hardest = sorted(work, key=lambda seed: -work[seed])[:8]
        print(json.dumps({
            "family": family, "compiled": len(work), "without a text": len(without_text), "refused": list(refused),
            "refused without two readings": [seed for seed, text in refused.items() if "; rule" not in text],
            "compile seconds": {f"p{rank}": round(float(np.percentile(seconds or [0.0], rank)), 3) for rank in (50, 90, 99, 100)},
            "most words a byte": {f"p{rank}": int(np.percentile(list(work.values()) or [0], rank)) for rank in (50, 90, 99, 100)},
            "hardest": {f"seed {seed}": work[seed] for seed in hardest},
        }, indent=1), flush=True)  # fmt: skip


if __name__ == "__main__":
    with errors_as_messages():
        main()

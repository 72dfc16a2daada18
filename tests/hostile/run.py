"""Runs the corpus in a process of its own and prints for each case what became of it, as a line of JSON.

Usage: python -m tests.hostile.run   (from the repository root)
"""

from __future__ import annotations

import json
import random
import resource
import time
from typing import Any

import numpy as np

from maskwright.constraints import Compiler, Constraint, ConstraintError, ConstraintLimit, JsonSchema, Regex, Vocabulary
from maskwright.constraints.warm import warm_up

from .corpus import CASES

_TOKENS = [bytes([byte]) for byte in range(256)] + [
    b"aa", b"ab", b'":', b'{"', b"value", b"null", b'",', b"],", b'"a', b"x" * 16, b"a" * 16, "é".encode(), "日".encode(),
]  # fmt: skip
STEPS = 30


def main() -> None:
    warm_up()
    compiler = Compiler(Vocabulary([*_TOKENS, None], eos_token_ids=[len(_TOKENS)]), cache_bytes=1)
    walk(compiler.compile(JsonSchema({})))
    for name, case in CASES.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.thread_time()
        outcome = _outcome(compiler, case)
        seconds = time.thread_time() - start
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        works = compiler.compile(Regex(f"after ({len(name)})+")).accepts(f"after {len(name)}".encode())
        print(
            json.dumps({"name": name, **outcome, "seconds": seconds, "megabytes": megabytes, "works": works}),
            flush=True,
        )


def _outcome(compiler: Compiler, case: Any) -> dict[str, Any]:
    try:
        walk(compiler.compile(case()))
    except ConstraintLimit as error:
        return {"outcome": "limit", "limit": error.limit, "value": error.value}
    except ConstraintError as error:
        return {"outcome": "error", "reason": error.reason[:200]}
    except Exception as error:  # what the tests must see, whatever it is
        return {"outcome": "crash", "reason": repr(error)[:500]}
    return {"outcome": "ok"}


def walk(constraint: Constraint) -> None:
    """The first mask and random steps."""
    chance, state = random.Random(0), constraint.start()
    for _ in range(STEPS):
        bits = np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little")
        state = constraint.advance(state, int(chance.choice(np.flatnonzero(bits))))
        assert state is not None, "a token that the mask allows"


if __name__ == "__main__":
    main()

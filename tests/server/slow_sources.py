"""What takes long to compile, by its size alone, so that no cleverer search makes it quick."""

from __future__ import annotations

from maskwright.constraints import Limits

ENDLESS = Limits(seconds=10_000.0, bytes=1 << 40)
NUM_RULES = 100_000


def slow_gbnf(number: int) -> str:
    """A grammar for which ten seconds are not enough; another one for each number."""
    rules = (f'r{i} ::= "{i}" r{(7 * i + 1) % NUM_RULES} | [b-d]+ r{(5 * i + 3) % NUM_RULES} | "{number}"' for i in range(NUM_RULES))
    starts = " | ".join(f"r{i}" for i in range(0, NUM_RULES, 7))
    return "\n".join((f"root ::= {starts}", *rules))

"""Products that are kept lazily, in which ends of many texts are not found within a limit: a mask allows what `advance` takes, and
whether a source compiles does not depend on what was compiled before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Limits, Vocabulary
from maskwright.constraints.automaton.assembling import intersections
from maskwright.constraints.automaton.finite_automata import AutomatonCache
from maskwright.constraints.grammar.lowering_cache import LOWERING_CACHE

LONG = [b"a.a.a.a", b"x0x0x0x0", b"000aaa..", b"xa0xa0xa0xa0xa0", *(bytes([letter]) * 17 for letter in b"a0.x")]
TOKENS = [*(bytes([byte]) for byte in range(256)), *(bytes([a, b]) for a in b"a0.x" for b in b"a0.x"), *LONG]
VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])
WRONG_BEFORE = [  # a mask allowed what was not taken, or not what was, as it was that of a state with other counts
    (r"(?=.*\d.{5}[a-f])^(?:[^.]{1,20}\.){1,127}$", 300), (r"(?=.*\d.{9}[a-f])^(?:[^.]{1,20}\.){0,40}[a-z0-9]{1,20}$", 300),
    (r"(?=.*?[a0].{8}[^.])^(?:[^.]{1,3}\.){1,9}$", 300), (r"(?=.*[a0].{2}[a-f])^(?:[^.]{1,63}\.){1,2}$", 300),
]  # fmt: skip


def random_pattern(rng: random.Random) -> str:
    count, most, labels = rng.randrange(2, 15), rng.choice((3, 9, 20, 63)), rng.choice((2, 9, 40, 127))
    first, last = rng.choice((r"\d", "[a0]", "[^x]")), rng.choice(("[a-f]", "0", "[^.]"))
    rest = rng.choice((rf"(?:[^.]{{1,{most}}}\.){{1,{labels}}}", rf"(?:[^.]{{1,{most}}}\.){{0,{labels}}}[a-z0-9]{{1,{most}}}"))
    return rf"(?={rng.choice(('.*', 'x*', '.*?'))}{first}.{{{count}}}{last})^{rest}$"


def compiled(pattern: str, states: int) -> Constraint | None:
    try:
        return Compiler(VOCABULARY, Limits(search_states=states)).compile(JsonSchema({"type": "string", "pattern": pattern}))
    except ConstraintError:
        return None


def masks_along(constraint: Constraint, seed: int, num_tokens: int) -> list[bytes]:
    """The masks of a text, each of which is compared with what `advance` takes."""
    rng, state, found = random.Random(seed), constraint.start(), []
    for _ in range(num_tokens):
        mask = constraint.mask(state)
        found.append(mask.tobytes())
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(TOKENS)])
        after = [constraint.advance(state, token) for token in range(len(TOKENS))]
        assert allowed.tolist() == [token for token, state in enumerate(after) if state is not None]
        if not allowed.size:
            break
        likely = allowed[-8:] if rng.random() < 0.5 else allowed  # longer ones more often
        next_state = after[int(likely[rng.randrange(likely.size)])]
        assert next_state is not None
        state = next_state
    return found


@pytest.mark.parametrize(("pattern", "states"), WRONG_BEFORE)
def test_what_was_wrong_before(pattern: str, states: int) -> None:
    if (constraint := compiled(pattern, states)) is not None:
        for seed in range(2):
            masks_along(constraint, seed, 10)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(range(2, 60), marks=pytest.mark.slow, id="many")])
def test_a_mask_allows_what_is_taken(seed: int | range) -> None:
    for each in [seed] if isinstance(seed, int) else seed:
        rng = random.Random(each)
        constraint = compiled(random_pattern(rng), rng.choice((300, 1_000, 3_000)))
        if constraint is not None:
            masks_along(constraint, each, 20)


def test_what_was_compiled_before_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes have other numbers, and automata that take too many states are known."""
    patterns = [random_pattern(random.Random(seed)) for seed in range(4)] + [WRONG_BEFORE[0][0]]
    told = []
    for order in (patterns, patterns[::-1], patterns):
        monkeypatch.setattr(intersections, "AUTOMATON_CACHE", AutomatonCache())
        LOWERING_CACHE.clear()
        for _ in range(2):
            found = {pattern: compiled(pattern, 1_000) for pattern in order}
            told.append({pattern: constraint and masks_along(constraint, 0, 2) for pattern, constraint in found.items()})
    assert all(each == told[0] for each in told)
    assert any(told[0].values())

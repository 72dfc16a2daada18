"""The cost of a constraint: time to compile, states and mask rows, time of masks along a walk through random texts."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grammar.expression import Grammar, Node
from ..grammar.source import Limits, Source
from ..runtime.compiler import Compiler
from ..runtime.constraint import Constraint, State, as_token_ids
from ..vocabulary.vocabulary import Vocabulary

_TOKENS = 40  # of one walk, before it has to end
_WALKS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Figures of one constraint over one vocabulary, on this machine. Times of masks are of states met for the first time."""

    vocabulary: int
    compile_ms: float
    least_tokens: int  # to finish from the start
    steps: int  # of the walks
    states: int
    rows: int
    kilobytes: int
    mask_us_median: float
    mask_us_most: float
    samples: tuple[str, ...]  # random texts, cut where undecodable

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Again:
    """A source that equals no other one, so that it is compiled anew."""

    source: Source

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return self.source.lower(grammar, limits)


def measure(source: Source, compiler: Compiler) -> Cost:
    """Compiles a source and walks it. Raises ConstraintError.

    A first walk is not measured: it makes what all constraints of the vocabulary share.
    """
    for seed in range(_WALKS):
        sample(compiler.compile(source), random.Random(seed), _TOKENS)
    begun = time.perf_counter()
    constraint = compiler.compile(_Again(source))
    compile_ms = 1e3 * (time.perf_counter() - begun)
    times: list[float] = []
    samples = tuple(sample(constraint, random.Random(seed), _TOKENS, times).decode("utf-8", "replace") for seed in range(_WALKS))
    statistics = constraint.statistics
    return Cost(
        constraint.vocabulary.size, compile_ms, constraint.min_tokens(constraint.start()), len(times), statistics["states"],
        statistics["rows"], statistics["bytes"] // 1024, 1e6 * median(times), 1e6 * max(times), samples,
    )  # fmt: skip


def sample(constraint: Constraint, chance: random.Random, tokens: int, times: list[float] | None = None) -> bytes:
    """A random text of the constraint, of about so many tokens: each one drawn from those allowed, ends at the first chance to.

    times: takes the seconds of the mask of every state.
    """
    state: State | None = constraint.start()
    assert state is not None
    left = constraint.min_tokens(state) + tokens
    out = bytearray()
    while True:
        begun = time.perf_counter()
        constraint.mask(state)
        if times is not None:
            times.append(time.perf_counter() - begun)
        allowed = np.array(as_token_ids(constraint.mask(state, left)), np.int64)
        allowed = allowed[~np.isin(allowed, constraint.vocabulary.eos_token_ids)]
        if not allowed.size or (constraint.is_accepting(state) and chance.random() < 0.1):
            return bytes(out)
        token = _drawn(constraint, allowed, chance)
        out += constraint.vocabulary.spellings[token] or b""
        after = constraint.advance(state, token)
        assert after is not None
        state, left = after, left - 1


def _drawn(constraint: Constraint, allowed: NDArray[np.int64], chance: random.Random) -> int:
    """A token: first by its first byte, so that the many tokens of letters do not hide all else, then any of those."""
    first = _first_bytes(constraint.vocabulary)[allowed]
    byte = chance.choice(np.unique(first).tolist())
    return chance.choice(allowed[first == byte].tolist())


@lru_cache(maxsize=4)
def _first_bytes(vocabulary: Vocabulary) -> NDArray[np.uint8]:
    return np.array([(spelling or b"\0")[0] for spelling in vocabulary.spellings], np.uint8)

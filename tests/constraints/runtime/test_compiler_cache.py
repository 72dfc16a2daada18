"""The compiler's cache: what it has counted, which constraints it drops, and what stays valid."""

from __future__ import annotations

import random

import pytest

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Regex, Vocabulary

from ..grammars import TOKENS

VOCABULARY = Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)])
SOURCES = [Regex("a" * number + "b*") for number in range(1, 12)]


def check(compiler: Compiler) -> None:
    """What is counted is what is there, and the sum is that of its parts."""
    assert set(compiler._counted) == set(compiler._cache)
    assert compiler._num_bytes == sum(each.num_bytes for each in compiler._counted.values())


@pytest.mark.parametrize("room", [0, 1, 3, 20])
def test_the_least_recently_used_go_first(room: int) -> None:
    one = Compiler(VOCABULARY)
    one.compile(SOURCES[0])
    size = one._num_bytes
    compiler, recent, rng = Compiler(VOCABULARY, cache_bytes=room * size + size // 2), list[Regex](), random.Random(room)
    for _ in range(60):
        source = rng.choice(SOURCES)
        was_known = source in recent
        assert compiler.knows(source) == was_known
        compiler.compile(source)
        recent = [*(other for other in recent if other != source), source][-max(room, 1) :]
        check(compiler)
        assert list(compiler._cache) == recent


def test_what_constraints_have_grown_by_is_counted_when_others_come() -> None:
    compiler = Compiler(VOCABULARY)
    grown = compiler.compile(Regex("(a|b|ab){0,900}"))
    before = compiler._num_bytes
    assert grown.accepts(b"ab" * 400)
    for source in SOURCES:
        compiler.compile(source)
    check(compiler)
    counted = compiler._counted[Regex("(a|b|ab){0,900}")]
    assert counted.num_bytes > before and counted.num_bytes >= grown.nbytes


def test_what_is_refused_is_not_counted() -> None:
    compiler = Compiler(VOCABULARY)
    for _ in range(2):
        with pytest.raises(ConstraintError):
            compiler.compile(JsonSchema({"type": "string", "enum": [1]}))
        check(compiler)
    assert compiler._num_bytes == 0


def test_masks_that_dropped_constraints_made_stay_counted() -> None:
    compiler = Compiler(VOCABULARY, cache_bytes=0)
    for number, source in enumerate(SOURCES, 1):
        constraint = compiler.compile(source)
        constraint.mask(constraint.start())
        assert compiler.num_mask_misses == number

"""Garbage collection while constraints are compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from maskwright.constraints import Compiler, ConstraintError, JsonSchema, Regex, Vocabulary
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.runtime.garbage import collection_paused

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


@pytest.fixture(params=[True, False])
def is_wanted(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether garbage is collected outside of compiles."""
    was_enabled = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was_enabled else gc.disable)()


def test_goes_on_behind_the_last_of_some_compiles(is_wanted: bool) -> None:
    first, second = collection_paused(), collection_paused()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled() == is_wanted


def test_rests_while_a_source_is_lowered(is_wanted: bool) -> None:
    seen: list[bool] = []

    class Watching(Regex):
        def lower(self, grammar: Grammar, limits: Limits) -> Node:
            seen.append(gc.isenabled())
            return super().lower(grammar, limits)

    Compiler(VOCABULARY).compile(Watching("a+"))
    assert seen == [False]
    assert gc.isenabled() == is_wanted


def test_goes_on_behind_a_source_that_is_refused(is_wanted: bool) -> None:
    with pytest.raises(ConstraintError):
        Compiler(VOCABULARY).compile(JsonSchema({"type": "integer", "enum": ["a"]}))
    assert gc.isenabled() == is_wanted

"""Automata that are kept for the process: asked for again, too large for a limit, and dropped when there are too many."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.constraints.automaton.finite_automata import AutomatonCache, FiniteAutomaton, TooManyStates
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.lowering_cache import shape_of


def automaton(num_states: int) -> FiniteAutomaton:
    return FiniteAutomaton(np.zeros(256, np.int32), np.zeros((num_states, 10), np.int32), np.ones(num_states, np.uint8), 1)


def refused() -> FiniteAutomaton:
    raise TooManyStates


def unexpected() -> FiniteAutomaton:
    raise AssertionError("it is known")


def test_what_was_made_is_not_made_again() -> None:
    cache, made = AutomatonCache(), automaton(5)
    assert cache.automaton("a", 9, lambda: made) is made
    assert cache.automaton("a", 5, unexpected) is made
    assert (cache.hits, cache.misses) == (1, 1)


def test_a_limit_holds_for_what_is_kept() -> None:
    cache = AutomatonCache()
    cache.automaton("a", 9, lambda: automaton(7))
    with pytest.raises(TooManyStates):
        cache.automaton("a", 6, unexpected)


def test_what_has_too_many_states_is_tried_again_with_a_higher_limit_only() -> None:
    cache = AutomatonCache()
    with pytest.raises(TooManyStates):
        cache.automaton("a", 100, refused)
    with pytest.raises(TooManyStates):
        cache.automaton("a", 100, unexpected)
    assert cache.automaton("a", 200, lambda: automaton(150)).num_states == 150


def test_the_least_used_are_dropped() -> None:
    cache = AutomatonCache(max_words=4_000)
    for key in "abac":
        cache.automaton(key, 99, lambda: automaton(50))  # 1,500 words
    assert cache.automaton("a", 99, unexpected).num_states == 50
    with pytest.raises(AssertionError):
        cache.automaton("b", 99, unexpected)


def test_the_same_expression_has_one_key_in_all_grammars() -> None:
    def word(grammar: Grammar, last: str) -> Node:
        return grammar.seq(grammar.repeat(grammar.chars([(97, 122)]), 1, 3), grammar.alt(grammar.literal("x"), grammar.literal(last)))

    first, second = Grammar(), Grammar()
    second.literal("something else")
    assert shape_of(first, word(first, "yz")) == shape_of(second, word(second, "yz"))
    assert shape_of(first, word(first, "yz")) != shape_of(second, word(second, "yy"))
    rule = first.rule("r")
    assert shape_of(first, first.call(rule)) is None

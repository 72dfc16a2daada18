"""Ambiguous grammars whose stacks are kept as a graph: the same texts and masks, and work that does not run away with the text."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from maskwright.constraints import Compiler, ConstraintError, Gbnf, Limits
from maskwright.constraints.automaton.assembling.assembly import may_be_graph
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.token_automaton.pumping import WINDOW
from maskwright.constraints.token_automaton.token_automaton import Pumped, TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary
from maskwright.constraints.vocabulary.vocabulary import Vocabulary

from ..grammar.ambiguous import NAMED, small_grammar
from ..grammar.bounded_languages import strings_of
from ..grammar.growing import BYTES
from ..some_each_time import some_each_time

LONG, MOST_WORK = 2_000, 20_000  # bytes of a text; words, items and pairs of stacks for one of them: a fifth of a millisecond
SHARED = SharedVocabulary(BYTES)
TOKENS = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *(text.encode() for text in ("aa", "ab", "ba", "abc", "bab", "aaaa", "cab")), None],
    eos_token_ids=[263],
)


def automaton_of(text: str, as_graph: bool, vocabulary: SharedVocabulary = SHARED) -> TokenAutomaton | None:
    """None where the grammar has no text."""
    grammar = Grammar()
    try:
        root = Gbnf(text).lower(grammar, Limits())
        grammar.stacks_as_graph = as_graph
        assert may_be_graph(grammar)
        return TokenAutomaton(grammar, root, vocabulary, Limits())
    except ConstraintError:
        return None


def work_of(automaton: TokenAutomaton, period: int, seed: int, length: int = LONG) -> int:
    """The most work of a byte in a text that repeats itself."""
    pumped = Pumped(32, np.zeros(length + 1, np.int32), np.zeros(length, np.int32), np.full(length, -1, np.int32))
    pumped.states[0] = automaton.start
    read = automaton.pump(period, seed, 0, length, MOST_WORK * WINDOW, pumped)
    return int(pumped.work[:read].max(initial=0))


@pytest.mark.parametrize("text", some_each_time([*NAMED.values(), *map(small_grammar, range(40))], len(NAMED) + 15))
def test_a_graph_has_the_strings_of_the_grammar(text: str) -> None:
    automaton = automaton_of(text, as_graph=True)
    grammar = Grammar()
    expected = strings_of(grammar, Gbnf(text).lower(grammar, Limits()), 5, b"abc")
    if automaton is None:
        return
    live = {b"": automaton.start}
    for _ in range(6):
        for begun, state in live.items():
            assert automaton.is_accepting(state) == (begun in expected) or len(begun) > 5
        longer = {begun + bytes([byte]): automaton.run(state, bytes([byte]))[0] for begun, state in live.items() for byte in b"abc"}
        live = {begun: state for begun, state in longer.items() if state}
        short = {text[:length] for text in expected for length in range(len(text) + 1)}
        assert {begun for begun in short if begun and len(begun) == len(next(iter(live), b""))} <= set(live)


@pytest.mark.parametrize("name", NAMED)
def test_work_does_not_run_away_with_the_text(name: str) -> None:
    automaton = automaton_of(NAMED[name], as_graph=True)
    assert automaton is not None
    for seed, period in enumerate((1, 2, 3)):
        assert work_of(automaton, period, seed) < MOST_WORK


@pytest.mark.parametrize("name", NAMED)
def test_masks_are_those_of_trying_every_token(name: str) -> None:
    automaton = automaton_of(NAMED[name], as_graph=True, vocabulary=SharedVocabulary(TOKENS))
    assert automaton is not None
    draw, state = random.Random(name), automaton.start
    for _ in range(40):
        row = automaton.row(state)
        allowed = [token for token in range(263) if int(row[token >> 5]) >> (token & 31) & 1]
        assert allowed == [token for token in range(263) if automaton.advance_one(state, token) != DEAD]
        if not allowed:
            break
        state = automaton.advance_one(state, draw.choice(allowed))


def test_a_graph_is_kept_in_a_file(tmp_path: Path) -> None:
    constraint = Compiler(TOKENS).compile(Gbnf(NAMED["optional ones in turn"]))
    constraint.save(tmp_path / "grammar.constraint")
    loaded = Compiler(TOKENS).load(tmp_path / "grammar.constraint")
    with loaded.exclusively() as (automaton, _):
        assert automaton.grammar.stacks_as_graph
    states = [constraint.start(), loaded.start()]
    for byte in b"aaaabaaca":
        assert (constraint.mask(states[0]) == loaded.mask(states[1])).all()
        states = [constraint.advance(states[0], byte), loaded.advance(states[1], byte)]

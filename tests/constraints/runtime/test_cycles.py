"""Cycles: all short texts that can be read again and again, each once, but for those that say no more."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from maskwright.constraints import Gbnf, Limits
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.runtime.cycles import cycles
from maskwright.constraints.token_automaton.token_automaton import TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

from ..grammar.growing import BYTES

SHARED = SharedVocabulary(BYTES)
GRAMMARS = {
    "brackets": 'root ::= ("(" root ")" | [ab])*',
    "two readings": 'root ::= "a" root? "b"? | "b" root "a"',
    "words": 'root ::= [a-z]+ (" " root)?',
}


def automaton_of(text: str) -> TokenAutomaton:
    grammar = Grammar()
    return TokenAutomaton(grammar, Gbnf(text).lower(grammar, Limits()), SHARED, Limits())


def leads_on(automaton: TokenAutomaton, beginning: bytes, cycle: bytes) -> bool:
    states = [automaton.run(automaton.start, beginning + times * cycle)[0] for times in range(1, 5)]
    return all(states) and all(first != second for first, second in pairwise(states))


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("beginning", [b"", b"a"])
def test_each_is_there_once(name: str, beginning: bytes) -> None:
    automaton = automaton_of(GRAMMARS[name])
    found = [cycle for _, cycle in cycles(automaton, [beginning], longest=4, most=10_000)]
    assert len({min(cycle[k:] + cycle[:k] for k in range(len(cycle))) for cycle in found}) == len(found)
    for cycle in found:
        assert leads_on(automaton, beginning, cycle)
        assert all(cycle != len(cycle) // k * cycle[:k] for k in range(1, len(cycle)))


@pytest.mark.parametrize(("name", "letters"), [("brackets", b"a()"), ("two readings", b"ab")])
def test_none_is_missing(name: str, letters: bytes) -> None:
    """letters: of those that mean the same one."""
    automaton = automaton_of(GRAMMARS[name])
    found = {cycle for _, cycle in cycles(automaton, [b""], longest=4, most=10_000)}
    turned = {cycle[k:] + cycle[:k] for cycle in found for k in range(len(cycle))}
    for length in range(1, 5):
        for text in map(bytes, product(letters, repeat=length)):
            repeats = any(length % k == 0 and text == length // k * text[:k] for k in range(1, length))
            assert text in turned or repeats or not leads_on(automaton, b"", text)


def test_there_are_no_more_than_asked_for() -> None:
    automaton = automaton_of(GRAMMARS["brackets"])
    assert len(list(cycles(automaton, [b"", b"((", b"a"], longest=6, most=7))) <= 21

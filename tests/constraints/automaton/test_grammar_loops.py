"""A grammar in an arena, against slow twins: which parts are shared, what literals cost, which rules call themselves first."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from maskwright.constraints import ConstraintError, UnsupportedKeyword, Vocabulary
from maskwright.constraints.automaton.assembling.assembly import assemble, repeated_units
from maskwright.constraints.automaton.assembling.grammar_loops import CHAIN
from maskwright.constraints.automaton.machine import Machine
from maskwright.constraints.base.kinds import Kind
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.left_recursion import nullable_nodes
from maskwright.constraints.grammar.recursion import first_calls
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

from ..grammar.test_left_recursion import Calls, calls

TOKENS: list[bytes] = [b"<end>", b"ab", b"aba", b"bb", b"abab", *(bytes([byte]) for byte in range(256))]
SHARED = SharedVocabulary(Vocabulary(TOKENS, eos_token_ids={0}))


def assembled(grammar: Grammar, root: Node) -> Machine:
    units = repeated_units(grammar)
    classes = sorted({grammar.units[characters] for characters in units.values()})
    return assemble(grammar, root, units, classes, SHARED, Limits())


def left_recursive_rules(grammar: Grammar) -> set[str]:
    """The rules that may be called again before they have read a byte."""
    empty = nullable_nodes(grammar)
    first = [set(first_calls(grammar, body, empty)) for body in grammar.rule_bodies if body is not None]
    for _ in first:
        first = [called.union(*(first[rule] for rule in called)) for called in first]
    return {grammar.rule_names[rule] for rule, called in enumerate(first) if rule in called}


@settings(max_examples=150)
@given(calls)
def test_left_recursion_is_found_where_there_is_some(rules: Calls) -> None:
    grammar = Grammar()
    root = rules.written(grammar)
    expected = left_recursive_rules(grammar)
    try:
        assembled(grammar, root)
        assert not expected
    except UnsupportedKeyword as error:
        assert error.keyword == "left recursion" and error.path in expected
    except ConstraintError as error:
        pytest.fail(str(error))


@settings(max_examples=100)
@given(calls)
def test_shared_parts_are_those_that_several_sequences_hold(rules: Calls) -> None:
    grammar = Grammar()
    root = grammar.seq(rules.written(grammar), grammar.literal("!"))
    try:
        machine = assembled(grammar, root)
    except UnsupportedKeyword:  # left recursion
        return
    kinds = [grammar.kind(node) for node in map(Node, range(len(grammar)))]
    parts = {node: [Node(part) for part in grammar.operands(Node(node))[:2]] for node, kind in enumerate(kinds) if kind is Kind.SEQ}
    held = [part for pair in parts.values() for part in pair]
    shared = {part for part in held if held.count(part) > 1}
    for _ in range(CHAIN - 1):
        shared |= {part for whole in shared for part in parts.get(whole, ())}
    expected = [node in shared and kind in (Kind.SEQ, Kind.ALT, Kind.CALL) for node, kind in enumerate(kinds)]
    assert machine.nodes("shared")[: len(grammar)].tolist() == expected


def fewest_tokens(text: bytes) -> int:
    return min((1 + fewest_tokens(text[len(token) :]) for token in TOKENS[1:] if text.startswith(token)), default=0) if text else 0


def test_literals_cost_their_shortest_segmentation() -> None:
    rng, grammar = random.Random(5), Grammar()
    texts = [bytes(rng.choices(b"abc", k=rng.randrange(1, 9))) for _ in range(40)]
    nodes = {text: grammar.literal(text) for text in texts}
    machine = assembled(grammar, grammar.alt(*nodes.values()))
    assert {text: int(machine.nodes("cost")[node]) for text, node in nodes.items()} == {text: fewest_tokens(text) for text in texts}


@pytest.mark.parametrize(("rows", "expected"), [([], 1), ([b"a" * 3] * 2, 1), ([b"x", b"aba"], 2)])
def test_nothing_is_left_of_what_the_memory_held_before(rows: list[bytes], expected: int) -> None:
    """Regions of memory are used again; each grammar writes all of every node that it has."""
    for _ in range(3):
        grammar = Grammar()
        root = grammar.seq(*map(grammar.literal, rows), grammar.repeat(grammar.literal("b"), 1, 5))
        machine = assembled(grammar, root)
        fields = ("closure", "marked_in", "entry_product", "copies_begun", "first_candidate", "next_candidate")
        assert not any(machine.nodes(name)[: len(grammar)].any() for name in fields)
        assert int(machine.nodes("cost")[root]) >= expected
        del machine


@settings(max_examples=100)
@given(calls)
def test_what_is_repeated_is_found_once_each_in_its_order(rules: Calls) -> None:
    grammar = Grammar()
    rules.written(grammar)
    letters = grammar.chars([(97, 122)])
    for low in (0, 2):
        grammar.seq(grammar.repeat(letters, low, 9), grammar.repeat(grammar.alt(letters, grammar.literal("!")), low, 5))
    nodes = [Node(number) for number in range(len(grammar))]
    bodies = [Node(grammar.operands(node)[0]) for node in nodes if grammar.kind(node) is Kind.REPEAT]
    known = [body for body in dict.fromkeys(bodies) if body in grammar.units or grammar.kind(body) is Kind.ALT]
    found = repeated_units(grammar)
    assert [body for body in known if body in found] == list(found)
    assert found[letters] == letters and letters in found.values()

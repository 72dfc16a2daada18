"""Ambiguous grammars: the language stays, and what is kept of a text does not grow with the ways to read it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings

from maskwright.constraints import Compiler, ConstraintError, ConstraintLimit, Gbnf, Limits
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.left_recursion import without_left_recursion
from maskwright.constraints.grammar.merged_repetitions import untangled
from maskwright.constraints.runtime.constraint import as_token_ids

from .bounded_languages import all_strings, strings_of
from .growing import BYTES, unchecked
from .test_left_recursion import ALPHABET, LONGEST, Calls, calls

COMPILER = Compiler(BYTES, limits=Limits(nodes=100_000))
LENGTH = 1_200  # bytes of a long text


class Untangled(Calls):
    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        root = self.written(grammar)
        without_left_recursion(grammar, root, limits)
        return untangled(grammar, root, limits)


@settings(max_examples=400, deadline=None)
@given(calls)
def test_the_language_stays(source: Calls) -> None:
    grammar = Grammar()
    expected = strings_of(grammar, source.written(grammar), LONGEST, ALPHABET)
    without_left_recursion(grammar, grammar.call(0), Limits())  # type: ignore[arg-type]
    root = untangled(grammar, grammar.call(0), Limits())  # type: ignore[arg-type]
    assert strings_of(grammar, root, LONGEST, ALPHABET) == expected


@settings(max_examples=300, deadline=None)
@given(calls)
def test_the_automaton_accepts_what_the_rules_denote(source: Calls) -> None:
    grammar = Grammar()
    expected = strings_of(grammar, source.written(grammar), LONGEST, ALPHABET)
    try:
        constraint = unchecked(Untangled(source.bodies), COMPILER.limits)
    except ConstraintError as error:
        assert isinstance(error, ConstraintLimit) or ("nothing satisfies" in str(error) and not expected)
        return
    for text in all_strings(ALPHABET, LONGEST):
        assert constraint.accepts(text) == (text in expected), text
    for text in sorted(expected):
        state = constraint.start()
        for byte in text:
            assert byte in as_token_ids(constraint.mask(state))
            state = constraint.advance(state, byte) or 0


AMBIGUOUS = {
    "a repetition in itself": ('root ::= (a | "a" root?)*\na ::= "a"', "a"),
    "once or more in itself": ('root ::= (a+ | "a" root)+\na ::= "a"', "a"),
    "two in a row": ('root ::= root root | "a"', "a"),
    "an operator": ('root ::= root "+" root | "-" root | "1"', "--1+"),
    "if as an operand": ('root ::= root "+" root | "i" root "t" root "e" root | "1"', "i1t1e"),
    "application": ('root ::= root root | "l." root | "x" | "(" root ")"', "l.x"),
    "two optional ones": ('root ::= "a" root? root?', "a"),
    "up to three": ('root ::= "a" root{0,3}', "a"),
    "two or one or none": ('root ::= "a" root root | "a" root | "a"', "a"),
    "two that may be empty": ('root ::= "a" root root | ""', "a"),
    "repetitions in repetitions": ('root ::= x*\nx ::= y*\ny ::= "a"* | "b" x', "ab"),
    "rules that may be empty in a circle": ('root ::= x y "c"?\nx ::= y | "a" x | ""\ny ::= x | "b" y | ""', "ab"),
    "brackets in a row": ('root ::= ("(" root ")" | root root)?', "(()"),
    "else of which if": ('root ::= s\ns ::= "i" s ("e" s)? | "x"', "i" * 1000 + "x" + "ex" * 100),
    "lists of lists": ('root ::= i*\ni ::= "a" | "(" root ")" | root', "a("),
    "two rules in turn": ('root ::= (a | "a" other?)*\nother ::= ("b" | "a" root?)*\na ::= "a"', "a"),
    "words": ('root ::= (w | w " " root?)*\nw ::= [a-z]+', "ab "),
    "optional ones in a circle": ('root ::= p? q? root?\np ::= "a" root?\nq ::= "b" root?', "ab"),
    "marks that may be closed": ('root ::= n*\nn ::= [^<]+ | "<b>" root ("</b>")?', "<b>abc"),
}  # fmt: skip


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_long_texts_take_no_more_than_short_ones(name: str) -> None:
    text, letters = AMBIGUOUS[name]
    constraint = COMPILER.compile(Gbnf(text))
    state, made = constraint.start(), [constraint.nbytes]
    for at in range(LENGTH):
        byte = ord(letters[at % len(letters)])
        assert byte in as_token_ids(constraint.mask(state))
        state = constraint.advance(state, byte) or 0
        if (at + 1) % (LENGTH // 3) == 0:
            made.append(constraint.nbytes)
    early, _, late = (after - before for before, after in pairwise(made))
    assert late < 2 * early + 10_000

"""Ambiguous grammars whose stacks grow are reduced, or kept as graphs; where these grow too they are refused while compiling, by name
and with the text; others are not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from maskwright.constraints import Compiler, Gbnf, Limits, UnsupportedKeyword, Vocabulary
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.runtime.growth import Form, Text, Trial, refusal

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
REDUCED = {
    "lists behind lists": 'root ::= root* root? | "b"{0,3} (root? root x | "c" root? x?)? y\nx ::= x x? | "a"? | "b" root+ "b"*\n'
    'y ::= root root{0,3} x | y? "b"? root "a"{2} | x "c" "b"',
    "counted ones that call each other": 'root ::= x "a"{2} y{2} | "a"{0,2} y{0,2}\n'
    'x ::= root "c"? y | root? ("c" "b") | root? "c" y{0,3} root\ny ::= x{0,2} | "c"+ "a"*',
    "three ways to go on": 'root ::= x "c" "a" | "a" | x*\nx ::= root+ | "b" root',
}
GROWS = {  # one of them with a counter, which makes its automata too large to be looked at
    "three lists in a row": 'root ::= x{0,2} x | "a" x{2} root\nx ::= x? "b"? (x root | root? x "a" | "a"* "a"{2})+ | x? x* x x',
    "lists behind lists": REDUCED["lists behind lists"].replace('"b"?', '("b" "c"{0,5000})?'),
    "deeper ones in lists": 'root ::= "a" "b" | "b" | "a" (z{0,3})?\nx ::= "a" (root{2} | z?) | "a" x x\nz ::= x{2} | z | "a"',
}
GRAPHS = {
    "optional ones in turn": 'root ::= x\nx ::= "a" x? y? | "b"\ny ::= "a" y? x? | "c"',
    "bounded ones": 'root ::= "a" ("b" root{0,3} | root{1,2})? "c"? | "b"',
}
STAYS = {
    "brackets": 'root ::= "(" root* ")" | "x"',
    "palindromes": 'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
    "operators": 'root ::= root "+" root | root "*" root | "(" root ")" | [0-9]+',
    "many words": 'root ::= word (" " root)?\nword ::= ' + " | ".join(f'"w{k * 7919 % 10_007}"' for k in range(2_000)),
    "counted in brackets": 'root ::= ("(" root ")"){2,5000} | "x"{1,300}',
}  # fmt: skip


SPIKES = {  # a byte may end thousands of brackets that are open in one way of reading the text
    "brackets that any text may be": ('root ::= ("(" root ")" | [a-z()])*', "(a))b(", "(A)"),
    "quotes in text": ('root ::= (["] root ["] | [^x])*', '"a" "b', "x"),
    "marks that need not end": ('root ::= item*\nitem ::= "<" item* ">" | "<" | [a-z >]', "<a>b<", "<A>"),
}


@pytest.mark.parametrize("name", SPIKES)
def test_what_takes_much_for_a_few_bytes_is_not_refused(name: str) -> None:
    grammar, accepted, rejected = SPIKES[name]
    constraint = COMPILER.compile(Gbnf(grammar))
    assert constraint.accepts(accepted) and not constraint.accepts(rejected)


@pytest.mark.parametrize("name", GROWS)
def test_a_grammar_whose_stacks_grow_is_refused_with_the_text(name: str) -> None:
    with pytest.raises(UnsupportedKeyword, match=r"ever more ways to read a text .* '[abc]+' and goes on with '[abc]+'") as caught:
        COMPILER.compile(Gbnf(GROWS[name]))
    assert caught.value.keyword == "ambiguity" and caught.value.instead is not None
    assert re.search(r"rule '\w+' reads '[abc]+' as .* and as .*", str(caught.value))


def test_a_first_byte_that_takes_too_much_is_told_as_one() -> None:
    grammar = Grammar()
    trial = Trial(Text(seed=0, period=1, free=32, longest=96), b"", np.array([70_000], np.int32), 1_000)
    told = str(refusal(trial, Form(grammar, grammar.repeat(grammar.literal("a")), stacks_as_graph=False)))
    assert "too many ways to read the first byte of a text: its steps are 70000 (half of limit `byte_words`: 1000)" in told


@pytest.mark.parametrize("name", REDUCED)
def test_grammars_that_say_the_same_in_many_ways_are_reduced(name: str) -> None:
    with COMPILER.compile(Gbnf(REDUCED[name])).exclusively() as (automaton, _):
        assert not automaton.grammar.stacks_as_graph


@pytest.mark.parametrize("name", GRAPHS)
def test_stacks_that_grow_are_kept_as_a_graph(name: str) -> None:
    with COMPILER.compile(Gbnf(GRAPHS[name])).exclusively() as (automaton, _):
        assert automaton.grammar.stacks_as_graph


@pytest.mark.parametrize("name", STAYS)
def test_other_grammars_compile_as_they_are(name: str) -> None:
    with COMPILER.compile(Gbnf(STAYS[name])).exclusively() as (automaton, _):
        assert not automaton.grammar.stacks_as_graph


def test_the_verdict_is_the_same_each_time() -> None:
    texts = []
    for _ in range(2):
        with pytest.raises(UnsupportedKeyword) as caught:
            Compiler(COMPILER.vocabulary).compile(Gbnf(GROWS["lists behind lists"]))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("states", [100, 200, 1_000])
def test_a_form_that_a_limit_cuts_short_is_not_taken_for_a_cheap_one(states: int) -> None:
    with pytest.raises(UnsupportedKeyword, match="ever more ways"):
        Compiler(COMPILER.vocabulary, Limits(states=states)).compile(Gbnf(GROWS["deeper ones in lists"]))


def test_the_limit_has_a_name() -> None:
    with pytest.raises(UnsupportedKeyword, match=r"`byte_words`: [12]\d{3}\)"):
        Compiler(COMPILER.vocabulary, Limits(byte_words=500)).compile(Gbnf(GROWS["deeper ones in lists"]))

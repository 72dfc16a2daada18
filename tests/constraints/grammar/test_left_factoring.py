"""Left factoring: the language stays, and stacks that begin alike are one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings

from maskwright.constraints import Compiler, Ebnf, Gbnf, Lark, Limits, Source
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.left_factoring import left_factored
from maskwright.constraints.grammar.left_recursion import without_left_recursion

from .bounded_languages import strings_of
from .test_left_recursion import ALPHABET, BYTES, LONGEST, Calls, calls


@dataclass(frozen=True)
class Factored(Calls):
    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        root = self.written(grammar)
        without_left_recursion(grammar, root, limits)
        return left_factored(grammar, root, limits)


@settings(max_examples=400, deadline=None)
@given(calls)
def test_the_language_stays(source: Calls) -> None:
    grammar = Grammar()
    expected = strings_of(grammar, source.written(grammar), LONGEST, ALPHABET)
    without_left_recursion(grammar, grammar.call(0), Limits())  # type: ignore[arg-type]
    root = left_factored(grammar, grammar.call(0), Limits())  # type: ignore[arg-type]
    assert strings_of(grammar, root, LONGEST, ALPHABET) == expected


@pytest.mark.parametrize(
    ("source", "opening", "middle", "closing"),
    [
        (Gbnf('root ::= "a" root "x" | "a" root "y" | "b"'), b"a", b"b", (b"x", b"y")),
        (Gbnf('root ::= s\ns ::= "(" s ")" | "(" s "]" | t\nt ::= "b"'), b"(", b"b", (b")", b"]")),
        (Gbnf('root ::= s "x" | t "y" | "b"\ns ::= t "z"?\nt ::= "a" root'), b"a", b"b", (b"x", b"y", b"zx")),
        (Gbnf('root ::= (u "=")* c\nc ::= p ("?" root ":" c)?\np ::= u ("+" u)*\nu ::= "(" root ")" | [a-z]'), b"(", b"b", (b")", b"+c)", b"=b)", b"?d:e)")),
        (Gbnf('root ::= "(" ( list | root " for" )? ")" | "b"\nlist ::= root ("," root)*'), b"(", b"b", (b")", b" for)", b",b)")),
        (Gbnf('root ::= "{" ( pairs | root " for" ) "}" | "b"\npairs ::= pair ("," pair)*\npair ::= root ":" root | "**" root'), b"{", b"b", (b":b}", b" for}")),
        (Gbnf('root ::= "[" ( root? ":" root? | root ) "]" | "b"'), b"[", b"b", (b"]", b":]", b":b]")),
        (Ebnf('root ::= "a" root "x" | "a" root "y" | "b"'), b"a", b"b", (b"x", b"y")),
        (Lark('start: "a" start "x" | "a" start "y" | "b"'), b"a", b"b", (b"x", b"y")),
    ],
)  # fmt: skip
def test_deep_nesting_has_one_stack(source: Source, opening: bytes, middle: bytes, closing: tuple[bytes, ...]) -> None:
    constraint = Compiler(BYTES, limits=Limits(nodes=60_000)).compile(source)
    text = opening * 60 + middle + b"".join(closing[level % len(closing)] for level in range(60))
    assert constraint.accepts(text)
    assert not constraint.accepts(text + closing[0])
    assert constraint.statistics["states"] < 3_000


def test_what_is_not_shared_stays_as_it_was() -> None:
    grammar = Grammar()
    rule = grammar.rule("r")
    body = grammar.alt(grammar.seq(grammar.literal("a"), grammar.call(rule)), grammar.literal("b"))
    grammar.define(rule, body)
    count = len(grammar)
    assert left_factored(grammar, grammar.call(rule), Limits()) == grammar.call(rule)
    assert grammar.rule_bodies[rule] == body and len(grammar) == count


def test_many_alternatives_and_long_prefixes() -> None:
    """Neither the number of alternatives nor the length of what they share matters much."""
    many = " | ".join(f'"{number}" root' for number in range(2_000))
    long = " ".join(["root"] * 300)
    for text in (f'root ::= "x" | {many}', f'root ::= "x" | "(" {long} ")" | "(" {long} "]"'):
        assert Compiler(BYTES).compile(Gbnf(text)).accepts(b"x")

"""Left recursion, cycles, ambiguity and rules that may be empty, against the sets of strings they denote by definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, ConstraintLimit, Ebnf, Gbnf, Lark, Limits
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.left_recursion import nullable_nodes, without_left_recursion

from .bounded_languages import all_strings, strings_of
from .growing import BYTES, unchecked

COMPILER = Compiler(BYTES)
SMALL = Limits(nodes=50_000)
ALPHABET, LONGEST, RULES = b"ab", 5, 3


@dataclass(frozen=True)
class Calls:
    """Rules that call each other anywhere, as nested tuples; the first is the root."""

    bodies: tuple[Any, ...]

    def written(self, grammar: Grammar) -> Node:
        rules = [grammar.rule(f"r{index}") for index in range(len(self.bodies))]
        for rule, body in zip(rules, self.bodies, strict=True):
            grammar.define(rule, self._built(grammar, body, rules))
        return grammar.call(rules[0])

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        root = self.written(grammar)
        without_left_recursion(grammar, root, limits)
        return root

    def _built(self, grammar: Grammar, parts: Any, rules: list[Any]) -> Node:
        name, *arguments = parts
        if name == "literal":
            return grammar.literal(arguments[0])
        if name == "call":
            return grammar.call(rules[arguments[0]])
        if name == "repeat":
            body, low, extra = arguments
            return grammar.repeat(self._built(grammar, body, rules), low, None if extra is None else low + extra)
        return getattr(grammar, name)(*(self._built(grammar, argument, rules) for argument in arguments))


_leaves = st.one_of(
    st.tuples(st.just("literal"), st.text("ab", max_size=2)),
    st.tuples(st.just("call"), st.integers(0, RULES - 1)),
    st.tuples(st.just("call"), st.integers(0, RULES - 1)),
)
_bodies = st.recursive(
    _leaves,
    lambda parts: st.one_of(
        st.tuples(st.just("seq"), parts, parts),
        st.tuples(st.just("alt"), parts, parts),
        st.tuples(st.just("alt"), parts, parts, parts),
        st.tuples(st.just("repeat"), parts, st.integers(0, 2), st.sampled_from([None, 0, 1, 2])),
    ),
    max_leaves=6,
)
calls = st.lists(_bodies, min_size=RULES, max_size=RULES).map(lambda bodies: Calls(tuple(bodies)))


def accepted_by(source: Any) -> set[bytes] | None:
    """The short strings that the machine accepts; None when counters in recursion have more stacks than it may hold."""
    try:
        constraint = unchecked(source, SMALL)
        return {text for text in all_strings(ALPHABET, LONGEST) if constraint.accepts(text)}
    except ConstraintLimit:
        return None
    except ConstraintError as error:
        assert "nothing satisfies" in error.reason
        return set()


@settings(max_examples=300, deadline=None)
@given(calls)
def test_the_rewritten_rules_accept_what_the_written_ones_denote(source):
    grammar = Grammar()
    expected = strings_of(grammar, source.written(grammar), LONGEST, ALPHABET)
    assert accepted_by(source) in (expected, None)


ARITHMETIC = """
root ::= root "+" root | root "*" root | "(" root ")" | [0-9]+
"""
INDIRECT = """
root ::= place | call
place ::= place "." name | call "[" root "]" | name
call  ::= place "(" root? ")" | call "!"
name  ::= [a-z]+
"""
HIDDEN = """
root ::= empty root "x" | ws root "y" | "z"
empty ::= ws ws
ws ::= " "?
"""


@pytest.mark.parametrize(
    ("text", "accepted", "rejected"),
    [
        (ARITHMETIC, ["1", "1+2*3", "(1+2)*(3)", "((1))+1+1"], ["", "+", "1+", "(1", "1)", "1++1"]),
        (INDIRECT, ["a", "a.b", "a.b()", "a()[b.c]", "a()!", "a(b())"], ["a!", "a[b]", ".a", "a.", "a(b"]),
        (HIDDEN, ["z", "zx", "zy", " zxy", "   zyx"], ["x", "xz", ""]),
        ('root ::= root | "a"', ["a"], ["", "aa"]),
        ('root ::= a\na ::= b\nb ::= c "x" | a\nc ::= a | "y"', ["yx", "yxx"], ["x", "y"]),
        ('root ::= root root | "a" | ""', ["", "a", "aaaa"], ["b"]),
    ],
)
def test_examples(text, accepted, rejected):
    constraint = COMPILER.compile(Gbnf(text))
    assert [one for one in accepted if not constraint.accepts(one.encode())] == []
    assert [one for one in rejected if constraint.accepts(one.encode())] == []


def test_an_ambiguous_operator_needs_few_states():
    constraint = COMPILER.compile(Gbnf('root ::= root "+" root | root "*" root | "1"'))
    state = constraint.start()
    seen = set()
    for byte in b"1+" * 200:
        state = constraint.advance(state, byte)
        seen.add(state)
    assert len(seen) <= 4


def test_a_rule_that_never_ends_is_refused():
    with pytest.raises(ConstraintError, match="nothing satisfies"):
        COMPILER.compile(Gbnf('root ::= root "a"'))


def test_a_long_cycle():
    rules = [f'r{index} ::= r{index + 1} | "a"' for index in range(400)]
    constraint = COMPILER.compile(Gbnf("\n".join(["root ::= r0", *rules, 'r400 ::= r0 "b"'])))
    assert constraint.accepts(b"abb") and not constraint.accepts(b"b")


def test_more_rules_than_the_limit_allows():
    names = [f"r{index}" for index in range(60)]
    rules = [f'{name} ::= {" | ".join(f"{other} {name}" for other in names)} | "a"' for name in names]
    with pytest.raises(ConstraintLimit) as caught:
        Compiler(BYTES, limits=Limits(nodes=8_000)).compile(Gbnf("\n".join(["root ::= r0", *rules])))
    assert caught.value.limit == "nodes"


def _written(parts: Any, spell: dict[str, str]) -> str:
    """A body as text of a notation."""
    name, *arguments = parts
    if name == "literal":
        return f'"{arguments[0]}"' if arguments[0] else spell["empty"]
    if name == "call":
        return f"r{arguments[0]}"
    if name == "repeat":
        body, low, extra = arguments
        return f"({_written(body, spell)})" + spell["count"].format(low, "" if extra is None else low + extra)
    between = {"seq": spell["then"], "alt": "|"}[name]
    return "(" + between.join(_written(argument, spell) for argument in arguments) + ")"


def _iso(parts: Any) -> str:
    name, *arguments = parts
    if name == "repeat":
        body, low, extra = arguments
        inner = f"({_iso(body)})"
        optional = "{" + inner + "}" if extra is None else ", ".join(["()", *(f"[{inner}]" for _ in range(extra))])
        return f"({low} * {inner}, {optional})"
    if name in ("seq", "alt"):
        return "(" + {"seq": ", ", "alt": "|"}[name].join(map(_iso, arguments)) + ")"
    return (
        f'"{arguments[0]}"' if name == "literal" and arguments[0] else "()" if name == "literal" else f"r{arguments[0]}"
    )


LARK = {"empty": '""', "count": "{{{},{}}}", "then": " "}


@settings(max_examples=60, deadline=None)
@given(calls)
def test_the_same_rules_in_every_notation(source):
    grammar = Grammar()
    expected = strings_of(grammar, source.written(grammar), LONGEST, ALPHABET)
    named = [f"r{index}" for index in range(RULES)]
    bodies = [_written(body, LARK) for body in source.bodies]
    texts = [
        Gbnf("\n".join(f"{name} ::= {body}" for name, body in zip(named, bodies, strict=True)), root="r0"),
        Ebnf("\n".join(f"{name} ::= {body}" for name, body in zip(named, bodies, strict=True))),
        Lark("\n".join(f"{name}: {body}" for name, body in zip(named, bodies, strict=True)), start="r0"),
        Ebnf(" ".join(f"{name} = {_iso(body)} ;" for name, body in zip(named, source.bodies, strict=True))),
    ]
    for text in texts:
        assert accepted_by(text) in (expected, None)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), min_size=10, max_size=10))
@settings(max_examples=200, deadline=None)
def test_what_may_be_empty_is_the_least_fixpoint(bodies):
    grammar = Grammar()
    rules = [grammar.rule(f"r{k}") for k in range(len(bodies))]
    for rule, (kind, left, right) in zip(rules, bodies, strict=True):
        one, other = grammar.call(rules[left]), grammar.call(rules[right])
        makers = (
            lambda one, other: grammar.seq(one, other),
            lambda one, other: grammar.alt(grammar.seq(one, grammar.literal("a")), other),
            lambda one, other: grammar.repeat(grammar.seq(one, grammar.literal("b"), other), 0, 3),
            lambda one, other: grammar.seq(grammar.literal("c"), one),
            lambda one, other: grammar.repeat(one, 2, 5),
        )
        grammar.define(rule, makers[kind](one, other))
    empty = set[int]()  # rules, by their bodies as they are written
    while True:
        more = {
            k for k, (kind, left, right) in enumerate(bodies)
            if (left in empty and right in empty, right in empty, True, False, left in empty)[kind]
        }  # fmt: skip
        if more == empty:
            break
        empty = more
    found = nullable_nodes(grammar)
    assert {k for k, body in enumerate(grammar.rule_bodies[: len(bodies)]) if body is not None and found[body]} == empty

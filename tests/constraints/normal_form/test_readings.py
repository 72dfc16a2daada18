"""A text that a rule reads in two ways is shown with both, and only if there are two."""

from __future__ import annotations

import re

import pytest

from maskwright.constraints import Gbnf, Limits
from maskwright.constraints.grammar.expression import Grammar, Node, Rule
from maskwright.constraints.grammar.merged_repetitions import REPEATED_RULE
from maskwright.constraints.normal_form.readings import Ambiguity, ambiguity

from ..grammar.ambiguous import NAMED, small_grammar
from ..grammar.bounded_languages import strings_of
from .forms import lowered

WITH_ONE_READING = {
    "brackets": 'root ::= "(" root* ")" | "x"',
    "palindromes": 'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
    "operators": 'root ::= root "+" t | t\nt ::= t "*" f | f\nf ::= "(" root ")" | [0-9]+',
    "parts that may be empty": 'root ::= x? y? x\nx ::= "a"\ny ::= "b" root',
    "characters of several bytes": 'root ::= (c root)?\nc ::= "a" | "é" | [à-è]',
    "counted": 'root ::= "a"{2,5} "b" | "a"{2} "c" root',
    "a copy that may be empty": 'root ::= x{2} "c"\nx ::= "a"? "b" | ""',
}
WITH_TWO = {
    "two options": ('root ::= x | y\nx ::= "a" "b"?\ny ::= "b"? "a"', "root", b"a"),
    "a list in a list": ('root ::= "b" x\nx ::= "a" x? x? | "c"', "x", b"aaa"),
    "either of two": ('root ::= "a" root? root?', "root", b"aaa"),
    "copies": ('root ::= "c" (x | "b")*\nx ::= "b"{1,2}', "root", b"cb"),
    "behind what is read": ('root ::= "w" (x | y)\nx ::= "q" x? | "r"\ny ::= "qq" "r"', "root", b"wqqr"),
}
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def found_in(text: str, begun: bytes = b"") -> Ambiguity | None:
    grammar, root = lowered(text)
    return ambiguity(grammar, root, begun)


@pytest.mark.parametrize("name", WITH_ONE_READING)
def test_nothing_is_shown_where_each_text_has_one_reading(name: str) -> None:
    assert found_in(WITH_ONE_READING[name], b"(x)abaaba+*") is None


@pytest.mark.parametrize("name", WITH_TWO)
def test_the_shortest_text_with_two_readings_is_found(name: str) -> None:
    text, rule, part = WITH_TWO[name]
    found = found_in(text)
    assert found is not None
    assert (found.rule, found.text) == (rule, part)


@pytest.mark.parametrize("text", [*NAMED.values(), *map(small_grammar, range(80))])
def test_both_readings_are_of_the_text_and_of_the_rule(text: str) -> None:
    grammar, root = Grammar(), Node(0)
    root = Gbnf(text).lower(grammar, Limits())
    found = ambiguity(grammar, root, b"")
    if found is None:
        return
    assert found.first != found.second and found.rule != REPEATED_RULE
    spelled = found.text.decode()
    for reading in (found.first, found.second):
        assert reading.endswith("...") or "".join(QUOTED.findall(reading)) == spelled
    bodies = [grammar.rule_bodies[Rule(k)] for k, name in enumerate(grammar.rule_names) if name == found.rule]
    nodes = [body for body in bodies if body is not None] + [root] * (found.rule == "root")
    assert any(found.text in strings_of(grammar, node, len(found.text), bytes(set(found.text))) for node in nodes)


def test_a_part_of_the_text_that_is_given_is_looked_at() -> None:
    text = 'root ::= "w" (x | y)\nx ::= "q" x | "rstuv"\ny ::= "qrstu" "v"'
    found = found_in(text, b"wqrstuvx")
    assert found is not None and found.text == b"wqrstuv"
    assert found_in(text) is None


def test_a_large_grammar_is_not_looked_at() -> None:
    assert found_in("root ::= " + " | ".join(f'"{k}" root? root?' for k in range(3_000)), b"00") is None

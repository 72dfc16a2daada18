"""Ambiguous grammars whose texts are those of a finite automaton: found, with the same texts; what only looks like one is not."""

from __future__ import annotations

import pytest

from maskwright.constraints import Compiler, ConstraintError, Gbnf, Limits
from maskwright.constraints.automaton.assembling.assembly import may_be_graph
from maskwright.constraints.normal_form.finite_form import finite_form
from maskwright.constraints.normal_form.reduction import finite

from ..grammar.ambiguous import small_grammar
from ..grammar.ambiguous_families import FAMILIES
from ..grammar.bounded_languages import strings_of
from ..grammar.growing import BYTES, work_of
from ..some_each_time import some_each_time
from .forms import form_of, lowered

FINITE = {
    "one or two more": ('root ::= "a" | "a" root? root "a"?', 2),
    "three in a row": ('root ::= "a" root root root | "a" | ""', 1),
    "lists that overlap": ('root ::= l+ | m+\nl ::= "a" ("b" l?)* | "b"\nm ::= ("a" | "b")+ m? | "c"', 2),
    "longer bytes": ('root ::= ("a" | "é" | "ü") root? root?', 3),
    "rules in turn": (FAMILIES["rules in turn"](10), 6),
}
NOT_FINITE = {
    "brackets": 'root ::= "(" root* ")" | "x"',
    "as many": 'root ::= "a" root "b" | ""',
    "palindromes": 'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
    "one long text more": 'root ::= "a"* | "a"{30} "b"',
    "one long text less": 'root ::= "a"{0,30}',
    "brackets that are long before they close": 'root ::= "a"* | "a"{12} "a"* x\nx ::= "b" | "a" x "b"',
}
MADE_UP = [*map(small_grammar, range(40)), *(FAMILIES[name](seed) for name in FAMILIES if name != "lark" for seed in range(8))]


@pytest.mark.parametrize("name", FINITE)
def test_an_automaton_is_found(name: str) -> None:
    text, num_states = FINITE[name]
    form = finite_form(form_of(text))
    assert form is not None and sum(form.states_with_texts()) == num_states


@pytest.mark.parametrize("name", NOT_FINITE)
def test_what_only_looks_like_one_is_not_taken(name: str) -> None:
    assert finite_form(form_of(NOT_FINITE[name])) is None


@pytest.mark.parametrize("number", some_each_time(range(len(MADE_UP)), 40))
def test_texts_stay_the_same(number: int) -> None:
    try:
        grammar, root = lowered(MADE_UP[number])
    except ConstraintError:
        return
    found = finite(grammar, root, Limits()) if may_be_graph(grammar) else None
    if found is not None:
        assert strings_of(*found, 5, b"ab(, ") == strings_of(grammar, root, 5, b"ab(, ")


@pytest.mark.parametrize("name", FINITE)
def test_no_text_takes_more_than_another(name: str) -> None:
    constraint = Compiler(BYTES).compile(Gbnf(FINITE[name][0]))
    assert all(work_of(constraint, period, 32, 1_000, 30_000) < 500 for period in (1, 2, 3, 5, 8))

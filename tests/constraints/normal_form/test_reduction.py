"""A reduced grammar has the same texts and masks, and less to keep of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from maskwright.constraints import Compiler, ConstraintError, Gbnf, Limits, UnsupportedKeyword, Vocabulary
from maskwright.constraints.automaton.tables import DEAD
from maskwright.constraints.grammar.expression import Kind
from maskwright.constraints.grammar.recursion import reachable
from maskwright.constraints.normal_form import reduction, rule_automata
from maskwright.constraints.normal_form.reduction import reduced
from maskwright.constraints.token_automaton.pumping import WINDOW
from maskwright.constraints.token_automaton.token_automaton import Pumped, TokenAutomaton
from maskwright.constraints.vocabulary.shared_vocabulary import SharedVocabulary

from ..grammar.ambiguous import NAMED, small_grammar
from ..grammar.bounded_languages import strings_of
from ..grammar.growing import BYTES, OTHER_TEXTS, most_of, unchecked, work_of
from ..some_each_time import some_each_time
from .forms import form_of, lowered

COMPILER = Compiler(BYTES)
TOKENS = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *(text.encode() for text in ("aa", "ab", "ba", "abc", "bab", "aaaa", "cab")), None],
    eos_token_ids=[263],
)
LONG = 1_000  # bytes
# Work of a byte, words and steps: what is left of nearly all grammars is regular, or a stack that a byte pushes or pops. Those are
# named whose stacks say the same in several ways in all forms: they are refused, or stay below the limit alone.
MOST_WORK, REFUSED, DEAR = 20_000, {0, 12, 49, 62, 64, 66, 69, 76, 92, 105, 129, 130}, {95}
WITH_OTHER_BYTES = {
    "words and spaces": 'root ::= w*\nw ::= [a-z]+ | w w | " " w?',
    "any text": 'root ::= (t | "<" t ">")*\nt ::= [^<>]* t?',
    "longer bytes": 'root ::= ("a" | "é" | "ü" | [à-ö]) root? root?',
}


@pytest.mark.parametrize("text", some_each_time([*NAMED.values(), *map(small_grammar, range(60))], len(NAMED) + 20))
def test_a_reduced_grammar_has_the_same_texts(text: str) -> None:
    grammar, root = lowered(text)
    found = reduced(grammar, root, Limits())
    if found is not None:
        assert strings_of(*found, 5, b"abc") == strings_of(grammar, root, 5, b"abc")


@pytest.mark.parametrize("name", WITH_OTHER_BYTES)
def test_texts_of_all_bytes_stay(name: str) -> None:
    grammar, root = lowered(WITH_OTHER_BYTES[name])
    found = reduced(grammar, root, Limits())
    assert found is not None
    alphabet = b"a <>\xc3\xa9\xbc\xa0"
    assert strings_of(*found, 4, alphabet) == strings_of(grammar, root, 4, alphabet)


@pytest.mark.parametrize("name", [*NAMED, *(str(seed) for seed in (4, 5, 10, 12, 17, 53))])
def test_masks_are_those_of_trying_every_token(name: str) -> None:
    source = Gbnf(NAMED.get(name) or small_grammar(int(name)))
    is_refused = name.isdigit() and int(name) in REFUSED
    constraint = unchecked(source, Limits(), SharedVocabulary(TOKENS)) if is_refused else Compiler(TOKENS).compile(source)
    draw, state = random.Random(name), constraint.start()
    for _ in range(40):
        mask = constraint.mask(state)
        allowed = [token for token in range(263) if int(mask[token >> 5]) >> (token & 31) & 1]
        with constraint.exclusively() as (automaton, _):
            assert allowed == [token for token in range(263) if automaton.advance_one(state, token) != DEAD]
        if not allowed:
            break
        state = constraint.advance(state, draw.choice(allowed))


@pytest.mark.parametrize("seed", some_each_time([seed for seed in range(140) if seed not in REFUSED], 50))
def test_work_is_bounded_however_long_the_text(seed: int) -> None:
    try:
        constraint = COMPILER.compile(Gbnf(small_grammar(seed)))
    except ConstraintError as error:
        assert "nothing satisfies" in str(error)
        return
    with constraint.exclusively() as (automaton, _):
        most = Limits().byte_words + 40 * len(automaton.grammar) if seed in DEAR else MOST_WORK
        for period in (1, 2, 3, 5):
            assert most_work(automaton, period, most) < most


@pytest.mark.parametrize("seed", some_each_time(sorted(REFUSED), 3))
def test_what_grows_in_all_forms_is_refused_with_two_readings(seed: int) -> None:
    with pytest.raises(UnsupportedKeyword, match=r"rule '\w+' reads '[abc]+' as .* and as ") as caught:
        COMPILER.compile(Gbnf(small_grammar(seed)))
    assert caught.value.keyword == "ambiguity" and "byte_words" in str(caught.value)


@pytest.mark.parametrize("seed", some_each_time([53, 101, *range(140, 152)], 6))
def test_other_texts_than_those_that_are_tried_stay_below_the_limit(seed: int) -> None:
    try:
        constraint = COMPILER.compile(Gbnf(small_grammar(seed)))
    except ConstraintError as error:
        assert "nothing satisfies" in str(error) or error.keyword == "ambiguity"
        return
    most = most_of(constraint)
    assert all(work_of(constraint, *text, LONG, most) < most for text in OTHER_TEXTS)


def most_work(automaton: TokenAutomaton, period: int, enough: int) -> int:
    pumped = Pumped(32, np.zeros(LONG + 1, np.int32), np.zeros(LONG, np.int32), np.full(LONG, -1, np.int32))
    pumped.states[0] = automaton.start
    read = automaton.pump(period, period, 0, LONG, enough * WINDOW, pumped)
    return int(pumped.work[:read].max(initial=0))


@pytest.mark.parametrize("text", ['root ::= "a" root? root?', 'root ::= (a | "a" root?)*\na ::= "a"', small_grammar(5)])
def test_what_is_a_list_becomes_one(text: str) -> None:
    found = reduced(*lowered(text), Limits())
    assert found is not None
    assert all(found[0].kind(node) is not Kind.CALL for node in reachable(*found))


def test_a_grammar_of_which_all_is_needed_stays() -> None:
    for text in ('root ::= "a" root "a" | "b" root "b" | ""', 'root ::= "(" root* ")" | "x"'):
        assert reduced(*lowered(text), Limits()) is None


def test_reducing_again_changes_nothing() -> None:
    for seed in range(30):
        form, known = reduction._settled(form_of(small_grammar(seed)))
        assert reduction._size(reduction.simplified(form, known)) == reduction._size(form)


def test_what_is_too_large_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reduced(*lowered('root ::= (a{0,900} "b")*\na ::= "a" a{0,900} | "c"'), Limits()) is None
    monkeypatch.setattr(rule_automata, "MOST_STATES", 5)
    assert reduced(*lowered(small_grammar(5)), Limits()) is None

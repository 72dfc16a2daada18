"""What is claimed of short words of nonterminals is true."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from maskwright.constraints.normal_form import inclusions
from maskwright.constraints.normal_form.inclusions import Inclusions
from maskwright.constraints.normal_form.rule_automata import TooLarge

from ..grammar.ambiguous import NAMED, small_grammar
from ..some_each_time import some_each_time
from .forms import form_of, texts_of

LONGEST, MOST = 3, 14  # bytes of texts; nonterminals of which all pairs are looked at
TEXTS = [*NAMED.values(), *map(small_grammar, range(60))]


@pytest.mark.parametrize("text", some_each_time(TEXTS, len(NAMED) + 20))
def test_all_claims_are_true(text: str) -> None:
    form = form_of(text)
    size = len(form.nullable)
    if size > MOST:
        pytest.skip("too many pairs to try them all")
    known = Inclusions(form, with_pairs=True)
    texts = {word: texts_of(form, word, LONGEST) for length in (1, 2) for word in product(range(size), repeat=length)}
    for smaller, larger in product(range(size), repeat=2):
        assert not known.one(smaller, larger) or texts[smaller,] <= texts[larger,]
    for first, second, larger in product(range(size), repeat=3):
        assert not known.two(first, second, larger) or texts[first, second] <= texts[larger,]


@pytest.mark.parametrize("text", TEXTS[:25])
def test_longer_words_that_contain_each_other_do(text: str) -> None:
    form = form_of(text)
    known = Inclusions(form, with_pairs=True)
    words = list(product(range(min(len(form.nullable), 4)), repeat=3))[:40]
    texts = {word: texts_of(form, word, 3) for word in words}
    for larger, smaller in product(words, repeat=2):
        assert not known.contains(larger, smaller) or texts[smaller] <= texts[larger]


def test_lists_behind_lists_are_lists() -> None:
    known = Inclusions(form_of('root ::= "a" root? root?'), with_pairs=True)
    assert known.two(1, 1, 1)
    assert known.contains((1,), (1, 1, 1, 1)) and known.contains((0,), (0, 1, 0)) and not known.contains((0,), (1,))


def test_brackets_do_not_contain_each_other() -> None:
    form = form_of('root ::= "(" root ")" | "[" root "]" | "x"')
    known = Inclusions(form, with_pairs=True)
    assert not any(known.one(one, other) for one, other in permutations(range(len(form.nullable)), 2))


def test_what_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inclusions, "_MOST_COMPARED", 20)
    with pytest.raises(TooLarge):
        Inclusions(form_of(small_grammar(10)), with_pairs=True)

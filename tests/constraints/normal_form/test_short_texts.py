"""Short texts as bits are those that trying every byte finds."""

from __future__ import annotations

from itertools import product

import pytest

from maskwright.constraints.normal_form import short_texts
from maskwright.constraints.normal_form.rule_automata import TooLarge
from maskwright.constraints.normal_form.short_texts import ShortTexts

from ..grammar.ambiguous import NAMED, small_grammar
from .forms import form_of, texts_of

LONGEST = 3


@pytest.mark.parametrize("text", [*NAMED.values(), *map(small_grammar, range(12))])
def test_they_are_those_of_trying_every_byte(text: str) -> None:
    form = form_of(text)
    short, base = ShortTexts(form), len(form.byte_classes)
    first = [bytes([ranges[0][0]]) for ranges in form.byte_classes]
    for word in product(range(min(len(form.nullable), 3)), repeat=2):
        expected, bits, shift = texts_of(form, word, LONGEST), short.within(word, LONGEST), 0
        for length in range(LONGEST + 1):
            for number, digits in enumerate(product(range(base), repeat=length)):
                assert bool(bits >> shift + number & 1) == (b"".join(first[digit] for digit in digits) in expected)
            shift += base**length
        assert bits >> shift == 0


def test_what_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_texts, "_MOST_WORK", 3)
    with pytest.raises(TooLarge):
        ShortTexts(form_of(small_grammar(10))).within((0, 0), 6)

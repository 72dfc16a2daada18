"""Text up to the first of some strings, against a twin that compares every string at every place."""

from __future__ import annotations

import random
from itertools import product

import pytest

from maskwright.constraints import ConstraintLimit, Limits
from maskwright.constraints.grammar.excluded_strings import Outcome, text_until
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Grammar
from maskwright.constraints.grammar.matcher import Matcher, Steps
from maskwright.constraints.grammar.stopwatch import accounted
from maskwright.constraints.vocabulary.vocabulary import token_spelling

TOKEN = token_spelling(7)
PIECES = ("a", "b", "é", "x")


def is_read(text: str, outcomes: dict[str, str], may_end: bool) -> bool:
    """Whether text is read: at the first end of a string, of several the one that began first, follows what its outcome says."""
    begin = 0
    for end in range(1, len(text) + 1):
        ending = [word for word in outcomes if text[begin:end].endswith(word)]
        if ending:
            outcome = outcomes[max(ending, key=len)]
            if outcome != "again":
                return outcome == "ends" and end == len(text)
            begin = end
    return may_end


@pytest.mark.parametrize("seed", range(12))
def test_strings_are_found_where_they_end_first(seed: int) -> None:
    draw = random.Random(seed)
    words = {"".join(draw.choices("aabé", k=draw.randint(1, 4))) for _ in range(draw.randint(1, 5))}
    outcomes = {word: draw.choice(["again", "ends", "never"]) for word in sorted(words)}
    grammar = Grammar()
    rule = grammar.rule("text")
    nodes = {"again": grammar.call(rule), "ends": EMPTY, "never": FAIL}
    told = {word.encode(): Outcome(nodes[outcome], None) for word, outcome in outcomes.items()}
    for may_end in (True, False):
        text = text_until(grammar, rule, told, EMPTY if may_end else FAIL, None, Limits())
        matcher = Matcher(Steps(grammar), text)
        for length in range(7):
            for letters in product(PIECES, repeat=length) if length < 5 else (draw.choices(PIECES, k=9) for _ in range(50)):
                written = "".join(letters)
                assert matcher.accepts(written.encode()) == is_read(written, outcomes, may_end), (outcomes, written)


def test_a_token_may_stand_behind_a_beginning() -> None:
    grammar = Grammar()
    rule = grammar.rule("text")
    told = {b"ab" + TOKEN: Outcome(EMPTY, None), b"b" + TOKEN + b"c": Outcome(EMPTY, None), b"bb": Outcome(FAIL, None)}
    matcher = Matcher(Steps(grammar), text_until(grammar, rule, told, FAIL, None, Limits()))
    read = [b"xab" + TOKEN, b"xab" + TOKEN + b"c", b"b" + TOKEN + b"c"]
    assert all(map(matcher.accepts, read))
    assert not any(map(matcher.accepts, [b"b" + TOKEN, b"bab", b"abb" + TOKEN + b"c", b"bb" + TOKEN]))


def test_strings_that_end_alike_are_found_along_their_suffixes() -> None:
    """As many beginnings as characters: none is compared with all others, nor kept as text."""
    count = 2_000
    grammar = Grammar()
    rule = grammar.rule("text")
    text = text_until(grammar, rule, {b"a" * count + b"b": Outcome(FAIL, None)}, EMPTY, None, Limits())
    assert len(grammar.rule_names) == count + 1
    assert sum(map(len, grammar.rule_names)) < 100 * count
    matcher = Matcher(Steps(grammar), text)
    assert matcher.accepts(b"a" * (count - 1) + b"b") and not matcher.accepts(b"a" * (count + 1) + b"b")


def test_many_beginnings_look_at_the_clock() -> None:
    grammar = Grammar()
    with pytest.raises(ConstraintLimit) as caught, accounted(Limits(bytes=100_000)):
        text_until(grammar, grammar.rule("text"), {b"ab" * 50_000: Outcome(FAIL, None)}, EMPTY, None, Limits())
    assert caught.value.limit == "bytes"
    assert len(grammar.rule_names) == 1

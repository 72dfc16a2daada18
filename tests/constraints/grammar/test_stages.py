"""Rules of a grammar that take at most so many tokens: against a search through all sequences of tokens."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import (
    Compiler,
    Constraint,
    ConstraintError,
    Ebnf,
    Gbnf,
    Lark,
    Reasoning,
    StructuralTag,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.front_ends.tags.tree import OtherToken, Repeat, Sequence, Tag, Text, Token, Triggered
from maskwright.constraints.runtime.constraint import as_token_ids

TEXTS = [b"a", b"b", b"c", b";", b"ab", b"a;", b";a", b"a;b", b"bb;", b"ca", b"abc", b"c;"]
EOS = len(TEXTS)
COMPILER = Compiler(Vocabulary([*TEXTS, None], eos_token_ids=[EOS]))

# A grammar, and the same as a list of parts: a pattern and its budget. Parts follow each other in the given orders.
Parts = list[tuple[str, int | None]]
WHOLE = 0  # instead of a budget: one token, with no byte of another part
CASES: dict[str, tuple[Any, list[Parts]]] = {
    "in front": ("start: r A\nr[max_tokens=2]: /[abc]*/\nA: /;a*/", [[("[abc]*", 2), (";a*", None)]]),
    "at the end": ("start: A r\nr[max_tokens=2]: /[abc]*;/\nA: /a*/", [[("a*", None), ("[abc]*;", 2)]]),
    "text that could be either": ("start: r A\nr[max_tokens=2]: /[abc]*/\nA: /[ab]*;/", [[("[abc]*", 2), ("[ab]*;", None)]]),
    "two in a row": ("start: r s\nr[max_tokens=1]: /[ab]+/\ns[max_tokens=2]: /[abc]*;/", [[("[ab]+", 1), ("[abc]*;", 2)]]),
    "in alternatives": ('start: | r ";" | /c*/ s\nr[max_tokens=2]: /[abc]*/\ns[max_tokens=1]: /[ab]+/',
                        [[("[abc]*", 2), (";", None)], [("c*", None), ("[ab]+", 1)], []]),
    "with an end of its own": ('start: r A\nr[max_tokens=3, suffix=";"]: /[abc]*/\nA: /a*/', [[("[abc]*;", 3), ("a*", None)]]),
    "repeated": ('start: (r ";")~1..2\nr[max_tokens=1]: /[ab]*c?/', [[("[ab]*c?", 1), (";", None)], [("[ab]*c?", 1), (";", None)] * 2]),
    "behind what calls itself": ('start: r n\nn: "a" n "b" | ";"\nr[max_tokens=1]: /a*/', [[("a*", 1), ("(?:a;b|aa;bb|aaa;bbb|;)", None)]]),
    "one token": ('start: A <[4]> A\nA: /a?/', [[("a?", None), ("ab", WHOLE), ("a?", None)]]),
    "one of some tokens": ('start: "a" <[1-2,4]> "b"?', [[("a", None), ("b|c|ab", WHOLE), ("b?", None)]]),
    "one token but some": (Gbnf('root ::= "a" !<[4]> !<[1]> "c"?'), [[("a", None), ("(?!ab$)[abc;]+", WHOLE), ("(?!b$)[abc;]+", WHOLE), ("c?", None)]]),
    "tokens but some": (Gbnf('root ::= "a" !<[4]>* ";"'), [[("a", None), *[("(?!ab$)[abc;]+", WHOLE)] * n, (";", None)] for n in range(6)]),
    "one token of a macro": (Ebnf('root ::= "a" ExcludeToken(1, 4) Token(2)'), [[("a", None), ("(?!b$|ab$)[abc;]+", WHOLE), ("c", WHOLE)]]),
    "text in a tag": (StructuralTag(Tag("c", Text(max_tokens=2), ";")), [[("c", None), ("[abc]*", 2), (";", None)]]),
    "text up to what overlaps": (StructuralTag(Tag("c", Text(max_tokens=2), "aba")), [[("c", None), ("(?!.*aba)(?!.*ab$)[abc;]*", 2), ("aba", None)]]),
    "text up to several": (StructuralTag(Tag("c", Text(max_tokens=1, excludes=["bb"]), ["ca", ";"])),
                           [[("c", None), ("(?!.*ca|.*bb)[abc]*", 1), (end, None)] for end in ("ca", ";")]),
    "no text": (StructuralTag(Tag("c", Text(max_tokens=0), ";")), [[("c;", None)]]),
    "short text": (StructuralTag(Tag("c", Text(max_chars=3), ["bb"])), [[("c", None), ("(?!.*bb)(?!.*b$)[abc;]{0,3}", None), ("bb", None)]]),
    "short text of few tokens": (StructuralTag(Tag("c", Text(max_chars=3, max_tokens=2), "bb")),
                                 [[("c", None), ("(?!.*bb)(?!.*b$)[abc;]{0,3}", 2), ("bb", None)]]),
    "another token in a tag": (StructuralTag(Tag("c", OtherToken([4]), ";")), [[("c", None), ("(?!ab$)[abc;]+", WHOLE), (";", None)]]),
    "a token of text": (StructuralTag(Sequence([Token(4), Repeat(Token(1), 0, 2)])), [[("ab", WHOLE), *[("b", WHOLE)] * n] for n in range(3)]),
    "a grammar in a tag": (StructuralTag(Tag("c", Ebnf('root[max_tokens=1] ::= [abc]*'), ";")), [[("c", None), ("[abc]*", 1), (";", None)]]),
    "tags in text": (StructuralTag(Triggered(["bb"], [Tag("bb", Text(max_tokens=1), ";")], stop_after_first=True)),
                     [[("(?!.*bb)[abc;]*", None)], [("(?:(?!bb)[abc;])*bb", None), ("[abc]*", 1), (";", None)]]),
}  # fmt: skip


def readings(parts: Parts, text: str) -> list[list[tuple[int, int, int | None]]]:
    """All ways to divide a text among the parts: begin, end and budget of each."""
    found: list[list[tuple[int, int, int | None]]] = [[]]
    for number, (pattern, budget) in enumerate(parts):
        grown = []
        for way in found:
            begin = way[-1][1] if way else 0
            ends = range(begin, len(text) + 1) if number < len(parts) - 1 else [len(text)]
            grown += [[*way, (begin, end, budget)] for end in ends if re.fullmatch(pattern, text[begin:end])]
        found = grown
    return found if parts or not text else []


def is_within_budgets(orders: list[Parts], tokens: tuple[int, ...]) -> bool:
    """Whether a text can be read so that no part has bytes of more tokens than its budget."""
    edges = np.cumsum([0, *(len(TEXTS[token]) for token in tokens)]).tolist()
    text = b"".join(TEXTS[token] for token in tokens).decode()

    def spent(begin: int, end: int) -> int:
        return sum(low < end and begin < high for low, high in pairwise(edges))

    return any(
        all(budget is None or spent(begin, end) <= (budget or 1) for begin, end, budget in way)
        and all(spent(begin, end) == 1 and {begin, end} <= set(edges) for begin, end, budget in way if budget == WHOLE)
        for parts in orders
        for way in readings(parts, text)
    )


def accepts(constraint: Constraint, tokens: tuple[int, ...]) -> bool:
    state: Any = constraint.start()
    for token in tokens:
        state = None if state is None else constraint.advance(state, token)
    return state is not None and constraint.is_accepting(state)


def sequences(length: int) -> list[tuple[int, ...]]:
    known = [()]
    longest: list[tuple[int, ...]] = [()]
    for _ in range(length):
        longest = [(*tokens, token) for tokens in longest for token in range(EOS)]
        known += longest
    return known


@lru_cache
def compiled(name: str) -> Constraint:
    source = CASES[name][0]
    return COMPILER.compile(Lark(source) if isinstance(source, str) else source)


@pytest.mark.parametrize("name", CASES)
def test_a_sequence_of_tokens_is_accepted_as_its_readings_say(name: str) -> None:
    constraint, orders = compiled(name), CASES[name][1]
    rng = random.Random(name)
    longer = [tuple(rng.choices(range(EOS), k=rng.randint(4, 6))) for _ in range(500)]
    found = {tokens: accepts(constraint, tokens) for tokens in [*sequences(3), *longer]}
    assert [tokens for tokens, ok in found.items() if ok != is_within_budgets(orders, tokens)] == []
    assert any(found.values())


@pytest.mark.parametrize("name", CASES)
def test_masks_are_what_can_be_advanced_and_never_end_nowhere(name: str) -> None:
    constraint, rng = compiled(name), random.Random(name)
    states = []
    for _ in range(12):
        state: Any = constraint.start()
        for _ in range(8):
            states.append(state)
            after = {token: constraint.advance(state, token) for token in range(EOS + 1)}
            after = {token: at for token, at in after.items() if at is not None}
            assert set(as_token_ids(constraint.mask(state))) == set(after)
            distance = constraint.min_tokens(state)
            assert (distance == 0) == constraint.is_accepting(state) == (EOS in after)
            costs = {token: constraint.min_tokens(at) for token, at in after.items() if token != EOS}
            assert distance == 0 or min(costs.values()) <= distance - 1
            for budget in (distance, distance + 1):
                expected = {token for token, cost in costs.items() if cost <= budget - 1} | ({EOS} if distance == 0 else set())
                assert set(as_token_ids(constraint.mask(state, budget))) == expected
            if not costs:
                break
            state = after[rng.choice(sorted(costs))]
    out = np.zeros((len(states), 1), np.uint32)
    constraint.fill_masks(states, out)
    numbers, rows = constraint.mask_rows(states)
    for k, state in enumerate(states):
        assert (out[k] == constraint.mask(state)).all() and (rows.get(numbers[k]) == constraint.mask(state)).all()


def test_ebnf_has_the_attribute_too() -> None:
    constraint = COMPILER.compile(Ebnf('root ::= r ";"\nr[max_tokens=1] ::= [abc] r2\nr2 ::= [abc] r2 | ""'))
    assert accepts(constraint, (10, 3)) and accepts(constraint, (8,)) and not accepts(constraint, (0, 0, 3))
    assert accepts(constraint, (0, 3)) and accepts(constraint, (0, 5)) is False and accepts(constraint, (1, 0)) is False


def test_text_is_read_without_counting() -> None:
    constraint = compiled("in front")
    assert constraint.accepts(b"abcabcabc;a") and not constraint.accepts(b"abc;c")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('start: "a" start ";" | r\nr[max_tokens=2]: /a*/', "call themselves around it"),
        ("start: r\nr[max_tokens=2]: s /b/\ns[max_tokens=1]: /a*/", "inside of another one"),
        ('start: start ";" r | r\nr[max_tokens=2]: /a+/', "left recursion"),
        ('start: (head r)* tail\nhead[lazy]: T ";"\ntail: T\nT: /[abc;]*/\nr[max_tokens=2]: /a+/', "lazy"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedKeyword, match=reason) as caught:
        COMPILER.compile(Lark(text))
    assert caught.value.keyword == "max_tokens"


def test_a_budget_that_cannot_suffice() -> None:
    with pytest.raises(ConstraintError, match="takes 3 tokens at least"):
        COMPILER.compile(Lark("start: r\nr[max_tokens=2]: /bcb/"))


def test_inside_of_another_source_it_is_refused() -> None:
    with pytest.raises(UnsupportedKeyword, match="inside of another source"):
        COMPILER.compile(Reasoning(Lark(CASES["in front"][0]), start="a", end=";"))


def test_they_are_counted_and_dropped_like_other_constraints() -> None:
    compiler = Compiler(COMPILER.vocabulary, cache_bytes=1)
    for most in range(1, 40):
        constraint = compiler.compile(Lark(f'start: word ";"\nword[max_tokens={most}]: /[ab]*/'))
        constraint.mask(constraint.start())
        assert compiler.num_mask_misses >= most


def test_a_token_where_it_cannot_stand_is_called_a_token() -> None:
    with pytest.raises(UnsupportedKeyword, match="a terminal that is a token inside of rules that call themselves") as caught:
        COMPILER.compile(Gbnf('root ::= "b" root "c" <[3]> | ""'))
    assert caught.value.keyword == "<token>"

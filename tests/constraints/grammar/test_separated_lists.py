"""Chains and loops of parts, the bodies of objects and arrays, against all texts written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.grammar.expression import EMPTY, FAIL, Grammar, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.separated_lists import chain, loop

PARTS = ["a", "b", "ab", "[cd]", ""]  # one text; or one of two; or none
Link = tuple[str, bool]


def texts_of(part: str) -> list[str]:
    return list(part[1:-1]) if part.startswith("[") else [part] if part else []


def node_of(grammar: Grammar, part: str) -> Node:
    if part.startswith("["):
        return grammar.chars([(ord(char), ord(char)) for char in part[1:-1]])
    return grammar.literal(part) if part else FAIL


def gap_of(grammar: Grammar, is_spaced: bool) -> Node:
    return grammar.optional(grammar.chars([(0x20, 0x20)])) if is_spaced else EMPTY


def written(parts: Sequence[str], is_spaced: bool) -> Iterator[str]:
    """All texts of some parts in a row, behind the opening bracket."""
    gap = ["", " "] if is_spaced else [""]
    columns: list[list[str]] = []
    for i, part in enumerate(parts):
        columns += [[","], gap] if i else []
        columns += [texts_of(part), gap]
    return map("".join, product(*columns, ["}"]))


def chosen(links: Sequence[Link]) -> Iterator[list[str]]:
    """The needed parts, and each choice of the others."""
    for kept in product(*([True] if is_needed else [True, False] for _, is_needed in links)):
        yield [part for (part, _), is_kept in zip(links, kept, strict=True) if is_kept]


def near(texts: set[str]) -> set[str]:
    """Texts that differ in one character, left out or put in."""
    cut = {text[:i] + text[i + 1 :] for text in texts for i in range(len(text))}
    return cut | {text[:i] + char + text[i:] for text in texts for i in range(len(text) + 1) for char in "ac, }"}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PARTS), st.booleans()), max_size=3), st.booleans(), st.booleans())
def test_a_chain_is_each_choice_of_its_links(links: list[Link], is_spaced: bool, has_more: bool) -> None:
    grammar = Grammar()
    gap, end = gap_of(grammar, is_spaced), grammar.literal("}")
    separator = grammar.seq(grammar.literal(","), gap)
    later, following = loop(grammar, node_of(grammar, "[xy]"), gap, separator, end) if has_more else (end, FAIL)
    for _ in range(2):  # the second one is remembered
        nodes = [(node_of(grammar, part), is_needed) for part, is_needed in reversed(links)]
        body = chain(grammar, nodes, gap, separator, end, later, following)
    more = [[], ["[xy]"], ["[xy]", "[xy]"]] if has_more else [[]]
    texts = {text for parts in chosen(links) for rest in more for text in written(parts + rest, is_spaced)}
    sample = set(sorted(texts)[:: 1 + len(texts) // 60])
    reference = Reference(grammar, body)
    assert all(reference.accepts(text.encode()) for text in sample)
    others = {text for text in near(set(sorted(sample)[:12])) - texts if text.count("x") + text.count("y") <= 2}
    assert not any(reference.accepts(text.encode()) for text in others)


@pytest.mark.parametrize("is_spaced", [False, True])
@pytest.mark.parametrize("part", ["a", "[cd]"])
def test_a_loop_is_any_number_of_one_part(part: str, is_spaced: bool) -> None:
    grammar = Grammar()
    gap, end = gap_of(grammar, is_spaced), grammar.literal("}")
    later, first = loop(grammar, node_of(grammar, part), gap, grammar.seq(grammar.literal(","), gap), end)
    inside, behind = Reference(grammar, first), Reference(grammar, later)
    assert not inside.accepts(b"}") and behind.accepts(b"}")
    for count in (1, 2, 3):
        texts = set(written([part] * count, is_spaced))
        assert all(inside.accepts(text.encode()) for text in texts)
        assert all(behind.accepts(f",{text}".encode()) for text in texts)
        assert not any(inside.accepts(f",{text}".encode()) or behind.accepts(text.encode()) for text in texts)

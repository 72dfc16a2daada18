"""GBNF as trees: what is read by hand and what lark reads, by the same notation as a grammar of its own, are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark.exceptions import UnexpectedInput

from maskwright.constraints import GrammarSyntaxError
from maskwright.constraints.front_ends.cfg.gbnf_faults import parser
from maskwright.constraints.front_ends.cfg.gbnf_syntax import parse
from maskwright.constraints.front_ends.cfg.syntax_tree import Token, Tree

GRAMMARS = sorted(Path(__file__).parents[3].glob("**/grammars/**/*.gbnf"))
PIECES = [
    "root", "a-b", "7", "::=", ":", "=", '"x"', '"\\""', '"', "[a-z]", "[\\]]", "[", ".", "*", "+", "?", "{2}", "{2,}", "{2,4}", "{", "}",
    ",", "(", ")", "|", "<think>", "!<[7]>", "<", "!", "# note", "\n", "\r\n", "\n \n", " ", "\t", "\f", "'x'", "é", "²",
]  # fmt: skip
RULES = ['root ::= "x"', "\n", "a ::= ", "[a-z]", "|", "(", ")", "*", "{2,\n4}", "{2}", "root", " ", "# note\n"]


def by_hand(text: str) -> list[tuple[str, int | None, object]] | None:
    try:
        return [(str(rule.name), rule.name.start_pos, marked(rule.tree)) for rule in parse(text)]
    except GrammarSyntaxError:
        return None


def by_lark(text: str) -> list[tuple[str, int | None, object]] | None:
    try:
        rules = [rule.children for rule in parser().parse(text).children if isinstance(rule, Tree)]
    except UnexpectedInput:
        return None
    return [(str(name), name.start_pos, marked(tree)) for name, tree in rules]


def marked(part: Tree[Token] | Token | None) -> object:
    """A tree as tuples, with the places of its tokens."""
    if isinstance(part, Tree):
        return (str(part.data), *map(marked, part.children))
    return None if part is None else (part.type, str(part), part.start_pos)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.lists(st.sampled_from(RULES), max_size=14).map("".join))
@settings(max_examples=1500)
def test_the_same_texts_are_grammars_with_the_same_trees(text: str) -> None:
    assert by_hand(text) == by_lark(text)


@pytest.mark.parametrize("path", GRAMMARS, ids=lambda path: path.name)
def test_grammars_that_ship_are_read_alike_whole_and_cut_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert by_hand(text) == by_lark(text) is not None
    for end in range(0, len(text), max(len(text) // 40, 1)):
        assert by_hand(text[:end]) == by_lark(text[:end])


def test_the_parts_of_a_tree_come_before_it() -> None:
    tree = parse('root ::= ("x" | [a-z]{2,} y)* .')[0].tree
    order = [subtree.data for subtree in tree.iter_subtrees()]
    assert order.index("literal") < order.index("group") < order.index("star") < order.index("alternatives", order.index("star"))
    assert [str(token) for token in tree.scan_values(lambda leaf: isinstance(leaf, Token))] == ['"x"', "[a-z]", "2", "y"]
    assert [part.children[0] for part in tree.find_data("reference")] == ["y"]

"""A grammar that begins as another one, which front ends of many sources share."""

from __future__ import annotations

import ast
from pathlib import Path

from maskwright.constraints.grammar.expression import Event, Grammar

GRAMMAR = Path(__file__).parents[3] / "constraints" / "grammar"


def attributes() -> list[str]:
    """The names of all that a grammar holds, as its classes write it."""
    found: list[str] = []
    for name in ("store", "expression"):
        tree = ast.parse((GRAMMAR / f"{name}.py").read_text())
        makers = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__init__")
        for node in (node for maker in makers for node in ast.walk(maker)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            found += [each.attr for each in targets if isinstance(each, ast.Attribute)]
    return found


def filled() -> Grammar:
    """A grammar in which nothing is empty that builders fill."""
    grammar = Grammar()
    letters = grammar.chars([(97, 122), (0x3B1, 0x3C9)])
    key = grammar.key(grammar.repeat(letters, 0, 3))
    rule = grammar.rule("a rule")
    grammar.define(rule, grammar.alt(key, grammar.literal("abc"), grammar.words([b"x", b"yz"])))
    grammar.label(grammar.segment(grammar.call(rule), "a segment"), "#")
    grammar.claim(grammar.both(letters, grammar.negate(grammar.scarce(letters, key))), "#", ["not"])
    grammar.multiple(7, 3, 2, 1, 5)
    grammar.notes.append("a remark")
    grammar.residue.append("left out")
    grammar.search_share, grammar.only_json, grammar.has_json_values = 0.5, True, True
    grammar.mixed_arrays = grammar.stacks_as_graph = True
    grammar.special_tokens, grammar.end_tokens = {"<s>": 1}, frozenset({2})
    return grammar


def test_all_is_copied() -> None:
    names = attributes()
    assert {"rows", "_interned", "units", "_characters"} <= set(names)
    beginning = filled()
    new = Grammar.after(beginning)
    for name in names:
        of_new, of_old = getattr(new, name), getattr(beginning, name)
        assert of_new == of_old, name
        may_be_shared = isinstance(of_old, (int, float, frozenset, type(None))) or name == "special_tokens"
        assert may_be_shared or of_new is not of_old, name


def test_what_is_added_to_a_copy_is_not_in_the_original() -> None:
    beginning = filled()
    before = {name: repr(getattr(beginning, name)) for name in attributes()}
    new = Grammar.after(beginning)
    new.define(new.rule("another"), new.mark(b"{", Event.OBJECT_OPEN, new.repeat(new.chars([(48, 57)]), 2, 9)))
    new.label(new.literal("new"), "#/new")
    new.notes.append("of the copy")
    assert {name: repr(getattr(beginning, name)) for name in attributes()} == before
    assert new.literal("abc") == beginning.literal("abc")

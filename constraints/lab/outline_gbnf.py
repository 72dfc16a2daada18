"""Outlines of grammars in GBNF and EBNF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.utf8 import ALL
from ..front_ends.cfg.ebnf import Ebnf, EbnfLowering
from ..front_ends.cfg.ebnf_macros import rules_called
from ..front_ends.cfg.ebnf_syntax import notation_of
from ..front_ends.cfg.ebnf_syntax import parse as parse_ebnf
from ..front_ends.cfg.gbnf import Gbnf, RuleLowering
from ..front_ends.cfg.gbnf_syntax import parse as parse_gbnf
from ..front_ends.cfg.syntax_tree import Token, Tree
from ..grammar.expression import Grammar, Node
from ..grammar.source import Limits
from .outline import Call, Chars, Choice, Outline, OutlineRule, Part, Pattern, Repeat, Series, Text

_REPEATS: dict[str, tuple[int, int | None]] = {
    "star": (0, None), "plus": (1, None), "optional": (0, 1), "maybe": (0, 1), "again": (0, None),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fragment:
    """A part of a grammar without rules as a source of its own."""

    tree: Tree[Token]
    lowering: RuleLowering

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        self.lowering.grammar = grammar
        return self.lowering.expression(self.tree)


def gbnf_outline(source: Gbnf, limits: Limits) -> Outline:
    """The rules of a grammar that compiles. Of two definitions of a rule the last counts."""
    reader = _Reader(RuleLowering(source.text, Grammar(), limits))
    rules = {str(rule.name): reader.rule(rule.name, rule.tree) for rule in parse_gbnf(source.text)}
    return Outline(source.text, source.root, rules)


def ebnf_outline(source: Ebnf, limits: Limits) -> Outline:
    """The rules of a grammar that compiles."""
    notation = source.notation or notation_of(source.text)
    written = parse_ebnf(source.text, notation)
    reader = _Reader(EbnfLowering(source.text, Grammar(), limits, notation=notation))
    rules = {str(rule.name): reader.rule(rule.name, rule.tree) for rule in written}
    start = source.root or ("root" if "root" in rules else str(written[0].name))
    lazy = [f"rule {rule.name} is lazy" for rule in written if any(name == "lazy" for name, _ in rule.attributes)]
    return Outline(source.text, start, rules, unread=lazy + reader.unread)


class _Reader:
    def __init__(self, lowering: RuleLowering) -> None:
        self.lowering, self.unread = lowering, list[str]()

    def rule(self, name: Token, tree: Tree[Token]) -> OutlineRule:
        parts: dict[int, Part] = {}
        for subtree in tree.iter_subtrees():
            below = [parts[id(child)] for child in subtree.children if isinstance(child, Tree)]
            parts[id(subtree)] = self._part(subtree, below)
        return OutlineRule(str(name), parts[id(tree)], name.start_pos or 0)

    def _part(self, tree: Tree[Token], below: Sequence[Part]) -> Part:
        kind, token = str(tree.data), _first_token(tree)
        at = token.start_pos or 0
        match kind:
            case "alternatives":
                return below[0] if len(below) == 1 else Choice(tuple(below), at)
            case "sequence":
                return below[0] if len(below) == 1 else Series(tuple(below), at)
            case "group":
                return below[0]
            case "literal":
                return Text(self.lowering.string_text(token), at)
            case "char_class":
                return Chars(self.lowering.class_ranges(token), str(token), at)
            case "any":
                return Chars(ALL, ".", at)
            case "reference":
                return Call(" ".join(token.split()), at)
            case "code":
                return Text(chr(int(token[2:], 16)), at)
            case "times":
                count = int(token)
                return Repeat(below[0], count, count, at)
            case "nothing" | "lookahead" | "pair" | "tuple":
                return Series((), at)
            case "exactly" | "between":
                return Repeat(below[0], *self.lowering._counts(tree), at)
            case "macro":
                return self._macro(tree, token, at)
            case "exception":
                return self._exception(tree, at)
        if kind in _REPEATS:
            return Repeat(below[0], *_REPEATS[kind], at)
        return Pattern(None, str(token), at)  # a special token

    def _macro(self, tree: Tree[Token], token: Token, at: int) -> Part:
        """The part of a macro. One that calls rules is taken for any number of calls."""
        called = rules_called(tree)
        if called:
            self.unread.append(f"text up to a tag ({token})")
            return Repeat(Choice(tuple(Call(str(name), name.start_pos or at) for name in called), at), 0, None, at)
        if token in ("Token", "ExcludeToken"):
            return Pattern(None, f"{token}(...)", at)
        return Pattern(Fragment(tree, self.lowering), f"{token}(...)", at)

    def _exception(self, tree: Tree[Token], at: int) -> Part:
        """The part of `A - B`, taken as one piece where no rule is called in it."""
        if next(tree.find_data("reference"), None) is not None:
            self.unread.append("an exception A - B that calls rules")
            return Pattern(None, "A - B", at)
        return Pattern(Fragment(tree, self.lowering), "A - B", at)


def _first_token(tree: Tree[Token]) -> Token:
    """The first token of a tree, which tells its place; an empty tree has none."""
    return next(tree.scan_values(lambda value: isinstance(value, Token)), Token("", "", start_pos=0))

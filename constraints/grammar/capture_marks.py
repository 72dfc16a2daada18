"""Where a grammar's captures are, for `capture.py`: what lowering writes down beside the expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..base.errors import UnsupportedKeyword
from .expression import EMPTY, Grammar, Node, Rule


class Mark(NamedTuple):
    """The names under which a rule's text is captured; an empty name captures nothing.

    Some of the text's end may be hidden from `name`: what follows `body` and is `end`, or a number of bytes. The hidden
    part is captured as `end_name`.
    """

    name: str
    end_name: str = ""
    body: Node = EMPTY
    end: Node = EMPTY
    hidden_bytes: int = 0


class Lexeme(NamedTuple):
    """Something that is one letter in the rules. `opaque`: a part with terminals of its own, such as JSON."""

    node: Node
    lazy: bool
    opaque: bool


class LexemeState(NamedTuple):
    """following: the lexemes that may come next, each with those of its texts that may come, and the number of the
    state behind it."""

    following: dict[Lexeme, tuple[Node, int]]
    may_end: bool


@dataclass
class Marks:
    """Where the captures of a grammar are.

    skips: the rules of what is ignored. lexeme_states: of a grammar whose lazy terminals end others, with its `lexemes`
    by rule and what it ignores.
    """

    of_rule: dict[Rule, Mark] = field(default_factory=dict)
    skips: set[Rule] = field(default_factory=set)
    lexeme_states: list[LexemeState] | None = None
    lexemes: dict[int, Lexeme] = field(default_factory=dict)
    skip: Node = EMPTY

    def ignored(self, grammar: Grammar, node: Node) -> Node:
        """A rule of its own for what is ignored."""
        if node == EMPTY:
            return node
        rule = grammar.rule("ignored")
        grammar.define(rule, node)
        self.skips.add(rule)
        return grammar.call(rule)


def refused_captures(where: str) -> UnsupportedKeyword:
    """What is said of captures that the language as such has no trouble with."""
    return UnsupportedKeyword(f"captures {where}", keyword="capture", instead="captures of the parts around it")

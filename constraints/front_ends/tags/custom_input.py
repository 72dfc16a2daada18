"""The input of a custom tool: a text of a grammar, written as a string of JSON.

Escaping a text byte by byte maps different texts to different ones, so the expression of the grammar is mapped node by node: what
it reads is then the escaped text, and nothing is approximated. UTF-8 of characters beyond ASCII stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import invert
from ...grammar.expression import EMPTY, FAIL, UNBOUNDED, Event, Grammar, Kind, Node, Rule
from ...grammar.recursion import children
from ...grammar.source import Limits, Source
from ...runtime.front_end import FrontEnd
from ..json_schema.documents.values import string_text
from ..json_schema.strings.text import JsonText
from ..regex.regex import Regex

INPUT = "input"  # the one argument
_PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xFF))  # bytes that stand for themselves
_ESCAPES = {byte: string_text(chr(byte))[1:-1].encode() for byte in (*range(0x20), 0x22, 0x5C)}


@dataclass(frozen=True, slots=True)
class InputObject(FrontEnd):
    """`{"input": "..."}` with a text of `source`. space: a pattern of the white space between tokens."""

    source: Source
    space: str

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        gap = EMPTY if self.space == "compact" else Regex(self.space, dialect="ecma").lower(grammar, limits)
        begin, name, colon, end = map(grammar.literal, ("{", f'"{INPUT}"', ":", "}"))
        return grammar.seq(begin, gap, name, gap, colon, gap, InputString(self.source).lower(grammar, limits), gap, end)


@dataclass(frozen=True, slots=True)
class InputString(FrontEnd):
    """The JSON string of a text of `source`."""

    source: Source

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        quote = grammar.literal('"')
        return grammar.seq(quote, _Escaping(grammar, limits).of(self.source.lower(grammar, limits)), quote)


class _Escaping:
    """Maps expressions to those of the escaped texts."""

    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self._grammar, self._text = grammar, JsonText(grammar, "compact", limits)
        self._made: dict[Node, Node] = {EMPTY: EMPTY, FAIL: FAIL}
        self._rules: dict[int, Rule] = {}
        self._todo: list[int] = []  # rules whose body is not mapped yet

    def of(self, root: Node) -> Node:
        """The escaped texts of a node."""
        made = self._mapped(root)
        while self._todo:
            rule = self._todo.pop()
            body = self._grammar.rule_bodies[rule]
            assert body is not None, "the rules of a lowered source are defined"
            self._grammar.define(self._rules[rule], self._mapped(body))
        return made

    def _mapped(self, root: Node) -> Node:
        work = [root]
        while work:
            node = work[-1]
            below = [] if self._grammar.kind(node) is Kind.CALL else children(self._grammar, node)
            missing = [each for each in below if each not in self._made]
            if missing:
                work += missing
                continue
            work.pop()
            if node not in self._made:
                self._made[node] = self._rebuilt(node)
                if label := self._grammar.labels.get(node):
                    self._grammar.label(self._made[node], label)
        return self._made[root]

    def _rebuilt(self, node: Node) -> Node:
        grammar, made = self._grammar, self._made
        kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
        if kind is Kind.LITERAL:
            return grammar.literal(b"".join(_ESCAPES.get(byte, bytes([byte])) for byte in grammar.literal_bytes(node)))
        if kind is Kind.CLASS and c == Event.NONE:
            return self._text.unit(grammar.units[node]) if node in grammar.units else self._class(node)
        if kind is Kind.SEQ:
            return grammar.seq(made[Node(a)], made[Node(b)])
        if kind is Kind.ALT:
            return grammar.alt(*(made[each] for each in grammar.alternatives(node)))
        if kind is Kind.REPEAT:
            return grammar.repeat(made[Node(a)], b, None if c == UNBOUNDED else c)
        if kind is Kind.CALL:
            return node if Rule(a) in grammar.segments else grammar.call(self._rule(a))
        if kind is Kind.BOTH:
            return grammar.both(made[Node(a)], made[Node(b)])
        if kind is Kind.NEGATE:
            return grammar.without(grammar.repeat(self._text.unit(invert(()))), made[Node(a)])
        if kind in (Kind.MULTIPLE, Kind.FRACTION):
            return node  # digits
        reason = "what counts members cannot stand in the input of a tool"
        raise UnsupportedKeyword(reason, keyword="format", instead="a plain grammar")

    def _class(self, node: Node) -> Node:
        """One byte out of several ranges, each with what follows it."""
        grammar, plain, escaped = self._grammar, list[tuple[int, int, Node]](), list[Node]()
        for low, high, follow in grammar.class_edges(node):
            after = self._made[Node(follow)]
            plain += [(max(low, least), min(high, most), after) for least, most in _PLAIN if max(low, least) <= min(high, most)]
            codes = [code for code in _ESCAPES if low <= code <= high]
            escaped += [grammar.seq(grammar.words(_ESCAPES[code] for code in codes), after)] if codes else []
        return grammar.alt(*([grammar.edges_to(plain)] if plain else []), *escaped)

    def _rule(self, rule: int) -> Rule:
        if rule not in self._rules:
            self._rules[rule] = self._grammar.rule(self._grammar.rule_names[rule])
            self._todo.append(rule)
        return self._rules[rule]

"""Two readings of one text by one rule: the ambiguity of a grammar, shown by an example.

The parts of a text are read by all rules, the short ones first, and of each rule and part up to two readings are kept. Rules that
call each other without reading a byte are gone through until nothing is added (as Cocke, Younger and Kasami, for any grammar).
Copies of a repetition that read nothing are not told apart, as no automaton tells them apart.

    s ::= "a" s? s?     reads "aa" as  s("a" [s("a")])  with either of its two
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import NamedTuple

from ..base.kinds import UNBOUNDED
from ..grammar.expression import Grammar, Kind, Node, Rule
from ..grammar.merged_repetitions import REPEATED_RULE
from ..grammar.recursion import reachable
from ..grammar.stopwatch import look

_LONGEST = 8  # bytes of a part of a text
_LONGER, _BEGINNING = 20, 48  # bytes of a part of the beginning of a text, and of that
_MOST_NODES = 2_000  # of a grammar
_MOST_BYTES, _MOST_TEXTS = 6, 256  # of an alphabet of which all short texts are looked at; such texts of one length
_CHARACTERS = 160  # of a reading that is shown

Readings = tuple[str, ...]  # none, one or two that differ


class Ambiguity(NamedTuple):
    """A text that a rule reads in two ways."""

    rule: str
    text: bytes
    first: str
    second: str


def ambiguity(grammar: Grammar, root: Node, text: bytes) -> Ambiguity | None:
    """A short part of a text, or of all texts of a few of the grammar's bytes, that one of the rules that `root` calls reads in two
    ways; None where none is found."""
    nodes = list(reachable(grammar, root))
    if len(nodes) > _MOST_NODES:
        return None
    rules = dict.fromkeys(Rule(grammar.operands(node)[0]) for node in nodes if grammar.kind(node) is Kind.CALL)
    return _Reading(grammar, root, list(rules)).ambiguity(text, _bytes_of(grammar, nodes))


class _Reading:
    def __init__(self, grammar: Grammar, root: Node, rules: list[Rule]) -> None:
        self._grammar, self._root, self._rules = grammar, root, rules
        self._of_rule: dict[tuple[Rule, bytes], Readings] = {}
        self._of_node: dict[tuple[int, bytes, int], Readings] = {}  # with the copies of a repetition that are read
        self._new: dict[tuple[int, bytes, int], Readings] = {}  # of the part that is being read, which may not be all

    def ambiguity(self, text: bytes, alphabet: list[int]) -> Ambiguity | None:
        for length in range(_LONGER + 1):
            text = text if length <= _LONGEST else text[:_BEGINNING]
            parts = (text[start : start + length] for start in range(len(text) - length + 1))
            for part in dict.fromkeys(chain(parts, _texts(alphabet, length))):
                found = self._read(part)
                if found is not None:
                    return found
            look()
        return None

    def _read(self, part: bytes) -> Ambiguity | None:
        changed = True
        while changed:
            changed, self._new = False, {}
            for rule in self._rules:
                body = self._grammar.rule_bodies[rule]
                known = self._of_rule.get((rule, part), ())
                found = _two(known, self._node(body, part) if body is not None else ())
                if found != known:
                    self._of_rule[rule, part], changed = found, True
                if len(found) == 2 and self._grammar.rule_names[rule] != REPEATED_RULE:
                    return _told(self._grammar.rule_names[rule], part, found)
        whole = self._node(self._root, part)
        self._of_node.update(self._new)
        return _told("root", part, whole) if len(whole) == 2 else None

    def _node(self, node: Node, part: bytes, copies: int = 0) -> Readings:
        """Readings of a part by a node, of a repetition behind so many copies. The empty part has one at most, without words."""
        key = (node, part, copies)
        found = self._of_node.get(key)
        if found is None:
            found = self._new.get(key)
        if found is None:
            self._new[key] = ()  # what contains itself is read in the next round
            found = self._made(node, part, copies)
            found = self._new[key] = found if part else ("",) * bool(found)
        return found

    def _made(self, node: Node, part: bytes, copies: int) -> Readings:
        grammar, kind = self._grammar, self._grammar.kind(node)
        a, b, _ = grammar.operands(node)
        found: Readings = ()
        if kind is Kind.EMPTY:
            found = () if part else ("",)
        elif kind is Kind.LITERAL:
            found = (_quoted(part),) if grammar.literal_bytes(node) == part else ()
        elif kind is Kind.CLASS and part:
            for low, high, then in grammar.class_edges(node):
                if low <= part[0] <= high:
                    found = _two(found, self._joined(_quoted(part[:1]), Node(then), part[1:]))
        elif kind is Kind.CALL:
            inside, name = self._of_rule.get((Rule(a), part), ()), grammar.rule_names[a]
            found = inside if name == REPEATED_RULE else tuple(f"{name}({one})" for one in inside)
        elif kind is Kind.ALT:
            for number, option in enumerate(grammar.alternatives(node), 1):
                found = _two(found, tuple(f"#{number} {one}".rstrip() for one in self._node(option, part)))
        elif kind is Kind.SEQ:
            for cut in range(len(part) + 1):
                for first in self._node(Node(a), part[:cut]):
                    found = _two(found, self._joined(first, Node(b), part[cut:]))
        elif kind is Kind.REPEAT:
            found = self._copies(node, part, copies)
        return found

    def _joined(self, first: str, rest: Node, part: bytes) -> Readings:
        return tuple(f"{first} {one}".strip() for one in self._node(rest, part))

    def _copies(self, node: Node, part: bytes, copies: int) -> Readings:
        """Readings by the copies of a repetition that are left, each of which reads a byte."""
        body, low, high = self._grammar.operands(node)
        if not part:
            return ("",) if copies >= low or self._node(Node(body), part) else ()
        if copies == high:
            return ()
        found: Readings = ()
        more = min(copies + 1, low) if high == UNBOUNDED else copies + 1  # beyond the least number only a bound matters
        for cut in range(1, len(part) + 1):
            for first in self._node(Node(body), part[:cut]):
                found = _two(found, tuple(f"[{first}] {one}".rstrip() for one in self._node(node, part[cut:], more)))
        return found


def _bytes_of(grammar: Grammar, nodes: list[Node]) -> list[int]:
    """Some bytes that a grammar can read, one of each class and those of literals."""
    found: dict[int, None] = {}
    for node in nodes:
        if grammar.kind(node) is Kind.LITERAL:
            found.update(dict.fromkeys(grammar.literal_bytes(node)))
        elif grammar.kind(node) is Kind.CLASS:
            found.update({low: None for low, _, _ in grammar.class_edges(node)})
    return sorted(found)[:_MOST_BYTES]


def _texts(alphabet: list[int], length: int) -> Iterator[bytes]:
    """All texts of some length, where there are not too many."""
    return map(bytes, product(alphabet, repeat=length)) if len(alphabet) ** length <= _MOST_TEXTS else iter(())


def _two(known: Readings, more: Readings) -> Readings:
    return tuple(dict.fromkeys(known + more))[:2]


def _told(rule: str, part: bytes, found: Readings) -> Ambiguity:
    first, second = (one if len(one) <= _CHARACTERS else f"{one[:_CHARACTERS]}..." for one in found)
    return Ambiguity(rule, part, first, second)


def _quoted(part: bytes) -> str:
    shown = part.decode(errors="backslashreplace").replace('"', '\\"')
    return f'"{shown}"'

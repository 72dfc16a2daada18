"""The slow obvious twin for recursion of any kind: all strings up to a length that an expression denotes, as plain sets.

The sets of the rules grow from nothing until they do not change any more, which is the least fixpoint by definition, so left
recursion, cycles and ambiguity need no thought.
"""

from __future__ import annotations

from itertools import product

from maskwright.constraints.grammar.expression import UNBOUNDED, Grammar, Kind, Node


def strings_of(grammar: Grammar, root: Node, longest: int, alphabet: bytes) -> set[bytes]:
    """The strings over `alphabet` of at most `longest` bytes that `root` denotes."""
    rules: list[set[bytes]] = [set() for _ in grammar.rule_bodies]
    while True:
        nodes: list[set[bytes]] = []
        for node in range(len(grammar)):
            nodes.append(_of_node(grammar, Node(node), nodes, rules, longest, alphabet))
        grown = [nodes[body] if body is not None else set() for body in grammar.rule_bodies]
        if grown == rules:
            return nodes[root]
        rules = grown


def all_strings(alphabet: bytes, longest: int) -> list[bytes]:
    return [bytes(letters) for length in range(longest + 1) for letters in product(alphabet, repeat=length)]


def _of_node(
    grammar: Grammar, node: Node, nodes: list[set[bytes]], rules: list[set[bytes]], longest: int, alphabet: bytes
) -> set[bytes]:
    kind, (a, b, c) = grammar.kind(node), grammar.operands(node)
    if kind is Kind.EMPTY:
        return {b""}
    if kind is Kind.LITERAL:
        return {text for text in [grammar.literal_bytes(node)] if len(text) <= longest and set(text) <= set(alphabet)}
    if kind is Kind.CLASS:
        return {
            bytes([byte]) + rest
            for low, high, follow in grammar.class_edges(node)
            for byte in alphabet
            if low <= byte <= high
            for rest in nodes[follow]
            if len(rest) < longest
        }
    if kind is Kind.SEQ:
        return _joined(nodes[a], nodes[b], longest)
    if kind is Kind.ALT:
        return set().union(*(nodes[option] for option in grammar.alternatives(node)))
    if kind is Kind.REPEAT:
        return _repeated(nodes[a], b, None if c == UNBOUNDED else c, longest)
    if kind is Kind.CALL:
        return rules[a]
    if kind is Kind.BOTH:
        return nodes[a] & nodes[b]
    if kind is Kind.NEGATE:
        return set(all_strings(alphabet, longest)) - nodes[a]
    return set()


def _joined(left: set[bytes], right: set[bytes], longest: int) -> set[bytes]:
    return {a + b for a in left for b in right if len(a) + len(b) <= longest}


def _repeated(body: set[bytes], low: int, high: int | None, longest: int) -> set[bytes]:
    reached = {b""}
    for _ in range(low):
        reached = _joined(reached, body, longest)
    found = set(reached)
    copies = low
    while reached and (high is None or copies < high):
        reached = _joined(reached, body, longest)
        if reached <= found:
            break
        found |= reached
        copies += 1
    return found

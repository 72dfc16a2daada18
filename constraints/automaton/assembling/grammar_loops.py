"""Loops over the nodes of a grammar while it is put into an arena: written there, literals priced, left recursion looked for."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ...base.ids import BodyId, NodeId, RowId
from ...base.kinds import INFINITE, UNBOUNDED, CoverRow, Event, Kind
from ...numba_support.jit import entry, inner
from ...vocabulary.packed_records import ROOT, Vocab, child_of, ending_at, vocab_at
from ..covers import row_of_cover, sort_of
from ..nodes import EMPTY, FAIL, NO_BODY, NO_UNLISTED, plus, wide
from ..tables import DEAD, Tables, tables_at
from ..walk_measures import FIRST_CASE

CHAIN = 5  # sequences in one another through which it is looked whether a part is shared, the innermost included
ENTERED, LEFT = 1, 2  # of a node, in a search: it is on the path; all behind it has been seen


class Fact(IntEnum):
    """What is told of a grammar; the counters of the same names say what it means."""

    FREE_ITEMS = 0
    HAS_UNIQUE = 1
    ONLY_JSON = 2
    MIXED = 3
    GRAPH = 4


@entry(
    rows="const int32[:]", lists="const int32[:]", edges="const int32[:]", literals="const uint8[:]", rules="const int32[:]"
)  # fmt: skip
def write_grammar(
    arena_address: int,
    vocab_address: int,
    rows: NDArray[np.int32],
    lists: NDArray[np.int32],
    edges: NDArray[np.int32],
    literals: NDArray[np.uint8],
    rules: NDArray[np.int32],
    num_surcharged: int,
    plain: int,
    search_limit: int,
    facts: int,
) -> int:
    """Write a grammar into an arena without nodes: its nodes, of which only literals are measured, what they refer to, and the
    counters of `n`, as they are given and as they follow. Returns which kinds of nodes there are, as bits 1 << kind.

    rows: kind, a, b, c of each node; edges: low, high, follow of each; literals: their bytes; rules: their bodies;
    num_surcharged: entries of `worst` and `ample`, which begin as INFINITE; facts: 1 << `Fact` for each that holds.
    """
    m, vocab = tables_at(arena_address), vocab_at(vocab_address)
    count, kinds = rows.size // 4, wide(0)
    for i in range(lists.size):
        m.lists[i] = lists[i]
    for i in range(edges.size // 3):
        m.edge_low[i], m.edge_high[i], m.edge_next[i] = edges[3 * i], edges[3 * i + 1], edges[3 * i + 2]
    for i in range(literals.size):
        m.text[i] = literals[i]
    for i in range(rules.size):
        m.rules[i] = rules[i]
    for i in range(m.sequence_hash_size):  # zero already, but then in the processor's cache for the first masks
        m.sequence_hash[i] = 0
    for i in range(m.state_hash_size):
        m.state_hash[i] = 0
    for i in range(num_surcharged):
        m.worst[i] = m.ample[i] = INFINITE
    for i in range(count):  # the memory may have been used before
        node = m.nodes[NodeId(i)]
        node.kind, node.a, node.b, node.c = rows[4 * i], rows[4 * i + 1], rows[4 * i + 2], rows[4 * i + 3]
        node.size, node.cost = INFINITE, INFINITE
        node.closure = node.front = node.marked_in = node.shared = node.may_saturate = node.searched_in = node.copies_begun = 0
        node.entry_product = node.first_candidate = node.next_candidate = FAIL
        node.body_class, node.copies_per_token = NO_BODY, 1
        kinds |= 1 << rows[4 * i]
        if node.kind == Kind.LITERAL:
            price_literal(m, vocab, node.a, node.b)
    m.nodes[EMPTY].size, m.nodes[EMPTY].cost = 0, 0
    mark_shared(m, count)
    write_dead_state(m)
    m.n.nodes = m.n.num_static = count
    m.n.pool = m.n.states = 1  # offset 0 and state 0 mean "none"
    m.n.plain, m.n.search_limit = plain, search_limit
    m.n.free_items, m.n.has_unique = (facts >> Fact.FREE_ITEMS) & 1, (facts >> Fact.HAS_UNIQUE) & 1
    m.n.only_json, m.n.mixed, m.n.graph = (facts >> Fact.ONLY_JSON) & 1, (facts >> Fact.MIXED) & 1, (facts >> Fact.GRAPH) & 1
    m.n.calls = (kinds >> Kind.CALL) & 1
    m.n.free_names = has_free_names(m, count)
    return kinds


@inner
def write_dead_state(m: Tables) -> None:
    """Write the state from which nothing is accepted, and its transitions, which no description of a state writes."""
    dead = m.states[DEAD]
    dead.start = dead.length = dead.frame = dead.max_chars = 0
    dead.body_class, dead.unlisted = BodyId(0), NO_UNLISTED
    dead.accept = dead.has_no_product = dead.body_is_exclusive = dead.has_too_many_ends = 0
    dead.literal = dead.literal_left = dead.uniform = dead.events = dead.items_hash = dead.ends = 0
    dead.after_literal, dead.row = DEAD, RowId(0)
    dead.cost = INFINITE
    for byte in range(256):
        m.next[byte] = DEAD


@inner
def price_literal(m: Tables, vocab: Vocab, start: int, length: int) -> None:
    """Write for each byte of a literal the least number of tokens that spell the literal from there on."""
    trie, end = vocab.trie, start + length
    for i in range(end - 1, start - 1, -1):
        best, node, j = wide(INFINITE), ROOT, wide(i)
        while j < end:
            node = child_of(trie, node, wide(m.text[j]))
            if node < 0:
                break
            j += 1
            first, last = ending_at(trie, node)
            if first != last:
                best = min(best, plus(1, 0 if j == end else wide(m.text_cost[j])))
        m.text_cost[i] = best


@inner
def mark_shared(m: Tables, count: int) -> None:
    """Mark the alternatives, sequences and calls that are parts of several sequences, or parts of such parts."""
    uses, chain = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    for number in range(count):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.SEQ:
            for part in (m.nodes[i].a, m.nodes[i].b):
                uses[part] = min(uses[part] + 1, 2)
    for number in range(count - 1, -1, -1):  # wholes before their parts
        i = NodeId(number)
        kind = m.nodes[i].kind
        if uses[i] > 1:
            chain[i] = CHAIN
        if kind == Kind.SEQ and chain[i] > 1:
            for part in (m.nodes[i].a, m.nodes[i].b):
                chain[part] = max(chain[part], chain[i] - 1)
        if chain[i] > 0 and (kind == Kind.SEQ or kind == Kind.ALT or kind == Kind.CALL):
            m.nodes[i].shared = 1


@inner
def has_free_names(m: Tables, count: int) -> int:
    """Whether every key that is remembered may be any string but finitely many: an endless repetition, perhaps without some
    words."""
    for number in range(count):
        i = NodeId(number)
        if m.nodes[i].kind == Kind.CLASS and m.nodes[i].c == Event.KEY_OPEN:
            for e in range(m.nodes[i].a, m.nodes[i].a + m.nodes[i].b):
                if not is_free_name(m, wide(m.edge_next[e])):
                    return 0
    return 1


@inner
def is_free_name(m: Tables, body: NodeId) -> bool:
    if m.nodes[body].kind != Kind.SEQ:
        return m.nodes[body].kind == Kind.UNLISTED
    characters, end = m.nodes[body].a, m.nodes[body].b
    is_endless = m.nodes[characters].kind == Kind.REPEAT and m.nodes[characters].b == 0 and m.nodes[characters].c == UNBOUNDED
    return is_endless and m.nodes[end].kind == Kind.CLASS and m.nodes[end].c == Event.KEY_CLOSE


@entry(rows="const int32[:]", bodies="int32[:]")
def repeated_bodies(rows: NDArray[np.int32], bodies: NDArray[np.int32]) -> int:
    """Write the nodes that are repeated, each once, in the order in which they are first. Returns how many there are.

    rows: kind, a, b, c of each node; bodies: room for as many as there are nodes.
    """
    is_met = np.zeros(bodies.size, np.uint8)
    count = 0
    for i in range(bodies.size):
        if rows[4 * i] == Kind.REPEAT and not is_met[rows[4 * i + 1]]:
            is_met[rows[4 * i + 1]] = 1
            bodies[count] = rows[4 * i + 1]
            count += 1
    return count


@entry(bodies="const int32[:]")
def write_bodies(arena_address: int, bodies: NDArray[np.int32]) -> None:
    """Write the body class of nodes that are repeated, and of the characters in them; and how many copies a token can spell.
    bodies: node, body class, copies of each."""
    m = tables_at(arena_address)
    for i in range(0, bodies.size, 3):
        node = m.nodes[bodies[i]]
        node.body_class, node.copies_per_token = bodies[i + 1], bodies[i + 2]


@entry
def left_recursive_rule(arena_address: int, num_rules: int, num_lists: int) -> int:
    """A rule that calls itself before any byte is read, -1 if there is none. All sizes are known; num_lists: words of `lists`."""
    m = tables_at(arena_address)
    mark = np.zeros(m.n.nodes, np.uint8)
    stack, path = np.empty(8 * m.n.nodes + num_lists + 8, np.int32), np.empty(m.n.nodes + 1, np.int32)
    for rule in range(num_rules):
        stack[0], top, depth = m.rules[rule], 1, 0
        while top > 0:
            top -= 1
            node = wide(stack[top])
            if node < 0:  # all behind ~node has been seen
                mark[~node], depth = LEFT, depth - 1
            elif mark[node] == ENTERED:
                while m.nodes[path[depth]].kind != Kind.CALL:
                    depth -= 1
                return wide(m.nodes[path[depth]].a)
            elif mark[node] == 0:
                mark[node], depth = ENTERED, depth + 1
                path[depth], stack[top] = node, ~node
                top = push_first(m, node, stack, top + 1)
    return -1


@inner
def push_first(m: Tables, node: NodeId, stack: NDArray[np.int32], top: int) -> int:
    """Push the parts with which a text of a node may begin that may hold calls; returns the new top."""
    kind, a, b = m.nodes[node].kind, m.nodes[node].a, m.nodes[node].b
    if kind == Kind.CALL:
        return push(stack, top, m.rules[a])
    if kind == Kind.SEQ:
        if m.nodes[a].size == 0:
            top = push(stack, top, b)
        return push(stack, top, a)
    if kind == Kind.REPEAT or kind == Kind.BAG or kind == Kind.PLACED:
        return push(stack, top, a)
    if kind == Kind.ALT:
        for j in range(a, a + b):
            top = push(stack, top, m.lists[j])
    elif kind == Kind.TALLY or kind == Kind.WALK:
        top = push(stack, push(stack, top, a), b)
    elif kind == Kind.DECISION:
        top = push(stack, top, m.nodes[node].c)
        for j in range(a + FIRST_CASE, a + FIRST_CASE + 2 * b):
            top = push(stack, top, m.lists[j])
    elif kind == Kind.FAMILY:
        top = push(stack, push(stack, push(stack, top, m.nodes[node].c), b), a)
    elif kind == Kind.COVER:
        row = row_of_cover(m, node)
        for k in range(CoverRow.SEPARATOR, CoverRow.SETTLED + 1):
            top = push(stack, top, row[k])
        for sort in range(row[CoverRow.SORTS]):
            top = push(stack, top, sort_of(row, sort)[CoverRow.TEXT])
    return top


@inner
def push(stack: NDArray[np.int32], top: int, node: int) -> int:
    stack[top] = node
    return top + 1

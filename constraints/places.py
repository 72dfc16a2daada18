"""Masks inside a key that is none of some names, without states for what the names spell.

Such a key is written as a tree of the excluded names with an exit at every *place* (`JsonText.other_name`): a character that no
name goes on with leads into the body of any key, B. So what is left at a place is B without the rests of the names below it. A
token survives from a place as from B, but for those that spell the rest of a name and its closing quote: these are cleared, a
subtree of the trie for each name, and set again if the name is one that may be written here, with what comes behind it.

A state is at a place when its items are those of a place with one tail, and literals.
"""

from __future__ import annotations

from .atlas import NODE_WIDTH, NODES, ORDER, TRIE, child_of
from .compiled import inner
from .derive import step
from .nodes import ALT, CLASS, EMPTY, END_OF_NAME, LITERAL, NO_BODY, NO_PLACE, SEQ, later, leaf, wide
from .rows import clear_tokens
from .states import TAIL, plain_items
from .tables import DEAD, FAULT, FRAMED, NO_FAULT, REC, STATE_MASK
from .walk import walk_literal

_QUOTE, _BACKSLASH = 0x22, 0x5C
_FIRST_EXIT, _LAST_EXIT = 0x20, 0x7E  # bytes among which an exit is looked for
_ABSENT, _UNKNOWN = -1, -2  # instead of a node of the trie


@inner
def place_of(m, t, state):
    """The place that a state is at, 0 when it is at none."""
    return wide(m[t.state_radius + REC * state]) if m[t.state_body + REC * state] == NO_BODY else wide(0)


@inner
def exit_of(m, t, state, place):
    """The state behind an exit of the place that a state is at; DEAD when none is found, or on a fault."""
    for byte in range(_FIRST_EXIT, _LAST_EXIT + 1):
        if byte != _QUOTE and byte != _BACKSLASH and not goes_on_with(m, t, place, byte) and not has_literal(m, t, state, byte):
            return wide(step(m, t, wide(state), wide(byte)) & STATE_MASK)
    return wide(DEAD)


@inner
def goes_on_with(m, t, place, byte):
    """Whether a name goes on with a byte at a place."""
    if m[t.kind + REC * place] != ALT:
        return False
    for j in range(m[t.a + REC * place], m[t.a + REC * place] + m[t.b + REC * place]):
        if is_letter(m, t, wide(m[t.lists + j])):
            letter = wide(m[t.a + REC * m[t.lists + j]])
            if m[t.kind + REC * letter] != CLASS or m[t.edge_low + m[t.a + REC * letter]] == byte:
                return True
    return False


@inner
def is_letter(m, t, way):
    """Whether an alternative of a place is a character of names, with another place behind it."""
    return m[t.kind + REC * way] == SEQ and m[t.place + REC * m[t.b + REC * way]] != NO_PLACE


@inner
def has_literal(m, t, state, byte):
    """Whether a state has a literal that begins with a byte."""
    start, length = plain_items(m, t, state)
    for j in range(start, start + length):
        node = leaf(m, t, wide(m[t.pool + j]))
        if m[t.kind + REC * node] == LITERAL and m[t.text + m[t.a + REC * node]] == byte:
            return True
    return False


@inner
def clear_names(m, t, v, r, place):
    """Note that tokens which spell the rest of a name below a place, and the closing quote, do not survive. False where a character
    of a name is not spelled by single bytes, or on a fault."""
    trie = wide(v[TRIE])
    nodes, order = wide(v[trie + NODES]), wide(v[trie + ORDER])
    depth = later(m, t, wide(-1), later(m, t, wide(place), wide(0)))
    while depth > 0 and m[t.n + FAULT] == NO_FAULT:
        depth -= 2
        at, node = wide(m[t.work + depth]), wide(m[t.work + depth + 1])
        if m[t.place + REC * at] == END_OF_NAME:
            behind = child_of(v, trie, node, _QUOTE)
            if behind >= 0:
                skip = wide(v[nodes + NODE_WIDTH * behind + 2])
                clear_tokens(r, order + v[nodes + NODE_WIDTH * behind + 3], order + v[nodes + NODE_WIDTH * skip + 3])
        if m[t.kind + REC * at] != ALT:
            continue
        for j in range(m[t.a + REC * at], m[t.a + REC * at] + m[t.b + REC * at]):
            way = wide(m[t.lists + j])
            if is_letter(m, t, way):
                child = spelled(m, t, v, trie, node, wide(m[t.a + REC * way]))
                if child == _UNKNOWN:
                    return False
                if child != _ABSENT:
                    depth = later(m, t, child, later(m, t, wide(m[t.b + REC * way]), depth))
    return m[t.n + FAULT] == NO_FAULT


@inner
def spelled(m, t, v, trie, node, letter):
    """The node of a trie behind a character below a node (-1: the root)."""
    while letter != EMPTY:
        edge = wide(m[t.a + REC * letter])
        if m[t.kind + REC * letter] != CLASS or m[t.b + REC * letter] != 1 or m[t.edge_low + edge] != m[t.edge_high + edge]:
            return wide(_UNKNOWN)
        node = child_of(v, trie, node, m[t.edge_low + edge])
        if node < 0:
            return wide(_ABSENT)
        letter = wide(m[t.edge_next + edge])
    return wide(node)


@inner
def walk_names(m, t, v, r, state):
    """Note the tokens that survive along the literals of a state from their first quote on. On a fault not all are noted."""
    start, length = plain_items(m, t, state)
    trie = wide(v[TRIE])
    tail = wide(m[t.pool + m[t.state_start + REC * state] + TAIL]) if m[t.state_length + REC * state] == FRAMED else wide(EMPTY)
    for j in range(start, start + length):
        item = wide(m[t.pool + j])
        if m[t.kind + REC * leaf(m, t, item)] == LITERAL and m[t.n + FAULT] == NO_FAULT:
            m[t.state_events + REC * state] |= walk_literal(m, t, v, r, trie, item, tail, False)

"""Duplicate candidates: the remembered keys or items that the text which is being read may still repeat. Below they are
called candidates.

Only a text that goes along its candidates can be refused; one that has left them is as free as the automaton says
(register_product.py).

    {"age": 1, "name": 2, "a      one of them: "age"        {"age": 1, "name": 2, "b      none

Comes in: a register (seen_values.py). Goes out: an epoch, which `mark_candidates` has written to the field `marked_in` of every
word by which the text may become a remembered one; so whether a byte goes along one of them is one look-up (`candidate_word`).
"""

from __future__ import annotations

import numpy as np

from ..automaton.nodes import mix
from ..automaton.tables import Fault, Tables
from ..base.ids import NodeId, RegisterId
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_records import Trie, child_of
from .seen_values import CONTAINER, EMPTY_WORD, NIL, NO_REGISTER, begins, is_in_key, is_recorded


@inner
def mark_candidates(m: Tables, seen: RegisterId) -> tuple[int, bool]:
    """(epoch, is_inner) of a register: the epoch in the field `marked_in` of all words by which what is being read may become
    a remembered one, 0 when there is none; and whether a container around it may become a remembered one. Found again
    only after others were marked."""
    if m.n.marked != seen or m.n.marked_epoch != m.n.epoch:
        candidates, is_inner = find_candidates(m, seen)
        m.n.marked = seen if m.n.fault == Fault.NONE else NO_REGISTER
        m.n.marked_epoch = m.n.epoch
        m.n.marked_candidates, m.n.marked_inner = candidates, (1 if is_inner else 0)
    return m.n.marked_candidates, m.n.marked_inner == 1


@inner
def find_candidates(m: Tables, seen: RegisterId) -> tuple[int, bool]:
    """`mark_candidates`, whatever was marked last.

    From the outermost recorded frame inwards, every frame is compared with what stands at its place in remembered
    items: items that it has itself, and containers that it may become.
    """
    frame, word = m.nodes[seen].a, m.nodes[seen].c
    if word == NIL:
        return 0, False
    m.n.epoch += 1
    epoch = m.n.epoch
    m.nodes[word].first_candidate = NIL
    if not is_recorded(m, frame):
        return (epoch if mark_elements(m, m.nodes[frame].b, word, epoch) else 0), False
    depth, outer = 0, frame
    while outer != NIL and is_recorded(m, outer):
        depth, outer = depth + 1, m.nodes[outer].a
    frames = np.empty(depth, np.int64)
    for i in range(depth):
        frames[i], frame = frame, m.nodes[frame].a
    count = 0  # work[:count]: containers that the frame may become
    for i in range(depth - 1, 0, -1):
        count = container_candidates(m, frames[i], m.nodes[frames[i - 1]].c, count)
        if m.n.fault != Fault.NONE:
            return 0, False
    frame, outer_found = frames[0], False
    done = m.nodes[frame].b
    for j in range(count):
        candidate = m.work[j]
        if candidate == done and word == EMPTY_WORD:
            outer_found = True
        elif m.nodes[frame].kind == Kind.OBJECT:
            if includes(m, candidate, done) and mark_missing(m, candidate, done, word, epoch):
                outer_found = True
        else:
            following = element_after(m, candidate, done)
            if following != NIL and mark_element(m, following, word, epoch):
                outer_found = True
    found = outer_found
    has_guard = m.nodes[frame].kind == Kind.UNIQUE or is_in_key(m.nodes[seen].b)
    if has_guard and mark_elements(m, done, word, epoch):
        found = True
    return (epoch if found else 0), outer_found


@inner
def mark_element(m: Tables, element: NodeId, word: NodeId, epoch: int) -> bool:
    """Mark the words from `word` up to an element that begins with it, and write for each the words that are one symbol
    longer (`candidate`, `next_candidate`). Returns whether the element begins with `word`."""
    if not begins(m, word, element):
        return False
    above = NIL
    while element != word and m.nodes[element].marked_in != epoch:
        m.nodes[element].marked_in, m.nodes[element].first_candidate = epoch, above
        if above != NIL:
            m.nodes[above].next_candidate = NIL
        above, element = element, m.nodes[element].a
    if above != NIL:
        m.nodes[above].next_candidate, m.nodes[element].first_candidate = m.nodes[element].first_candidate, above
    return True


@inner
def mark_elements(m: Tables, done: NodeId, word: NodeId, epoch: int) -> bool:
    """`mark_element` for all elements of a list; returns whether any begins with `word`."""
    found = False
    while done != NIL:
        if mark_element(m, m.nodes[done].b, word, epoch):
            found = True
        done = m.nodes[done].a
    return found


@inner
def mark_missing(m: Tables, candidate: NodeId, done: NodeId, word: NodeId, epoch: int) -> bool:
    """`mark_element` for what the set `candidate` has beyond its subset `done`; returns whether any of it begins with
    `word`."""
    found = False
    while candidate != NIL:
        if done != NIL and m.nodes[done].b == m.nodes[candidate].b:
            done = m.nodes[done].a
        elif mark_element(m, m.nodes[candidate].b, word, epoch):
            found = True
        candidate = m.nodes[candidate].a
    return found


@inner
def container_candidates(m: Tables, frame: NodeId, word: NodeId, count: int) -> int:
    """Find the containers that the container inside `frame` which begins at the end of `word` may become, given those
    that the frame may become, work[:count]. Replaces these in `work`; returns the new count."""
    done, more = m.nodes[frame].b, count
    for j in range(count):
        candidate = m.work[j]
        if m.nodes[frame].kind != Kind.OBJECT:
            following = element_after(m, candidate, done)
            if following != NIL:
                more = note_container(m, following, word, more)
        elif includes(m, candidate, done):
            while candidate != NIL:
                more = note_container(m, m.nodes[candidate].b, word, more)
                candidate = m.nodes[candidate].a
    if m.nodes[frame].kind == Kind.UNIQUE:
        while done != NIL:
            more = note_container(m, m.nodes[done].b, word, more)
            done = m.nodes[done].a
    for j in range(count, more):
        m.work[j - count] = m.work[j]
    return more - count


@inner
def note_container(m: Tables, element: NodeId, word: NodeId, count: int) -> int:
    """Append to `work` the container behind `word` in an element that begins with it; returns the new count."""
    if element == word or not begins(m, word, element):
        return count
    while m.nodes[element].a != word:
        element = m.nodes[element].a
    if count >= m.work_size:
        m.n.fault = Fault.FULL_WORK
        return count
    m.work[count] = m.nodes[element].b - CONTAINER
    return count + 1


@inner
def includes(m: Tables, whole: NodeId, part: NodeId) -> bool:
    """Whether the set `whole` includes the set `part`."""
    while part != NIL:
        while whole != NIL and m.nodes[whole].b > m.nodes[part].b:
            whole = m.nodes[whole].a
        if whole == NIL or m.nodes[whole].b != m.nodes[part].b:
            return False
        part = m.nodes[part].a
    return True


@inner
def element_after(m: Tables, whole: NodeId, part: NodeId) -> NodeId:
    """The element that the list `whole` has next behind the list `part`, with which it begins; NIL when there is
    none."""
    while whole > part:
        if m.nodes[whole].a == part:
            return m.nodes[whole].b
        whole = m.nodes[whole].a
    return NIL


@inner
def candidate_word(m: Tables, word: NodeId, byte: int, epoch: int) -> NodeId:
    """The word of `word` and one more byte if it is marked, else NIL. Makes no node."""
    mask = m.node_hash_size - 1
    slot = mix(Kind.WORD, word, byte, 0) & mask
    while m.node_hash[slot] != 0:
        i = m.node_hash[slot]
        if m.nodes[i].kind == Kind.WORD and m.nodes[i].a == word and m.nodes[i].b == byte and m.nodes[i].c == 0:
            return i if m.nodes[i].marked_in == epoch else NIL
        slot = (slot + 1) & mask
    return NIL


@inner
def next_along_candidates(m: Tables, trie: Trie, node: int, seen: RegisterId, byte: int) -> int:
    """The first child of a trie node, by `byte` or a later one, by which a text goes on along its candidates; -1 if there
    is none."""
    best, child, candidate = CONTAINER, -1, m.nodes[m.nodes[seen].c].first_candidate
    while candidate != NIL:
        if byte <= m.nodes[candidate].b < best:
            found = child_of(trie, node, m.nodes[candidate].b)
            if found >= 0:
                best, child = m.nodes[candidate].b, found
        candidate = m.nodes[candidate].next_candidate
    return child

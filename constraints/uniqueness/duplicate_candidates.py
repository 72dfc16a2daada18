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

from ..automaton.nodes import mix, wide
from ..automaton.tables import REC, Counter, Fault
from ..base.kinds import Kind
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import child_of
from .seen_values import CONTAINER, EMPTY_WORD, NIL, begins, is_in_key, is_recorded


@inner
def mark_candidates(arena, tables, seen):
    """(epoch, is_inner) of a register: the epoch in the field `marked_in` of all words by which what is being read may become
    a remembered one, 0 when there is none; and whether a container around it may become a remembered one. Found again
    only after others were marked."""
    if arena[tables.n + Counter.MARKED] != seen or arena[tables.n + Counter.MARKED_EPOCH] != arena[tables.n + Counter.EPOCH]:
        candidates, is_inner = find_candidates(arena, tables, seen)
        arena[tables.n + Counter.MARKED] = seen if arena[tables.n + Counter.FAULT] == Fault.NONE else NIL
        arena[tables.n + Counter.MARKED_EPOCH] = arena[tables.n + Counter.EPOCH]
        arena[tables.n + Counter.MARKED_CANDIDATES], arena[tables.n + Counter.MARKED_INNER] = candidates, 1 if is_inner else 0
    return wide(arena[tables.n + Counter.MARKED_CANDIDATES]), arena[tables.n + Counter.MARKED_INNER] == 1


@inner
def find_candidates(arena, tables, seen):
    """`mark_candidates`, whatever was marked last.

    From the outermost recorded frame inwards, every frame is compared with what stands at its place in remembered
    items: items that it has itself, and containers that it may become.
    """
    frame, word = wide(arena[tables.a + REC * seen]), wide(arena[tables.c + REC * seen])
    if word == NIL:
        return wide(0), False
    arena[tables.n + Counter.EPOCH] += 1
    epoch = wide(arena[tables.n + Counter.EPOCH])
    arena[tables.first_candidate + REC * word] = NIL
    if not is_recorded(arena, tables, frame):
        return (epoch if mark_elements(arena, tables, wide(arena[tables.b + REC * frame]), word, epoch) else wide(0)), False
    depth, outer = wide(0), frame
    while outer != NIL and is_recorded(arena, tables, outer):
        depth, outer = depth + 1, wide(arena[tables.a + REC * outer])
    frames = np.empty(depth, np.int64)
    for i in range(depth):
        frames[i], frame = frame, wide(arena[tables.a + REC * frame])
    count = wide(0)  # work[:count]: containers that the frame may become
    for i in range(depth - 1, 0, -1):
        count = container_candidates(arena, tables, frames[i], wide(arena[tables.c + REC * frames[i - 1]]), count)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return wide(0), False
    frame, outer_found = frames[0], False
    done = wide(arena[tables.b + REC * frame])
    for j in range(count):
        candidate = wide(arena[tables.work + j])
        if candidate == done and word == EMPTY_WORD:
            outer_found = True
        elif arena[tables.kind + REC * frame] == Kind.OBJECT:
            if includes(arena, tables, candidate, done) and mark_missing(arena, tables, candidate, done, word, epoch):
                outer_found = True
        else:
            following = element_after(arena, tables, candidate, done)
            if following != NIL and mark_element(arena, tables, following, word, epoch):
                outer_found = True
    found = outer_found
    has_guard = arena[tables.kind + REC * frame] == Kind.UNIQUE or is_in_key(arena[tables.b + REC * seen])
    if has_guard and mark_elements(arena, tables, done, word, epoch):
        found = True
    return (epoch if found else wide(0)), outer_found


@inner
def mark_element(arena, tables, element, word, epoch):
    """Mark the words from `word` up to an element that begins with it, and write for each the words that are one symbol
    longer (`candidate`, `next_candidate`). Returns whether the element begins with `word`."""
    if not begins(arena, tables, word, element):
        return False
    above = wide(NIL)
    while element != word and arena[tables.marked_in + REC * element] != epoch:
        arena[tables.marked_in + REC * element], arena[tables.first_candidate + REC * element] = epoch, above
        if above != NIL:
            arena[tables.next_candidate + REC * above] = NIL
        above, element = element, wide(arena[tables.a + REC * element])
    if above != NIL:
        arena[tables.next_candidate + REC * above], arena[tables.first_candidate + REC * element] = (
            arena[tables.first_candidate + REC * element],
            above,
        )
    return True


@inner
def mark_elements(arena, tables, done, word, epoch):
    """`mark_element` for all elements of a list; returns whether any begins with `word`."""
    found = False
    while done != NIL:
        if mark_element(arena, tables, wide(arena[tables.b + REC * done]), word, epoch):
            found = True
        done = wide(arena[tables.a + REC * done])
    return found


@inner
def mark_missing(arena, tables, candidate, done, word, epoch):
    """`mark_element` for what the set `candidate` has beyond its subset `done`; returns whether any of it begins with
    `word`."""
    found = False
    while candidate != NIL:
        if done != NIL and arena[tables.b + REC * done] == arena[tables.b + REC * candidate]:
            done = wide(arena[tables.a + REC * done])
        elif mark_element(arena, tables, wide(arena[tables.b + REC * candidate]), word, epoch):
            found = True
        candidate = wide(arena[tables.a + REC * candidate])
    return found


@inner
def container_candidates(arena, tables, frame, word, count):
    """Find the containers that the container inside `frame` which begins at the end of `word` may become, given those
    that the frame may become, work[:count]. Replaces these in `work`; returns the new count."""
    done, more = wide(arena[tables.b + REC * frame]), count
    for j in range(count):
        candidate = wide(arena[tables.work + j])
        if arena[tables.kind + REC * frame] != Kind.OBJECT:
            following = element_after(arena, tables, candidate, done)
            if following != NIL:
                more = note_container(arena, tables, following, word, more)
        elif includes(arena, tables, candidate, done):
            while candidate != NIL:
                more = note_container(arena, tables, wide(arena[tables.b + REC * candidate]), word, more)
                candidate = wide(arena[tables.a + REC * candidate])
    if arena[tables.kind + REC * frame] == Kind.UNIQUE:
        while done != NIL:
            more = note_container(arena, tables, wide(arena[tables.b + REC * done]), word, more)
            done = wide(arena[tables.a + REC * done])
    for j in range(count, more):
        arena[tables.work + j - count] = arena[tables.work + j]
    return more - count


@inner
def note_container(arena, tables, element, word, count):
    """Append to `work` the container behind `word` in an element that begins with it; returns the new count."""
    if element == word or not begins(arena, tables, word, element):
        return count
    while arena[tables.a + REC * element] != word:
        element = wide(arena[tables.a + REC * element])
    if count >= tables.work_size:
        arena[tables.n + Counter.FAULT] = Fault.FULL_WORK
        return count
    arena[tables.work + count] = arena[tables.b + REC * element] - CONTAINER
    return count + 1


@inner
def includes(arena, tables, whole, part):
    """Whether the set `whole` includes the set `part`."""
    while part != NIL:
        while whole != NIL and arena[tables.b + REC * whole] > arena[tables.b + REC * part]:
            whole = wide(arena[tables.a + REC * whole])
        if whole == NIL or arena[tables.b + REC * whole] != arena[tables.b + REC * part]:
            return False
        part = wide(arena[tables.a + REC * part])
    return True


@inner
def element_after(arena, tables, whole, part):
    """The element that the list `whole` has next behind the list `part`, with which it begins; NIL when there is
    none."""
    while whole > part:
        if arena[tables.a + REC * whole] == part:
            return wide(arena[tables.b + REC * whole])
        whole = wide(arena[tables.a + REC * whole])
    return wide(NIL)


@inner
def candidate_word(arena, tables, word, byte, epoch):
    """The word of `word` and one more byte if it is marked, else NIL. Makes no node."""
    mask = tables.node_hash_size - 1
    slot = mix(wide(Kind.WORD), word, byte, wide(0)) & mask
    while arena[tables.node_hash + slot] != 0:
        i = wide(arena[tables.node_hash + slot])
        if (
            arena[tables.kind + REC * i] == Kind.WORD
            and arena[tables.a + REC * i] == word
            and arena[tables.b + REC * i] == byte
            and arena[tables.c + REC * i] == 0
        ):
            return i if arena[tables.marked_in + REC * i] == epoch else wide(NIL)
        slot = (slot + 1) & mask
    return wide(NIL)


@inner
def next_along_candidates(arena, tables, vocab, trie, node, seen, byte):
    """The first child of a trie node, by `byte` or a later one, by which a text goes on along its candidates; -1 if there
    is none."""
    best, child, candidate = wide(CONTAINER), wide(-1), wide(arena[tables.first_candidate + REC * arena[tables.c + REC * seen]])
    while candidate != NIL:
        if byte <= arena[tables.b + REC * candidate] < best:
            found = child_of(vocab, trie, node, arena[tables.b + REC * candidate])
            if found >= 0:
                best, child = wide(arena[tables.b + REC * candidate]), found
        candidate = wide(arena[tables.next_candidate + REC * candidate])
    return child

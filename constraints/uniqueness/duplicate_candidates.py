"""Which remembered words a text may still become.

*Candidates* of what is being read are the remembered keys or items that it may still repeat. Only a text that goes along them can
be refused; one that has left them is as free as the automaton says, see register_product.py.
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
    """Stamp the words by which what is being read may become a remembered one.

    Returns the stamp, 0 when there is none, and whether an enclosing container may become a remembered one.
    """
    if arena[tables.n + Counter.MARKED] != seen or arena[tables.n + Counter.MARKED_EPOCH] != arena[tables.n + Counter.EPOCH]:
        candidates, is_inner = find_candidates(arena, tables, seen)
        arena[tables.n + Counter.MARKED] = seen if arena[tables.n + Counter.FAULT] == Fault.NONE else NIL
        arena[tables.n + Counter.MARKED_EPOCH] = arena[tables.n + Counter.EPOCH]
        arena[tables.n + Counter.MARKED_CANDIDATES], arena[tables.n + Counter.MARKED_INNER] = candidates, 1 if is_inner else 0
    return wide(arena[tables.n + Counter.MARKED_CANDIDATES]), arena[tables.n + Counter.MARKED_INNER] == 1


@inner
def find_candidates(arena, tables, seen):
    """The same, whatever was stamped last.

    From the outermost recorded frame inwards, every frame is compared with what stands at its place in remembered items: items that
    it has itself, and containers that it may become.
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
    """Stamp what leads from a word to an element that begins with it, and note for each what is one symbol longer."""
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
    found = False
    while done != NIL:
        if mark_element(arena, tables, wide(arena[tables.b + REC * done]), word, epoch):
            found = True
        done = wide(arena[tables.a + REC * done])
    return found


@inner
def mark_missing(arena, tables, candidate, done, word, epoch):
    """Stamp as `mark_elements` what a set has beyond a subset of it."""
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
    """What the container inside `frame` that begins at the end of `word` may become, given what the frame may become.

    Replaces work[:count]; returns the new count.
    """
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
    """Append to `work` the container behind a word in an element that begins with it."""
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
    """Whether one set includes another."""
    while part != NIL:
        while whole != NIL and arena[tables.b + REC * whole] > arena[tables.b + REC * part]:
            whole = wide(arena[tables.a + REC * whole])
        if whole == NIL or arena[tables.b + REC * whole] != arena[tables.b + REC * part]:
            return False
        part = wide(arena[tables.a + REC * part])
    return True


@inner
def element_after(arena, tables, whole, part):
    """The element that a list has next after a list that it begins with; NIL when there is none."""
    while whole > part:
        if arena[tables.a + REC * whole] == part:
            return wide(arena[tables.b + REC * whole])
        whole = wide(arena[tables.a + REC * whole])
    return wide(NIL)


@inner
def candidate_word(arena, tables, word, byte, epoch):
    """A word and one more byte if that is stamped, else NIL. Interns nothing."""
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
    """The child of a node of a trie, of those by this byte or a later one, by which a string goes on along candidates; -1 if
    none."""
    best, child, candidate = wide(CONTAINER), wide(-1), wide(arena[tables.first_candidate + REC * arena[tables.c + REC * seen]])
    while candidate != NIL:
        if byte <= arena[tables.b + REC * candidate] < best:
            found = child_of(vocab, trie, node, arena[tables.b + REC * candidate])
            if found >= 0:
                best, child = wide(arena[tables.b + REC * candidate]), found
        candidate = wide(arena[tables.next_candidate + REC * candidate])
    return child

"""Which remembered words a text may still become.

*Rivals* of what is being read are the remembered keys or items that it may still repeat. Only a text that goes along them can be
refused; one that has left them is as free as the automaton says, see register_product.py.
"""

from __future__ import annotations

import numpy as np

from ..automaton.nodes import mix, wide
from ..automaton.tables import EPOCH, FAULT, FULL_WORK, MARKED, MARKED_EPOCH, MARKED_INNER, MARKED_RIVALS, NO_FAULT, REC
from ..numba_support.jit import inner
from ..vocabulary.packed_vocabulary import child_of
from .seen_values import CONTAINER, IN_KEY, KEY_ESCAPE, NOTHING, OBJECT, START, UNIQUE, WORD, begins, is_recorded


@inner
def mark_rivals(m, t, here):
    """Stamp the words by which what is being read may become a remembered one.

    Returns the stamp, 0 when there is none, and whether an enclosing container may become a remembered one.
    """
    if m[t.n + MARKED] != here or m[t.n + MARKED_EPOCH] != m[t.n + EPOCH]:
        rivals, is_inner = find_rivals(m, t, here)
        m[t.n + MARKED], m[t.n + MARKED_EPOCH] = here if m[t.n + FAULT] == NO_FAULT else NOTHING, m[t.n + EPOCH]
        m[t.n + MARKED_RIVALS], m[t.n + MARKED_INNER] = rivals, 1 if is_inner else 0
    return wide(m[t.n + MARKED_RIVALS]), m[t.n + MARKED_INNER] == 1


@inner
def find_rivals(m, t, here):
    """The same, whatever was stamped last.

    From the outermost recorded frame inwards, every frame is compared with what stands at its place in remembered items: items that
    it has itself, and containers that it may become.
    """
    frame, word = wide(m[t.a + REC * here]), wide(m[t.c + REC * here])
    if word == NOTHING:
        return wide(0), False
    m[t.n + EPOCH] += 1
    epoch = wide(m[t.n + EPOCH])
    m[t.rival + REC * word] = NOTHING
    if not is_recorded(m, t, frame):
        return (epoch if mark_elements(m, t, wide(m[t.b + REC * frame]), word, epoch) else wide(0)), False
    depth, outer = wide(0), frame
    while outer != NOTHING and is_recorded(m, t, outer):
        depth, outer = depth + 1, wide(m[t.a + REC * outer])
    frames = np.empty(depth, np.int64)
    for i in range(depth):
        frames[i], frame = frame, wide(m[t.a + REC * frame])
    count = wide(0)  # work[:count]: containers that the frame may become
    for i in range(depth - 1, 0, -1):
        count = inner_rivals(m, t, frames[i], wide(m[t.c + REC * frames[i - 1]]), count)
        if m[t.n + FAULT] != NO_FAULT:
            return wide(0), False
    frame, outer_found = frames[0], False
    done = wide(m[t.b + REC * frame])
    for j in range(count):
        rival = wide(m[t.work + j])
        if rival == done and word == START:
            outer_found = True
        elif m[t.kind + REC * frame] == OBJECT:
            if includes(m, t, rival, done) and mark_missing(m, t, rival, done, word, epoch):
                outer_found = True
        else:
            following = element_after(m, t, rival, done)
            if following != NOTHING and mark_element(m, t, following, word, epoch):
                outer_found = True
    found = outer_found
    has_guard = m[t.kind + REC * frame] == UNIQUE or m[t.b + REC * here] == IN_KEY or m[t.b + REC * here] == KEY_ESCAPE
    if has_guard and mark_elements(m, t, done, word, epoch):
        found = True
    return (epoch if found else wide(0)), outer_found


@inner
def mark_element(m, t, element, word, epoch):
    """Stamp what leads from a word to an element that begins with it, and note for each what is one symbol longer."""
    if not begins(m, t, word, element):
        return False
    above = wide(NOTHING)
    while element != word and m[t.stamp + REC * element] != epoch:
        m[t.stamp + REC * element], m[t.rival + REC * element] = epoch, above
        if above != NOTHING:
            m[t.beside + REC * above] = NOTHING
        above, element = element, wide(m[t.a + REC * element])
    if above != NOTHING:
        m[t.beside + REC * above], m[t.rival + REC * element] = m[t.rival + REC * element], above
    return True


@inner
def mark_elements(m, t, done, word, epoch):
    found = False
    while done != NOTHING:
        if mark_element(m, t, wide(m[t.b + REC * done]), word, epoch):
            found = True
        done = wide(m[t.a + REC * done])
    return found


@inner
def mark_missing(m, t, rival, done, word, epoch):
    """Stamp as `mark_elements` what a set has beyond a subset of it."""
    found = False
    while rival != NOTHING:
        if done != NOTHING and m[t.b + REC * done] == m[t.b + REC * rival]:
            done = wide(m[t.a + REC * done])
        elif mark_element(m, t, wide(m[t.b + REC * rival]), word, epoch):
            found = True
        rival = wide(m[t.a + REC * rival])
    return found


@inner
def inner_rivals(m, t, frame, word, count):
    """What the container inside `frame` that begins at the end of `word` may become, given what the frame may become.

    Replaces work[:count]; returns the new count.
    """
    done, more = wide(m[t.b + REC * frame]), count
    for j in range(count):
        rival = wide(m[t.work + j])
        if m[t.kind + REC * frame] != OBJECT:
            following = element_after(m, t, rival, done)
            if following != NOTHING:
                more = note_container(m, t, following, word, more)
        elif includes(m, t, rival, done):
            while rival != NOTHING:
                more = note_container(m, t, wide(m[t.b + REC * rival]), word, more)
                rival = wide(m[t.a + REC * rival])
    if m[t.kind + REC * frame] == UNIQUE:
        while done != NOTHING:
            more = note_container(m, t, wide(m[t.b + REC * done]), word, more)
            done = wide(m[t.a + REC * done])
    for j in range(count, more):
        m[t.work + j - count] = m[t.work + j]
    return more - count


@inner
def note_container(m, t, element, word, count):
    """Append to `work` the container behind a word in an element that begins with it."""
    if element == word or not begins(m, t, word, element):
        return count
    while m[t.a + REC * element] != word:
        element = wide(m[t.a + REC * element])
    if count >= t.work_size:
        m[t.n + FAULT] = FULL_WORK
        return count
    m[t.work + count] = m[t.b + REC * element] - CONTAINER
    return count + 1


@inner
def includes(m, t, whole, part):
    """Whether one set includes another."""
    while part != NOTHING:
        while whole != NOTHING and m[t.b + REC * whole] > m[t.b + REC * part]:
            whole = wide(m[t.a + REC * whole])
        if whole == NOTHING or m[t.b + REC * whole] != m[t.b + REC * part]:
            return False
        part = wide(m[t.a + REC * part])
    return True


@inner
def element_after(m, t, whole, part):
    """The element that a list has next after a list that it begins with; NOTHING when there is none."""
    while whole > part:
        if m[t.a + REC * whole] == part:
            return wide(m[t.b + REC * whole])
        whole = wide(m[t.a + REC * whole])
    return wide(NOTHING)


@inner
def rival_word(m, t, word, byte, epoch):
    """A word and one more byte if that is stamped, else NOTHING. Interns nothing."""
    mask = t.node_hash_size - 1
    slot = mix(wide(WORD), word, byte, wide(0)) & mask
    while m[t.node_hash + slot] != 0:
        i = wide(m[t.node_hash + slot])
        if m[t.kind + REC * i] == WORD and m[t.a + REC * i] == word and m[t.b + REC * i] == byte and m[t.c + REC * i] == 0:
            return i if m[t.stamp + REC * i] == epoch else wide(NOTHING)
        slot = (slot + 1) & mask
    return wide(NOTHING)


@inner
def next_along_rivals(m, t, v, trie, node, here, byte):
    """The child of a node of a trie, of those by this byte or a later one, by which a string goes on along rivals; -1 if none."""
    best, child, rival = wide(CONTAINER), wide(-1), wide(m[t.rival + REC * m[t.c + REC * here]])
    while rival != NOTHING:
        if byte <= m[t.b + REC * rival] < best:
            found = child_of(v, trie, node, m[t.b + REC * rival])
            if found >= 0:
                best, child = wide(m[t.b + REC * rival]), found
        rival = wide(m[t.beside + REC * rival])
    return child

"""Masks from the tables of body classes: a state's mask, made by walking the vocabulary from this state alone.

Comes in: a state. Goes out: the description of its mask, as a base and edits (mask_rows.py). The base is a slice of a body
class, all tokens of its characters up to a length (char_class_tables.py), or empty; what leaves the class is walked. trie_walk.py
says why that is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.determinize import step
from ..automaton.nodes import NO_BODY, NO_UNLISTED, head_of, repetition, sequence, wide
from ..automaton.states import intern_state, items_of
from ..automaton.tables import DEAD, STATE_MASK, UNKNOWN, Fault, Tables
from ..base.ids import BodyId, NodeId, Place, StateId
from ..base.kinds import UNBOUNDED, Kind
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import NO_PLACE, ROOT, ClassTables, Vocab, class_tables_of, is_inside
from .apart import reads_letters_alike, without_words
from .loop_context import exit_state_of, is_body_exclusive, is_loop, leading_copies
from .mask_rows import clear_tokens
from .shared_continuations import completes_inside
from .trie_walk import walk, walk_literals, without_literals
from .uniform_transitions import knows_uniform, uniform_of

BLANK = 0x20
ONLY_IN_STRINGS = tuple(b"#_AZbz")  # some of what stands in JSON only there, and in most strings
MANY_TOKENS = 4000  # more than are looked at one by one
MANY_VISITED = 1000  # trie nodes, by a walk inside a class, after which tables of the class are asked for


class Exits(NamedTuple):
    """Tokens that leave a class."""

    tables: ClassTables
    least: int  # characters inside of the class
    most: int


@inner
def fill(m: Tables, vocab: Vocab, rows: Words, state: StateId) -> int:
    """Describe the mask of a state, without EOS, by a walk from this state alone. Returns the base and notes the edits,
    see mask_rows.py."""
    other = without_literals(m, state)
    base = fill_other(m, vocab, rows, other) if other != DEAD and m.n.fault == Fault.NONE else 0
    if other != state and m.n.fault == Fault.NONE:
        m.states[state].events |= m.states[other].events
        walk_literals(m, vocab, rows, state, False)
    return base


@inner
def fill_other(m: Tables, vocab: Vocab, rows: Words, state: StateId) -> int:
    """`fill` for a state whose literals are walked elsewhere. Inside a string the walks pass by control characters; the
    tokens that have them are cleared at the end."""
    is_in_string = may_be_in_string(m, state)
    m.n.in_string = 1 if is_in_string else 0
    base = fill_plain(m, vocab, rows, state)
    m.n.in_string = 0
    if is_in_string:
        clear_tokens(rows, vocab.controls, vocab.controls + vocab.num_controls)
    return base


@inner
def may_be_in_string(m: Tables, state: StateId) -> bool:
    """Whether the text is JSON and may be inside a string here: it can go on with characters that JSON has nowhere
    else."""
    row = m.next + state * 256
    for byte in ONLY_IN_STRINGS:
        if row[byte] != DEAD:
            return m.n.only_json == 1
    return False


@inner
def fill_plain(m: Tables, vocab: Vocab, rows: Words, state: StateId) -> int:
    """Describe the mask of a state without literals. Returns the base."""
    body, max_chars = m.states[state].body_class, m.states[state].max_chars
    class_tables = m.classes[body].tables if body >= 0 else string_class(m, vocab, state)
    has_exits = class_tables != 0 and class_tables_of(vocab, class_tables).has_exits != 0
    is_in_groups = body >= 0 and not has_exits and goes_by_groups(m, state)
    if is_in_groups:
        class_tables = NO_PLACE
    if class_tables != 0:
        tables = class_tables_of(vocab, class_tables)
        slice_ = slice_of(m, tables, state, max_chars) if body >= 0 else tables.last_slice
        if slice_ >= 0:
            return fill_body(m, vocab, rows, state, tables, slice_)
    base, other = 0, state
    if class_tables == 0:
        space, rest, max_chars = split_space(m, vocab, state)
        are_ends_seen = m.n.notes_ends == 0 or space == DEAD or not completes_inside(m, space, body_of(m, space))
        if space != DEAD and are_ends_seen and is_body_exclusive(m, space):
            base, other = fill_space(m, vocab, rows, space, max_chars), rest
            m.states[state].events |= m.states[space].events
    trie = vocab.grouped if reads_letters_alike(m, other) else vocab.trie
    if walk(m, vocab, rows, trie, ROOT, other) > MANY_VISITED and body >= 0 and class_tables == 0 and not is_in_groups:
        m.n.wanted = body + 1
    m.states[state].events |= m.states[other].events
    return base


@inner
def goes_by_groups(m: Tables, state: StateId) -> bool:
    """Whether a walk of all tokens in the trie by groups takes less than one of those that a body class leaves over: a space may
    come, with which a third of them begins, and letters are read alike there (apart.py)."""
    after = m.next[state * 256 + BLANK]
    if after == UNKNOWN:
        after = step(m, state, BLANK)
    if m.n.fault != Fault.NONE or after & STATE_MASK == DEAD:
        return False
    rest = without_words(m, wide(after & STATE_MASK))
    return rest != DEAD and m.n.fault == Fault.NONE and reads_letters_alike(m, rest)


@inner
def fill_body(m: Tables, vocab: Vocab, rows: Words, state: StateId, tables: ClassTables, slice_: int) -> int:
    """Describe the mask of a state inside a class with tables, beginning with the slice `slice_` of the class. Returns
    the base."""
    body, max_chars = m.states[state].body_class, m.states[state].max_chars
    trie = tables.residual
    if tables.has_exits and (is_body_exclusive(m, state) if body >= 0 else m.states[state].accept == 0):
        exit_state, least = state, 0
        if body >= 0 and not is_loop(m, tables, state):
            exit_state, least = exit_state_of(m, tables.exits, state)
        if exit_state != DEAD and (least != 1 or tables.num_exits <= MANY_TOKENS):
            cleared = Exits(tables, least, max_chars if body >= 0 else ENDLESS)
            walk_exits(m, vocab, rows, cleared, state, exit_state)
            trie = tables.rest
    if body >= 0 and slice_ == tables.last_slice:
        clear_longer(rows, tables, max_chars)
    walk(m, vocab, rows, trie, ROOT, state)
    return tables.slices + slice_ * vocab.words


@inner
def split_space(m: Tables, vocab: Vocab, state: StateId) -> tuple[StateId, StateId, int]:
    """(space, rest, most): a state of the items that repeat characters of one class, such as white space behind a
    number, made endless; a state of the other items; and how many characters may come in the first at most. (DEAD,
    state, 0) where this is not done.

    The mask is that of both states together. Otherwise a state would be made for each number of characters that have
    been read. It is done only where no token leaves the class behind more characters than may come.
    """
    start, length = items_of(m, state)
    body, max_chars = NO_BODY, 0
    for j in range(start, start + length):
        item = m.pool[j]
        if body == NO_BODY:
            body = repeated(m, vocab, item)
        if body != NO_BODY and repeated(m, vocab, item) == body:
            most = 1 + leading_copies(m, m.nodes[item].b, body)
            max_chars = most if max_chars == 0 else min(max_chars, most)
    if body == NO_BODY or max_chars < most_before_exits(m, vocab, body):
        return DEAD, wide(state), 0
    parts = np.zeros(2, np.int64)
    for part in range(2):
        count = 0
        for j in range(start, start + length):
            item = m.pool[j]
            if (repeated(m, vocab, item) == body) == (part == 0):
                m.items[count] = endless(m, item) if part == 0 else item
                count += 1
        if part == 0:
            parts[part] = intern_state(m, count, body, ENDLESS, NO_UNLISTED)
        else:
            own = m.states[state]
            parts[part] = intern_state(m, count, own.body_class, own.max_chars, own.unlisted)
    if parts[0] == DEAD or parts[1] == DEAD:
        return DEAD, wide(state), 0
    return wide(parts[0]), wide(parts[1]), max_chars


@inner
def endless(m: Tables, item: NodeId) -> NodeId:
    """An item that begins with a character and a repetition, with the repetition made endless."""
    own, rest = head_of(m, item), m.nodes[item].b
    loop = head_of(m, rest)
    again = repetition(m, m.nodes[loop].a, m.nodes[loop].b, UNBOUNDED)
    return sequence(m, own, sequence(m, again, m.nodes[rest].b) if m.nodes[rest].kind == Kind.SEQ else again)


@inner
def most_before_exits(m: Tables, vocab: Vocab, body: BodyId) -> int:
    """The most characters of a body class with which a token begins that leaves the class."""
    tables = class_tables_of(vocab, m.classes[body].tables)
    return tables.prefix[0] if tables.num_exits > 0 else 0


@inner
def fill_space(m: Tables, vocab: Vocab, rows: Words, space: StateId, max_chars: int) -> int:
    """Describe the mask of the state `space` of `split_space`, in which at most `max_chars` characters may come. Returns
    the base."""
    tables = class_tables_of(vocab, m.classes[m.states[space].body_class].tables)
    slice_ = min(max_chars, tables.last_slice)
    if slice_ == tables.last_slice:
        clear_longer(rows, tables, max_chars)
    walk(m, vocab, rows, tables.residual, ROOT, space)
    return tables.slices + slice_ * vocab.words


@inner
def repeated(m: Tables, vocab: Vocab, item: NodeId) -> BodyId:
    """The body class of which an item repeats characters, if the class's exits are known; else NO_BODY."""
    own = head_of(m, item)
    unit = m.nodes[own].body_class
    if m.nodes[own].kind != Kind.CLASS or m.nodes[item].kind != Kind.SEQ or unit == NO_BODY:
        return NO_BODY
    class_tables = m.classes[unit].tables
    is_known = (
        class_tables != 0
        and class_tables_of(vocab, class_tables).has_exits
        and leading_copies(m, m.nodes[item].b, unit) > 0
    )
    return unit if is_known else NO_BODY


@inner
def walk_exits(m: Tables, vocab: Vocab, rows: Words, wanted: Exits, state: StateId, exit_state: StateId) -> None:
    """Note the tokens that leave the body of a state and are read from `exit_state` then, see `exit_state_of`."""
    tables = wanted.tables
    exits, end = tables.by_prefix, tables.num_exits
    # The longest parts come first.
    kept, kept_end = longer_parts(tables, wanted.most), longer_parts(tables, wanted.least - 1)
    if kept == kept_end:
        return
    walk(m, vocab, rows, tables.exits, ROOT, exit_state)
    m.states[state].events |= m.states[exit_state].events
    m.n.cleared, m.n.kept = exits, exits + kept
    m.n.kept_end, m.n.cleared_end = exits + kept_end, exits + end
    clear_tokens(rows, exits, exits + kept)
    clear_tokens(rows, exits + kept_end, exits + end)


@inner
def longer_parts(tables: ClassTables, chars: int) -> int:
    """How many exits of a class have more than `chars` characters inside the class."""
    low, high = 0, tables.num_exits
    while low < high:
        middle = (low + high) // 2
        if tables.prefix[middle] > chars:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def string_class(m: Tables, vocab: Vocab, state: StateId) -> Place:
    """The tables of the class of JSON strings (or of those without line separators) if all its characters lead from a
    state back to itself, as in a key that is none of the excluded ones; else 0."""
    if m.states[state].has_no_product == 1 or not knows_uniform(m, state):
        return NO_PLACE
    uniform = uniform_of(m, state)
    if uniform.following == state:
        for class_tables in (vocab.string, vocab.line):
            if is_inside(class_tables_of(vocab, class_tables).first_bytes, uniform.first_bytes, 0):
                return class_tables
    return NO_PLACE


@inner
def slice_of(m: Tables, tables: ClassTables, state: StateId, max_chars: int) -> int:
    """The slice of a body class that is right for a state with this body, apart from longer tokens (`clear_longer`); -1
    when there is none."""
    if max_chars < tables.longest and not is_body_exclusive(m, state):
        return -1
    return min(max_chars, tables.last_slice)


@inner
def clear_longer(rows: Words, tables: ClassTables, max_chars: int) -> None:
    """Note that the tokens of a class with more than `max_chars` characters do not survive."""
    count = 0
    while count < tables.num_long_tokens and tables.long_token_lengths[count] > max_chars:
        count += 1
    clear_tokens(rows, tables.long_tokens, tables.long_tokens + count)


@inner
def body_of(m: Tables, state: StateId) -> BodyId:
    return m.states[state].body_class

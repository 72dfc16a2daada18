"""Counted tables: a finite automaton beside a counter, as a leaf of the lazy automaton.

An intersection is computed while compiling (intersections.py). What remains is a *table* in `pool`: the transitions of a
finite automaton, some of which count (behind the last byte of a character), and for every count how far each state is from
the end of a text. So a length is no factor of the automaton's size, but those distances alone. A TABLE node is a table, a state
and a count: a leaf that reads one byte after another.

    .*[A-Z].* , 3 to 5 characters      states: none yet, found; counts 0 to 5
    distances of (none yet, found)     count 2: 1, 1    count 4: 1, 0    count 5: never, 0

Of counts that are far from both bounds the distances are the same, and they are kept once. As long as no token can leave such a
run of counts, all of them have the same mask, that of a STANDING node, whose count stands still.

The functions that read tables are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import entry, inner
from ..numba_support.records import Words
from .nodes import EMPTY, FAIL, intern_node, wide
from .tables import DEAD, UNKNOWN, Fault, Tables, tables_at

ALWAYS = 1 << 29  # counts that are alike, where the last one stays


class Table(IntEnum):
    """The words of a table in `pool`, its header first; what follows begins at the words that the header gives."""

    NUM_LETTERS = 0
    LOW = 1  # the last count before those that are alike
    ALIKE = 2  # the last of those
    LAST = 3  # the greatest count
    STAYS = 4  # 1 where the greatest count is never left
    ROW_OF = 5  # [places] where the distances begin that hold at a count, see `place_of`
    RUN = 6  # [places] how many counts follow at which the same states end and can be completed
    NEXT = 7  # [states, letters] twice the next state, plus 1 where the transition counts
    LETTERS = 8  # [256] the letter of each byte, here


HEADER = len(Table) - 1 + 256


# -- making them --------------------------------------------------------------------------------------------------------


@entry(next_="const int32[:,:]", counts="const uint8[:,:]", order="int32[:]")
def uncounted_order(next_: NDArray[np.int32], counts: NDArray[np.uint8], order: NDArray[np.int32]) -> bool:
    """Write the states in an order in which transitions that do not count lead to earlier ones only. Returns False when
    there is none. next_: [states, letters]; counts: uint8, likewise."""
    num_states, num_letters = next_.shape
    left, begin = np.zeros(num_states, np.int32), np.zeros(num_states + 2, np.int64)
    for state in range(num_states):
        for letter in range(num_letters):
            target = next_[state, letter]
            if target != DEAD and not counts[state, letter]:
                left[state] += 1
                begin[target + 2] += 1
    for state in range(num_states):
        begin[state + 2] += begin[state + 1]
    source = np.empty(begin[num_states + 1], np.int32)
    for state in range(num_states):
        for letter in range(num_letters):
            target = next_[state, letter]
            if target != DEAD and not counts[state, letter]:
                source[begin[target + 1]] = state
                begin[target + 1] += 1
    end, at = 0, 0
    for state in range(num_states):
        if left[state] == 0:
            order[end], end = state, end + 1
    while at < end:
        state = order[at]
        at += 1
        for k in range(begin[state], begin[state + 1]):
            left[source[k]] -= 1
            if left[source[k]] == 0:
                order[end], end = source[k], end + 1
    return end == num_states


@entry(
    next_="const int32[:,:]", counts="const uint8[:,:]", accepts="const uint8[:]", order="const int32[:]",
    rows="int32[:,:]", row_of="int32[:]", run="int32[:]", done="int64[:]",
)  # fmt: skip
def count_distances(
    next_: NDArray[np.int32], counts: NDArray[np.uint8], accepts: NDArray[np.uint8], order: NDArray[np.int32],
    low: int, most: int, rows: NDArray[np.int32], row_of: NDArray[np.int32], run: NDArray[np.int32], done: NDArray[np.int64],
) -> None:
    """Go on with the distances of texts with at least `low` counts, for `most` counts at the most, as far as there are rows.

    rows: [_, states] distances in bytes, INFINITE where there is none; row_of, run: of each place, the last one first. done: rows
    in use, places in use, ALIKE, the next count, negative when all are done.
    """
    rows_used, places, alike, count = wide(done[0]), wide(done[1]), wide(done[2]), wide(done[3])
    before = np.full(next_.shape[0], INFINITE, np.int32)  # the distances behind one more count
    end = count - most
    while count >= 0 and count > end and rows_used < len(rows):
        after = rows[row_of[places - 1]] if places > 0 else before
        distances_before(next_, counts, accepts, order, after, count >= low, rows[rows_used])
        is_same = places > 0 and are_equal(rows[rows_used], after)
        if is_same and low <= count:
            alike, count = count + 1, wide(low) - 1
            continue
        following = 0
        if is_same or (places > 0 and end_alike(rows[rows_used], after)):
            following = wide(run[places - 1]) + 1 + (alike - low if count == low - 1 else 0)
        row_of[places], run[places] = (row_of[places - 1] if is_same else rows_used), min(following, ALWAYS)
        rows_used += 0 if is_same else 1
        places, count = places + 1, count - 1
    done[0], done[1], done[2], done[3] = rows_used, places, alike, count


@inner
def distances_before(
    next_: NDArray[np.int32], counts: NDArray[np.uint8], accepts: NDArray[np.uint8], order: NDArray[np.int32],
    after: NDArray[np.int32], may_end: bool, out: NDArray[np.int32]
) -> None:
    """Write the distances at a count. after: those one count later; may_end: whether a text may end at this count."""
    out[DEAD] = INFINITE
    for k in range(order.size):
        state = order[k]
        least = 0 if may_end and accepts[state] else INFINITE
        if state != DEAD and least > 0:
            for letter in range(next_.shape[1]):
                target = next_[state, letter]
                if target != DEAD:
                    least = min(least, wide(after[target] if counts[state, letter] else out[target]) + 1)
        out[state] = min(least, INFINITE)


@inner
def are_equal(row: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
    for state in range(row.size):
        if row[state] != other[state]:
            return False
    return True


@inner
def end_alike(row: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
    """Whether the same states end, and the same can be completed, in two rows of distances."""
    for state in range(row.size):
        if (row[state] == 0) != (other[state] == 0) or (row[state] >= INFINITE) != (other[state] >= INFINITE):
            return False
    return True


@entry
def reserve(arena_address: int, num_words: int) -> int:
    """The place of so many words in `pool`. Means nothing on a fault."""
    m = tables_at(arena_address)
    start = m.n.pool
    if start + num_words > m.pool_size:
        m.n.fault = Fault.FULL_POOL
    else:
        m.n.pool = start + num_words
    return start


@entry
def enter_table(arena_address: int, node: NodeId, table: int, start: int) -> None:
    """Let a BOTH or NEGATE node be the table at a place in `pool`, from the state `start`; set its size and cost."""
    m = tables_at(arena_address)
    leaf = table_node(m, Kind.TABLE, table, start, 0)
    if m.n.fault == Fault.NONE:
        m.nodes[node].entry_product = leaf
        m.nodes[node].size = m.nodes[leaf].size if leaf != FAIL else INFINITE
        m.nodes[node].cost = m.nodes[leaf].cost if leaf != FAIL else INFINITE


# -- reading them -------------------------------------------------------------------------------------------------------


@inner
def is_table(kind: int) -> bool:
    """Whether a node is a table, with a count that moves or stands still."""
    return kind == Kind.TABLE or kind == Kind.STANDING


@inner
def place_of(table: Words, count: int) -> int:
    """The place of a count. table: where it begins in the arena."""
    low, alike = table[Table.LOW], table[Table.ALIKE]
    return count if count <= low else low if count <= alike else low + count - alike


@inner
def distance_of(table: Words, state: int, count: int) -> int:
    """Bytes of the shortest text behind a state at a count, INFINITE where there is none."""
    row = table[table[Table.ROW_OF] + place_of(table, count)]
    return table[row + state]


@inner
def run_of(table: Words, count: int) -> int:
    """How many counts follow at which the same states end and can be completed."""
    alike = table[Table.ALIKE]
    run = table[table[Table.RUN] + place_of(table, count)]
    return run + (alike - count if table[Table.LOW] <= count <= alike else 0)


@inner
def after_letter(table: Words, kind: int, state: int, count: int, letter: int) -> tuple[int, int]:
    """(state, count) behind a letter; the state is DEAD where no text is left."""
    word = table[table[Table.NEXT] + state * table[Table.NUM_LETTERS] + letter]
    target = word >> 1
    if word & 1 and kind == Kind.TABLE:
        if count < table[Table.LAST]:
            count += 1
        elif table[Table.STAYS] == 0:
            return DEAD, count
    if target == DEAD or distance_of(table, target, count) >= INFINITE:
        return DEAD, count
    return target, count


@inner
def table_node(m: Tables, kind: int, place: int, state: int, count: int) -> NodeId:
    """The TABLE or STANDING node of a state and a count, with its size and cost; EMPTY where no more may come, FAIL where no
    text is left, and on a fault."""
    table = m.pool + place
    distance = distance_of(table, state, count) if state != DEAD else INFINITE
    if distance >= INFINITE:
        return FAIL
    if distance == 0 and not goes_on(table, kind, state, count):
        return EMPTY
    node = intern_node(m, kind, place, state, count)
    if node != FAIL and m.nodes[node].size == UNKNOWN:
        m.nodes[node].size = m.nodes[node].cost = distance
        m.nodes[node].may_saturate = kind == Kind.TABLE
    return node


@inner
def goes_on(table: Words, kind: int, state: int, count: int) -> bool:
    """Whether a text may go on."""
    for letter in range(table[Table.NUM_LETTERS]):
        target, _ = after_letter(table, kind, state, count, letter)
        if target != DEAD:
            return True
    return False


@inner
def table_after(m: Tables, node: NodeId, byte: int) -> tuple[NodeId, int, int]:
    """(follow, low, high): the node behind a byte, FAIL where it is not read, and the interval of bytes with the same
    answer."""
    kind, place = m.nodes[node].kind, m.nodes[node].a
    table = m.pool + place
    letters = table + Table.LETTERS
    letter = letters[byte]
    low = high = byte
    while low > 0 and letters[low - 1] == letter:
        low -= 1
    while high < 255 and letters[high + 1] == letter:
        high += 1
    target, later = after_letter(table, kind, m.nodes[node].b, m.nodes[node].c, letter)
    return table_node(m, kind, place, target, later), low, high


@inner
def mark_table(m: Tables, node: NodeId, row: Words) -> None:
    """Mark the bytes that a table reads as UNKNOWN in the transitions at `row`."""
    kind, state, count = m.nodes[node].kind, m.nodes[node].b, m.nodes[node].c
    table = m.pool + m.nodes[node].a
    for byte in range(256):
        target, _ = after_letter(table, kind, state, count, table[Table.LETTERS + byte])
        if target != DEAD:
            row[byte] = UNKNOWN


@inner
def standing_still(m: Tables, node: NodeId, enough: int) -> NodeId:
    """A node with the mask of `node`, a table, the same one for all counts that `enough` more cannot bring to a count that is not
    alike; `node` itself where it is nearer."""
    place, state, count = m.nodes[node].a, m.nodes[node].b, m.nodes[node].c
    run = run_of(m.pool + place, count)
    if m.nodes[node].kind == Kind.STANDING or run < enough:
        return node
    if run < ALWAYS:
        return table_node(m, Kind.STANDING, place, state, count + run)
    last = m.pool[place + Table.LAST]
    return node if last == count else table_node(m, Kind.TABLE, place, state, last)

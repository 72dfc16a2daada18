"""Any text but some words: UNLISTED nodes, for keys beside those that an object names.

A key beside the properties of an object is any key but these. As an expression over bytes that would be a tree of the
names with an exit at every character. An UNLISTED node instead holds the *body* (any key), the names as a sorted list,
WORDS, and how many bytes of them have been read. A byte narrows the list, by bisection, to the names that go on with
it; when none does, what is left is the body.

    UNLISTED(any key, {age, name})   on "n"   UNLISTED(any key, {name} after 1 byte)   on "x"   any key

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, FAIL, intern_node, plus, wide
from .tables import REC, UNKNOWN, Counter

_AT_END = -1  # instead of the next byte of a word


@inner
def without_words(arena, tables, words, body):
    """The UNLISTED node of a body and a WORDS node, with its size and cost."""
    node = intern_node(arena, tables, wide(Kind.UNLISTED), words, body, wide(0))
    if arena[tables.size + REC * node] == UNKNOWN:
        arena[tables.size + REC * node], arena[tables.cost + REC * node] = sizes_without_words(arena, tables, words, body)
    return node


@inner
def sizes_without_words(arena, tables, words, body):
    """(size, cost) of an UNLISTED node: those of the body, and one more printable character for each length of which
    all texts may be words.

    So both are enough, and from every node some byte leads to one that needs one less.
    """
    size, cost = wide(arena[tables.size + REC * body]), wide(arena[tables.cost + REC * body])
    if size >= INFINITE:
        return size, cost
    plain = max(wide(arena[tables.n + Counter.PLAIN]), wide(1))
    more, free = wide(0), wide(1)
    while num_words_of(arena, tables, words, size + more) >= free:
        more, free = more + 1, min(free * plain, wide(INFINITE))
    return plus(size, more), (cost if more == 0 else wide(INFINITE) if arena[tables.n + Counter.PLAIN] == 0 else plus(cost, more))


@inner
def num_words_of(arena, tables, words, size):
    """How many words of a WORDS node have `size` bytes left."""
    rows, read, count = tables.lists + wide(arena[tables.a + REC * words]), wide(arena[tables.c + REC * words]), wide(0)
    for k in range(arena[tables.b + REC * words]):
        count += 1 if arena[rows + 2 * k + 1] - read == size else 0
    return count


@inner
def next_byte(arena, tables, first, read, k):
    """The byte of word `k` behind the first `read` bytes, _AT_END when it has no more. first: where the list of words
    begins in `lists`."""
    row = tables.lists + first + 2 * k
    return wide(arena[tables.text + arena[row] + read]) if read < arena[row + 1] else wide(_AT_END)


@inner
def has_end(arena, tables, words):
    """Whether some word of a WORDS node has been read to its end. Such a word is the first of the list."""
    return next_byte(arena, tables, wide(arena[tables.a + REC * words]), wide(arena[tables.c + REC * words]), wide(0)) == _AT_END


@inner
def first_from(arena, tables, first, count, read, byte):
    """The index of the first word whose next byte is `byte` or a greater one."""
    low, high = wide(0), wide(count)
    while low < high:
        middle = (low + high) // 2
        if next_byte(arena, tables, first, read, middle) < byte:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def narrowed(arena, tables, first, count, read, byte):
    """(first, count) of the words whose next byte is `byte`."""
    start = first_from(arena, tables, first, count, read, byte)
    end = start + first_from(arena, tables, first + 2 * start, count - start, read, byte + 1)
    return first + 2 * start, end - start


@inner
def words_after(arena, tables, words, byte):
    """(WORDS node, low, high): the words that go on with a byte, FAIL where there are none; and the interval of bytes
    with the same answer: those with which no word goes on, or this byte alone."""
    first, count, read = (
        wide(arena[tables.a + REC * words]),
        wide(arena[tables.b + REC * words]),
        wide(arena[tables.c + REC * words]),
    )
    begin, left = narrowed(arena, tables, first, count, read, wide(byte))
    if left > 0:
        return intern_node(arena, tables, wide(Kind.WORDS), begin, left, read + 1), wide(byte), wide(byte)
    index = (begin - first) // 2
    low = next_byte(arena, tables, first, read, index - 1) + 1 if index > 0 else wide(0)
    high = next_byte(arena, tables, first, read, index) - 1 if index < count else wide(255)
    return wide(FAIL), low, high


@inner
def without_words_after(arena, tables, words, rest):
    """What is left of an UNLISTED node behind a byte. rest: what is left of its body; words: the words that go on with
    the byte, or FAIL."""
    if words == FAIL or rest == FAIL:
        return rest
    if rest == EMPTY:
        return wide(FAIL) if has_end(arena, tables, words) else wide(EMPTY)
    return without_words(arena, tables, words, rest)

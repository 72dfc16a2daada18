"""Any text but some words: UNLISTED nodes, for keys beside those that an object names.

A key beside the properties of an object is any key but these. As an expression over bytes that would be a tree of the
names with an exit at every character. An UNLISTED node instead holds the *body* (any key), the names as a sorted list,
WORDS, and how many bytes of them have been read. A byte narrows the list, by bisection, to the names that go on with
it; when none does, what is left is the body.

    UNLISTED(any key, {age, name})   on "n"   UNLISTED(any key, {name} after 1 byte)   on "x"   any key

All functions here are compiled. `m` is the arena, by the names of its tables; tables.py explains that, and faults.
"""

from __future__ import annotations

from ..base.ids import NodeId
from ..base.kinds import INFINITE, Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, FAIL, intern_node, plus
from .tables import UNKNOWN, Tables

_AT_END = -1  # instead of the next byte of a word


@inner
def without_words(m: Tables, words: NodeId, body: NodeId) -> NodeId:
    """The UNLISTED node of a body and a WORDS node, with its size and cost."""
    node = intern_node(m, Kind.UNLISTED, words, body, 0)
    if m.nodes[node].size == UNKNOWN:
        m.nodes[node].size, m.nodes[node].cost = sizes_without_words(m, words, body)
    return node


@inner
def sizes_without_words(m: Tables, words: NodeId, body: NodeId) -> tuple[int, int]:
    """(size, cost) of an UNLISTED node: those of the body, and one more printable character for each length of which
    all texts may be words.

    So both are enough, and from every node some byte leads to one that needs one less.
    """
    size, cost = m.nodes[body].size, m.nodes[body].cost
    if size >= INFINITE:
        return size, cost
    plain = max(m.n.plain, 1)
    more, free = 0, 1
    while num_words_of(m, words, size + more) >= free:
        more, free = more + 1, min(free * plain, INFINITE)
    return plus(size, more), (cost if more == 0 else INFINITE if m.n.plain == 0 else plus(cost, more))


@inner
def num_words_of(m: Tables, words: NodeId, size: int) -> int:
    """How many words of a WORDS node have `size` bytes left."""
    rows, read, count = m.lists + m.nodes[words].a, m.nodes[words].c, 0
    for k in range(m.nodes[words].b):
        count += 1 if rows[2 * k + 1] - read == size else 0
    return count


@inner
def next_byte(m: Tables, first: int, read: int, k: int) -> int:
    """The byte of word `k` behind the first `read` bytes, _AT_END when it has no more. first: where the list of words
    begins in `lists`."""
    row = m.lists + first + 2 * k
    return m.text[row[0] + read] if read < row[1] else _AT_END


@inner
def has_end(m: Tables, words: NodeId) -> bool:
    """Whether some word of a WORDS node has been read to its end. Such a word is the first of the list."""
    return next_byte(m, m.nodes[words].a, m.nodes[words].c, 0) == _AT_END


@inner
def first_from(m: Tables, first: int, count: int, read: int, byte: int) -> int:
    """The index of the first word whose next byte is `byte` or a greater one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if next_byte(m, first, read, middle) < byte:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def narrowed(m: Tables, first: int, count: int, read: int, byte: int) -> tuple[int, int]:
    """(first, count) of the words whose next byte is `byte`."""
    start = first_from(m, first, count, read, byte)
    end = start + first_from(m, first + 2 * start, count - start, read, byte + 1)
    return first + 2 * start, end - start


@inner
def words_after(m: Tables, words: NodeId, byte: int) -> tuple[NodeId, int, int]:
    """(WORDS node, low, high): the words that go on with a byte, FAIL where there are none; and the interval of bytes
    with the same answer: those with which no word goes on, or this byte alone."""
    first, count, read = m.nodes[words].a, m.nodes[words].b, m.nodes[words].c
    begin, left = narrowed(m, first, count, read, byte)
    if left > 0:
        return intern_node(m, Kind.WORDS, begin, left, read + 1), byte, byte
    index = (begin - first) // 2
    low = next_byte(m, first, read, index - 1) + 1 if index > 0 else 0
    high = next_byte(m, first, read, index) - 1 if index < count else 255
    return FAIL, low, high


@inner
def without_words_after(m: Tables, words: NodeId, rest: NodeId) -> NodeId:
    """What is left of an UNLISTED node behind a byte. rest: what is left of its body; words: the words that go on with
    the byte, or FAIL."""
    if words == FAIL or rest == FAIL:
        return rest
    if rest == EMPTY:
        return FAIL if has_end(m, words) else EMPTY
    return without_words(m, words, rest)

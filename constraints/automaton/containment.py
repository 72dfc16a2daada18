"""Containment: continuations that say no more than another one beside them, and are left out.

In an ambiguous grammar one text leads to many stacks. Most differ only in frames that may be empty: after n letters
`S = "a" S? S?` has stacks of 0 to n frames `S?`, and the deepest can finish as all the others can. `contains` finds that
by the shapes of two continuations, without looking at their strings:

    A contains A                     A | B contains what A or B contain
    F A contains A                   if F may be empty
    X{a,b} A contains X{c,d} B       if a <= c, d <= b, and A contains B
    X* A contains X B                if X* A contains B

What it does not see in a few steps it denies, so states may keep more than they need, and never lose a string. A part
that marks the end of a segment is empty too, but parsers ask for it: such a frame is not passed over.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, NO_BODY, head_of, wide
from .tables import REC, Counter

_MOST_STEPS = 24  # of one comparison
_MOST_COMPARED = 96  # pairs in one set
_SCRATCH = 2 * (2 * _MOST_STEPS + 1)  # words: every step puts two pairs at most at the end
_FEW = 16  # continuations that are all compared with each other


@inner
def without_contained(arena, tables, start, count, scratch):
    """Drop those of the continuations arena[start : start + count] that others of them contain; returns how many are
    left. Where there are more than a few, only those are compared that begin with the same part. Uses `work` from `scratch` on."""
    if count < 2 or arena[tables.n + Counter.CALLS] == 0 or scratch + _SCRATCH > tables.work_size:
        return count
    shared, compared, left = mark_shared(arena, tables, start, count, True), wide(0), wide(0)
    if shared == 0 and count > _FEW:
        return count
    for i in range(start, start + count):
        item, is_contained = wide(arena[i]), False
        first = head_of(arena, tables, item)
        if count <= _FEW or arena[tables.marked_in + REC * first] == shared:
            for j in range(start, start + count):
                other = wide(arena[j])
                if j == i or other < 0 or (count > _FEW and head_of(arena, tables, other) != first):
                    continue
                compared += 1
                if compared > _MOST_COMPARED:
                    break
                if contains(arena, tables, other, item, scratch) and (j < i or other != item):
                    is_contained = True
                    break
        if is_contained:
            arena[i] = -1
    for i in range(start, start + count):
        if arena[i] >= 0:
            arena[start + left] = arena[i]
            left += 1
    return left


@inner
def mark_shared(arena, tables, start, count, with_characters):
    """Mark the parts with which several of the continuations arena[start : start + count] begin; those that are
    characters of a body class only if `with_characters`. Returns the epoch that is in their field `marked_in`, 0 if there
    is no such part."""
    arena[tables.n + Counter.EPOCH] += 3
    shared, found = wide(arena[tables.n + Counter.EPOCH]) - 1, wide(0)
    for i in range(start, start + count):
        head = head_of(arena, tables, wide(arena[i]))
        if head == EMPTY or (arena[tables.body_class + REC * head] != NO_BODY and not with_characters):
            continue
        if arena[tables.marked_in + REC * head] >= shared - 1:
            arena[tables.marked_in + REC * head] = found = shared
        else:
            arena[tables.marked_in + REC * head] = shared - 1
    return found


@inner
def contains(arena, tables, larger, smaller, scratch):
    """Whether the shape of `larger` shows that it has all strings of `smaller`. Pairs of rests are compared breadth first,
    as either way on may be endless."""
    start = tables.work + scratch
    arena[start], arena[start + 1] = larger, smaller
    at, end = wide(start), wide(start + 2)
    while at < end and at < start + 2 * _MOST_STEPS:
        a, b = wide(arena[at]), wide(arena[at + 1])
        at += 2
        if a == b:
            return True
        kind = wide(arena[tables.kind + REC * head_of(arena, tables, a)])
        is_boolean = kind == Kind.PRODUCT or kind == Kind.TABLE  # their end is an item of its own; a size may not be known yet
        if is_boolean or arena[tables.size + REC * a] > arena[tables.size + REC * b]:
            continue
        if b == EMPTY:  # all that is left is as short
            return True
        if arena[tables.kind + REC * a] == Kind.EITHER:
            end = put_pair(arena, start, wide(arena[tables.a + REC * a]), b, end)
            end = put_pair(arena, start, wide(arena[tables.b + REC * a]), b, end)
            continue
        head, first = head_of(arena, tables, a), head_of(arena, tables, b)
        behind = wide(arena[tables.b + REC * a]) if head != a else wide(EMPTY)
        rest = wide(arena[tables.b + REC * b]) if first != b else wide(EMPTY)
        if may_be_passed(arena, tables, head):
            end = put_pair(arena, start, behind, b, end)
        if head == first or is_wider(arena, tables, head, first):
            end = put_pair(arena, start, behind, rest, end)
        elif is_endless(arena, tables, head) and arena[tables.a + REC * head] == first:
            end = put_pair(arena, start, a, rest, end)
    return False


@inner
def put_pair(arena, start, larger, smaller, end):
    """Put a pair at the end of those to compare, unless it is among them; returns the new end."""
    for i in range(start, end, 2):
        if arena[i] == larger and arena[i + 1] == smaller:
            return end
    arena[end], arena[end + 1] = larger, smaller
    return end + 2


@inner
def is_wider(arena, tables, head, other):
    """Whether two repetitions have the same body, and the bounds of the first enclose those of the other."""
    if arena[tables.kind + REC * head] != Kind.REPEAT or arena[tables.kind + REC * other] != Kind.REPEAT:
        return False
    if arena[tables.a + REC * head] != arena[tables.a + REC * other]:
        return False
    high, most = wide(arena[tables.c + REC * head]), wide(arena[tables.c + REC * other])
    return arena[tables.b + REC * head] <= arena[tables.b + REC * other] and (high < 0 or 0 <= most <= high)


@inner
def is_endless(arena, tables, head):
    """Whether a part is a repetition of any number of copies."""
    return arena[tables.kind + REC * head] == Kind.REPEAT and arena[tables.b + REC * head] == 0 and arena[tables.c + REC * head] < 0


@inner
def may_be_passed(arena, tables, head):
    """Whether a part may be empty, and does not mark the end of a segment."""
    if head == EMPTY or arena[tables.size + REC * head] != 0:
        return False
    kind = arena[tables.kind + REC * head]
    is_end = kind == Kind.CALL and arena[tables.rules + arena[tables.a + REC * head]] == EMPTY
    return kind != Kind.PRODUCT and kind != Kind.TABLE and not is_end

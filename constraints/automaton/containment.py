"""Containment: continuations that say no more than another one beside them, and are left out.

In an ambiguous grammar one text leads to many stacks. Most differ only in frames that may be empty: after n letters
`S = "a" S? S?` has stacks of 0 to n frames `S?`, and the deepest can finish as all the others can. `contains` finds that
by the shapes of two continuations, without looking at their strings:

    A contains A                     A | B contains what A or B contain
    F A contains A                   if F may be empty
    X{a,b} A contains X{c,d} B       if a <= c, d <= b, and A contains B
    X* A contains X B                if X* A contains B

    A contains B | C                 if A contains B, and C

Stacks grow by a frame at a time, so their unions are compared when the unions below them have been: what was found of unions is
noted in the table `contained`, and a comparison ends there.

What it does not see in a few steps it denies, so states may keep more than they need, and never lose a string. A part
that marks the end of a segment is empty too, but parsers ask for it: such a frame is not passed over.

All functions here are compiled. `arena` and `tables` are the arena and its layout; tables.py explains both, and faults.
"""

from __future__ import annotations

from ..base.kinds import Kind
from ..numba_support.jit import inner
from .nodes import EMPTY, NO_BODY, head_of, join, mix, repetition, wide
from .tables import REC, Counter, Fault

_MOST_STEPS = 24  # of one comparison
_MOST_COMPARED = 96  # pairs in one set
_FEW = 16  # continuations that are all compared with each other
_MOST_UNIONS = 4  # comparisons with unions, inside of one another
_PAIRS = 4 * _MOST_STEPS + 2  # words: every step puts two pairs at most at the end
_SCRATCH = _MOST_UNIONS * (_PAIRS + 5)
CONTAINED = 4096  # words of the table of unions that are known to be contained, by pairs

# The words of a comparison in `work`, behind its pairs.
_AT, _END, _LARGER, _SMALLER, _OTHERS = range(_PAIRS, _PAIRS + 5)  # _OTHERS: the parts of the union that come next, or EMPTY


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
    as either way on may be endless; one of them has to hold. Of a pair with a union all parts have to hold: that is a comparison
    inside of the comparison, which lies behind it in `work`."""
    if is_noted(arena, tables, larger, -smaller):
        return False
    first = tables.work + scratch
    here, left = first, wide(_MOST_STEPS)
    begin(arena, tables, here, larger, smaller)
    while True:
        at, end = wide(arena[here + _AT]), wide(arena[here + _END])
        if at == end or left == 0 or arena[tables.n + Counter.FAULT] != Fault.NONE:
            if here == first or at != end:
                note(arena, tables, larger, -smaller)
                return False
            here -= _PAIRS + 5
            continue
        left -= 1
        a, b = wide(arena[here + at]), wide(arena[here + at + 1])
        arena[here + _AT] = at + 2
        holds = a == b or is_noted(arena, tables, a, b)
        if not holds and arena[tables.kind + REC * b] == Kind.EITHER and may_contain(arena, tables, a, b):
            if here < first + (_MOST_UNIONS - 1) * (_PAIRS + 5):
                here += _PAIRS + 5
                begin(arena, tables, here, a, b)
                continue
        elif not holds and may_contain(arena, tables, a, b):
            if b == EMPTY:  # all that is left is as short
                holds = True
            else:
                arena[here + _END] = put_rests(arena, tables, here, a, b, end)
        while holds:
            a, rest = wide(arena[here + _LARGER]), wide(arena[here + _OTHERS])
            if rest != EMPTY:
                go_on(arena, tables, here, rest)
                break
            if arena[tables.kind + REC * arena[here + _SMALLER]] == Kind.EITHER:
                note(arena, tables, a, wide(arena[here + _SMALLER]))
            if here == first:
                return True
            here -= _PAIRS + 5


@inner
def begin(arena, tables, here, larger, smaller):
    """Begin a comparison: of a union, with its first part."""
    arena[here + _LARGER], arena[here + _SMALLER] = larger, smaller
    go_on(arena, tables, here, smaller)


@inner
def go_on(arena, tables, here, rest):
    """Go on with the first of the parts that are left."""
    is_union = arena[tables.kind + REC * rest] == Kind.EITHER
    arena[here], arena[here + 1] = arena[here + _LARGER], arena[tables.a + REC * rest] if is_union else rest
    arena[here + _OTHERS] = arena[tables.b + REC * rest] if is_union else EMPTY
    arena[here + _AT], arena[here + _END] = 0, 2


@inner
def may_contain(arena, tables, larger, smaller):
    """Whether it is worth looking: the end of a product, table or watch is an item of its own, and a size may not be known yet."""
    kind = wide(arena[tables.kind + REC * head_of(arena, tables, larger)])
    is_boolean = kind == Kind.PRODUCT or kind == Kind.TABLE or kind == Kind.WATCH
    return not is_boolean and arena[tables.size + REC * larger] <= arena[tables.size + REC * smaller]


@inner
def put_rests(arena, tables, here, a, b, end):
    """Put the pairs at the end of which one has to hold so that `a` contains `b`, which is no union; returns the new end."""
    if arena[tables.kind + REC * a] == Kind.EITHER:
        end = put_pair(arena, here, wide(arena[tables.a + REC * a]), b, end)
        return put_pair(arena, here, wide(arena[tables.b + REC * a]), b, end)
    head, first = head_of(arena, tables, a), head_of(arena, tables, b)
    behind = wide(arena[tables.b + REC * a]) if head != a else wide(EMPTY)
    rest = wide(arena[tables.b + REC * b]) if first != b else wide(EMPTY)
    if may_be_passed(arena, tables, head):
        end = put_pair(arena, here, behind, b, end)
    if head == first or is_wider(arena, tables, head, first):
        end = put_pair(arena, here, behind, rest, end)
    elif is_optional(arena, tables, head):
        body, high = wide(arena[tables.a + REC * head]), wide(arena[tables.c + REC * head])
        if body == first:
            end = put_pair(arena, here, without_copies(arena, tables, head, behind, wide(1)), rest, end)
        elif high >= 0 and is_optional(arena, tables, first) and arena[tables.a + REC * first] == body:
            most = wide(arena[tables.c + REC * first])
            copies = high if most < 0 else min(high, most)
            a = without_copies(arena, tables, head, behind, copies)
            end = put_pair(arena, here, a, without_copies(arena, tables, first, rest, copies), end)
    return end


@inner
def is_noted(arena, tables, larger, smaller):
    """Whether it is known that a continuation contains another one."""
    slot = tables.contained + (mix(larger, abs(smaller), wide(0), wide(0)) & (CONTAINED // 2 - 1)) * 2
    return arena[slot] == larger and arena[slot + 1] == smaller and larger != 0


@inner
def note(arena, tables, larger, smaller):
    """Note that a continuation contains another one. What was noted in the same place is forgotten."""
    slot = tables.contained + (mix(larger, abs(smaller), wide(0), wide(0)) & (CONTAINED // 2 - 1)) * 2
    arena[slot], arena[slot + 1] = larger, smaller


@inner
def put_pair(arena, start, larger, smaller, end):
    """Put a pair at the end of those to compare, unless it is among them; returns the new end."""
    for i in range(start, start + end, 2):
        if arena[i] == larger and arena[i + 1] == smaller:
            return end
    arena[start + end], arena[start + end + 1] = larger, smaller
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
def is_optional(arena, tables, head):
    """Whether a part is a repetition that may have any number of copies up to a bound, or without one."""
    return arena[tables.kind + REC * head] == Kind.REPEAT and arena[tables.b + REC * head] == 0


@inner
def without_copies(arena, tables, head, rest, copies):
    """What is left of an optional repetition and its rest behind the most that so many copies can be."""
    high = wide(arena[tables.c + REC * head])
    if high == copies:
        return rest
    left = repetition(arena, tables, wide(arena[tables.a + REC * head]), wide(0), high if high < 0 else high - copies)
    return join(arena, tables, left, rest)


@inner
def may_be_passed(arena, tables, head):
    """Whether a part may be empty, and does not mark the end of a segment."""
    if head == EMPTY or arena[tables.size + REC * head] != 0:
        return False
    kind = arena[tables.kind + REC * head]
    is_end = kind == Kind.CALL and arena[tables.rules + arena[tables.a + REC * head]] == EMPTY
    return kind != Kind.PRODUCT and kind != Kind.TABLE and not is_end

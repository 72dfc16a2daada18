"""The kinds of expressions and of events, by number: what builders of grammars and compiled code have to agree on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

KEYS_APART = 3  # a colon, a value, a comma
UNBOUNDED: Final = -1  # the `high` of a repetition without bound, as stored in the arena
MOST = 1 << 28  # of anything that is counted: no text has more, so larger bounds mean the same as this one
NO_BOUND = 1 << 40  # instead of UNBOUNDED where bounds are added up: more than any sum of bounds
NO_TOTAL = 1 << 60  # the same for totals: more than any sum of NO_BOUNDs
INFINITE = 1 << 30  # a size or cost that does not exist
LAST = MOST  # the position of members in any order
ASKED = LAST + 1  # instead of a position: a member of another part, at the first level; further levels follow


class Kind(IntEnum):
    """What a node is, and the meaning of its three operands a, b, c."""

    FAIL = 0
    EMPTY = 1
    CLASS = 2  # a = first edge, b = number of edges, c = event; an edge is (low byte, high byte, node that follows)
    LITERAL = 3  # a = offset into the byte pool, b = length
    SEQ = 4  # a = head, b = tail
    ALT = 5  # a = offset into the list pool, b = number of alternatives, c = their supply
    REPEAT = 6  # a = body, b = low, c = high or UNBOUNDED
    CALL = 7  # a = rule, b = CLASS node of characters of which any may come at first, one after another, or FAIL
    BOTH = 8  # a, b = operands
    NEGATE = 9  # a = operand
    BAG = 10  # a = first TALLY, b = low, c = high or UNBOUNDED
    TALLY = 11  # of a bag: a = REPEAT node of one part, b = next TALLY or FAIL, c = counter of a COVER; no expression by itself
    MULTIPLE = 12  # a = offset of its step in the list pool, b = remainder, c = low * COUNTS + high digits to come: see divisors.py
    WORDS = 13  # of UNLISTED: a = offset of the first in the list pool, b = number, c = bytes read; no expression by itself
    UNLISTED = 14  # a = WORDS, b = body: see word_complement.py
    # Made by the automaton only, in the same arena:
    PRODUCT = 15  # a, b = automaton states of the operands, c = BOTH or NEGATE
    REGISTER = 16  # see seen_values.py
    OBJECT = 17
    ARRAY = 18
    UNIQUE = 19
    LIST = 20
    WORD = 21
    CONFIGURATION = 22  # a = automaton state, b = register; see register_product.py
    EITHER = 23  # a, b = continuations: their union; see unions.py
    # Of grammars again:
    DECISION = 24  # a = offset of its row in the list pool, b = cases, c = the same without this member; see member_walks.py
    WALK = 25  # a = first TALLY, b = REPEAT of the separator: bounds of how many members come, c = 1 where a member must follow
    # Made by the automaton only:
    TAKEN = 26  # what is left of a WALK behind one more member. a = WALK, b = part of it, c = offset of the case, 0 in a REPEAT;
    # of a COVER behind one more item: a = COVER, b = sort of the item, or their number for one that nothing counts
    TABLE = 27  # a = its place in the pool, b = state, c = count; see counted_tables.py
    COVER = 28  # of grammars: a = first TALLY of what is wanted, b = offset of its row, c = 1 where one must follow; see covers.py
    # Made by the automaton only:
    WATCH = 29  # an item of a COVER that is being read. a = its state, b = first WATCHED, c = TAKEN: see watched_items.py
    WATCHED = 30  # a = state of what the item may turn out to be, b = next WATCHED or FAIL, c = TAKEN for that
    STANDING = 31  # a TABLE whose count stands still
    # Of grammars again:
    FRACTION = 32  # a, b = as of a MULTIPLE behind its point, c = digits to come at most
    FAMILY = 33  # a = member, b = FAMILY of what comes with it, c = FAMILY without it; EMPTY, FAIL at its ends: see families.py
    PLACED = 34  # a member of a FAMILY that has a position, or is ASKED. a = member, b = position; no expression by itself


class CoverRow(IntEnum):
    """Where what is in the row of a COVER, and where in each of its sorts (covers.py)."""

    SORTS = 0  # how many there are
    COUNTERS = 1
    CORES = 2  # offset of the tables of its cores, from the beginning of the row; 0: it has none
    SEPARATOR = 3
    NEXT = 4  # the COVER whose row says what comes behind an item; FAIL where that is this row
    SETTLED = 5  # what stands for the COVER where nothing is wanted any more
    FIRST = 6  # of the sorts
    TEXT = 0
    TIMES = 1  # a counter that says how often the sort is planned, ANY_TIMES or NOT_PLANNED
    WHERE = 2  # its counters, from the beginning of the row, and their number
    COUNT = 3
    WATCHERS = 4  # pairs of a sort and the state of its start, from the beginning of the row: the sort itself, and what its items
    # may turn out to be; 0 where nothing is watched, ONLY_PLANNED of those that may be watched
    NUM_WATCHERS = 5  # without the first
    OF_SORT = 6  # words of each


ANY_TIMES, NOT_PLANNED = -1, -2
ONLY_PLANNED = -1


class Event(IntEnum):
    """What a byte means for the register of keys and items (seen_values.py)."""

    NONE = 0
    OBJECT_OPEN = 1  # "{" of an object whose keys are remembered
    OBJECT_CLOSE = 2  # its "}"
    KEY_OPEN = 3  # the quote that opens a key to be remembered
    KEY_CLOSE = 4  # the quote that closes it; refused when the key was seen before
    ARRAY_OPEN = 5  # "[" of an array whose items must differ
    ITEM_CLOSE = 6  # the comma behind an item of it; refused when an equal item was seen before
    ARRAY_CLOSE = 7  # its "]", behind an item or not; refused likewise


class Supply(IntEnum):
    """Whether the cheapest of some alternatives is still to be had, for the number of tokens that suffice
    (shortest_completion.py)."""

    CERTAIN = 0
    SCARCE = 1  # one can, maybe the dearest
    SPARE = 2  # perhaps not even that; something else can

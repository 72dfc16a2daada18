"""What the register says about tokens: the vocabulary's trie is walked against the automaton and the register together.

Comes in: a state and a register. Goes out: the tokens that the register refuses, as edits of the state's mask row; or, for
budgets, the state behind each token and what the register adds to its cost. *Unsettled* tokens are those for which that has to
be found out by a search.

Only a text that goes along candidates can be refused. So a mask needs only the few paths along candidates (ALONG), and the
tries of those tokens in which another word begins. The walk makes next to no nodes, although every token writes a key
or item of its own: where there are no candidates, bytes are only noted, and the register is brought up to date where a new
key or item begins.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..automaton.closures import ENDLESS
from ..automaton.nodes import wide
from ..automaton.tables import (
    CLASS_TABLES,
    CLASS_WIDTH,
    DEAD,
    REC,
    STATE_BITS,
    STATE_MASK,
    Counter,
    Fault,
    layout,
)
from ..base.kinds import INFINITE, Event
from ..base.utf8 import LAST_ASCII
from ..masks.loop_context import is_body_exclusive, is_loop
from ..masks.mask_rows import clear_tokens
from ..numba_support.jit import entry, inner, words_at
from ..vocabulary.packed_vocabulary import (
    FIRST_LEAD,
    NO_HEIGHT,
    NODE_WIDTH,
    SHAPE_WIDTH,
    Header,
    TrieRecord,
    is_ascii,
    is_inside,
)
from .duplicate_candidates import candidate_word, mark_candidates, next_along_candidates
from .register_product import (
    ExtraCost,
    SeenFlag,
    after_candidate_byte,
    expects_key,
    extra_cost,
    follow,
    is_alive,
    is_plain,
    must_open_key,
    seen_flags,
    transition,
    way_out,
)
from .seen_values import BACKSLASH, COMMA, REPEATED, TextMode, is_space, seen_after

NO_ROWS = 0
REMEMBERED = sum(1 << event for event in Event if event not in (Event.NONE, Event.OBJECT_OPEN, Event.OBJECT_CLOSE))


class Step(IntEnum):
    """The columns of a walk's stack, which has a row for each depth."""

    PLACE = 0  # the trie's node
    BYTE = 1  # read there
    EVENT = 2  # of that byte
    STATE = 3  # behind it
    KNOWN = 4  # the register after the first SINCE bytes
    SINCE = 5
    ORIGIN = 6  # the register whose candidates are those here, 0 without candidates
    NARROWED = 7  # whether a repeated item has ended some alternatives


STEP_WIDTH = len(Step)


class WalkMode(IntEnum):
    """Which tokens of a trie are looked at, see `judge` and `judge_trie`."""

    WHOLE = 0
    ALONG = 1  # only those that go along candidates
    IN_BRIEF = 2  # not those that stay inside of a string without candidates
    IN_KEY = 3  # nor those that begin so and have a quotation mark then


@entry(ends="int32[:]", extra="int32[:]", unsettled="int32[:,:]")
def judge(arena_address, vocab_address, state, seen, way, ends, extra, unsettled):
    """Walk the trie of all tokens from a state and a register. Returns the number of unsettled tokens, and the least cost
    behind a token that is not unsettled, INFINITE without any. Every output array may be empty when it is not wanted.

    way: WHOLE; or IN_BRIEF to leave out the tokens that change nothing because they stay inside of a string without
    candidates; or IN_KEY to leave out also those that begin so and have a quotation mark then. All count for the least
    cost.

    ends, extra: int32 [tokens]. ends[k] = the state that the k-th token in order leads to, DEAD when it does not
    survive; extra[k] = what the register adds to the cost there, SEARCH or EXPECTS_KEY when that has to be found out.

    unsettled: int32 [5, tokens]: k, id, state, register and extra of the unsettled tokens; in brief also of those with ONE_MORE.
    """
    arena, vocab = words_at(arena_address), words_at(vocab_address)
    tables = layout(arena)
    trie, state, seen = wide(vocab[Header.TRIE]), wide(state), wide(seen)
    count, least, _ = judge_trie(arena, tables, vocab, NO_ROWS, trie, state, seen, wide(way), ends, extra, unsettled, wide(0))
    if way == WalkMode.IN_KEY:
        none, trie = np.empty(0, np.int32), wide(vocab[Header.QUOTED_ONCE])
        least = min(
            least,
            judge_trie(
                arena, tables, vocab, NO_ROWS, trie, state, seen, wide(WalkMode.WHOLE), none, none, unsettled, count
            )[1],
        )
    return count, least


@entry(unsettled="int32[:,:]")
def unsettled_tokens(arena_address, vocab_address, state, seen, has_items, unsettled):
    """Write the unsettled tokens of `judge`, and those behind which some alternatives are gone, to `unsettled`; returns their
    number. They are looked for only where they can be. The row of the state has to be known."""
    arena, vocab = words_at(arena_address), words_at(vocab_address)
    tables = layout(arena)
    state, seen = wide(state), wide(seen)
    flags = seen_flags(arena, tables, seen)
    if not flags & SeenFlag.HAS_CANDIDATES and not arena[tables.state_events + REC * state] & REMEMBERED:
        return wide(0)
    none, count = np.empty(0, np.int32), wide(0)
    if flags & SeenFlag.HAS_CANDIDATES:
        trie = wide(vocab[Header.TRIE])
        count, _, _ = judge_trie(
            arena, tables, vocab, NO_ROWS, trie, state, seen, wide(WalkMode.ALONG), none, none, unsettled, wide(0)
        )
    trie = where_words_begin(vocab, flags, has_items)
    return judge_trie(arena, tables, vocab, NO_ROWS, trie, state, seen, wide(WalkMode.WHOLE), none, none, unsettled, count)[0]


@inner
def where_words_begin(vocab, flags, has_items):
    """The trie of the tokens in which another key or item with candidates can begin."""
    in_text = flags & SeenFlag.IN_TEXT
    if has_items:
        return wide(vocab[Header.QUOTED_ONCE if in_text else Header.SEPARATED])
    if in_text:
        return wide(vocab[Header.QUOTED_TWICE])
    return wide(vocab[Header.QUOTED_ONCE if flags & SeenFlag.HAS_WORDS else Header.QUOTED_THRICE])


@inner
def where_refusals_begin(arena, tables, vocab, flags):
    """The trie of the tokens that may be refused for another key or item which begins in them; items of unique arrays
    that begin there too are not among these.

    Behind a key comes a value first. A key or a string that may be any but some is refused at its closing quotation
    mark only: until then it may become another.
    """
    in_text, has_words = flags & SeenFlag.IN_TEXT, flags & SeenFlag.HAS_WORDS
    has_free_names = arena[tables.n + Counter.FREE_NAMES] * vocab[Header.SPELLS]
    if flags & SeenFlag.IN_UNIQUE:
        if arena[tables.n + Counter.FREE_ITEMS] * vocab[Header.SPELLS] == 0:
            return where_words_begin(vocab, flags, wide(1))
        return wide(vocab[Header.QUOTED_ONCE if has_words and not in_text and not has_free_names else Header.QUOTED_TWICE])
    if in_text and (flags & SeenFlag.IN_NAME or not has_words):
        return wide(vocab[Header.QUOTED_APART])
    if has_free_names:
        return wide(vocab[Header.QUOTED_THRICE if in_text or not has_words else Header.QUOTED_TWICE])
    return where_words_begin(vocab, flags, wide(0))


@inner
def judge_trie(arena, tables, vocab, rows, trie, state, seen, way, ends, extra, unsettled, num_unsettled):
    """`judge` for any trie. Returns num_unsettled, the least cost, and how many tokens were cleared. Unsettled tokens are written
    behind the first `num_unsettled`; their k is then no place in the order of all tokens.

    way: what is looked at. WHOLE: all tokens; ALONG: only those that go along candidates; IN_BRIEF, IN_KEY: not those that
    `judge` leaves out. rows: the address of the mask rows, where the tokens that the register refuses are noted to be
    cleared; or NO_ROWS.
    """
    nodes, order, n = (
        wide(vocab[trie + TrieRecord.NODES]),
        wide(vocab[trie + TrieRecord.ORDER]),
        wide(vocab[trie + TrieRecord.NUM_NODES]),
    )
    ends[:] = DEAD
    extra[:] = 0
    if n == 0:
        return num_unsettled, wide(INFINITE), wide(0)
    stack = np.empty((wide(vocab[Header.DEPTH]) + 1, STEP_WIDTH), np.int64)
    stack[0, Step.PLACE], stack[0, Step.STATE], stack[0, Step.KNOWN], stack[0, Step.SINCE] = -1, state, seen, 0
    marked, (epoch, is_inner) = wide(seen), mark_candidates(arena, tables, wide(seen))
    stack[0, Step.ORIGIN], stack[0, Step.NARROWED] = seen if epoch != 0 else 0, 0
    i, least, cleared, spells, shapes = (
        wide(0),
        wide(INFINITE),
        wide(0),
        vocab[Header.SPELLS] == 1,
        wide(vocab[trie + TrieRecord.SHAPES]),
    )
    tested, loops = wide(DEAD), False
    fills = way == WalkMode.WHOLE and ends.size > 0 and shapes != 0
    while i < n:
        node = nodes + NODE_WIDTH * i
        d, value, skip = wide(vocab[node + 1]), wide(vocab[node] & 255), wide(vocab[node + 2])
        above = d - 1
        if stack[above, Step.ORIGIN] != 0:
            if marked != stack[above, Step.ORIGIN]:
                marked, (epoch, is_inner) = stack[above, Step.ORIGIN], mark_candidates(arena, tables, stack[above, Step.ORIGIN])
            mode = arena[tables.b + REC * stack[above, Step.KNOWN]]
            if way == WalkMode.ALONG and stack[above, Step.NARROWED] == 0 and mode != TextMode.OUTSIDE:
                child = next_along_candidates(arena, tables, vocab, trie, stack[above, Step.PLACE], stack[above, Step.KNOWN], value)
                if child < 0:
                    i = n if d == 1 else wide(vocab[nodes + NODE_WIDTH * stack[above, Step.PLACE] + 2])
                    continue
                if child > i:
                    i = child
                    continue
        answer = transition(arena, tables, stack[above, Step.STATE], value)
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return num_unsettled, least, cleared
        s, event = answer & STATE_MASK, answer >> STATE_BITS
        if s == DEAD:
            if stack[above, Step.NARROWED] == 1:
                cleared += clear_below(vocab, rows, nodes, order, node, skip)
            i = skip
            continue
        stack[d, Step.NARROWED] = stack[above, Step.NARROWED]
        stack[d, Step.PLACE], stack[d, Step.BYTE], stack[d, Step.EVENT], stack[d, Step.STATE] = i, value, event, s
        stack[d, Step.KNOWN], stack[d, Step.SINCE], stack[d, Step.ORIGIN] = stack[above, Step.KNOWN], stack[above, Step.SINCE], 0
        dead = False
        if stack[above, Step.ORIGIN] != 0:
            if is_plain(arena, tables, stack[above, Step.KNOWN], value, event):
                candidate = candidate_word(arena, tables, wide(arena[tables.c + REC * stack[above, Step.KNOWN]]), value, epoch)
                if candidate != 0:
                    stack[d, Step.KNOWN], stack[d, Step.SINCE] = (
                        after_candidate_byte(arena, tables, stack[above, Step.KNOWN], value, event, candidate),
                        d,
                    )
                    stack[d, Step.ORIGIN] = stack[above, Step.ORIGIN]
            else:
                s, stack[d, Step.KNOWN] = follow(arena, tables, stack[above, Step.STATE], answer, stack[above, Step.KNOWN], value)
                stack[d, Step.SINCE], dead = d, stack[d, Step.KNOWN] == REPEATED
                if s != stack[d, Step.STATE]:
                    stack[d, Step.STATE], stack[d, Step.NARROWED] = s, 1
        elif event == Event.KEY_OPEN or event == Event.ITEM_CLOSE:
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(arena, tables, stack, d), d
        if stack[d, Step.SINCE] == d and not dead and stack[d, Step.ORIGIN] == 0:
            marked, (epoch, is_inner) = stack[d, Step.KNOWN], mark_candidates(arena, tables, stack[d, Step.KNOWN])
            stack[d, Step.ORIGIN] = marked if epoch != 0 else 0
        more = 0  # the extra cost of tokens that end here
        start, end = wide(vocab[node + 3]), wide(vocab[node + NODE_WIDTH + 3])
        ends_here = start != end
        if stack[d, Step.ORIGIN] != 0 and ends_here and not dead:
            if unsettled.size > 0:
                more = extra_cost(arena, tables, s, stack[d, Step.KNOWN], epoch, is_inner, spells)
            if not way_out(arena, tables, s, stack[d, Step.KNOWN], epoch, INFINITE - 1):
                dead = not is_alive(arena, tables, s, stack[d, Step.KNOWN])
                marked = wide(0)
        elif ends_here and unsettled.size > 0 and (value == COMMA or is_space(value)) and must_open_key(arena, tables, s):
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(arena, tables, stack, d), d
            more = ExtraCost.EXPECTS_KEY if expects_key(arena, tables, s, stack[d, Step.KNOWN]) else 0
        is_dearer = stack[d, Step.NARROWED] == 1 and ends_here and not dead
        is_dearer = is_dearer and way <= WalkMode.ALONG and unsettled.size > 0 and ends.size == 0
        if is_dearer:  # perhaps: fewer tokens may suffice for the alternatives that are gone
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(arena, tables, stack, d), d
        if arena[tables.n + Counter.FAULT] != Fault.NONE:
            return num_unsettled, least, cleared
        stays = (way >= WalkMode.IN_BRIEF or fills) and stack[d, Step.ORIGIN] == 0
        if stays:  # in a string without an end that is the same behind each character, also when one of several bytes is begun
            is_whole = value < FIRST_LEAD and ends_here
            if tested != (s if value < FIRST_LEAD else stack[above, Step.STATE]):
                tested = s if value < FIRST_LEAD else stack[above, Step.STATE]
                loops = arena[tables.state_max_chars + REC * tested] >= ENDLESS and is_endless(arena, tables, vocab, tested)
            stays = loops and (fills or is_whole or least <= arena[tables.state_cost + REC * tested])
        if dead:
            cleared += clear_below(vocab, rows, nodes, order, node, skip)
            i = skip
        elif way == WalkMode.ALONG and stack[d, Step.ORIGIN] == 0 and stack[d, Step.NARROWED] == 0:
            i = skip
        elif stays and (
            (way == WalkMode.IN_KEY and is_any_string(arena, tables, vocab, tested))
            or is_within_class(arena, tables, vocab, shapes + SHAPE_WIDTH * i, tested)
        ):
            if fills:
                least = min(least, fill_inside(arena, tables, vocab, trie, stack, i, tested, ends))
            else:
                least = min(least, wide(arena[tables.state_cost + REC * tested]))
            i = skip
        else:
            if ends.size > 0:
                ends[start:end] = s
                extra[start:end] = more
            if ends_here and more >= 0:
                least = min(least, wide(arena[tables.state_cost + REC * s]) + more)
            if ends_here and (more < 0 or is_dearer or (more == ExtraCost.ONE_MORE and way >= WalkMode.IN_BRIEF)):
                for k in range(start, end):
                    unsettled[0, num_unsettled], unsettled[1, num_unsettled], unsettled[2, num_unsettled] = k, vocab[order + k], s
                    unsettled[3, num_unsettled], unsettled[4, num_unsettled] = stack[d, Step.KNOWN], more
                    num_unsettled += 1
            i += 1
    return num_unsettled, least, cleared


@inner
def clear_below(vocab, rows, nodes, order, node, skip):
    """Note that the tokens at a node and below it do not survive, unless `rows` is NO_ROWS. Returns how many tokens
    were noted."""
    if rows == NO_ROWS:
        return wide(0)
    start, below = wide(vocab[node + 3]), wide(vocab[nodes + NODE_WIDTH * skip + 3])
    clear_tokens(words_at(rows), order + start, order + below)
    return below - start


@inner
def fill_inside(arena, tables, vocab, trie, stack, node, inside, ends):
    """Fill `ends` for the tokens at a node and below it, whose characters all lead from the state `inside` back to it;
    the state of the node is on the stack. Returns the least cost there."""
    nodes, shapes, least, i = (
        wide(vocab[trie + TrieRecord.NODES]),
        wide(vocab[trie + TrieRecord.SHAPES]),
        wide(INFINITE),
        wide(node),
    )
    after = wide(vocab[nodes + NODE_WIDTH * node + 2])
    while i < after:
        at = nodes + NODE_WIDTH * i
        d, value, skip = wide(vocab[at + 1]), wide(vocab[at] & 255), wide(vocab[at + 2])
        if i != node:
            stack[d, Step.STATE] = (
                inside
                if value <= LAST_ASCII
                else transition(arena, tables, stack[d - 1, Step.STATE], value) & STATE_MASK
            )
        if value > LAST_ASCII or not is_ascii(vocab, shapes + SHAPE_WIDTH * i):
            skip = i + 1
        start, end = wide(vocab[at + 3]), wide(vocab[nodes + NODE_WIDTH * skip + 3])
        if start != end:
            ends[start:end] = stack[d, Step.STATE]
            least = min(least, wide(arena[tables.state_cost + REC * stack[d, Step.STATE]]))
        i = skip
    return least


@inner
def is_endless(arena, tables, vocab, s):
    """Whether a state is inside of a string without an end, and all characters of its body lead back to it."""
    body = arena[tables.state_body_class + REC * s]
    if body < 0:
        return False
    class_tables = wide(arena[tables.classes + CLASS_WIDTH * body + CLASS_TABLES])
    return class_tables != 0 and is_loop(arena, tables, vocab, class_tables, s) and is_body_exclusive(arena, tables, s)


@inner
def is_any_string(arena, tables, vocab, s):
    """Whether only a quotation mark leads nearer to the end: no character does, and no escape. For states that are
    `is_endless`."""
    if arena[tables.classes + CLASS_WIDTH * arena[tables.state_body_class + REC * s] + CLASS_TABLES] != vocab[Header.STRING]:
        return False
    escaped = transition(arena, tables, s, BACKSLASH) & STATE_MASK
    return escaped == DEAD or arena[tables.state_cost + REC * escaped] > arena[tables.state_cost + REC * s]


@inner
def is_within_class(arena, tables, vocab, shape, s):
    """Whether everything below a trie node is made of characters of a state's body."""
    classes = tables.classes + CLASS_WIDTH * arena[tables.state_body_class + REC * s]
    return vocab[shape] < NO_HEIGHT and is_inside(vocab, shape, classes, arena, 0)


@inner
def up_to_date(arena, tables, stack, depth):
    """The register at a depth of the walk, behind the bytes that have only been noted so far; none of them can be
    refused."""
    seen = stack[depth, Step.KNOWN]
    for d in range(stack[depth, Step.SINCE] + 1, depth + 1):
        seen = seen_after(arena, tables, seen, stack[d, Step.BYTE], stack[d, Step.EVENT])
    return seen

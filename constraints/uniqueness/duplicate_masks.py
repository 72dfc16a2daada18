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
from ..automaton.tables import DEAD, STATE_BITS, STATE_MASK, Fault, tables_at
from ..base.kinds import INFINITE, Event
from ..base.utf8 import LAST_ASCII
from ..masks.loop_context import is_body_exclusive, is_loop
from ..masks.mask_rows import clear_tokens
from ..numba_support.jit import entry, inner
from ..numba_support.record_access import words_at
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
    m, vocab = tables_at(arena_address), words_at(vocab_address)
    trie, state, seen = vocab[Header.TRIE], wide(state), wide(seen)
    count, least, _ = judge_trie(m, vocab, NO_ROWS, trie, state, seen, wide(way), ends, extra, unsettled, 0)
    if way == WalkMode.IN_KEY:
        none, trie = np.empty(0, np.int32), vocab[Header.QUOTED_ONCE]
        least = min(
            least, judge_trie(m, vocab, NO_ROWS, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, count)[1]
        )
    return count, least


@entry(unsettled="int32[:,:]")
def unsettled_tokens(arena_address, vocab_address, state, seen, has_items, unsettled):
    """Write the unsettled tokens of `judge`, and those behind which some alternatives are gone, to `unsettled`; returns their
    number. They are looked for only where they can be. The row of the state has to be known."""
    m, vocab = tables_at(arena_address), words_at(vocab_address)
    state, seen = wide(state), wide(seen)
    flags = seen_flags(m, seen)
    if not flags & SeenFlag.HAS_CANDIDATES and not m.states[state].events & REMEMBERED:
        return 0
    none, count = np.empty(0, np.int32), 0
    if flags & SeenFlag.HAS_CANDIDATES:
        trie = vocab[Header.TRIE]
        count, _, _ = judge_trie(m, vocab, NO_ROWS, trie, state, seen, WalkMode.ALONG, none, none, unsettled, 0)
    trie = where_words_begin(vocab, flags, has_items)
    return judge_trie(m, vocab, NO_ROWS, trie, state, seen, WalkMode.WHOLE, none, none, unsettled, count)[0]


@inner
def where_words_begin(vocab, flags, has_items):
    """The trie of the tokens in which another key or item with candidates can begin."""
    in_text = flags & SeenFlag.IN_TEXT
    if has_items:
        return vocab[Header.QUOTED_ONCE if in_text else Header.SEPARATED]
    if in_text:
        return vocab[Header.QUOTED_TWICE]
    return vocab[Header.QUOTED_ONCE if flags & SeenFlag.HAS_WORDS else Header.QUOTED_THRICE]


@inner
def where_refusals_begin(m, vocab, flags):
    """The trie of the tokens that may be refused for another key or item which begins in them; items of unique arrays
    that begin there too are not among these.

    Behind a key comes a value first. A key or a string that may be any but some is refused at its closing quotation
    mark only: until then it may become another.
    """
    in_text, has_words = flags & SeenFlag.IN_TEXT, flags & SeenFlag.HAS_WORDS
    has_free_names = m.n.free_names * vocab[Header.SPELLS]
    if flags & SeenFlag.IN_UNIQUE:
        if m.n.free_items * vocab[Header.SPELLS] == 0:
            return where_words_begin(vocab, flags, 1)
        return vocab[Header.QUOTED_ONCE if has_words and not in_text and not has_free_names else Header.QUOTED_TWICE]
    if in_text and (flags & SeenFlag.IN_NAME or not has_words):
        return vocab[Header.QUOTED_APART]
    if has_free_names:
        return vocab[Header.QUOTED_THRICE if in_text or not has_words else Header.QUOTED_TWICE]
    return where_words_begin(vocab, flags, 0)


@inner
def judge_trie(m, vocab, rows, trie, state, seen, way, ends, extra, unsettled, num_unsettled):
    """`judge` for any trie. Returns num_unsettled, the least cost, and how many tokens were cleared. Unsettled tokens are written
    behind the first `num_unsettled`; their k is then no place in the order of all tokens.

    way: what is looked at. WHOLE: all tokens; ALONG: only those that go along candidates; IN_BRIEF, IN_KEY: not those that
    `judge` leaves out. rows: the address of the mask rows, where the tokens that the register refuses are noted to be
    cleared; or NO_ROWS.
    """
    nodes, order, n = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.ORDER], vocab[trie + TrieRecord.NUM_NODES]
    ends[:] = DEAD
    extra[:] = 0
    if n == 0:
        return num_unsettled, INFINITE, 0
    stack = np.empty((vocab[Header.DEPTH] + 1, STEP_WIDTH), np.int64)
    stack[0, Step.PLACE], stack[0, Step.STATE], stack[0, Step.KNOWN], stack[0, Step.SINCE] = -1, state, seen, 0
    marked, (epoch, is_inner) = wide(seen), mark_candidates(m, wide(seen))
    stack[0, Step.ORIGIN], stack[0, Step.NARROWED] = seen if epoch != 0 else 0, 0
    i, least, cleared, spells, shapes = 0, INFINITE, 0, vocab[Header.SPELLS] == 1, vocab[trie + TrieRecord.SHAPES]
    tested, loops = DEAD, False
    fills = way == WalkMode.WHOLE and ends.size > 0 and shapes != 0
    while i < n:
        node = nodes + NODE_WIDTH * i
        d, value, skip = vocab[node + 1], vocab[node] & 255, vocab[node + 2]
        above = d - 1
        if stack[above, Step.ORIGIN] != 0:
            if marked != stack[above, Step.ORIGIN]:
                marked, (epoch, is_inner) = stack[above, Step.ORIGIN], mark_candidates(m, stack[above, Step.ORIGIN])
            mode = m.nodes[stack[above, Step.KNOWN]].b
            if way == WalkMode.ALONG and stack[above, Step.NARROWED] == 0 and mode != TextMode.OUTSIDE:
                child = next_along_candidates(m, vocab, trie, stack[above, Step.PLACE], stack[above, Step.KNOWN], value)
                if child < 0:
                    i = n if d == 1 else vocab[nodes + NODE_WIDTH * stack[above, Step.PLACE] + 2]
                    continue
                if child > i:
                    i = child
                    continue
        answer = transition(m, stack[above, Step.STATE], value)
        if m.n.fault != Fault.NONE:
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
            if is_plain(m, stack[above, Step.KNOWN], value, event):
                candidate = candidate_word(m, m.nodes[stack[above, Step.KNOWN]].c, value, epoch)
                if candidate != 0:
                    stack[d, Step.KNOWN] = after_candidate_byte(m, stack[above, Step.KNOWN], value, event, candidate)
                    stack[d, Step.SINCE] = d
                    stack[d, Step.ORIGIN] = stack[above, Step.ORIGIN]
            else:
                s, stack[d, Step.KNOWN] = follow(m, stack[above, Step.STATE], answer, stack[above, Step.KNOWN], value)
                stack[d, Step.SINCE], dead = d, stack[d, Step.KNOWN] == REPEATED
                if s != stack[d, Step.STATE]:
                    stack[d, Step.STATE], stack[d, Step.NARROWED] = s, 1
        elif event == Event.KEY_OPEN or event == Event.ITEM_CLOSE:
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(m, stack, d), d
        if stack[d, Step.SINCE] == d and not dead and stack[d, Step.ORIGIN] == 0:
            marked, (epoch, is_inner) = stack[d, Step.KNOWN], mark_candidates(m, stack[d, Step.KNOWN])
            stack[d, Step.ORIGIN] = marked if epoch != 0 else 0
        more = 0  # the extra cost of tokens that end here
        start, end = vocab[node + 3], vocab[node + NODE_WIDTH + 3]
        ends_here = start != end
        if stack[d, Step.ORIGIN] != 0 and ends_here and not dead:
            if unsettled.size > 0:
                more = extra_cost(m, s, stack[d, Step.KNOWN], epoch, is_inner, spells)
            if not way_out(m, s, stack[d, Step.KNOWN], epoch, INFINITE - 1):
                dead = not is_alive(m, s, stack[d, Step.KNOWN])
                marked = 0
        elif ends_here and unsettled.size > 0 and (value == COMMA or is_space(value)) and must_open_key(m, s):
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(m, stack, d), d
            more = ExtraCost.EXPECTS_KEY if expects_key(m, s, stack[d, Step.KNOWN]) else 0
        is_dearer = stack[d, Step.NARROWED] == 1 and ends_here and not dead
        is_dearer = is_dearer and way <= WalkMode.ALONG and unsettled.size > 0 and ends.size == 0
        if is_dearer:  # perhaps: fewer tokens may suffice for the alternatives that are gone
            stack[d, Step.KNOWN], stack[d, Step.SINCE] = up_to_date(m, stack, d), d
        if m.n.fault != Fault.NONE:
            return num_unsettled, least, cleared
        stays = (way >= WalkMode.IN_BRIEF or fills) and stack[d, Step.ORIGIN] == 0
        if stays:  # in a string without an end that is the same behind each character, also when one of several bytes is begun
            is_whole = value < FIRST_LEAD and ends_here
            if tested != (s if value < FIRST_LEAD else stack[above, Step.STATE]):
                tested = s if value < FIRST_LEAD else stack[above, Step.STATE]
                loops = m.states[tested].max_chars >= ENDLESS and is_endless(m, vocab, tested)
            stays = loops and (fills or is_whole or least <= m.states[tested].cost)
        if dead:
            cleared += clear_below(vocab, rows, nodes, order, node, skip)
            i = skip
        elif way == WalkMode.ALONG and stack[d, Step.ORIGIN] == 0 and stack[d, Step.NARROWED] == 0:
            i = skip
        elif stays and (
            (way == WalkMode.IN_KEY and is_any_string(m, vocab, tested))
            or is_within_class(m, vocab, shapes + SHAPE_WIDTH * i, tested)
        ):
            if fills:
                least = min(least, fill_inside(m, vocab, trie, stack, i, tested, ends))
            else:
                least = min(least, m.states[tested].cost)
            i = skip
        else:
            if ends.size > 0:
                ends[start:end] = s
                extra[start:end] = more
            if ends_here and more >= 0:
                least = min(least, m.states[s].cost + more)
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
        return 0
    start, below = vocab[node + 3], vocab[nodes + NODE_WIDTH * skip + 3]
    clear_tokens(words_at(rows), order + start, order + below)
    return below - start


@inner
def fill_inside(m, vocab, trie, stack, node, inside, ends):
    """Fill `ends` for the tokens at a node and below it, whose characters all lead from the state `inside` back to it;
    the state of the node is on the stack. Returns the least cost there."""
    nodes, shapes, least, i = vocab[trie + TrieRecord.NODES], vocab[trie + TrieRecord.SHAPES], INFINITE, wide(node)
    after = vocab[nodes + NODE_WIDTH * node + 2]
    while i < after:
        at = nodes + NODE_WIDTH * i
        d, value, skip = vocab[at + 1], vocab[at] & 255, vocab[at + 2]
        if i != node:
            stack[d, Step.STATE] = (
                inside
                if value <= LAST_ASCII
                else transition(m, stack[d - 1, Step.STATE], value) & STATE_MASK
            )
        if value > LAST_ASCII or not is_ascii(vocab, shapes + SHAPE_WIDTH * i):
            skip = i + 1
        start, end = vocab[at + 3], vocab[nodes + NODE_WIDTH * skip + 3]
        if start != end:
            ends[start:end] = stack[d, Step.STATE]
            least = min(least, m.states[stack[d, Step.STATE]].cost)
        i = skip
    return least


@inner
def is_endless(m, vocab, s):
    """Whether a state is inside of a string without an end, and all characters of its body lead back to it."""
    body = m.states[s].body_class
    if body < 0:
        return False
    class_tables = m.classes[body].tables
    return class_tables != 0 and is_loop(m, vocab, class_tables, s) and is_body_exclusive(m, s)


@inner
def is_any_string(m, vocab, s):
    """Whether only a quotation mark leads nearer to the end: no character does, and no escape. For states that are
    `is_endless`."""
    if m.classes[m.states[s].body_class].tables != vocab[Header.STRING]:
        return False
    escaped = transition(m, s, BACKSLASH) & STATE_MASK
    return escaped == DEAD or m.states[escaped].cost > m.states[s].cost


@inner
def is_within_class(m, vocab, shape, s):
    """Whether everything below a trie node is made of characters of a state's body."""
    body = m.states[s].body_class
    return vocab[shape] < NO_HEIGHT and is_inside(vocab, shape, m.classes[body].first_bytes, 0)


@inner
def up_to_date(m, stack, depth):
    """The register at a depth of the walk, behind the bytes that have only been noted so far; none of them can be
    refused."""
    seen = stack[depth, Step.KNOWN]
    for d in range(stack[depth, Step.SINCE] + 1, depth + 1):
        seen = seen_after(m, seen, stack[d, Step.BYTE], stack[d, Step.EVENT])
    return seen

"""A trie of tokens is walked against the automaton and the register together.

The walk makes next to no nodes, although every token writes a key or item of its own: where there are no candidates, bytes are
only noted, and the register is brought up to date where a new key or item begins.

What is known at each depth are the `Step`s of the arena; what the walk is for, and what it has found, is in `Judging`. Four ways
(`WalkMode`) say where it may go on behind a node that is read, and what it may pass by.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from ..automaton.closures import ENDLESS
from ..automaton.tables import DEAD, STATE_BITS, STATE_MASK, UNSETTLED_WORDS, Fault, Step, Tables, unsettled_at
from ..base.ids import RegisterId, StateId
from ..base.kinds import INFINITE, Event
from ..base.utf8 import LAST_ASCII
from ..masks.loop_context import is_body_exclusive, is_loop
from ..masks.mask_rows import clear_tokens
from ..numba_support.jit import inner
from ..numba_support.records import Words
from ..vocabulary.packed_records import (
    FIRST_LEAD,
    NO_HEIGHT,
    ROOT,
    Trie,
    Vocab,
    below,
    class_tables_of,
    is_ascii,
    is_inside,
)
from .duplicate_candidates import candidate_word, mark_candidates, next_along_candidates
from .register_product import (
    ExtraCost,
    after_candidate_byte,
    expects_key,
    extra_cost,
    follow,
    is_alive,
    is_plain,
    must_open_key,
    transition,
    way_out,
)
from .seen_values import BACKSLASH, COMMA, NIL, NO_REGISTER, REPEATED, TextMode, is_space, seen_after


class WalkMode(IntEnum):
    """Which tokens of a trie are looked at."""

    WHOLE = 0
    ALONG = 1  # only those that go along candidates
    IN_BRIEF = 2  # not those that stay inside of a string without candidates
    IN_KEY = 3  # nor those that begin so and have a quotation mark then


class Outputs(NamedTuple):
    """Where a walk writes what is wanted, see `duplicate_masks.judge`."""

    ends: Words
    extra: Words
    unsettled: Words


class Walk(NamedTuple):
    """A walk, without its numbers. rows: the mask rows, where tokens that the register refuses are noted to be cleared."""

    m: Tables
    vocab: Vocab
    trie: Trie
    rows: Words
    out: Outputs


@inner
def begin_judging(m: Tables, clears: int, fills: int, lists: int) -> None:
    """Begin walks that find together what is wanted: tokens to clear, the states behind tokens, unsettled tokens."""
    judging = m.judging
    judging.clears, judging.fills, judging.lists = clears, fills, lists
    judging.least, judging.cleared, judging.num_unsettled = INFINITE, 0, 0


@inner
def judge_trie(w: Walk, state: StateId, seen: RegisterId, way: int) -> None:
    """Walk a trie in one of the ways. On a fault some tokens are missing."""
    m, top = w.m, w.m.steps[0]
    m.judging.way, m.judging.tested, m.judging.loops = way, DEAD, 0
    m.judging.marked = NO_REGISTER
    top.node, top.state, top.known, top.since, top.narrowed = ROOT, state, seen, 0, 0
    top.origin = seen if mark(m, seen) != 0 else NO_REGISTER
    i = 0
    while i < w.trie.num_nodes and m.n.fault == Fault.NONE:
        i = judge_node(w, i)


@inner
def judge_node(w: Walk, i: int) -> int:
    """Read a node's byte, and note what has to be noted. Returns the node where the walk goes on."""
    m, node = w.m, w.trie.nodes[i]
    above, here = m.steps[node.depth - 1], m.steps[node.depth]
    if above.origin != NO_REGISTER:
        mark(m, above.origin)
        if m.judging.way == WalkMode.ALONG and above.narrowed == 0:
            following = node_along(w, i)
            if following != i:
                return following
    answer = transition(m, above.state, node.byte)
    if m.n.fault != Fault.NONE:
        return i
    if answer & STATE_MASK == DEAD:
        return leave_out(w, i) if above.narrowed == 1 else node.skip
    is_refused = read(w, i, answer)
    here.extra = 0
    if not is_refused and node.first != w.trie.nodes[i + 1].first:
        here.extra = extra_at(w, i)
        is_refused = here.origin != NO_REGISTER and is_stuck(m, here)
    if m.n.fault != Fault.NONE:
        return i
    if is_refused:
        return leave_out(w, i)
    if m.judging.way == WalkMode.WHOLE:
        return on_whole(w, i)
    if m.judging.way == WalkMode.ALONG:
        return on_along(w, i)
    return on_in_brief(w, i)


# -- the ways -----------------------------------------------------------------------------------------------------------


@inner
def on_whole(w: Walk, i: int) -> int:
    """Where the walk of all tokens goes on; what stays inside of a string is filled in at once."""
    judging = w.m.judging
    if judging.fills and w.trie.has_shapes:
        inside = string_around(w, i)
        if inside != DEAD and is_within_class(w, i, inside):
            judging.least = min(judging.least, fill_inside(w, i, inside))
            return w.trie.nodes[i].skip
    return note_tokens(w, i)


@inner
def on_along(w: Walk, i: int) -> int:
    """Where the walk along candidates goes on: not behind a text that has left them."""
    here = w.m.steps[w.trie.nodes[i].depth]
    if here.origin == NO_REGISTER and here.narrowed == 0:
        return w.trie.nodes[i].skip
    return note_tokens(w, i)


@inner
def on_in_brief(w: Walk, i: int) -> int:
    """Where the walk goes on that leaves out what changes nothing. In a key that is also what leaves a string which only a
    quotation mark brings nearer to its end."""
    m, node, inside = w.m, w.trie.nodes[i], string_around(w, i)
    if inside != DEAD:
        is_whole = node.byte < FIRST_LEAD and node.first != w.trie.nodes[i + 1].first
        is_counted = is_whole or m.judging.least <= m.states[inside].cost
        in_key = m.judging.way == WalkMode.IN_KEY and is_counted and is_any_string(w, inside)
        if is_counted and (in_key or is_within_class(w, i, inside)):
            m.judging.least = min(m.judging.least, m.states[inside].cost)
            return node.skip
    return note_tokens(w, i)


@inner
def node_along(w: Walk, i: int) -> int:
    """The node from i on where a text goes on along the candidates above: i itself, a later sibling, or what is behind all of
    these. Outside of strings, i: white space may come."""
    m, node = w.m, w.trie.nodes[i]
    above = m.steps[node.depth - 1]
    if m.nodes[above.known].b == TextMode.OUTSIDE:
        return i
    child = next_along_candidates(m, w.trie, above.node, above.known, node.byte)
    if child < 0:
        return w.trie.num_nodes if node.depth == 1 else w.trie.nodes[above.node].skip
    return max(child, i)


# -- reading ------------------------------------------------------------------------------------------------------------


@inner
def mark(m: Tables, seen: RegisterId) -> int:
    """The epoch in which the candidates of a register are marked, 0 without any."""
    judging = m.judging
    if judging.marked != seen:
        epoch, is_inner = mark_candidates(m, seen)
        judging.marked, judging.epoch, judging.is_inner = seen, epoch, is_inner
    return judging.epoch


@inner
def read(w: Walk, i: int, answer: int) -> bool:
    """Write the step of a node whose byte has the transition `answer`. Returns whether the register refuses it."""
    m, node = w.m, w.trie.nodes[i]
    above, here = m.steps[node.depth - 1], m.steps[node.depth]
    here.node, here.byte, here.event, here.state = i, node.byte, answer >> STATE_BITS, StateId(answer & STATE_MASK)
    here.known, here.since, here.origin, here.narrowed = above.known, above.since, NO_REGISTER, above.narrowed
    if above.origin != NO_REGISTER:
        return read_among_candidates(m, above, here, answer)
    if here.event == Event.KEY_OPEN or here.event == Event.ITEM_CLOSE:
        bring_up_to_date(m, node.depth)
        look_for_candidates(m, here)
    return False


@inner
def read_among_candidates(m: Tables, above: Step, here: Step, answer: int) -> bool:
    """`read` behind a step that has candidates."""
    if is_plain(m, above.known, here.byte, here.event):
        candidate = candidate_word(m, m.nodes[above.known].c, here.byte, m.judging.epoch)
        if candidate != NIL:
            here.known = after_candidate_byte(m, above.known, here.byte, here.event, candidate)
            here.since, here.origin = above.since + 1, above.origin
        return False
    state, here.known = follow(m, above.state, answer, above.known, here.byte)
    here.since = above.since + 1
    if here.known == REPEATED:
        return True
    if state != here.state:
        here.state, here.narrowed = state, 1
    look_for_candidates(m, here)
    return False


@inner
def look_for_candidates(m: Tables, here: Step) -> None:
    """Note whether a step, whose register is up to date, has candidates."""
    here.origin = here.known if mark(m, here.known) != 0 else NO_REGISTER


@inner
def bring_up_to_date(m: Tables, depth: int) -> None:
    """Let the register at a depth be the one behind the bytes that have only been noted so far; none of them can be refused."""
    here = m.steps[depth]
    seen = here.known
    for d in range(here.since + 1, depth + 1):
        seen = seen_after(m, seen, m.steps[d].byte, m.steps[d].event)
    here.known, here.since = seen, depth


@inner
def is_stuck(m: Tables, here: Step) -> bool:
    """Whether a text that ends among candidates can become nothing but one of them."""
    if way_out(m, here.state, here.known, m.judging.epoch, INFINITE - 1):
        return False
    m.judging.marked = NO_REGISTER  # others are, by the search
    return not is_alive(m, here.state, here.known)


@inner
def extra_at(w: Walk, i: int) -> int:
    """What the register adds to the cost of the tokens that end at a node, as far as that is wanted."""
    m, node = w.m, w.trie.nodes[i]
    here = m.steps[node.depth]
    if m.judging.lists == 0:
        return 0
    if here.origin != NO_REGISTER:
        return extra_cost(m, here.state, here.known, m.judging.epoch, m.judging.is_inner == 1, w.vocab.spells == 1)
    if (node.byte == COMMA or is_space(node.byte)) and must_open_key(m, here.state):
        bring_up_to_date(m, node.depth)
        return ExtraCost.EXPECTS_KEY if expects_key(m, here.state, here.known) else 0
    return 0


# -- noting -------------------------------------------------------------------------------------------------------------


@inner
def leave_out(w: Walk, i: int) -> int:
    """Note that the tokens at a node and below it do not survive, if that is wanted. Returns the node behind them."""
    judging = w.m.judging
    if judging.clears:
        start, end = below(w.trie, i)
        clear_tokens(w.rows, start, end)
        judging.cleared += end - start
    return w.trie.nodes[i].skip


@inner
def note_tokens(w: Walk, i: int) -> int:
    """Note the tokens that end at a node. Returns the next node."""
    m, out, start, end = w.m, w.out, w.trie.nodes[i].first, w.trie.nodes[i + 1].first
    judging, depth = m.judging, w.trie.nodes[i].depth
    here = m.steps[depth]
    if start == end:
        return i + 1
    is_dearer = here.narrowed == 1 and judging.way <= WalkMode.ALONG and judging.lists and not judging.fills
    if is_dearer:  # perhaps: fewer tokens may suffice for the alternatives that are gone
        bring_up_to_date(m, depth)
        if m.n.fault != Fault.NONE:
            return i
    if judging.fills:
        for k in range(start, end):
            out.ends[k], out.extra[k] = here.state, here.extra
    if here.extra >= 0:
        judging.least = min(judging.least, m.states[here.state].cost + here.extra)
    if here.extra < 0 or is_dearer or (here.extra == ExtraCost.ONE_MORE and judging.way >= WalkMode.IN_BRIEF):
        for k in range(start, end):
            one = unsettled_at(out.unsettled + UNSETTLED_WORDS * judging.num_unsettled)
            one.position, one.token_id = k, w.vocab.array[w.trie.order + k]
            one.state, one.held, one.extra = here.state, here.known, here.extra
            judging.num_unsettled += 1
    return i + 1


@inner
def fill_inside(w: Walk, node: int, inside: StateId) -> int:
    """Fill `ends` for the tokens at a node and below it, whose characters all lead from the state `inside` back to it;
    the state of the node is known. Returns the least cost there."""
    m, trie, least, i = w.m, w.trie, INFINITE, node
    while i < trie.nodes[node].skip:
        at, skip = trie.nodes[i], trie.nodes[i].skip
        here = m.steps[at.depth]
        if i != node:
            above = m.steps[at.depth - 1]
            here.state = inside if at.byte <= LAST_ASCII else StateId(transition(m, above.state, at.byte) & STATE_MASK)
        if at.byte > LAST_ASCII or not is_ascii(trie.shapes[i]):
            skip = i + 1
        if at.first != trie.nodes[skip].first:
            for k in range(at.first, trie.nodes[skip].first):
                w.out.ends[k] = here.state
            least = min(least, m.states[here.state].cost)
        i = skip
    return least


# -- strings ------------------------------------------------------------------------------------------------------------


@inner
def string_around(w: Walk, i: int) -> StateId:
    """The state inside of a string without an end and without candidates, that is the same behind each character, in which node i
    is, also when one of several bytes is begun there; DEAD when there is none."""
    m, node = w.m, w.trie.nodes[i]
    here = m.steps[node.depth]
    if here.origin != NO_REGISTER:
        return DEAD
    judging, inside = m.judging, here.state if node.byte < FIRST_LEAD else m.steps[node.depth - 1].state
    if judging.tested != inside:
        judging.tested, judging.loops = inside, m.states[inside].max_chars >= ENDLESS and is_endless(w, inside)
    return inside if judging.loops else DEAD


@inner
def is_endless(w: Walk, s: StateId) -> bool:
    """Whether a state is inside of a string without an end, and all characters of its body lead back to it."""
    m, body = w.m, w.m.states[s].body_class
    if body < 0 or m.classes[body].tables == 0:
        return False
    return is_loop(m, class_tables_of(w.vocab, m.classes[body].tables), s) and is_body_exclusive(m, s)


@inner
def is_any_string(w: Walk, s: StateId) -> bool:
    """Whether only a quotation mark leads nearer to the end: no character does, and no escape. For states that are
    `is_endless`."""
    m = w.m
    if m.classes[m.states[s].body_class].tables != w.vocab.string:
        return False
    escaped = StateId(transition(m, s, BACKSLASH) & STATE_MASK)
    return escaped == DEAD or m.states[escaped].cost > m.states[s].cost


@inner
def is_within_class(w: Walk, i: int, s: StateId) -> bool:
    """Whether everything below a trie node is made of characters of a state's body."""
    shape, body = w.trie.shapes[i], w.m.states[s].body_class
    return shape.height < NO_HEIGHT and is_inside(shape.first_bytes, w.m.classes[body].first_bytes, 0)

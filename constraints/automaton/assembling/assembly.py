"""From a grammar to its machine: the one near-linear pass of compilation.

Comes in: a `Grammar` (expression.py) and what all constraints of the vocabulary share (`SharedVocabulary`). Goes out: a
`Machine` whose arena holds the grammar's nodes with their size and cost, so that what cannot be completed is known from
the start, and the start states of the operands of intersections and complements. No other state is made here: the
automaton is lazy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ConstraintError, UnsupportedKeyword
from ...base.kinds import INFINITE, NOT_PLANNED, CoverRow
from ...base.utf8 import Ranges
from ...grammar.expression import UNBOUNDED, Event, Grammar, Kind, Node
from ...grammar.source import Limits
from ...grammar.stopwatch import hold, look
from ...numba_support.records import Words
from ...vocabulary.packed_records import SET_WORDS
from ...vocabulary.packed_vocabulary import first_bytes
from ...vocabulary.shared_vocabulary import SharedVocabulary
from .. import determinize
from ..containment import CONTAINED
from ..front_comparison import FRONT_FACTS
from ..fronts import GRAPH_KINDS
from ..machine import Machine
from ..nodes import EMPTY
from ..tables import (
    FIELDS,
    MAX_ENDS,
    MOST_APART,
    Apart,
    Arena,
    BodyClass,
    Counters,
    End,
    Judging,
    NodeRecord,
    Path,
    StateRecord,
    Step,
)
from . import grammar_loops, new_texts, reached_nodes, settled_texts, shortest_completion
from .intersections import SHARE_OF_ONE, Intersections, outermost
from .text_counts import count_texts

# Room that few grammars ever fill; it is reserved, not taken. Growing copies all tables, which one mask would have to wait for.
_SPARE_NODES, _FIRST_STATES, _FIRST_POOL, _FIRST_SCRATCH = 1 << 19, 1 << 16, 1 << 22, 4096
MOST_NESTED = 16  # arrays of items that must be new, inside one another
_MAX_PARTS = 8  # of a sequence that is looked at
_NODE_WORDS, _POOL_WORDS = NodeRecord.SIZE + 8, 3  # that a node, and a byte of a literal, take in tables, and beside them a while
_FIRST_SEQUENCE_HASH, _FIRST_STATE_HASH = 2048, 2048  # entries in use; doubled when half of them are taken

# As numbers: an array that is compared with a member of an enumeration looks for attributes of arrays in it.
_ALT, _BOTH, _CALL, _CLASS = map(int, (Kind.ALT, Kind.BOTH, Kind.CALL, Kind.CLASS))
_LITERAL, _NEGATE, _REPEAT, _SEQ = map(int, (Kind.LITERAL, Kind.NEGATE, Kind.REPEAT, Kind.SEQ))
_BOOLEANS, _CALLS, _COVERS = 1 << _BOTH | 1 << _NEGATE, 1 << _CALL, 1 << int(Kind.COVER)  # bits of kinds that a grammar has
_TALLY, _UNLISTED, _COVER = map(int, (Kind.TALLY, Kind.UNLISTED, Kind.COVER))
_NOTHING = np.empty(0, np.int32)
_COUNTER = {name: place.at // 4 for name, place in Counters.PLACES.items()}  # words of the table `n`

# Words of the tables, in their order: of those whose size is always the same, and of a record of some of those that vary.
_SIZES: dict[str, int] = dict.fromkeys(FIELDS, 0) | {
    "n": Counters.SIZE, "ends": End.SIZE * MAX_ENDS, "apart": Apart.SIZE * MOST_APART, "judging": Judging.SIZE, "requests": 2048,
    "classes": BodyClass.SIZE, "states": StateRecord.SIZE, "next": 256, "path": Path.SIZE, "steps": Step.SIZE,
}  # fmt: skip


def assemble(
    grammar: Grammar,
    root: Node,
    units: Mapping[Node, Node],
    body_classes: list[Ranges],
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
) -> Machine:
    """A machine that holds the grammar, with its intersections computed, and nothing else derived from it yet.

    units: see `repeated_units`; body_classes: the sets of characters in them, each once.

    Raises ConstraintError for a rule without a body, UnsupportedKeyword for left recursion, ConstraintLimit for intersections.
    """
    hash_sizes = {
        "node_hash": 4 * _power_of_two(len(grammar)),
        "sequence_hash": _FIRST_SEQUENCE_HASH,
        "state_hash": _FIRST_STATE_HASH,
    }
    sizes = _sizes(grammar, len(body_classes), shared_vocabulary.trie.max_depth, limits)
    hold(4 * (_NODE_WORDS * len(grammar) + _POOL_WORDS * len(grammar.pool) + hash_sizes["node_hash"]))
    machine = Machine(Arena(sizes, hash_sizes), limits)
    look()
    kinds = _write_grammar(machine, grammar, shared_vocabulary, limits)
    _write_units(machine, grammar, units, body_classes, shared_vocabulary)
    look()
    determinize.rehash(machine.address, True, True, True)
    _measure(machine, grammar, root, kinds, shared_vocabulary, limits)
    look()
    _refuse_left_recursion(machine, grammar)
    counters = machine.table("n")
    counters[_COUNTER["search_limit"]], counters[_COUNTER["gives_up"]] = int(SHARE_OF_ONE * limits.search_states), 1
    for cover in _nodes_of(grammar, Kind.COVER) if kinds & _COVERS else ():
        _refuse_unpromised(machine, grammar, cover, root)
        _refuse_watched_items(machine, grammar, cover)
        machine.call(determinize.enter_watched, cover)
    return machine


def restore(
    grammar: Grammar,
    body_classes: list[Ranges],
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
    tables: Mapping[str, NDArray[np.int32]],
) -> Machine:
    """The machine that `tables` were taken from (see `Machine.tables`), for the same grammar, vocabulary and limits.

    Compiled code trusts tables, so they have to be those of a machine, unchanged.
    """
    n = Counters(Words(tables["n"]))
    sizes = _sizes(grammar, len(body_classes), shared_vocabulary.trie.max_depth, limits)
    states = max(sizes["states"] // StateRecord.SIZE, 2 * n.states)
    sizes |= {"nodes": max(sizes["nodes"], 2 * NodeRecord.SIZE * n.nodes)}
    sizes |= {"states": StateRecord.SIZE * states, "next": 256 * states}
    sizes["pool"] = max(sizes["pool"], 2 * _whole_lines(tables["pool"].size))
    hash_sizes = {
        "node_hash": 4 * _power_of_two(n.nodes),
        "sequence_hash": max(4 * _power_of_two(n.num_sequences + 1), _FIRST_SEQUENCE_HASH),
        "state_hash": max(4 * _power_of_two(n.states), _FIRST_STATE_HASH),
    }
    sizes |= {name: max(sizes[name], size) for name, size in hash_sizes.items()}
    machine = Machine(Arena(sizes, hash_sizes), limits)
    for name, table in tables.items():
        machine.table(name)[: table.size] = table
    _point_to_body_classes(machine, body_classes, shared_vocabulary)
    determinize.rehash(machine.address, True, True, True)
    return machine


def may_be_graph(grammar: Grammar) -> bool:
    """Whether a grammar has only parts of which stacks may be kept as a graph."""
    has_marks = bool(grammar.events - {Event.NONE} or grammar.segments)
    return not has_marks and bool(np.isin(_rows(grammar)[:, 0], GRAPH_KINDS).all())


def _is_graph(grammar: Grammar) -> bool:
    return grammar.stacks_as_graph and may_be_graph(grammar)


def _rows(grammar: Grammar) -> NDArray[np.int32]:
    """[nodes, 4] kind, a, b, c. Valid until the grammar grows."""
    return np.frombuffer(grammar.rows, np.int32).reshape(-1, 4)


def _columns(grammar: Grammar) -> NDArray[np.int32]:
    """[4, nodes] kind, a, b, c."""
    return np.ascontiguousarray(_rows(grammar).T)


def _nodes_of(grammar: Grammar, kind: Kind) -> list[Node]:
    return list(map(Node, np.flatnonzero(_rows(grammar)[:, 0] == int(kind)).tolist()))


def _write_grammar(machine: Machine, grammar: Grammar, shared_vocabulary: SharedVocabulary, limits: Limits) -> int:
    """Write the grammar's nodes, lists, edges, literals and rules, and the counters of `n`, into the tables. Returns which kinds of
    nodes there are, as bits."""
    rules = [_body_of(grammar, rule) for rule in range(len(grammar.rule_bodies))]
    holding = (
        Event.ITEM_CLOSE not in grammar.events or _has_free_items(grammar), Event.ARRAY_OPEN in grammar.events,
        grammar.only_json, grammar.mixed_arrays, _is_graph(grammar),
    )  # fmt: skip
    facts = 0
    for place, holds in enumerate(holding):  # in the order of `Fact`
        facts |= int(holds) << place
    kinds = grammar_loops.write_grammar(
        machine.address, shared_vocabulary.packed_vocabulary.address, np.frombuffer(grammar.rows, np.int32),
        _words_of(grammar.lists), _words_of(grammar.edges), _bytes_of(grammar.pool), np.array(rules, np.int32),
        _num_surcharged(grammar), shared_vocabulary.num_plain_bytes, limits.search_states, facts,
    )  # fmt: skip
    return int(kinds)


def _words_of(numbers: array[int]) -> NDArray[np.int32]:
    return np.frombuffer(numbers, np.int32) if numbers else _NOTHING


def _bytes_of(pool: bytearray) -> NDArray[np.uint8]:
    return np.frombuffer(pool, np.uint8) if pool else np.empty(0, np.uint8)


def _write_units(
    machine: Machine, grammar: Grammar, units: Mapping[Node, Node], body_classes: list[Ranges], shared_vocabulary: SharedVocabulary
) -> None:
    """Write the body class of every node that is repeated as a body, and of the characters in it; and how many copies a
    token can spell."""
    found = {ranges: (i, shared_vocabulary.copies_per_token(ranges)) for i, ranges in enumerate(body_classes)}
    bodies: list[int] = []
    for node, characters in units.items():
        body_class = found[grammar.units[characters]]
        bodies += (node, *body_class, characters, *body_class)
    grammar_loops.write_bodies(machine.address, np.array(bodies, np.int32))
    _point_to_body_classes(machine, body_classes, shared_vocabulary)


def _point_to_body_classes(machine: Machine, body_classes: list[Ranges], shared_vocabulary: SharedVocabulary) -> None:
    """Write each body class's set of first bytes into the table `classes`, and where its tables are in the packed vocabulary, if it
    has any."""
    if body_classes:
        rows = machine.table("classes")
        rows[:] = 0  # words without a meaning as well: equal tables make equal files
        for i, ranges in enumerate(body_classes):
            start = BodyClass.SIZE * i
            rows[start : start + SET_WORDS] = first_bytes(ranges)
            rows[start + SET_WORDS] = shared_vocabulary.tables(ranges)


def _marks_keys_or_items(grammar: Grammar) -> bool:
    return not grammar.events.isdisjoint((Event.KEY_OPEN, Event.ITEM_CLOSE))


def _num_surcharged(grammar: Grammar) -> int:
    """Nodes for which it is asked what they cost when some texts are used up: all, or those two that every grammar has."""
    return len(grammar) if _marks_keys_or_items(grammar) else 2


def _has_free_items(grammar: Grammar) -> bool:
    """Whether every item of a unique array, but the first one, may be any string but finitely many."""
    kinds, _, _, events = _columns(grammar)
    marks = map(Node, np.flatnonzero((kinds == _CLASS) & (events == int(Event.ITEM_CLOSE))).tolist())
    return all(_is_free_string(grammar, Node(item)) for mark in marks for _, _, item in grammar.class_edges(mark))


def _is_free_string(grammar: Grammar, item: Node) -> bool:
    """Whether an item is an endless repetition between quotation marks, perhaps with white space around it."""
    parts = _flat(grammar, item)
    quotes = [k for k, part in enumerate(parts) if grammar.kind(part) is Kind.LITERAL and grammar.literal_bytes(part) == b'"']
    others = [part for k, part in enumerate(parts) if k not in quotes]
    if len(quotes) != 2 or quotes[1] != quotes[0] + 2 or any(grammar.kind(part) is not Kind.REPEAT for part in others):
        return False
    return grammar.operands(parts[quotes[0] + 1])[2] == UNBOUNDED


def _flat(grammar: Grammar, node: Node) -> list[Node]:
    """The parts of a sequence, with those of its parts if they are sequences too, and so on; not many more than
    _MAX_PARTS of them."""
    parts: list[Node] = []
    work = [node]
    while work and len(parts) < _MAX_PARTS:
        part = work.pop()
        if grammar.kind(part) is Kind.SEQ:
            head, tail, _ = grammar.operands(part)
            work += [Node(tail), Node(head)]
        else:
            parts.append(part)
    return parts + work


def _body_of(grammar: Grammar, rule: int) -> Node:
    body = grammar.rule_bodies[rule]
    if body is None:
        raise ConstraintError("the rule is used but never defined", path=grammar.rule_names[rule])
    return body


def repeated_units(grammar: Grammar) -> dict[Node, Node]:
    """Map every node that is repeated as a body to its characters: itself, or of a union the part with the most
    characters."""
    known, bodies = grammar.units, np.empty(len(grammar), np.int32)
    count = grammar_loops.repeated_bodies(np.frombuffer(grammar.rows, np.int32), bodies)
    units: dict[Node, Node] = {}
    for body in bodies[:count].tolist():
        node = Node(body)
        if node in known:
            units[node] = node
        elif grammar.kind(node) is Kind.ALT:
            options = [option for option in grammar.alternatives(node) if option in known]
            if options:
                units[node] = max(options, key=lambda option: _count(known[option])) if len(options) > 1 else options[0]
    return units


def _count(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


def _measure(
    machine: Machine,
    grammar: Grammar,
    root: Node,
    kinds: int,
    shared_vocabulary: SharedVocabulary,
    limits: Limits,
) -> None:
    """Set sizes and costs of all static nodes. Intersections and complements are entered on the way: their operands are
    measured before them. kinds: of the nodes that there are, as bits."""
    count, single = len(grammar), shared_vocabulary.single_bytes
    needs_ample = _marks_keys_or_items(grammar)
    if needs_ample:
        machine.table("worst")[EMPTY] = 0
    _measure_wide_characters(machine, grammar, shared_vocabulary)
    if kinds & _BOOLEANS:
        _measure_booleans(machine, grammar, root, kinds, single, limits)
    shortest_completion.settle_shortest(machine.address, EMPTY + 1, count, single)
    if needs_ample:
        _measure_ample(machine, grammar, kinds, single)


def _measure_booleans(
    machine: Machine, grammar: Grammar, root: Node, kinds: int, single: NDArray[np.bool_], limits: Limits
) -> None:
    """Enter intersections and complements, and set the sizes and costs of what is in them."""
    columns = _columns(grammar)
    shortest_completion.measure_shortest(machine.address, EMPTY + 1, len(grammar), single)
    inner: list[Node] = []  # their sizes are known only now, and what holds them comes after them
    depths = np.zeros(len(grammar), np.int32)
    reached_nodes.boolean_depths(machine.address, EMPTY + 1, len(grammar), depths)
    intersections = Intersections(machine, grammar, limits, depths)
    for nodes in _booleans(machine, grammar, root, columns, depths):
        if inner:
            shortest_completion.measure_shortest(machine.address, min(inner), max(nodes), single)
        for node in nodes:
            intersections.enter(node)
        inner = nodes
    if inner and kinds & _COVERS:
        _forget_sizes(machine, grammar, columns)


def _forget_sizes(machine: Machine, grammar: Grammar, columns: NDArray[np.int32]) -> None:
    """Forget the sizes of all but leaves: a COVER was settled without the sorts whose texts are intersections (covers.py)."""
    machine.table("lists")[:] = grammar.lists
    parts = np.flatnonzero(~np.isin(columns[0], (_CLASS, _LITERAL, _BOTH, _NEGATE)))
    for name in ("size", "cost"):
        machine.nodes(name)[parts[parts > EMPTY]] = INFINITE


def _measure_ample(machine: Machine, grammar: Grammar, kinds: int, single: NDArray[np.bool_]) -> None:
    """Set what keys and items that must be new may cost."""
    count = len(grammar)
    different, alike = max(grammar.most_different, 2), np.zeros(count, np.int32)
    ends, marked = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    if kinds & _BOOLEANS:
        _count_booleans(machine, grammar, different, alike)
    settled_texts.settle_ample(machine.address, EMPTY + 1, count, different, alike, ends, marked, single)
    if kinds & _CALLS:
        settled_texts.settle_recursion(machine.address, EMPTY + 1, count, different, alike, ends, marked, single)
    if Event.ITEM_CLOSE in grammar.events:
        _measure_gaps(machine, different, alike, ends, marked, single)


def _measure_gaps(
    machine: Machine, different: int, alike: NDArray[np.int32], ends: NDArray[np.bool_], marked: NDArray[np.bool_],
    single: NDArray[np.bool_],
) -> None:
    """Set the surcharges of items that must be new: one of all, or where some are inside others of each by itself, from the
    innermost ones outwards. Where they hold each other that may have no end, and one of all has to do."""
    count = alike.size
    if reached_nodes.nests_items(machine.address, EMPTY + 1, count):
        machine.n.mixed = 1
        for _ in range(MOST_NESTED):
            if not new_texts.measure_gaps(machine.address, EMPTY + 1, count, False):
                return
            settled_texts.settle_ample(machine.address, EMPTY + 1, count, different, alike, ends, marked, single)
        gaps = machine.nodes("gap")[:count]
        gaps[(machine.nodes("kind")[:count] == _CLASS) & (machine.nodes("c")[:count] == int(Event.ITEM_CLOSE))] = 0
        settled_texts.settle_ample(machine.address, EMPTY + 1, count, different, alike, ends, marked, single)
    new_texts.measure_gaps(machine.address, EMPTY + 1, count, True)
    shortest_completion.settle_shortest(machine.address, EMPTY + 1, count, single)


def _count_booleans(machine: Machine, grammar: Grammar, different: int, alike: NDArray[np.int32]) -> None:
    """Set `ample`, `worst` and `alike` of intersections and complements in keys and items that must be new."""
    is_new = np.zeros(len(grammar), np.uint8)
    reached_nodes.mark_new_texts(machine.address, EMPTY + 1, len(grammar), is_new)
    rows = _rows(grammar)[:, 0]
    is_boolean = ((rows == _BOTH) | (rows == _NEGATE)) & (machine.nodes("cost")[: len(grammar)] < INFINITE)
    for node in map(Node, np.flatnonzero(is_boolean & (is_new == 1)).tolist()):
        count = count_texts(machine, node, different)
        cost = int(machine.nodes("cost")[node])
        ample, worst, alike[node] = count if count is not None else (different - 1, INFINITE, 1)
        machine.table("ample")[node], machine.table("worst")[node] = min(cost + ample, INFINITE), min(cost + worst, INFINITE)


def _booleans(
    machine: Machine, grammar: Grammar, root: Node, columns: NDArray[np.int32], depths: NDArray[np.int32]
) -> Iterator[list[Node]]:
    """The intersections and complements that are entered, in groups: first those that hold no others, then those that hold only
    such, and so on. depths: how many are inside one another in each node.

    Those that hold no others can be entered after one pass over all nodes: whatever a search in them derives holds none
    either, even if it is interned as a static node that comes later.
    """
    kinds = columns[0]
    is_boolean = (kinds == _BOTH) | (kinds == _NEGATE)
    reached, used = np.zeros(kinds.size, np.uint8), np.zeros(kinds.size, np.bool_)
    reached_nodes.mark_reached(machine.address, root, reached)
    for parents, parts in _references(machine, columns):
        used[parts[reached[parents] == 1]] = True
    nodes = outermost(grammar, list(map(Node, np.flatnonzero(is_boolean & (reached == 1)).tolist())), root, used)
    by_depth: dict[int, list[Node]] = {}
    for node in sorted(nodes):
        by_depth.setdefault(int(depths[node]), []).append(node)
    for depth in sorted(by_depth):
        yield by_depth[depth]


def _references(machine: Machine, columns: NDArray[np.int32]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """(nodes, parts of them): of all nodes but intersections and complements."""
    kinds, first, second, _ = columns
    for kind, part in ((_SEQ, first), (_SEQ, second), (_REPEAT, first), (_UNLISTED, second), (_TALLY, first)):
        nodes = np.flatnonzero(kinds == kind)
        yield nodes, part[nodes]
    calls = np.flatnonzero(kinds == _CALL)
    yield calls, machine.table("rules")[first[calls]]
    for kind, table in ((_ALT, "lists"), (_CLASS, "edge_next")):
        nodes = np.flatnonzero(kinds == kind)
        lengths = second[nodes]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        yield np.repeat(nodes, lengths), machine.table(table)[np.repeat(first[nodes], lengths) + within]


def _measure_wide_characters(machine: Machine, grammar: Grammar, shared_vocabulary: SharedVocabulary) -> None:
    """Set the cost of a class to 1 where its characters all take several bytes, but some token is one of them."""
    def is_token(node: Node) -> bool:
        trie = shared_vocabulary.trie
        return bool(shortest_completion.whole_character(machine.address, node, trie.byte, trie.depth, trie.skip, trie.first))

    spells_every_byte = shared_vocabulary.spells_every_byte
    for node, ranges in grammar.units.items():
        is_wide = ranges[0][0] > 0x7F or not spells_every_byte
        if is_wide and shared_vocabulary.has_character(ranges, partial(is_token, node)):
            machine.nodes("cost")[node] = 1


def _refuse_left_recursion(machine: Machine, grammar: Grammar) -> None:
    rule = grammar_loops.left_recursive_rule(machine.address, len(grammar.rule_bodies), len(grammar.lists))
    if rule >= 0:
        raise UnsupportedKeyword(
            "the rule calls itself before reading anything", path=grammar.rule_names[rule], keyword="left recursion",
            instead="write the repetition to the right, or with *",
        )  # fmt: skip


def _refuse_unpromised(machine: Machine, grammar: Grammar, cover: Node, root: Node) -> None:
    """Refuse a COVER that no plan can end, though there are items for each of its counters: some array may meet all of them; and
    one whose plan has lost sorts that turned out to have no text, where more than its price rests on it."""
    sizes = machine.nodes("size")
    wanted, (are_lost, is_fewest) = grammar.wanted_of(cover), _lost_of_plan(machine, grammar, cover)
    if not are_lost and (sizes[cover] < INFINITE or is_fewest):  # what the plan with the fewest items cannot end, nothing can
        return
    counted = [set(counters) for text, counters in _sorts_behind(grammar, cover) if sizes[text] < INFINITE]
    lacks_items = any(low > 0 and not any(i in each for each in counted) for i, (low, _) in wanted.items())
    reached = np.zeros(len(grammar), np.uint8)
    reached_nodes.mark_reached(machine.address, root, reached)
    if not lacks_items and counted and reached[cover]:
        path, keywords = grammar.claims.get(cover, ("#", ("contains",)))
        raise UnsupportedKeyword(
            "some items that are wanted count in what may be full by then, so no end can be promised", path=path,
            keyword=", ".join(keywords), instead="no upper bounds on what counts the same items, or fewer conditions",
        )  # fmt: skip


def _sorts_behind(grammar: Grammar, cover: Node) -> list[tuple[Node, list[int]]]:
    """The sorts of a COVER, and of those that it goes on with."""
    sorts, following = grammar.sorts_of(cover), grammar.next_cover(cover)
    while following != cover:
        cover, following = following, grammar.next_cover(following)
        sorts += grammar.sorts_of(cover)
    return sorts


def _lost_of_plan(machine: Machine, grammar: Grammar, cover: Node) -> tuple[bool, bool]:
    """Whether sorts that were planned have no text, or none that was known in time, where what may come rests on the plan: as the
    number of items is bounded, or as something may be wanted behind the items of a tuple that only these can be; whether it is the
    plan with the fewest items."""
    sizes, settled = machine.nodes("size"), machine.table("lists")
    wanted, following = grammar.wanted_of(cover), grammar.next_cover(cover)
    if following != cover:
        counted = {i for text, counters in grammar.sorts_of(following) if sizes[text] < INFINITE for i in counters}
        is_last = grammar.next_cover(following) == following
        return is_last and any(low > 0 and i not in counted for i, (low, _) in wanted.items()), False
    is_bounded = 0 in wanted and wanted[0][1] != UNBOUNDED and all(0 in counters for _, counters in grammar.sorts_of(cover))
    for at in grammar.plan_of(cover) if is_bounded else ():
        is_left_out = grammar.lists[at + CoverRow.TIMES] != NOT_PLANNED and settled[at + CoverRow.TIMES] == NOT_PLANNED
        if is_left_out or sizes[grammar.lists[at + CoverRow.TEXT]] >= INFINITE:
            return True, True
    return False, is_bounded


def _refuse_watched_items(machine: Machine, grammar: Grammar, cover: Node) -> None:
    """Refuse watched items in which items of arrays must differ: what is remembered is what the item itself says of them."""
    if Event.ITEM_CLOSE not in grammar.events:
        return
    sorts, watchers = grammar.sorts_of(cover), grammar.watchers_of(cover)
    for (text, _), watched in zip(sorts, watchers, strict=True):
        is_watched = watched is None or bool(watched)
        if is_watched and reached_nodes.reaches_event(machine.address, text, 1 << Event.ITEM_CLOSE):
            path, _ = grammar.claims.get(cover, ("#", ()))
            raise UnsupportedKeyword(
                "that items of arrays differ is not followed inside of items that any of many conditions may count",
                path=path, keyword="uniqueItems", instead="fewer conditions on items, or uniqueItems of the array itself",
            )  # fmt: skip


def _sizes(grammar: Grammar, num_classes: int, max_depth: int, limits: Limits) -> dict[str, int]:
    """Initial sizes of the tables: of the static ones exactly; of the others room for what the first states need,
    within the limits."""
    nodes = max(2 * len(grammar), min(_SPARE_NODES, len(grammar) + limits.nodes))
    states = min(_FIRST_STATES, limits.states + 1)
    edges, literal_bytes = len(grammar.edges) // 3, len(grammar.pool)
    widest = 2 * _widest(grammar)
    sizes = _SIZES.copy()
    sizes["nodes"] = NodeRecord.SIZE * nodes
    sizes["node_hash"] = 4 * _power_of_two(nodes)
    sizes["sequence_hash"] = max(4 * _power_of_two(nodes), _FIRST_SEQUENCE_HASH)
    sizes["pool"] = _whole_lines(max(_FIRST_POOL, 2 * widest))
    sizes["edge_low"] = sizes["edge_high"] = sizes["edge_next"] = edges
    sizes["lists"] = len(grammar.lists)
    sizes["classes"] *= num_classes
    sizes["text"] = sizes["text_cost"] = literal_bytes
    sizes["worst"] = sizes["ample"] = _num_surcharged(grammar)
    sizes["rules"] = len(grammar.rule_bodies)
    sizes["states"] *= states
    sizes["state_hash"] = max(2 * _power_of_two(states), _FIRST_STATE_HASH)
    sizes["next"] *= states
    sizes["work"] = sizes["items"] = max(_FIRST_SCRATCH, 2 * widest)
    sizes["path"] *= max_depth + 1
    sizes["steps"] *= max_depth + 1
    sizes["contained"] = FRONT_FACTS if _is_graph(grammar) else CONTAINED
    return sizes


def _widest(grammar: Grammar) -> int:
    """The most options of an alternative; more where it does not matter."""
    if 2 * len(grammar.lists) <= _FIRST_SCRATCH:
        return len(grammar.lists)
    kinds, _, counts, _ = _columns(grammar)
    return int(np.max(counts[kinds == _ALT], initial=0))


def _whole_lines(words: int) -> int:
    """So many words, or some more, that the records behind them are lines of the cache."""
    return NodeRecord.SIZE * -(-words // NodeRecord.SIZE)


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()

"""The token automaton of one constraint: states and mask rows, made when first asked for and then kept.

This is the typed face of the compiled code in derive.py and walk.py. It knows states as integers of its own; `Constraint` adds
EOS, object keys and budgets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import derive, measure, memory, walk
from .bodies import BodyClass
from .errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from .explanation import byte_set
from .expression import Event, Grammar, Kind, Node
from .lexicon import WITHOUT_QUOTE, Lexicon
from .recursion import left_recursion, reachable
from .source import Limits
from .trie import TokenTrie
from .tables import DEAD, FAULT, INFINITE, NODES, POOL, SEARCH_EXHAUSTED, SEARCH_LIMIT, STATES, Arena

State = int  # of this automaton; 0 is DEAD


class TokenAutomaton:
    """Lazily built states and mask rows for one grammar and one vocabulary. Not thread-safe: `Constraint` holds the lock."""

    def __init__(self, grammar: Grammar, root: Node, lexicon: Lexicon, limits: Limits) -> None:
        self.grammar, self.root, self.lexicon, self.limits = grammar, root, lexicon, limits
        self.body_classes = _body_classes(grammar)
        self.arena = Arena(_sizes(grammar))
        self._fill_static_tables()
        self._refuse_left_recursion()
        self._rows = np.zeros((16, lexicon.words), np.uint32)
        self._num_rows = 0
        self._row_of_hash: dict[int, list[int]] = {}
        self.start: State = self._call(lambda: derive.start_state(self.arena.array, root))
        if self.start == DEAD:
            raise ConstraintError("nothing satisfies this constraint", path="#")

    # -- states -----------------------------------------------------------------------------------------------------

    def is_accepting(self, state: State) -> bool:
        return bool(self.arena.table("state_accept")[state])

    def cost(self, state: State) -> int:
        """A number of tokens that suffices to finish; INFINITE when the vocabulary cannot."""
        return int(self.arena.table("state_cost")[state])

    def run(self, state: State, data: bytes) -> tuple[State, int]:
        """The state after `data` and how many bytes survived; DEAD when not all did."""
        array = np.frombuffer(data, np.uint8)
        after, read = self._call(lambda: walk.run(self.arena.array, state, array))
        return int(after), int(read)

    def advance(self, states: NDArray[np.int32], tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        """States after one token each, DEAD where it does not survive."""
        out = np.zeros(states.size, np.int32)
        trie = self.lexicon.trie
        self._call(lambda: walk.advance(self.arena.array, states, tokens, trie.token_offsets, trie.token_bytes, out))
        return out

    def forced(self, state: State) -> bytes:
        """The bytes that every completion begins with."""
        out = bytearray()
        while (byte := int(self._call(lambda at=state: walk.only_byte(self.arena.array, at)))) >= 0:
            out.append(byte)
            state, _ = self.run(state, bytes([byte]))
        return bytes(out)

    def end_states(self, state: State, trie: TokenTrie | BodyClass | None = None) -> tuple[NDArray[np.int32], int]:
        """For every token of `trie.order` the state it leads to, DEAD when it does not survive; and the trie nodes visited."""
        trie = trie or self.lexicon.trie
        ends = np.zeros(trie.order.size, np.int32)
        visited = self._call(lambda: walk.end_states(
            self.arena.array, trie.byte, trie.depth, trie.skip, trie.first, self.lexicon.trie.max_depth, state, ends))  # fmt: skip
        return ends, int(visited)

    def costs_after(self, state: State) -> NDArray[np.int32]:
        """The costs of the states that tokens lead to, except tokens that stay inside the state's body."""
        ends, _ = self.end_states(state, self._body(state))
        costs: NDArray[np.int32] = self.arena.table("state_cost")[ends]
        return costs

    # -- memory of object keys ----------------------------------------------------------------------------------------

    @cached_property
    def remembers(self) -> bool:
        """Whether the constraint has objects with keys that are not known beforehand."""
        events = zip(self.grammar.columns[0], self.grammar.columns[3], strict=True)
        return any(kind == Kind.CLASS and event == Event.KEY_OPEN for kind, event in events)

    @cached_property
    def empty_memory(self) -> int:
        return int(self._call(lambda: memory.empty_memory(self.arena.array)))

    def is_repeated(self, held: int) -> bool:
        """Whether a key is being read that its object has already."""
        return held != memory.REFUSED and bool(memory.is_repeated(self.arena.array, held))

    def run_remembering(self, state: State, held: int, data: bytes) -> tuple[State, int, int]:
        """(state, memory, bytes that survived) after `data`; DEAD when not all did."""
        array = np.frombuffer(data, np.uint8)
        after, kept, read = self._call(lambda: memory.run_remembering(self.arena.array, state, held, array))
        return int(after), int(kept), int(read)

    def end_memories(self, state: State, held: int, trie: TokenTrie | BodyClass | None = None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Per token of `trie.order`: the state it leads to, DEAD when it does not survive, and the memory, REFUSED when that refuses."""
        trie = trie or self.lexicon.trie
        ends, memories = np.zeros(trie.order.size, np.int32), np.zeros(trie.order.size, np.int64)
        self._call(lambda: memory.end_memories(
            self.arena.array, trie.byte, trie.depth, trie.skip, trie.first, self.lexicon.trie.max_depth, state, held, ends, memories,
        ))  # fmt: skip
        return ends, memories

    def refused(self, state: State, held: int) -> NDArray[np.uint32] | None:
        """The mask of tokens that only the memory refuses; None when there are none."""
        quoted = self.lexicon.body(WITHOUT_QUOTE)
        assert quoted is not None
        ends, memories = self.end_memories(state, held, quoted)
        chosen = (ends != DEAD) & (memories == memory.REFUSED)
        return self.lexicon.mask_of(chosen, quoted.order) if chosen.any() else None

    # -- masks ------------------------------------------------------------------------------------------------------

    def row(self, state: State) -> NDArray[np.uint32]:
        """The mask of a state, uint32 [words], EOS bits included when it accepts."""
        index = int(self.arena.table("state_row")[state])
        if not index:
            index = self._keep(self._computed_row(state))
            self.arena.table("state_row")[state] = index
        return self._rows[index - 1]  # type: ignore[no-any-return]

    def copy_rows(self, states: NDArray[np.int32], out: NDArray[np.uint32]) -> None:
        """out[k] = mask of states[k]; computes the rows that are missing."""
        done = 0
        while done < states.size:
            done += int(walk.copy_rows(self.arena.array, states[done:], self._rows, out[done:]))
            if done < states.size:
                self.row(int(states[done]))

    def _computed_row(self, state: State) -> NDArray[np.uint32]:
        body_id, radius, alone, accepting = (
            int(self.arena.table(name)[state]) for name in ("state_body", "state_radius", "state_alone", "state_accept"))  # fmt: skip
        body = self._body(state)
        trie: Any = self.lexicon.trie
        heights, start = _NO_HEIGHTS, None
        if body is not None:
            start = body.slice_of(radius) if alone or radius >= body.longest else None
            trie, heights = (body, _NO_HEIGHTS) if start is not None else (trie, body.heights)

        def compute() -> NDArray[np.uint32]:
            mask = np.zeros(self.lexicon.words, np.uint32) if start is None else start.copy()
            walk.walk(self.arena.array, trie.byte, trie.depth, trie.skip, trie.first, trie.order, self.lexicon.trie.max_depth,
                      heights, body_id, state, mask)  # fmt: skip
            return mask

        mask: NDArray[np.uint32] = self._call(compute)
        if not self.lexicon.spells_every_byte:
            mask = self._only_completable(state, mask)
        return mask | self.lexicon.eos_row if accepting else mask

    def _body(self, state: State) -> BodyClass | None:
        body_id = int(self.arena.table("state_body")[state])
        return self.lexicon.body(self.body_classes[body_id]) if body_id >= 0 else None

    def _only_completable(self, state: State, mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Without tokens from which the vocabulary cannot finish, for vocabularies that lack single bytes."""
        ends, _ = self.end_states(state)
        costs = self.arena.table("state_cost")[ends]
        return mask & self.lexicon.mask_of((ends != DEAD) & (costs < INFINITE))

    def _keep(self, mask: NDArray[np.uint32]) -> int:
        """1 + the index of a kept row equal to `mask`."""
        digest = int(walk.hash_words(mask))
        same_hash = self._row_of_hash.setdefault(digest, [])
        for index in same_hash:
            if np.array_equal(self._rows[index - 1], mask):
                return index
        if self._num_rows == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._num_rows] = mask
        self._num_rows += 1
        same_hash.append(self._num_rows)
        return self._num_rows

    def forget_rows(self) -> None:
        """Drop all mask rows; states stay valid, views handed out before stay as they are."""
        self._rows = np.zeros((16, self.lexicon.words), np.uint32)
        self._num_rows = 0
        self._row_of_hash.clear()
        self.arena.table("state_row")[:] = 0

    # -- facts about the whole ----------------------------------------------------------------------------------------

    @cached_property
    def is_regular(self) -> bool:
        """No recursion and no object keys: distances to completion can be searched for exactly, if the front end wants that."""
        if self.remembers or not self.grammar.exact_distances:
            return False
        return all(self.grammar.kind(node) is not Kind.CALL for node in reachable(self.grammar, self.root))

    def unspellable_byte(self) -> int | None:
        """A byte that some literal, or every completion, needs and that no tokens of the vocabulary spell; None if there is none."""
        if self.lexicon.spells_every_byte:
            return None
        size, cost = self.arena.table("size"), self.arena.table("cost")
        hopeless = [node for node in reachable(self.grammar, self.root) if cost[node] >= INFINITE > size[node]]
        for node in hopeless:
            if self.grammar.kind(node) is Kind.LITERAL:
                return next((b for b in self.grammar.literal_bytes(node) if not self.lexicon.single_bytes[b]), None)
        if self.cost(self.start) < INFINITE:
            return None
        return next(self.grammar.class_edges(node)[0][0] for node in hopeless if self.grammar.kind(node) is Kind.CLASS)

    def live_bytes(self, state: State) -> str:
        """The bytes that may follow a state, for people."""
        return byte_set([byte for byte in range(256) if self.run(state, bytes([byte]))[0] != DEAD])

    def paths(self, state: State) -> tuple[str, ...]:
        """Where in the source the parts come from that are being matched in a state."""
        start, length = (int(self.arena.table(name)[state]) for name in ("state_start", "state_length"))
        found: dict[str, None] = {}
        for item in self.arena.table("pool")[start : start + length].tolist():
            label = self._label(item)
            if label is not None:
                found[label] = None
        return tuple(found)

    def _label(self, node: int) -> str | None:
        """The nearest label on the way from the head of a continuation to its end."""
        kind, a, b = (self.arena.table(name) for name in ("kind", "a", "b"))
        while node > 1:
            head = int(a[node]) if kind[node] == Kind.SEQ else node
            for candidate in (node, head):
                if candidate in self.grammar.labels:
                    return self.grammar.labels[Node(candidate)]
            node = int(b[node]) if kind[node] == Kind.SEQ else 0
        return None

    # -- statistics -------------------------------------------------------------------------------------------------

    @property
    def num_states(self) -> int:
        return int(self.arena.table("n")[STATES]) - 1

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def nbytes(self) -> int:
        return self.arena.nbytes + int(self._rows.nbytes)

    # -- building ---------------------------------------------------------------------------------------------------

    def _fill_static_tables(self) -> None:
        grammar, table = self.grammar, self.arena.table
        for name, column in zip(("kind", "a", "b", "c"), grammar.columns, strict=True):
            table(name)[: len(column)] = column
        table("lists")[:] = grammar.lists
        for name, values in zip(("edge_low", "edge_high", "edge_next"), zip(*grammar.edges, strict=True), strict=False):
            table(name)[:] = values
        table("text")[:] = np.frombuffer(bytes(grammar.pool), np.uint8)
        table("rules")[:] = [self._body_of(rule) for rule in range(len(grammar.rule_bodies))]
        table("unit")[:] = -1
        for node, body_id in _unit_nodes(grammar, self.body_classes).items():
            table("unit")[node] = body_id
        counters = table("n")
        counters[NODES], counters[POOL], counters[STATES] = len(grammar), 1, 1
        counters[SEARCH_LIMIT] = self.limits.search_states
        table("state_cost")[DEAD] = INFINITE
        derive.rehash(self.arena.array)
        self._measure()

    def _refuse_left_recursion(self) -> None:
        rule = left_recursion(self.grammar, self.arena.table("size")[: len(self.grammar)] == 0)
        if rule is not None:
            raise UnsupportedKeyword(
                "the rule calls itself before reading anything", path=rule, keyword="left recursion",
                instead="write the repetition to the right, or with *",
            )  # fmt: skip

    def _body_of(self, rule: int) -> Node:
        body = self.grammar.rule_bodies[rule]
        if body is None:
            raise ConstraintError("the rule is used but never defined", path=self.grammar.rule_names[rule])
        return body

    def _measure(self) -> None:
        """Sizes and costs of all static nodes; the states and products of intersections and complements on the way."""
        table, trie = self.arena.table, self.lexicon.trie
        size, cost = table("size"), table("cost")
        size[: len(self.grammar)] = cost[: len(self.grammar)] = INFINITE
        size[1] = cost[1] = 0
        ends = _literal_ends(self.grammar)
        measure.literal_costs(table("text"), ends, trie.byte, trie.depth, trie.skip, trie.first, table("text_cost"))
        self._measure_wide_characters()
        done = 2
        for node in _boolean_nodes(self.grammar):
            self._pass(done, node)
            self._enter_boolean(node)
            done = node
        while self._pass(2, len(self.grammar)):
            pass

    def _pass(self, start: int, end: int) -> bool:
        return bool(measure.measure(self.arena.array, start, end, self.lexicon.single_bytes))

    def _measure_wide_characters(self) -> None:
        """Classes whose characters all take several bytes may still be one token."""
        trie = self.lexicon.trie
        for node, ranges in self.grammar.units.items():
            if ranges[0][0] > 0x7F or not self.lexicon.spells_every_byte:
                found = measure.whole_character(self.arena.array, node, trie.byte, trie.depth, trie.skip, trie.first)
                if found:
                    self.arena.table("cost")[node] = 1

    def _enter_boolean(self, node: Node) -> None:
        kind, (a, b, _) = self.grammar.kind(node), self.grammar.operands(node)
        for operand in (a, b) if kind is Kind.BOTH else (a,):
            self._call(lambda operand=operand: derive.enter_node(self.arena.array, operand))
        self._call(lambda: derive.enter_product(self.arena.array, node))

    # -- faults -----------------------------------------------------------------------------------------------------

    def _call(self, compiled: Callable[[], Any]) -> Any:
        """Run compiled code, growing what is full and repeating until it finishes without a fault."""
        while True:
            result = compiled()
            fault = int(self.arena.table("n")[FAULT])
            if not fault:
                return result
            self._mend(fault)

    def _mend(self, fault: int) -> None:
        self.arena.table("n")[FAULT] = 0
        if fault == SEARCH_EXHAUSTED:
            raise ConstraintLimit(
                "the search for a string that satisfies an intersection visits too many states",
                limit="search_states", value=self.limits.search_states,
            )  # fmt: skip
        self._check_limit("states", self.num_states)
        self._check_limit("nodes", int(self.arena.table("n")[NODES]))
        self.arena.grow(fault)
        derive.rehash(self.arena.array)

    def _check_limit(self, name: str, value: int) -> None:
        limit = getattr(self.limits, name)
        if value > limit:
            raise ConstraintLimit(f"the automaton has {value} {name}", limit=name, value=limit)


_NO_HEIGHTS = np.zeros(0, np.uint8)
_NO_HEIGHTS.setflags(write=False)


def _power_of_two(at_least: int) -> int:
    return 1 << max(4, (at_least - 1).bit_length())


def _sizes(grammar: Grammar) -> dict[str, int]:
    """Initial table sizes: the static part exactly, room for what the first few hundred states need."""
    nodes, states = len(grammar) + 4096, 1024
    widest = max((count for kind, count in zip(grammar.columns[0], grammar.columns[2], strict=True) if kind == Kind.ALT), default=0)
    node_tables = dict.fromkeys(
        ("kind", "a", "b", "c", "size", "cost", "closure", "stamp", "unit", "enter"), nodes)  # fmt: skip
    static = {"edge_low": len(grammar.edges), "edge_high": len(grammar.edges), "edge_next": len(grammar.edges),
              "lists": len(grammar.lists), "text": len(grammar.pool), "text_cost": len(grammar.pool),
              "rules": len(grammar.rule_bodies)}  # fmt: skip
    state_tables = dict.fromkeys(
        ("state_start", "state_length", "state_accept", "state_cost", "state_body", "state_radius", "state_alone", "state_flat", "state_row"),
        states,
    )  # fmt: skip
    scratch = 4096 + 2 * widest
    return {"n": 16, **node_tables, "node_hash": 2 * _power_of_two(nodes), "pool": 16384 + 2 * widest, **static, **state_tables,
            "state_hash": 2 * _power_of_two(states), "next": 256 * states, "work": scratch, "items": scratch, "requests": 2048}  # fmt: skip


def _body_classes(grammar: Grammar) -> list[tuple[tuple[int, int], ...]]:
    """The character classes of repeated parts, by body id."""
    return sorted(set(grammar.units.values()))


def _unit_nodes(grammar: Grammar, classes: list[tuple[tuple[int, int], ...]]) -> dict[Node, int]:
    """Nodes that may be repeated as a body, with their class: characters, and alternatives that begin with characters."""
    ids = {ranges: i for i, ranges in enumerate(classes)}
    units = {node: ids[ranges] for node, ranges in grammar.units.items()}
    for index, kind in enumerate(grammar.columns[0]):
        if kind == Kind.ALT:
            options = [option for option in grammar.alternatives(Node(index)) if option in grammar.units]
            if options:
                units[Node(index)] = ids[grammar.units[max(options, key=lambda option: _count(grammar.units[option]))]]
    return units


def _count(ranges: tuple[tuple[int, int], ...]) -> int:
    return sum(high - low + 1 for low, high in ranges)


def _boolean_nodes(grammar: Grammar) -> list[Node]:
    return [Node(i) for i, kind in enumerate(grammar.columns[0]) if kind in (Kind.BOTH, Kind.NEGATE)]


def _literal_ends(grammar: Grammar) -> NDArray[np.int32]:
    """For every byte of the pool, where its literal ends."""
    ends = np.zeros(len(grammar.pool), np.int32)
    for kind, start, length in zip(*grammar.columns[:3], strict=True):
        if kind == Kind.LITERAL:
            ends[start : start + length] = start + length
    return ends

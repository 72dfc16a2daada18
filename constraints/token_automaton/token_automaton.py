"""The token automaton of one constraint: its states, and the mask rows of these, made when first asked for and then
kept.

This is the typed face of the compiled code in determinize.py, trie_walk.py, masking.py, seen_values.py, register_product.py and
duplicate_masks.py. States are integers, 0 is DEAD; registers are integers too. `Constraint` (constraint.py) adds EOS, budgets and
the states that users see.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..automaton import determinize
from ..automaton.assembling import reached_nodes
from ..automaton.assembling.assembly import assemble, may_be_graph, repeated_units, restore
from ..automaton.machine import ENDS_BEYOND
from ..automaton.nodes import EMPTY, NO_BODY
from ..automaton.tables import DEAD, NO_CLASS, NODE_WORDS
from ..base.errors import ConstraintError
from ..base.ids import NodeId, RegisterId, StateId
from ..base.kinds import INFINITE
from ..grammar.expression import Event, Grammar, Kind, Node, Rule
from ..grammar.recursion import reachable
from ..grammar.source import Limits
from ..grammar.stopwatch import look
from ..masks import trie_walk
from ..masks.mask_rows import MaskRows
from ..masks.strategy_contract import Strategy
from ..uniqueness import duplicate_masks, register_product, seen_values
from ..uniqueness.judging import WalkMode
from ..uniqueness.seen_values import NO_REGISTER, TextMode
from ..vocabulary.char_class_tables import SubTrie
from ..vocabulary.shared_vocabulary import SharedVocabulary
from ..vocabulary.trie import TokenTrie
from ..vocabulary.vocabulary import TOKEN_OPEN
from . import counter_abstraction, masking, pumping

Told = TypeVar("Told")

State = StateId
Trie = TokenTrie | SubTrie
_PUMPED_AT_ONCE = 2  # bytes of a text between the first two looks at the clock; more where those took little
_LITTLE_WORK = 20_000  # of all bytes between two looks
_ROWS = "rows"  # among the tables of `found`
_OPENING = (Event.KEY_OPEN, Event.ARRAY_OPEN)
_OPENING_BITS = sum(1 << event for event in _OPENING)
EVERY_BYTE = SubTrie(  # a trie of 256 tokens
    byte=np.arange(256, dtype=np.uint8),
    depth=np.ones(256, np.int32),
    skip=np.arange(1, 257, dtype=np.int32),
    first=np.arange(257, dtype=np.int32),
    order=np.arange(256, dtype=np.int32),
)


class Unsettled(NamedTuple):
    """A token for which a search has to find out how many tokens suffice to finish behind it."""

    position: int  # in the order of the trie of all tokens; of `unsettled_tokens` without meaning
    token_id: int
    state: State
    held: RegisterId
    extra: int  # SEARCH or EXPECTS_KEY


class Judgement(NamedTuple):
    """What is known of every token, from a state and a register."""

    ends: NDArray[np.int32]  # [tokens, in the trie's order]: the state that it leads to, DEAD when it does not survive
    extra: NDArray[np.int32]  # [tokens]: what the register adds to the cost there
    unsettled: list[Unsettled]  # those for which that takes more to find out


class NextCosts(NamedTuple):
    """What a search among candidates needs to know of the tokens."""

    least: int  # the least cost after one for which nothing has to be found out
    tokens: NDArray[np.int32]  # [id, state, register and extra; tokens] those for which it has to, or one more character is enough


class Distant(NamedTuple):
    """The state that stands for all states which differ from it in distant counts alone, see counter_abstraction.py."""

    state: State
    room: int  # bytes that may be read before one of these counts has to be looked at, PLENTY where there is none
    more: int  # tokens that suffice for their lower bounds
    needed: int  # tokens that suffice to finish without those
    reach: int  # bytes of room that whoever is in `state` must have; 0 of a state that stands for itself alone


class Pumped(NamedTuple):
    """A text that repeats itself."""

    free: int  # the first byte from which on it does so wherever it can
    states: NDArray[np.int32]  # [bytes + 1] before each byte
    text: NDArray[np.int32]  # [bytes]
    work: NDArray[np.int32]  # [bytes] what each took
    given: int = 0  # bytes that are not made up


class TokenAutomaton:
    """The states and mask rows of one grammar over one vocabulary, made lazily. Not thread-safe: `Constraint` holds the
    lock."""

    def __init__(
        self,
        grammar: Grammar,
        root: Node,
        shared_vocabulary: SharedVocabulary,
        limits: Limits,
        found: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """found: what another automaton has found for the same arguments, see `found`; it is trusted. Raises
        `ConstraintError` when nothing satisfies the constraint."""
        self.grammar, self.root, self.shared_vocabulary, self.limits = grammar, root, shared_vocabulary, limits
        units = repeated_units(grammar)
        self._body_classes = sorted(set(map(grammar.units.__getitem__, units.values())))
        self.rows: MaskRows = shared_vocabulary.spare(_empty_rows)  # another object after `drop_rows`
        if found is None:
            self._machine = assemble(grammar, root, units, self._body_classes, shared_vocabulary, limits)
        else:
            tables = {name: table for name, table in found.items() if name != _ROWS}
            self._machine = restore(grammar, self._body_classes, shared_vocabulary, limits, tables)
            self.rows.fill(found[_ROWS])
        self._atlas = shared_vocabulary.packed_vocabulary.address
        self._spells_every_byte = shared_vocabulary.spells_every_byte
        self.start: State = self._machine.call(determinize.start_state, root)
        if self.start == DEAD:
            raise ConstraintError("nothing satisfies this constraint", path="#")

    def found(self) -> dict[str, NDArray[Any]]:
        """Copies of everything found so far: states, transitions and mask rows, by the name of the table."""
        return {**self._machine.tables(), _ROWS: self.rows.copies()}

    # -- states -----------------------------------------------------------------------------------------------------

    def start_of(self, node: Node) -> State:
        """The state before any text of one part of the grammar, with nothing behind it; DEAD when the part has no text."""
        return StateId(self._machine.call(determinize.start_state, node))

    def is_accepting(self, state: State) -> bool:
        return bool(self._machine.states("accept")[state])

    def cost(self, state: State) -> int:
        """A number of tokens that suffices to finish; INFINITE when the vocabulary cannot."""
        return int(self._machine.states("cost")[state])

    def size(self, state: State) -> int:
        """Bytes of a text with which `state` could be finished, if its parts were by themselves."""
        return int(self._machine.nodes("size")[self._items(state)].min(initial=INFINITE))

    def size_of(self, node: Node) -> int:
        """Bytes of the shortest text of a part of the grammar; INFINITE when it has none."""
        return int(self._machine.nodes("size")[node])

    def is_shorter(self, num_bytes: int) -> bool:
        """Whether it is known of the grammar as written that its shortest text has at most so many bytes."""
        return 0 <= int(self._machine.nodes("size")[self.root]) <= num_bytes

    def costs(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """`cost` of many states."""
        costs: NDArray[np.int32] = self._machine.states("cost")[states]
        return costs

    def run(self, state: State, data: bytes) -> tuple[State, int]:
        """(state, bytes read) behind `data`; the state is DEAD when not all of it survives."""
        after, read = self._machine.call(trie_walk.run, state, np.frombuffer(data, np.uint8))
        return StateId(int(after)), int(read)

    def advance(self, states: NDArray[np.int32], tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32: the state behind tokens[k] from states[k], DEAD where it does not survive."""
        out = np.zeros(states.size, np.int32)
        self._machine.call(trie_walk.advance, self._atlas, states, tokens, out)
        return out

    def advance_one(self, state: State, token_id: int) -> State:
        """The state behind a token, DEAD when it does not survive."""
        after: State = self._machine.call(trie_walk.advance_one, self._atlas, state, token_id)
        return after

    @property
    def may_grow(self) -> bool:
        """Whether rules are called, so that what is kept of a text may grow with it."""
        return bool(self._machine.n.calls)

    @property
    def kept_lazily(self) -> Mapping[Node, tuple[str, tuple[str, ...]]]:
        """Parts whose states are made as texts are read: where they stand, and the keywords that say them."""
        return self._machine.kept_lazily

    @property
    def may_be_graph(self) -> bool:
        """Whether the automaton could keep its stacks as a graph, see `Grammar.stacks_as_graph`."""
        return may_be_graph(self.grammar)

    def pump(
        self, period: int, seed: int, at: int, end: int, most_work: int, pumped: Pumped, *, is_trial: bool = False
    ) -> int:
        """The length of a text that is made up from its byte `at` on, see pumping.py. The clock is looked at now and then, more
        often where bytes take much. Raises `ConstraintLimit` where a byte of a trial takes very much by itself."""
        num_bytes = _PUMPED_AT_ONCE
        self._machine.n.most_parts = int(is_trial)
        try:
            while True:
                begun, upto = at, min(at + num_bytes, end)
                at = int(self._machine.call(pumping.pump, period, seed, at, upto, most_work, *pumped))
                if at < upto or at == end:
                    return at
                look()
                is_little = int(pumped.work[begun:at].sum()) < _LITTLE_WORK
                num_bytes = 2 * num_bytes if is_little else max(num_bytes // 2, 1)
        finally:
            self._machine.n.most_parts = 0

    @contextmanager
    def spending(self, most_work: int) -> Iterator[None]:
        """What is called inside, as for a byte of a trial, raises `ConstraintLimit` where it takes more."""
        n = self._machine.n
        n.most_nodes = min(n.nodes + most_work // NODE_WORDS, pumping.LARGEST_COUNTER)
        n.most_parts = min(n.parts + most_work // pumping.SHARE_OF_PARTS, pumping.LARGEST_COUNTER)
        try:
            yield
        finally:
            self._machine.n.most_parts = 0

    def forced(self, state: State) -> bytes:
        """The bytes of text that every completion begins with; a special token ends them."""
        out = bytearray()
        while 0 <= (byte := int(self._machine.call(trie_walk.only_byte, state))) < TOKEN_OPEN[0]:
            out.append(byte)
            state, _ = self.run(state, bytes([byte]))
        return bytes(out)

    def end_states(self, state: State, trie: Trie | None = None) -> tuple[NDArray[np.int32], int]:
        """(ends, trie nodes visited): for every token of `trie.order` the state it leads to, DEAD when it does not
        survive. int32 [tokens]"""
        trie = trie or self.shared_vocabulary.trie
        ends = np.zeros(trie.order.size, np.int32)
        visited = self._machine.call(trie_walk.end_states, *self._nodes(trie), self.shared_vocabulary.trie.max_depth, state, ends)
        return ends, int(visited)

    def costs_after(self, state: State) -> NDArray[np.int32]:
        """The costs of the states that tokens lead to. All tokens that stay inside the state's body count once, with a
        cost that none exceeds."""
        body_id = int(self._machine.states("body_class")[state])
        body = self.shared_vocabulary.body(self._body_classes[body_id]) if body_id != NO_BODY else None
        inside = None if body is None else self._cost_inside(state, body_id, body.longest)
        ends, _ = self.end_states(state, None if body is None or inside is None else body.residual)
        costs = self.costs(ends)
        return costs if inside is None else np.append(costs, np.int32(inside))

    def _cost_inside(self, state: State, body_id: int, longest: int) -> int | None:
        """A number of tokens that suffices behind any token inside a state's body, because a repetition that is longer
        than all of them goes on; None when there is no such repetition. A token may end inside of a character, of which
        three bytes are missing."""
        self.row_number(state)  # finds out `body_is_exclusive`, where that matters
        items = self._items(state)
        names = ("kind", "a", "b", "c", "body_class", "cost")
        kind, a, b, c, unit, cost = (self._machine.nodes(name) for name in names)
        max_chars, is_exclusive = (int(self._machine.states(name)[state]) for name in ("max_chars", "body_is_exclusive"))
        needed = min(longest, max_chars) if is_exclusive == 1 else longest  # longer tokens do not survive
        found: list[int] = []
        for item in items:
            if kind[item] != Kind.SEQ or kind[a[item]] != Kind.CLASS or unit[a[item]] != body_id:
                continue
            rest = int(a[b[item]] if kind[b[item]] == Kind.SEQ else b[item])
            is_more = kind[rest] == Kind.REPEAT and unit[a[rest]] == body_id
            copies = 1 + (longest if c[rest] < 0 else int(c[rest])) if is_more else 1
            if copies >= needed:
                found.append(int(cost[item]) + 3)
        return min(found, default=None)

    def distant(self, state: State) -> Distant:
        """The state that stands for `state`, see counter_abstraction.py. `reach` and `needed` are final once the mask of that
        state is known."""
        found = self._machine.call(counter_abstraction.abstract_counts, self._atlas, len(self.grammar), state)
        at, *numbers = map(int, found)
        return Distant(StateId(at), *numbers)

    @cached_property
    def counts_far(self) -> bool:
        """Whether a counter of the grammar is so long that it would be taken for a count that was given up."""
        kind, low, high = (self._machine.nodes(name)[: len(self.grammar)] for name in ("kind", "b", "c"))
        return bool(((kind == Kind.REPEAT) & (np.maximum(low, high) >= counter_abstraction.MANY)).any())

    # -- masks ------------------------------------------------------------------------------------------------------

    def row(self, state: State) -> NDArray[np.uint32]:
        """The mask of a state, uint32 [words], read-only, EOS bits included when it accepts."""
        return self.rows.get(self.row_number(state))

    def has_row(self, state: State) -> bool:
        """Whether the mask of a state, without a register, is known."""
        return bool(self._machine.states("row")[state])

    def row_number(self, state: State, held: RegisterId = NO_REGISTER) -> int:
        """The number of the mask row of a state, or of a state and the register `held` when the automaton remembers."""
        confined = None if self._spells_every_byte or self._machine.states("row")[state] else self._completable(state)
        completable = 0 if confined is None else int(confined.ctypes.data)
        while True:
            number, wanted = self._machine.call(
                masking.mask_row, self._atlas, self.rows.address, state, held, completable
            )
            self.give_tables(wanted)
            if number != masking.NO_ROOM:
                found: int = number
                return found
            self.rows.grow()

    def asked(self, state: State, held: RegisterId = NO_REGISTER) -> tuple[int, ...]:
        """The arguments of `masking.mask_row` that ask for `row_number`, where the vocabulary spells every byte; valid until the
        next call of `row_number`. Behind the last one `end_asking` has to be called."""
        return self._machine.address, self._atlas, self.rows.address, state, held, 0

    def end_asking(self) -> bool:
        """Whether all that was `asked` has been answered; not when something has to grow first, then answers mean nothing."""
        return not self._machine.take_fault()

    def give_tables(self, wanted: int) -> None:
        """What `masking.mask_row` wants beside the number of a row."""
        if wanted != NO_CLASS:
            self._build_tables(wanted - 1)

    def leave_out(self, strategies: Strategy) -> None:
        """Make masks without some strategies from now on: for tests and for measuring. Masks are the same."""
        self._machine.n.strategies_off = int(strategies)

    def _build_tables(self, body_id: int) -> None:
        """Build the tables of a body class in which masks were made without them, if that has happened often enough."""
        tables = self.shared_vocabulary.tables_wanted(self._body_classes[body_id])
        self._machine.body_class(body_id).tables = tables

    def drop_rows(self) -> bool:
        """Forget all mask rows if they take more than `limits.row_bytes`; returns whether that was done. States stay
        valid, and so do masks that were handed out before."""
        if self.rows.nbytes <= self.limits.row_bytes:
            return False
        self.rows = _empty_rows(self.shared_vocabulary)
        self._machine.states("row")[: self.num_states + 1] = 0
        return True

    def _completable(self, state: State) -> NDArray[np.uint32]:
        """The tokens behind which the vocabulary can finish, uint32 [words], for vocabularies in which some byte is no
        token."""
        ends, _ = self.end_states(state)
        costs = self._machine.states("cost")[ends]
        return self.shared_vocabulary.mask_of(self.shared_vocabulary.trie.order[(ends != DEAD) & (costs < INFINITE)])

    @staticmethod
    def _nodes(trie: Trie) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        return trie.byte, trie.depth, trie.skip, trie.first

    # -- register of keys and items -----------------------------------------------------------------------------------

    @cached_property
    def remembers(self) -> bool:
        """Whether the constraint has keys or items that must not come twice and are not known beforehand.

        Parts that no text uses do not count, such as the grammar of any JSON value that a front end has written down
        beside the rest.
        """
        if self.grammar.events.isdisjoint(_OPENING):
            return False
        return bool(self._machine.call(reached_nodes.reaches_event, self.root, _OPENING_BITS))

    @cached_property
    def empty_memory(self) -> RegisterId:
        return RegisterId(self._machine.call(seen_values.empty_memory))

    def run_remembering(self, state: State, held: RegisterId, data: bytes) -> tuple[State, RegisterId, int]:
        """(state, register, bytes read) behind `data`; the state is DEAD when not all of it survives."""
        after, kept, read = self._machine.call(register_product.run_remembering, state, held, np.frombuffer(data, np.uint8))
        return StateId(int(after)), RegisterId(NodeId(int(kept))), int(read)

    def advance_remembering(self, state: State, held: RegisterId, token_id: int) -> tuple[State, RegisterId]:
        """(state, register) behind a token; the state is DEAD when it does not survive."""
        asked = (self._atlas, state, held, token_id)
        after: tuple[State, RegisterId] = self._machine.call(register_product.advance_remembering, *asked)
        return after

    def key_place(self, held: RegisterId) -> int | None:
        """The frame of the object whose key is being read, which has the object's keys; None outside of keys, and
        inside of unique items."""
        frame, mode = (int(self._machine.nodes(name)[held]) for name in ("a", "b"))
        is_recorded = self._machine.nodes("c")[frame] != seen_values.NIL
        return frame if mode in (TextMode.IN_KEY, TextMode.KEY_ESCAPE) and not is_recorded else None

    def extra_cost(self, state: State, held: RegisterId) -> int:
        """Tokens beyond `cost` that suffice with this register; SEARCH or EXPECTS_KEY of register_product.py when more is needed to
        find out."""
        return int(self._machine.call(register_product.extra_cost_of, state, held, self.shared_vocabulary.spells_every_byte))

    def judge(self, state: State, held: RegisterId) -> Judgement:
        """What is known of every token from a state and a register."""
        size = self.shared_vocabulary.trie.order.size
        ends, extra = np.zeros(size, np.int32), np.zeros(size, np.int32)
        asked = (self._atlas, state, held, int(WalkMode.WHOLE), ends, extra, self.shared_vocabulary.unsettled_room)
        return Judgement(ends, extra, self._unsettled(self._machine.call(duplicate_masks.judge, *asked)[0]))

    def next_costs(self, state: State, held: RegisterId) -> NextCosts:
        """What a search for a way out among candidates asks of `judge`, found faster.

        Tokens that stay inside of a string without candidates count for the least cost only; inside of a key, so do those
        that begin like that and go on behind the key.
        """
        way = int(WalkMode.IN_BRIEF if self.key_place(held) is None else WalkMode.IN_KEY)  # compiled code takes numbers
        none = np.empty(0, np.int32)
        count, least = self._machine.call(
            duplicate_masks.judge, self._atlas, state, held, way, none, none, self.shared_vocabulary.unsettled_room
        )
        return NextCosts(int(least), self.shared_vocabulary.unsettled_room[:count, 1:].T.copy())

    def unsettled_tokens(self, state: State, held: RegisterId) -> list[Unsettled]:
        """The unsettled tokens of `judge`, found faster, without their positions. The row of the state has to be known."""
        asked = (self._atlas, state, held, self.shared_vocabulary.unsettled_room)
        return self._unsettled(self._machine.call(duplicate_masks.unsettled_tokens, *asked))

    def _unsettled(self, count: int) -> list[Unsettled]:
        return [Unsettled(*one) for one in self.shared_vocabulary.unsettled_room[:count].tolist()]

    @cached_property
    def most_extra(self) -> int:
        """The greatest number that `judge` and `extra_cost` give."""
        return max(1, self._machine.n.item_gap) if self.remembers else 0

    # -- facts --------------------------------------------------------------------------------------------------------

    @cached_property
    def is_regular(self) -> bool:
        """Whether the constraint has neither recursion nor a register, so that distances to completion can be searched
        for exactly."""
        return not self.remembers and all(
            self.grammar.kind(node) is not Kind.CALL for node in reachable(self.grammar, self.root)
        )

    def unspellable_byte(self) -> int | None:
        """A byte that some literal, or every completion, needs and no token of the vocabulary spells; None if there is none."""
        if self.shared_vocabulary.spells_every_byte:
            return None
        size, cost = self._machine.nodes("size"), self._machine.nodes("cost")
        hopeless = [node for node in reachable(self.grammar, self.root) if cost[node] >= INFINITE > size[node]]
        for node in hopeless:
            if self.grammar.kind(node) is Kind.LITERAL:
                return next((b for b in self.grammar.literal_bytes(node) if not self.shared_vocabulary.single_bytes[b]), None)
        if self.cost(self.start) < INFINITE:
            return None
        classes = (node for node in hopeless if self.grammar.kind(node) is Kind.CLASS)
        return next((self.grammar.class_edges(node)[0][0] for node in classes), None)

    def check_spelling(self) -> None:
        """Raises ConstraintError where the vocabulary cannot spell what the constraint needs."""
        if self._spells_every_byte and self.cost(self.start) < INFINITE:
            return
        missing = self.unspellable_byte()
        if missing is not None:
            raise ConstraintError(
                f"the vocabulary cannot spell byte 0x{missing:02x} ({bytes([missing])!r}), which the constraint needs",
                path="#", instead="use a vocabulary with byte tokens",
            )  # fmt: skip
        if self.cost(self.start) >= INFINITE:
            if self.shared_vocabulary.spells_every_byte:
                raise ConstraintError("nothing satisfies this constraint", path="#")
            raise ConstraintError("the vocabulary cannot spell any text that satisfies this", path="#", instead="byte tokens")

    def live_bytes(self, state: State) -> list[int]:
        """The bytes that may come in a state."""
        return [byte for byte in range(256) if self.run(state, bytes([byte]))[0] != DEAD]

    def paths(self, state: State) -> tuple[str, ...]:
        """The places in the source of the parts that begin in a state, or else behind what is being read."""
        tail = EMPTY
        frame = self._machine.frame(state)
        if frame is not None:  # labels are of parts as the grammar has them, which a frame keeps
            state, tail = frame.inner, frame.tail
        labels = self.grammar.labels
        found = [self._first_told(item, lambda node: labels.get(Node(node))) for item in self._items(state)]
        beyond = self._first_told(tail, lambda node: labels.get(Node(node)))
        return tuple(dict.fromkeys(label for way in found for label in (way if way != [None] else beyond) if label is not None))

    def _items(self, state: State) -> list[int]:
        """The items of a state: the continuations that it is a set of."""
        start, length = self._machine.call(determinize.find_items, state)
        return self._machine.table("pool")[start : start + length].tolist()

    def segments(self, state: State, byte: int) -> frozenset[Hashable]:
        """The segments of the grammar in which `byte` may be read in a state; see `Grammar.segment`."""
        nodes = {name: self._machine.nodes(name) for name in ("kind", "a", "b")}

        def ended(node: int) -> Hashable:
            return self.grammar.segments.get(Rule(int(nodes["a"][node]))) if nodes["kind"][node] == Kind.CALL else None

        items = [item for item in self._items(state) if self._reads(nodes, item, byte)]
        return frozenset(segment for item in items for segment in self._first_told(item, ended))

    def _reads(self, nodes: Mapping[str, NDArray[np.int32]], item: int, byte: int) -> bool:
        """Whether the leaf that a continuation begins with may read a byte."""
        leaf = int(nodes["a"][item]) if nodes["kind"][item] == Kind.SEQ else item
        kind, a, b = (int(nodes[name][leaf]) for name in ("kind", "a", "b"))
        if kind == Kind.LITERAL:
            return int(self._machine.table("text")[a]) == byte
        if kind == Kind.CLASS:
            low, high = (self._machine.table(name)[a : a + b].tolist() for name in ("edge_low", "edge_high"))
            return any(first <= byte <= last for first, last in zip(low, high, strict=True))
        alone = StateId(self._machine.call(determinize.start_state, leaf))  # of all other kinds
        return self.run(alone, bytes([byte]))[0] != DEAD

    def _first_told(self, continuation: int, tell: Callable[[int], Told | None]) -> list[Told | None]:
        """For each way through a continuation what `tell` says of the first node of which it says anything; None where
        it says nothing."""
        kind, a, b = (self._machine.nodes(name) for name in ("kind", "a", "b"))
        found: list[Told | None] = []
        work: list[tuple[int, Any]] = [(continuation, None)]  # a node, and the nodes behind it as such a pair
        seen: dict[tuple[int, int], Any] = {}  # holds what is behind, so that nothing else has its identity
        while work:
            node, behind = work.pop()
            if (node, id(behind)) in seen:
                continue
            seen[node, id(behind)] = behind
            told = tell(node)
            if told is not None:
                found.append(told)
            elif kind[node] == Kind.SEQ:
                work.append((int(a[node]), (int(b[node]), behind)))
            elif kind[node] == Kind.EITHER:
                work += [(int(b[node]), behind), (int(a[node]), behind)]
            elif behind is None:
                found.append(None)
            else:
                work.append(behind)
        return found

    @property
    def is_half_full(self) -> bool:
        return self._machine.is_half_full

    @property
    def is_nearly_full(self) -> bool:
        """Whether nearly all of a limit is used up, so that texts have to end."""
        return self._machine.is_nearly_full

    @contextmanager
    def beyond_limits(self, beyond: tuple[float, int] = ENDS_BEYOND) -> Iterator[None]:
        """Meanwhile the automaton may become a little larger than its limits: for what needs few states, and cannot do without."""
        before, self._machine.beyond = self._machine.beyond, beyond
        try:
            yield
        finally:
            self._machine.beyond = before

    @property
    def num_nodes(self) -> int:
        return int(self._machine.n.nodes)

    @property
    def num_words(self) -> int:
        """Words written for nodes, closures and items of states."""
        return int(NODE_WORDS * self._machine.n.nodes + self._machine.n.pool)

    @property
    def num_states(self) -> int:
        return self._machine.num_states

    @property
    def num_transitions(self) -> int:
        return self._machine.num_transitions

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self._machine.nbytes + self.rows.nbytes


def _empty_rows(shared_vocabulary: SharedVocabulary) -> MaskRows:
    return MaskRows(shared_vocabulary.words, shared_vocabulary.trie.order.size)

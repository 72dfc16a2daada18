"""Intersections and complements, computed while compiling: what is left of them are tables (counted_tables.py).

Every operand is determinised by the machine and minimised by itself, then they are multiplied one after another, and each product
is minimised again (finite_automata.py). A repetition of one operand, such as the length of a string, is no factor: its copies are
counted beside the product, where one can tell the end of each copy at once.

    (.*[A-Z]){2} and (.*[a-z]){2} and (.*\\d){2}, 8 to 64 characters       27 states times those inside of a character; 65 counts

So it is known before any text is made whether there is one, and how far it is, from everywhere. What takes more than
`Limits.search_states` states is refused here.

Two kinds stay products of states, which are made as texts are read. One is anything without a list of words, such as the names
that an object has already: its states are those of the words, one after another. The other is what one keyword says by itself
and takes many states for, such as a number that is no multiple of some: there completions lie near. Where one does not, the way
there is left out (`determinize.search`), so no text meets a limit; a note says that there may be such texts. A complement of what
is such a product itself would take in what is left out there, so it is a table or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ConstraintLimit
from ...base.kinds import INFINITE, UNBOUNDED, Kind
from ...grammar.expression import Grammar, Node
from ...grammar.lowering_cache import shape_of
from ...grammar.recursion import reachable
from ...grammar.source import Limits
from ...grammar.stopwatch import Stopwatch, check_bytes, hold
from .. import counted_tables, determinize
from ..automaton_loops import measure
from ..counted_tables import HEADER, Table
from ..finite_automata import (
    AUTOMATON_CACHE,
    FiniteAutomaton,
    TooManyStates,
    complement,
    determinized,
    minimized,
    product,
)
from ..machine import Machine
from ..tables import DEAD

SHARE_OF_ONE = 0.1  # of the states that an intersection may have: those of what one keyword says by itself
_OPERANDS_AT_ONCE = 64  # of an intersection, until it is looked whether anything is left
# bytes to the end that is found of what is kept lazily: where it lies farther, states hold hundreds of counts, and tens of tokens
# take gigabytes
MOST_TO_AN_END = 128
MOST_IN_VAIN = 5  # of those that may turn out to have more: what comes then is not tried
TRANSITIONS_AT_ONCE = 5_000_000  # that are followed between two looks at the clock, some 10 ms
# to minimise an automaton, for each of its states and transitions: its table is there twice more meanwhile
SECONDS_OF_STATE, SECONDS_OF_TRANSITION = 1e-6, 3e-8
BYTES_OF_STATE, BYTES_OF_TRANSITION = 90, 8
DISTANCES_PER_STATE = 100  # so many distances may a table have for each state that it may have
_BOOLEAN = (Kind.BOTH, Kind.NEGATE)

Claim = tuple[str, tuple[str, ...]]  # the path and the keywords that an intersection stands for


class Counted(NamedTuple):
    """A repetition of texts of which none begins another one, as a loop, and how many there are."""

    loop: FiniteAutomaton
    counts: NDArray[np.uint8]  # [states, letters] 1 where a transition ends a text
    low: int
    high: int  # UNBOUNDED when there is no bound


class Intersections:
    """Computes the intersections and complements of one grammar."""

    def __init__(self, machine: Machine, grammar: Grammar, limits: Limits, depths: NDArray[np.int32]) -> None:
        """depths: [nodes] how many intersections and complements are inside one another there."""
        self._machine, self._grammar, self._limits = machine, grammar, limits
        self._complemented = _complemented(grammar, depths)
        self._stopwatch = Stopwatch(limits, "computing intersections")
        self._most_states = limits.search_states
        self._num_in_vain = 0
        self._entered: set[Node] = set()
        self._automata: dict[Node, FiniteAutomaton] = {}
        self._loops: dict[Node, tuple[FiniteAutomaton, NDArray[np.uint8]] | None] = {}

    def enter(self, node: Node) -> None:
        """Prepare a BOTH or NEGATE node whose operands are measured: set what it begins with, its size and its cost. Raises
        `ConstraintLimit`."""
        claims = list(filter(None, map(self._grammar.claims.get, parts_of(self._grammar, node))))
        must_be_table = any(len(keywords) > 1 for _, keywords in claims) or node in self._complemented
        self._most_states = int(self._limits.search_states * (1 if must_be_table else SHARE_OF_ONE))
        try:
            self._enter_as_it_fits(node, claims, must_be_table)
        except TooManyStates:
            raise self._too_hard(claims) from None
        except ConstraintLimit as error:
            if error.limit != "search_states" or error.path is not None:
                raise
            raise self._too_hard(claims) from None  # a search for the way to an end
        self._entered.add(node)

    def _enter_as_it_fits(self, node: Node, claims: list[Claim], must_be_table: bool) -> None:
        """Enter a node as a table, or as products where it need not be one and would be too large. Raises `TooManyStates`."""
        if excludes_words(self._grammar, node):
            self._enter_product(node)
            return
        if must_be_table or self._num_in_vain < MOST_IN_VAIN:
            try:
                self._enter(node)
                return
            except TooManyStates:
                if must_be_table:
                    raise
            self._num_in_vain += 1
            self._note(claims)
        self._machine.kept_lazily[node] = _told(claims)
        self._enter_products(node)
        if MOST_TO_AN_END < int(self._machine.nodes("size")[node]) < INFINITE:
            raise TooManyStates

    def _note(self, claims: list[Claim]) -> None:
        """Say that texts may be left out; `claims` say where."""
        where = f"{claims[0][0]}: " if claims else ""
        note = (
            f"{where}takes too many states to be kept at once: ways whose end lies too far away to be found are left out, and a "
            "text in which limits.states is nearly used up is ended on one way"
        )
        if note not in self._grammar.notes:
            self._grammar.notes.append(note)

    def _enter_products(self, node: Node) -> None:
        for part in reversed([part for part in parts_of(self._grammar, node) if self._grammar.kind(part) in _BOOLEAN]):
            if part not in self._entered:
                self._enter_product(part)
                self._entered.add(part)

    def _enter_product(self, node: Node) -> None:
        self._machine.call_pausing(determinize.enter_product, node)

    def _too_hard(self, claims: list[Claim]) -> ConstraintLimit:
        path, keywords = _told(claims)
        return ConstraintLimit(
            "what is said of one text takes too many states to be kept at once",
            limit="search_states", value=self._limits.search_states, path=path, keyword=", ".join(keywords),
            instead="fewer or simpler patterns beside or inside one another, above all without long "
            "counted repetitions such as .{5,50} inside of them; or raise limits.search_states",
        )  # fmt: skip

    def _enter(self, node: Node) -> None:
        operands = list(conjuncts(self._grammar, node)) if self._grammar.kind(node) is Kind.BOTH else [node]
        counted = self._counted(operands)
        whole = self._intersection(operands) if operands else None
        counts: NDArray[np.uint8] | None = None
        if counted is not None:
            if whole is None:
                whole, counts = counted.loop, counted.counts
            else:
                whole, of_loop = product(whole, counted.loop, self._most_states, self._stopwatch.check)
                letter = np.zeros(whole.next.shape[1], np.int64)
                letter[whole.letters] = counted.loop.letters
                counts = np.ascontiguousarray(counted.counts[of_loop[:, None], letter[None, :]])
        assert whole is not None
        self._write(node, whole, counted, counts)

    def _intersection(self, operands: Sequence[Node]) -> FiniteAutomaton:
        """Of one operand at least: the smallest come first, of each so many. What is empty stays empty."""
        whole: FiniteAutomaton | None = None
        for begin in range(0, len(operands), _OPERANDS_AT_ONCE):
            automata = map(self._automaton, operands[begin : begin + _OPERANDS_AT_ONCE])
            for other in sorted(automata, key=lambda automaton: automaton.num_states):
                self._stopwatch.check()
                if whole is None:
                    whole = other
                    continue
                whole, _ = product(whole, other, self._most_states, self._stopwatch.check)
                whole = self._minimized(whole)
            assert whole is not None
            if whole.start == DEAD:
                break
        assert whole is not None
        return whole

    def _minimized(self, automaton: FiniteAutomaton) -> FiniteAutomaton:
        num_states, num_transitions = automaton.num_states, automaton.next.size
        self._stopwatch.check(ahead=SECONDS_OF_STATE * num_states + SECONDS_OF_TRANSITION * num_transitions)
        check_bytes(BYTES_OF_STATE * num_states + BYTES_OF_TRANSITION * num_transitions)
        return minimized(automaton)

    def _automaton(self, node: Node) -> FiniteAutomaton:
        """The minimal automaton of a node."""
        known = self._automata.get(node)
        if known is None:
            known = self._automata[node] = self._minimal(node)
            hold(known.next.nbytes)
        return known

    def _minimal(self, node: Node) -> FiniteAutomaton:
        self._stopwatch.check()
        kind = self._grammar.kind(node)
        if kind is Kind.NEGATE:
            return complement(self._automaton(Node(self._grammar.operands(node)[0])))
        if kind is Kind.BOTH:
            return self._intersection(list(conjuncts(self._grammar, node)))
        shape = shape_of(self._grammar, node)
        if shape is None:
            return self._found(node)
        return AUTOMATON_CACHE.automaton(shape, self._most_states, lambda: self._found(node))

    def _found(self, node: Node) -> FiniteAutomaton:
        before, start = self._machine.nbytes, int(self._machine.call(determinize.start_state, node))
        found = determinized(self._machine, start, self._most_states, self._stopwatch.check)
        hold(self._machine.nbytes - before)
        return self._minimized(found)

    def _counted(self, operands: list[Node]) -> Counted | None:
        """The repetition that is counted, if there is one; it is taken out of the operands, and so are all of the same body."""
        bodies: dict[Node, tuple[int, int]] = {}
        for node in operands:
            if self._grammar.kind(node) is Kind.REPEAT:
                body, low, high = self._grammar.operands(node)
                least, most = bodies.get(Node(body), (0, UNBOUNDED))
                tightest = most if high == UNBOUNDED else high if most == UNBOUNDED else min(most, high)
                bodies[Node(body)] = max(least, low), tightest
        for body, (low, high) in sorted(bodies.items(), key=lambda item: -max(item[1])):
            loop = self._loop(body) if max(low, high) > 1 else None
            if loop is not None:
                for node in [node for node in operands if self._repeats(node, body)]:
                    operands.remove(node)
                return Counted(*loop, low, high)
        return None

    def _repeats(self, node: Node, body: Node) -> bool:
        return self._grammar.kind(node) is Kind.REPEAT and self._grammar.operands(node)[0] == body

    def _loop(self, body: Node) -> tuple[FiniteAutomaton, NDArray[np.uint8]] | None:
        """(automaton of any number of copies of a body, which transitions end a copy); None where copies cannot be told apart."""
        if body not in self._loops:
            self._loops[body] = loop_of(self._automaton(body))
        return self._loops[body]

    def _write(
        self, node: Node, whole: FiniteAutomaton, counted: Counted | None, counts: NDArray[np.uint8] | None
    ) -> None:
        """Write a table, and let the node be it."""
        low, high = (counted.low, counted.high) if counted is not None else (0, UNBOUNDED)
        counts = counts if counts is not None else np.zeros(whole.next.shape, np.uint8)
        rows, row_of, run, alike = self._distances(whole, counts, low, high)
        places, letters = row_of.size, whole.next.shape[1]
        starts = np.cumsum([HEADER, places, places, whole.next.size])
        header = np.zeros(HEADER, np.int32)
        last, stays = (low, 1) if high == UNBOUNDED else (high, 0)
        for word, value in (
            (Table.NUM_LETTERS, letters), (Table.LOW, low), (Table.ALIKE, alike), (Table.LAST, last), (Table.STAYS, stays),
            (Table.ROW_OF, starts[0]), (Table.RUN, starts[1]), (Table.NEXT, starts[2]),
        ):  # fmt: skip
            header[word] = value
        header[Table.LETTERS :] = whole.letters
        next_ = 2 * whole.next + counts
        block = np.concatenate([header, starts[3] + row_of * whole.num_states, run, next_.ravel(), rows.ravel()])
        place = int(self._machine.call(counted_tables.reserve, block.size))
        self._machine.table("pool")[place : place + block.size] = block
        self._machine.call(counted_tables.enter_table, node, place, whole.start)

    def _distances(
        self, whole: FiniteAutomaton, counts: NDArray[np.uint8], low: int, high: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int]:
        """(rows, row of each place, run of each place, ALIKE) of a table."""
        most = max(DISTANCES_PER_STATE * self._limits.search_states // whole.num_states, 1)
        room = min(64, most)
        order = np.zeros(whole.num_states, np.int32)
        if low > 0 or high != UNBOUNDED:
            is_ordered = counted_tables.uncounted_order(whole.next, counts, order)
            assert is_ordered, "a copy has no loops"
        rows = np.empty((room, whole.num_states), np.int32)
        row_of, run = (np.empty(room + low + 1, np.int32) for _ in range(2))
        done = np.array([0, 0, low, high], np.int64)
        if high == UNBOUNDED:
            measure(whole.next, whole.accepts, rows[0])
            rows[0][rows[0] < 0] = INFINITE
            row_of[0], run[0], done[:] = 0, counted_tables.ALWAYS, (1, 1, low, low - 1)
        at_once = max(TRANSITIONS_AT_ONCE // whole.next.size, 1)
        while done[3] >= 0:
            if done[0] == room:
                if room == most:
                    raise TooManyStates
                larger = min(2 * room, most)
                rows = np.concatenate([rows, np.empty((larger - room, whole.num_states), np.int32)])
                row_of, run = (np.append(each, np.empty(larger - room, np.int32)) for each in (row_of, run))
                room = larger
            counted_tables.count_distances(whole.next, counts, whole.accepts, order, low, at_once, rows, row_of, run, done)
            self._stopwatch.check()
        used, places, alike, _ = done.tolist()
        return rows[:used], row_of[:places][::-1], run[:places][::-1], alike


def _told(claims: list[Claim]) -> Claim:
    """The claim that says most of a node."""
    return max(claims, key=lambda claim: len(claim[1]), default=("#", ("pattern",)))


def _complemented(grammar: Grammar, depths: NDArray[np.int32]) -> set[Node]:
    """The complements of something with intersections or complements in it, those, and the intersections of them.

    depths: [nodes] how many intersections and complements are inside one another there.
    """
    seen: set[Node] = set()
    found: set[Node] = set()
    for node in map(Node, np.flatnonzero(depths).tolist()):  # parts before wholes
        kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
        if kind is Kind.NEGATE and depths[a] and Node(a) not in seen:
            seen.update(reachable(grammar, Node(a), seen))
        if kind is Kind.NEGATE and depths[a] or kind is Kind.BOTH and not found.isdisjoint((Node(a), Node(b))):
            found.add(node)
    return found | {node for node in seen if grammar.kind(node) in _BOOLEAN}


def conjuncts(grammar: Grammar, node: Node) -> Iterator[Node]:
    """The operands of an intersection, and of those among them that are intersections, in no order."""
    work = [node]
    while work:
        node = work.pop()
        if grammar.kind(node) is Kind.BOTH:
            work += map(Node, grammar.operands(node)[:2])
        else:
            yield node


def parts_of(grammar: Grammar, node: Node) -> Iterator[Node]:
    """An intersection or complement, its operands, and theirs."""
    work = [node]
    while work:
        node = work.pop(0)
        yield node
        if grammar.kind(node) in _BOOLEAN:
            work += _operands(grammar, node)


def excludes_words(grammar: Grammar, node: Node) -> bool:
    """Whether a node is anything but some words, or that in an intersection."""
    if grammar.kind(node) is Kind.BOTH:
        return any(grammar.kind(part) is Kind.NEGATE and excludes_words(grammar, part) for part in _operands(grammar, node))
    (part,) = _operands(grammar, node)
    parts = grammar.alternatives(part) if grammar.kind(part) is Kind.ALT else [part]
    return all(grammar.kind(one) is Kind.LITERAL for one in parts)


def _operands(grammar: Grammar, node: Node) -> list[Node]:
    a, b, _ = grammar.operands(node)
    return [Node(a), Node(b)] if grammar.kind(node) is Kind.BOTH else [Node(a)]


def outermost(grammar: Grammar, nodes: list[Node], root: Node, used: NDArray[np.bool_]) -> set[Node]:
    """Those intersections and complements that are entered: parts of something else, or of one that excludes words.

    used: [nodes] which nodes something else refers to.
    """
    work = [node for node in nodes if used[node] or node == root]
    found = set(work)
    while work:
        node = work.pop()
        if excludes_words(grammar, node):
            inner = [part for part in _operands(grammar, node) if grammar.kind(part) in _BOOLEAN and part not in found]
            found.update(inner)
            work += inner
    return found


def loop_of(body: FiniteAutomaton) -> tuple[FiniteAutomaton, NDArray[np.uint8]] | None:
    """(automaton of any number of texts in a row, which transitions end one); None where a text begins another one, where one
    can be endless, or empty."""
    ends = body.accepts.astype(np.bool_)
    if body.start == 0 or ends[body.start] or body.next[ends].any() or (body.next == body.start).any():
        return None
    counts = ends[body.next].astype(np.uint8)
    order = np.zeros(body.num_states, np.int32)
    if not counted_tables.uncounted_order(body.next, counts, order):
        return None
    next_ = np.where(counts == 1, body.start, body.next).astype(np.int32)
    accepts = np.zeros(body.num_states, np.uint8)
    accepts[body.start] = 1
    next_[ends] = 0
    return FiniteAutomaton(body.letters, next_, accepts, body.start), counts

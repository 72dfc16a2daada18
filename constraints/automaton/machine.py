"""The machine of one constraint: its arena, and the calls of compiled code that works on it.

A compiled call that finds a table full says so by a fault. `Machine.call` grows that table, fills hash tables again
where needed, and repeats the call until it finishes; a limit that is reached on the way is a `ConstraintLimit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstraintLimit
from ..grammar.expression import Node
from ..grammar.source import Limits
from ..grammar.stopwatch import check_bytes, look
from ..numba_support.records import Words
from . import determinize
from .tables import (
    FAULT_WORD,
    FIELDS,
    HASHES,
    NODES_WORD,
    STATES_WORD,
    STEPS_WORD,
    Arena,
    BodyClass,
    Counters,
    Fault,
    Frame,
    StateRecord,
    column,
    in_use,
)
from .validation import VALIDATES, validate

# Hash tables follow from the others, the rest is scratch.
REBUILT = (*HASHES, "work", "items", "path", "ends", "apart", "steps", "judging", "requests", "contained")
SHARE_OF_ENDS = 1 / 16  # of `Limits.states` and `Limits.nodes`, for the ends of texts in which these are met
# What may be taken beyond a limit: a share of it, or so many states or nodes if these are more.
NOTHING_BEYOND, LITTLE_BEYOND, ENDS_BEYOND = (0.0, 0), (SHARE_OF_ENDS, 0), (1 / 4, 20_000)
STEPS_AT_ONCE = 4_000  # transitions that a call finds between two looks at the clock, while compiling: some 20 ms
_COPIES = 3  # of what is in use are there while a table grows
_NO_FAULT = int(Fault.NONE)  # to look up a member takes 50 ns, and every call compares


class Machine:
    """The owner of an arena, who repeats a compiled call until it finishes without a fault. Not thread-safe."""

    def __init__(self, arena: Arena, limits: Limits) -> None:
        self._arena, self._limits = arena, limits
        self._many_states, self._many_nodes = (int((1 - SHARE_OF_ENDS) * most) for most in (limits.states, limits.nodes))
        self.beyond = NOTHING_BEYOND  # more while what is asked for needs few states, and has to be there
        self.kept_lazily: dict[Node, tuple[str, tuple[str, ...]]] = {}  # intersections that are no tables: path and keywords

    @property
    def address(self) -> int:
        """The address of the array that compiled code works on. It changes when a table grows."""
        return self._arena.address

    def table(self, name: str) -> NDArray[np.int32]:
        """A view of one table, valid until the next call."""
        return self._arena.table(name)

    def nodes(self, field: str) -> NDArray[Any]:
        """A field of all nodes, valid until the next call."""
        return self._arena.column("nodes", field)

    def states(self, field: str) -> NDArray[Any]:
        """A field of all states, valid until the next call."""
        return self._arena.column("states", field)

    def body_class(self, number: int) -> BodyClass:
        """Valid until the next call."""
        return BodyClass(Words(self.table("classes"), BodyClass.SIZE * number))

    def frame(self, state: int) -> Frame | None:
        """A state as another one and a tail, if it is a frame. Valid until the next call."""
        place = int(self.states("frame")[state])
        return Frame(Words(self.table("pool"), place)) if place != 0 else None

    @property
    def n(self) -> Counters:
        """The numbers that concern the whole arena, valid until the next call."""
        return self._arena.n

    @property
    def num_states(self) -> int:
        return int(self._arena.array.item(STATES_WORD)) - 1

    @property
    def num_transitions(self) -> int:
        """How many were found so far: what masks and tokens took."""
        return int(self._arena.array.item(STEPS_WORD))

    @property
    def is_half_full(self) -> bool:
        """Whether half of a limit is used up, so that a fresh machine should take new work."""
        return 2 * self.num_states > self._limits.states or 2 * self.n.nodes > self._limits.nodes

    def take_fault(self) -> bool:
        """Whether compiled code that was not called by `call` has stopped at a fault, which is forgotten: `call` meets it again."""
        is_faulty = self._arena.array.item(FAULT_WORD) != _NO_FAULT
        if is_faulty:
            self._arena.array[FAULT_WORD] = _NO_FAULT
        return bool(is_faulty)

    @property
    def is_nearly_full(self) -> bool:
        """Whether what is left of a limit is little more than texts need that are to end."""
        array = self._arena.array
        return bool(array.item(STATES_WORD) - 1 > self._many_states or array.item(NODES_WORD) > self._many_nodes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use. The array has room for more, in pages that have not been touched yet."""
        return 4 * self._arena.words_in_use

    def tables(self) -> dict[str, NDArray[np.int32]]:
        """All that the machine has found: copies of what is in use of every table, except those in REBUILT.

        The ends of states are left out too: they are places in the tables of body classes, which may lie elsewhere
        another time.
        """
        used = in_use(self.n)
        names = [name for name in FIELDS if name not in REBUILT]
        copies = {name: self.table(name)[: used.get(name)].copy() for name in names}
        for field in ("ends", "has_too_many_ends"):
            column(copies["states"], StateRecord, field)[:] = 0
        return copies

    def call(self, compiled: Callable[..., Any], *arguments: Any) -> Any:
        """The result of compiled(address, *arguments). Grows the table that is full and repeats the call as often as
        needed. Raises `ConstraintLimit`."""
        arena = self._arena
        while True:
            result = compiled(arena.address, *arguments)
            fault = arena.array.item(FAULT_WORD)
            if VALIDATES:
                validate(arena)
            if fault == _NO_FAULT:
                return result
            self._mend(fault)

    def call_pausing(self, compiled: Callable[..., Any], *arguments: Any) -> Any:
        """`call`, which looks at the clock now and then."""
        self.n.pause = self.n.steps + STEPS_AT_ONCE
        try:
            return self.call(compiled, *arguments)
        finally:
            self.n.pause = 0

    def _mend(self, fault: int) -> None:
        """Grow the table that a fault names. Raises `ConstraintLimit` where a limit forbids that, or no table is to
        blame."""
        self._arena.array[FAULT_WORD] = Fault.NONE
        look()
        if fault == Fault.PAUSED:
            self.n.pause = self.n.steps + STEPS_AT_ONCE
            return
        if fault == Fault.SEARCH_EXHAUSTED:
            raise ConstraintLimit(
                "the search for a string that satisfies an intersection visits too many states",
                limit="search_states", value=self._limits.search_states,
            )  # fmt: skip
        if fault == Fault.TOO_MANY_PARTS:
            raise ConstraintLimit("stacks are compared too often for one byte", limit="byte_words", value=self._limits.byte_words)
        self._check_limit("states", self.num_states, self._limits.states)
        self._check_limit("nodes", self.n.nodes, self._limits.nodes)
        check_bytes(_COPIES * self.nbytes)
        emptied = self._arena.grow(fault)
        determinize.rehash(self.address, *(name in emptied for name in HASHES))

    def _check_limit(self, name: str, value: int, limit: int) -> None:
        if value >= with_more(limit, self.beyond):
            raise ConstraintLimit(f"the automaton has {value} {name}", limit=name, value=limit)


def with_more(limit: int, beyond: tuple[float, int]) -> int:
    """A limit, and what may be taken beyond it."""
    share, least = beyond
    return limit + int(max(share * limit, least))

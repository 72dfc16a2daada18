"""The tables of one constraint and the calls into compiled code, which may run out of room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import derive
from .errors import ConstraintLimit
from .source import Limits
from .tables import (
    FAULT_WORD,
    FIELDS,
    NO_FAULT,
    NODE_TABLES,
    NODES,
    POOL,
    SEARCH_EXHAUSTED,
    STATE_TABLES,
    STATES,
    Arena,
)

REBUILT = ("node_hash", "state_hash", "work", "items", "requests")  # hash tables follow from the others, the rest is scratch


class Machine:
    """Owns the arena and repeats a compiled call until it finishes without a fault. Not thread-safe."""

    def __init__(self, arena: Arena, limits: Limits) -> None:
        self._arena, self._limits = arena, limits

    @property
    def memory(self) -> NDArray[np.int32]:
        """The array that compiled code works on; replaced when a table grows."""
        return self._arena.array

    def table(self, name: str) -> NDArray[np.int32]:
        """A view of one table, valid until the next call."""
        return self._arena.table(name)

    @property
    def num_states(self) -> int:
        return int(self.table("n")[STATES]) - 1

    @property
    def is_worn(self) -> bool:
        """Whether half of a limit is used up, so that a fresh machine should take new work."""
        num_nodes = int(self.table("n")[NODES])
        return 2 * self.num_states > self._limits.states or 2 * num_nodes > self._limits.nodes

    @property
    def nbytes(self) -> int:
        """Memory in use; the array has room for more, in pages not touched yet."""
        counters = self.table("n")
        words = counters[NODES] * len(NODE_TABLES) + counters[STATES] * (256 + len(STATE_TABLES)) + counters[POOL]
        return 4 * int(words)

    def tables(self) -> dict[str, NDArray[np.int32]]:
        """Copies of what is in use of all tables, those in REBUILT left out: all that the machine has found."""
        counters = self.table("n")
        used = dict.fromkeys(NODE_TABLES, int(counters[NODES])) | dict.fromkeys(STATE_TABLES, int(counters[STATES]))
        used |= {"next": 256 * int(counters[STATES]), "pool": int(counters[POOL])}
        names = [name for name in FIELDS if name not in REBUILT]
        return {name: self.table(name)[: used.get(name)].copy() for name in names}

    def call(self, compiled: Callable[..., Any], *arguments: Any) -> Any:
        """compiled(memory, *arguments), growing what is full and repeating. Raises ConstraintLimit."""
        while True:
            result = compiled(self.memory, *arguments)
            fault = self.memory[FAULT_WORD]
            if fault == NO_FAULT:
                return result
            self._mend(int(fault))

    def _mend(self, fault: int) -> None:
        self.memory[FAULT_WORD] = NO_FAULT
        if fault == SEARCH_EXHAUSTED:
            raise ConstraintLimit(
                "the search for a string that satisfies an intersection visits too many states",
                limit="search_states", value=self._limits.search_states,
            )  # fmt: skip
        self._check_limit("states", self.num_states, self._limits.states)
        self._check_limit("nodes", int(self.table("n")[NODES]), self._limits.nodes)
        self._arena.grow(fault)
        derive.rehash(self.memory)

    @staticmethod
    def _check_limit(name: str, value: int, limit: int) -> None:
        if value >= limit:
            raise ConstraintLimit(f"the automaton has {value} {name}", limit=name, value=limit)

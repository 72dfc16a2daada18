"""The device's tables of constraint states, filled from constraints when a sequence gets there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..constraints.constraint import NOWHERE, as_token_ids
from ..kernels.automaton.interface import PROBES, UNKNOWN, Fact, Tables, hash_place, new_tables
from ..kernels.sampler.interface import MISSING
from .errors import InternalError
from .mask_pool import MaskPool
from .request import Constraint
from .uploads import Uploads

FEW = 128  # states with at most so many legal tokens have all their transitions written as exceptions
MAX_CLASSES = 256  # of tokens that lead to the same state


class Capacity(NamedTuple):
    """How much of everything the device holds. When something is full, what no sequence needs is forgotten and learned anew."""

    states: int = 1 << 16
    rows: int = 4096  # 16 KB each for 131,072 tokens
    partitions: int = 64  # 128 KB each for 131,072 tokens
    ladder: int = 1 << 16
    exceptions: int = 1 << 18


class Full(Exception):
    """Something has reached its capacity."""


class StateTables:
    """Numbers the states of all constraints and writes down what the device asks about them. Not thread-safe."""

    def __init__(self, capacity: Capacity, vocab_size: int, pool: MaskPool, uploads: Uploads) -> None:
        self.capacity, self.pool, self._uploads = capacity, pool, uploads
        self.tables: Tables = new_tables(
            states=capacity.states,
            partitions=capacity.partitions,
            vocab_size=vocab_size,
            ladder=capacity.ladder,
            exceptions=capacity.exceptions,
            device=uploads.device,
        )
        self._numbers: dict[tuple[Constraint, Any], int] = {}
        self._states: dict[int, tuple[Constraint, Any]] = {}
        self._free = list(range(capacity.states - 1, -1, -1))
        self._clear()

    def number(self, constraint: Constraint, state: Any) -> int:
        """The number of a state on the device. Nothing is known of it there until `learn`. Raises Full."""
        number = self._numbers.get((constraint, state))
        if number is None:
            if not self._free:
                raise Full("states")
            number = self._free.pop()
            self._numbers[constraint, state], self._states[number] = number, (constraint, state)
        return number

    def state(self, number: int) -> tuple[Constraint, Any]:
        return self._states[number]

    def learn(self, number: int) -> None:
        """Write down the mask row of a state, what suffices to finish, and what is after it. Raises Full."""
        if number in self._row_of:
            return
        constraint, state = self._states[number]
        mask = constraint.mask(state)
        num_allowed = int(np.bitwise_count(mask).sum())
        end_ids = constraint.vocabulary.eos_token_ids
        only_end = constraint.is_accepting(state) and num_allowed == len(end_ids)
        self._write("needed", number, constraint.min_tokens(state))
        self._write("facts", number, int(Fact.ONLY_END) if only_end else 0)
        if num_allowed <= FEW:
            self._learn_exceptions(number, constraint, state, list(as_token_ids(mask)))
        else:
            self._learn_classes(number, constraint, state)
        row = self.pool.keep(mask)
        if row is None:
            raise Full("rows")
        self._row_of[number] = row
        self._write("row", number, row)

    def learn_transition(self, number: int, token_id: int) -> None:
        """Write down what is after one token, and what is known there. Raises Full."""
        constraint, state = self._states[number]
        after = constraint.advance(state, token_id)
        if after is None:
            raise InternalError(f"token {token_id} was drawn, but the constraint does not accept it")
        is_end = token_id in constraint.vocabulary.eos_token_ids
        target = self._finished(constraint, after) if is_end else self.number(constraint, after)
        self._write_exception(number, token_id, target)
        if not is_end:
            self.learn(target)

    def forget_all_but(self, held: Collection[int]) -> None:
        """Make room: only these states keep their numbers, and of them, too, everything is to be learned anew."""
        for row in self._row_of.values():
            self.pool.drop(row)
        for number in [number for number in self._states if number not in held]:
            del self._numbers[self._states.pop(number)]
            self._free.append(number)
        self._uploads.send()  # older writes must not come after the clearing
        self._uploads.join()
        for array in self.tables:
            array.fill_(UNKNOWN)
        self.tables.row.fill_(MISSING)
        self.tables.facts.fill_(0)
        self._clear()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self._row_of: dict[int, int] = {}
        self._keys: dict[int, int] = {}  # place -> key of an exception
        self._partitions: dict[bytes, int] = {}
        self._ladder_used = 0
        self._ladders: dict[bytes, int] = {}

    def _write(self, name: str, number: int, value: int) -> None:
        self._uploads.write(getattr(self.tables, name), number, value)

    def _finished(self, constraint: Constraint, state: Any) -> int:
        """The state after end of text, of which only that is to be known."""
        number = self.number(constraint, state)
        self._write("facts", number, int(Fact.FINISHED))
        self._write("needed", number, 0)
        return number

    def _learn_exceptions(self, number: int, constraint: Constraint, state: Any, token_ids: list[int]) -> None:
        end_ids = constraint.vocabulary.eos_token_ids
        for token_id, after in zip(token_ids, _advance_all(constraint, state, token_ids), strict=True):
            if after is None:
                raise InternalError(f"token {token_id} is in the mask, but the constraint does not accept it")
            is_end = token_id in end_ids
            self._write_exception(
                number, token_id, self._finished(constraint, after) if is_end else self.number(constraint, after)
            )

    def _learn_classes(self, number: int, constraint: Constraint, state: Any) -> None:
        """Tokens that lead to the same state are one class. Where the constraint cannot list what is after all tokens, the classes
        are too many, or there is no room for them, transitions are learned one by one as they are drawn."""
        successors = getattr(constraint, "successors", None)
        after: NDArray[np.int64] | None = None if successors is None else successors(state)
        if after is None:
            return
        classes, distinct = partition(after)
        if len(distinct) > MAX_CLASSES:
            return
        end_ids = constraint.vocabulary.eos_token_ids if constraint.is_accepting(state) else ()
        finished = {int(after[token_id]) for token_id in end_ids}
        ladder = [self._target(constraint, target, target in finished) for target in distinct.tolist()]
        row, start = self._keep_partition(classes), self._keep_ladder(np.array(ladder, np.int32))
        if row is not None and start is not None:
            self._write("ladder_start", number, start)
            self._write("partition", number, row)

    def _target(self, constraint: Constraint, after: int, is_finished: bool) -> int:
        if after == NOWHERE:
            return UNKNOWN
        return self._finished(constraint, after) if is_finished else self.number(constraint, after)

    def _keep_partition(self, classes: NDArray[np.uint8]) -> int | None:
        content = classes.tobytes()
        row = self._partitions.get(content)
        if row is None:
            row = len(self._partitions)
            if row == self.capacity.partitions:
                return None
            self._partitions[content] = row
            self._uploads.write_row(self.tables.classes, row, classes)
        return row

    def _keep_ladder(self, ladder: NDArray[np.int32]) -> int | None:
        content = ladder.tobytes()
        start = self._ladders.get(content)
        if start is None:
            start = self._ladder_used
            if start + len(ladder) > self.capacity.ladder:
                return None
            self._ladders[content], self._ladder_used = start, start + len(ladder)
            self._uploads.write_row(self.tables.ladder, start, ladder)
        return start

    def _write_exception(self, number: int, token_id: int, target: int) -> None:
        key = number << 32 | token_id
        places = self.capacity.exceptions
        if 2 * len(self._keys) >= places:
            raise Full("exceptions")
        first = hash_place(key, places)
        for place in ((first + probe) % places for probe in range(PROBES)):
            if self._keys.get(place, key) == key:
                self._keys[place] = key
                self._uploads.write(self.tables.targets, place, target)
                self._uploads.write(self.tables.keys, place, key)
                return
        raise Full("exceptions")


def _advance_all(constraint: Constraint, state: Any, token_ids: list[int]) -> list[Any]:
    """The states after each of these tokens, in one call where the constraint has one."""
    batch = getattr(constraint, "advance_batch", None)
    if batch is None:
        return [constraint.advance(state, token_id) for token_id in token_ids]
    return list(batch([state] * len(token_ids), token_ids))


def partition(after: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(class of each token, state of each class), classes numbered in the order of their first tokens, so that states whose
    tokens fall apart alike have equal classes. Classes beyond 255 wrap around."""
    distinct, first, inverse = np.unique(after, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse].astype(np.uint8), distinct[order]

"""The device's tables of constraint states, filled from constraints when a sequence gets there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ...constraints.runtime.constraint import NOWHERE, as_token_ids
from ...constraints.vocabulary.vocabulary import Vocabulary
from ...kernels.automaton.backend import Operations
from ...kernels.automaton.interface import NEAR, PLENTY, PROBES, UNKNOWN, Fact, Tables, hash_place, new_tables
from ...kernels.sampler.interface import MISSING
from ..device.uploads import Uploads
from ..errors import InternalError
from ..requests.request import Constraint
from .finite_automata import FiniteRows
from .mask_pool import MaskPool

FEW = 128  # states with at most so many legal tokens have all their transitions written as exceptions
MAX_CLASSES = 256  # of tokens that lead to the same state
_MOST = 1 << 28  # tokens: more are never left, and sums of a few of them fit into 32 bits


class Capacity(NamedTuple):
    """The sizes of the device's tables. When one is full, what no sequence needs is forgotten and learned anew."""

    states: int = 1 << 16
    rows: int = 4096  # 16 KB each for 131,072 tokens
    partitions: int = 64  # 128 KB each for 131,072 tokens
    ladder: int = 1 << 16
    exceptions: int = 1 << 18
    finite: int = 0  # states of a constraint whose masks are computed on the device, all at once; see finite_automata.py


class Entry(NamedTuple):
    """Where a slot is, by number, and its registers: `Slots.room` and `Slots.more`."""

    state: Any
    room: int = PLENTY
    more: int = 0


class Standing(NamedTuple):
    """What `Constraint.distant` says of a state for which another one stands."""

    state: Any
    room: int
    more: int
    needed: int
    reach: int

    def has_room(self, reach: int, needed: int, left: int) -> bool:
        """Whether its counts and `left` tokens leave the room that is asked."""
        return self.room >= reach and left > needed + self.more + NEAR


class Full(Exception):
    """One of the tables has no room for what is to be written."""


class StateTables:
    """Numbers the states of all constraints and writes down what the device asks about them. Not thread-safe."""

    def __init__(
        self, capacity: Capacity, vocab_size: int, pool: MaskPool, uploads: Uploads, operations: Operations
    ) -> None:
        self.capacity, self.pool, self._uploads = capacity, pool, uploads
        self._finite = FiniteRows(capacity.finite, operations, pool, uploads)
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
        self._lengths = np.zeros(vocab_size, np.int32)  # bytes of tokens, the most in any vocabulary that was seen
        self._measured: set[Vocabulary] = set()
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

    @property
    def num_states(self) -> int:
        return len(self._states)

    def enter(self, constraint: Constraint, state: Any, left: int) -> Entry:
        """Where a sequence in this state is to be placed that may take `left` tokens more: in the state that stands for it, if its
        counts and tokens have room there. All that is asked there is known then. Raises Full."""
        stands = self._standing(constraint, state)
        if stands is not None and stands.has_room(stands.reach, stands.needed, left):
            number = self.number(constraint, stands.state)
            self.learn(number)
            if stands.has_room(*self._asks[number], left):
                return Entry(number, stands.room, stands.more)
        number = self.number(constraint, state)
        self.learn(number)
        return Entry(number)

    def learn(self, number: int) -> None:
        """Write down the mask row of a state, what suffices to finish, and what is after it. Raises Full."""
        if number in self._row_of:
            return
        constraint, state = self._states[number]
        row = self._finite.row(constraint, state)
        mask = constraint.mask(state) if row is None else _legal(constraint, state)
        num_allowed = int(np.bitwise_count(mask).sum())
        end_ids = constraint.vocabulary.eos_token_ids
        only_end = constraint.is_accepting(state) and num_allowed == len(end_ids)
        reach, needed = self._asks[number] = _asked(constraint, state)  # behind the mask, which may change it
        self._write("reach", number, reach)
        self._write("needed", number, min(needed, _MOST))
        self._write("facts", number, int(Fact.ONLY_END) if only_end else 0)
        if num_allowed <= FEW:
            self._learn_exceptions(number, constraint, state, list(as_token_ids(mask)))
        else:
            self._learn_classes(number, constraint, state)
        if row is None:
            row = self.pool.keep(mask)
        else:
            self.pool.use(row)
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
        target = self._finished(constraint, after) if is_end else self._named(constraint, after)
        self._write_exception(number, token_id, target)
        if not is_end:
            self.learn(self._stands.get(target, target))

    def forget_all_but(self, held: Collection[int]) -> None:
        """Make room: only these states keep their numbers, and of them, too, everything is to be learned anew."""
        for row in self._row_of.values():
            self.pool.drop(row)
        self._finite.forget()
        for number in [number for number in self._states if number not in held]:
            del self._numbers[self._states.pop(number)]
            self._free.append(number)
        self._uploads.send()  # older writes must not come after the clearing
        self._uploads.join()
        for array in self.tables:
            array.fill_(UNKNOWN)
        tables = self.tables
        others = (tables.row, MISSING), (tables.facts, 0), (tables.room, PLENTY), (tables.more, 0), (tables.reach, 0)
        for array, value in others:
            array.fill_(value)
        tables.length.copy_(torch.from_numpy(self._lengths))
        self._clear()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self._row_of: dict[int, int] = {}
        self._asks: dict[int, tuple[int, int]] = {}  # of states that are known: room that a slot must have, tokens that suffice
        self._stands: dict[int, int] = {}  # of states in which no slot ever is: which one it is in instead
        self._keys: dict[int, int] = {}  # place -> key of an exception
        self._partitions: dict[bytes, int] = {}
        self._ladder_used = 0
        self._ladders: dict[bytes, int] = {}

    def _write(self, name: str, number: int, value: int) -> None:
        self._uploads.write(getattr(self.tables, name), number, value)

    def _standing(self, constraint: Constraint, state: Any) -> Standing | None:
        """The state that stands for a state, with its counts; None where a state stands for itself."""
        distant = getattr(constraint, "distant", None)
        found = None if distant is None else distant(state)
        if found is None or found.state == state:
            return None
        self._measure(constraint.vocabulary)
        return Standing(*found._replace(more=min(found.more, _MOST)))

    def _named(self, constraint: Constraint, state: Any) -> int:
        """The number by which transitions call a state: of one that stands for it, or of a name for that one and the counts."""
        stands = self._standing(constraint, state)
        if stands is None:
            return self.number(constraint, state)
        number = self.number(constraint, stands.state)
        if stands.room == PLENTY:  # its counts were given up before, so nothing is to be said of them
            return number
        name = self.number(constraint, Entry(number, stands.room, stands.more))
        self._stands[name] = number
        self._write("stands", name, number)
        self._write("room", name, stands.room)
        self._write("more", name, stands.more)
        return name

    def _measure(self, vocabulary: Vocabulary) -> None:
        """Write down how many bytes each token of the vocabulary has."""
        if vocabulary in self._measured:
            return
        self._measured.add(vocabulary)
        lengths = np.array([len(spelled or b"") for spelled in vocabulary.spellings], np.int32)
        self._lengths[: len(lengths)] = np.maximum(self._lengths[: len(lengths)], lengths)
        self._uploads.write_row(self.tables.length, 0, self._lengths)

    def _finished(self, constraint: Constraint, state: Any) -> int:
        """The number of the state after end of text, of which the device has to know nothing else."""
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
                number, token_id, self._finished(constraint, after) if is_end else self._named(constraint, after)
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
        targets = [self._target(constraint, target, target in finished) for target in distinct.tolist()]
        ladder = list(dict.fromkeys(targets))  # several states have one that stands for them
        classes = np.array([ladder.index(target) for target in targets], np.uint8)[classes]
        row, start = self._keep_partition(classes), self._keep_ladder(np.array(ladder, np.int32))
        if row is not None and start is not None:
            self._write("ladder_start", number, start)
            self._write("partition", number, row)

    def _target(self, constraint: Constraint, after: int, is_finished: bool) -> int:
        if after == NOWHERE:
            return UNKNOWN
        return self._finished(constraint, after) if is_finished else self._named(constraint, after)

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


def _asked(constraint: Constraint, state: Any) -> tuple[int, int]:
    """(bytes of room that whoever is in a state must have, tokens that suffice to finish from there)"""
    distant = getattr(constraint, "distant", None)
    found = None if distant is None else distant(state)
    return (found.reach, found.needed) if found is not None and found.state == state else (0, constraint.min_tokens(state))


def _legal(constraint: Any, state: Any) -> NDArray[np.uint32]:
    """The mask of a state, from what is after each token."""
    is_legal = constraint.successors(state) != NOWHERE
    return np.packbits(np.pad(is_legal, (0, -len(is_legal) % 32)), bitorder="little").view(np.uint32)


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

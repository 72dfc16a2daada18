"""A compiled constraint: the public contract over a token automaton.

A state is an int: -1 finished (EOS was read), else automaton state | register << 32. It is a value: hashable, comparable within its
constraint, valid as long as the constraint lives.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from typing import Any, NewType, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..automaton.tables import DEAD
from ..base.errors import ConstraintLimit
from ..base.ids import RegisterId, StateId
from ..base.kinds import INFINITE
from ..grammar.source import Limits, Source, fingerprint_of
from ..masks.mask_rows import MaskRows
from ..saved.constraint_file import SavedAutomaton, saved_automaton, write_constraint
from ..token_automaton.counter_abstraction import PLENTY
from ..token_automaton.masking import NO_ROOM
from ..token_automaton.min_tokens import Distances
from ..token_automaton.token_automaton import EVERY_BYTE, Distant, TokenAutomaton
from ..uniqueness.seen_values import NO_REGISTER
from ..vocabulary.vocabulary import Vocabulary
from .explanation import NUM_NEAREST, Explanation, byte_set, explain
from .near_limits import LED_OUT, NearLimits

T = TypeVar("T")
State = NewType("State", int)
FINISHED = State(-1)
NOWHERE = State(-2)  # of `successors` and `after_bytes`: the token or byte is not allowed
_UNKNOWN = State(-3)  # of the moves that are kept: the answer is not there yet
_OF_AUTOMATON = (1 << 32) - 1  # bits of a state that are the automaton's
_MAX_KEPT = 1 << 15  # answers of one kind; about 200 bytes each
_MISSES_CHECKED = 16  # masks that are made before the room that they take is looked at again


class Constraint:
    """What may come next, token by token. Made by `Compiler.compile`. All methods are thread-safe.

    >>> state = constraint.start()
    >>> constraint.mask(state)                  # uint32 [ceil(V / 32)]: bit t % 32 of word t // 32 = token t allowed
    >>> state = constraint.advance(state, 17)   # None when token 17 is not allowed
    """

    def __init__(self, automaton: TokenAutomaton, source: Source | str) -> None:
        """source: what was compiled, or the fingerprint of it."""
        self._automaton, self._source = automaton, source
        self._distances = Distances(automaton)
        self._near_limits = NearLimits(automaton, self._distances)
        self._surely = self._near_limits.surely
        self._lock = threading.RLock()
        self._remembers = automaton.remembers
        self._num_tokens, self._eos_ids = automaton.shared_vocabulary.vocabulary.size, automaton.shared_vocabulary.eos_ids
        self._spells_every_byte = automaton.shared_vocabulary.spells_every_byte
        # What was asked before, read without the lock: the mask of a state, the state after a token.
        self._masks: dict[State, NDArray[np.uint32]] = {}
        self._moves: dict[tuple[State, int], State | None] = {}
        self._row_numbers: dict[State, int] = {}
        self._num_misses = 0
        self._steps: dict[tuple[State, int], tuple[State | None, frozenset[Hashable]]] = {}  # for parsers
        self._places: dict[State, tuple[str, ...]] = {}  # for explanations
        self._expected: dict[State, str] = {}
        self.residue: tuple[str, ...] = tuple(automaton.grammar.residue)
        self._notes: tuple[str, ...] = tuple(automaton.grammar.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user: what is ignored or narrower than written, and whether a text was brought to its end at a limit."""
        return (*self._notes, LED_OUT) if self._near_limits.has_led_out else self._notes

    def __deepcopy__(self, memo: dict[int, Any]) -> Constraint:
        """The constraint itself: it never changes for those who hold it, and states are values of this very one."""
        return self

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that masks are about."""
        return self._automaton.shared_vocabulary.vocabulary

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of vocabulary and source: the same in every process."""
        return self._source if isinstance(self._source, str) else fingerprint_of(self._source, self.vocabulary)

    @property
    def source(self) -> Source | None:
        """What was compiled; None for a constraint that was read from a file."""
        return None if isinstance(self._source, str) else self._source

    def save(self, path: str | PathLike[str], *, found: bool = True) -> None:
        """Write the constraint to a file, `path`, that `Compiler.load` reads: its grammar and, with `found`, all states,
        transitions and mask rows that exist by now. The file is replaced at once or not at all.

        Raises OSError.
        """
        write_constraint(path, self.saved_automata(found), self.narrowing, self.vocabulary, self.limits)

    def saved_automata(self, found: bool) -> list[SavedAutomaton]:
        """The automata that a file holds, with what was `found` or without: the constraint's own; for a constraint of
        several parts that of the whole, then theirs."""
        with self.exclusively() as (automaton, distances):
            return [saved_automaton(automaton, distances, self.fingerprint, found)]

    @property
    def narrowing(self) -> Any:
        """How the parts narrow the whole, as JSON holds it; None where there are no parts. `loading.py` reads it."""
        return None

    @contextmanager
    def exclusively(self) -> Iterator[tuple[TokenAutomaton, Distances]]:
        """What the constraint is made of, for a block that reads or writes it as a whole while nobody else does."""
        with self._lock:
            yield self._automaton, self._distances

    @property
    def limits(self) -> Limits:
        """How much it was allowed to be."""
        return self._automaton.limits

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use: states, transitions and mask rows."""
        return self._automaton.nbytes

    @property
    def is_half_full(self) -> bool:
        """Whether what was built has reached half of a limit. `Compiler.compile` then makes a fresh constraint for new requests;
        this one stays valid for those that hold it."""
        return self._automaton.is_half_full

    @property
    def statistics(self) -> dict[str, int]:
        """Sizes of what has been built so far: states, distinct mask rows, bytes."""
        return {"states": self._automaton.num_states, "rows": self._automaton.num_rows, "bytes": self.nbytes}

    @property
    def num_mask_misses(self) -> int:
        """How often a mask was asked for that was not known yet."""
        return self._num_misses

    @property
    def transitions_a_mask(self) -> float:
        """How many transitions each mask that was met first took so far, with the tokens behind it, on the average."""
        return self._automaton.num_transitions / max(self._num_misses, 1)

    def start(self) -> State:
        """The state before any text."""
        with self._lock:
            return self._pack(self._automaton.start, self._automaton.empty_memory if self._remembers else 0)

    def is_accepting(self, state: State) -> bool:
        """Whether the text so far is complete."""
        with self._lock:  # tables may be growing
            return state == FINISHED or self._automaton.is_accepting(_parts(state)[0])

    def mask(self, state: State, budget: int | None = None) -> NDArray[np.uint32]:
        """Allowed tokens, uint32 [ceil(V / 32)], read-only, padding bits 0; EOS bits exactly when accepting.

        Where `limits.states` or `limits.nodes` is nearly used up, of what is not known yet one way to the end stays allowed
        (near_limits.py), and `notes` say so: a text that was begun is finished. Raises `ConstraintLimit` where no way is found.

        budget: tokens left. Then exactly those allowed tokens remain whose successor has min_tokens <= budget - 1; never none
        when min_tokens(state) <= budget.
        """
        if budget is None and (known := self._masks.get(state)) is not None:
            return known
        if state == FINISHED:
            return self._automaton.shared_vocabulary.eos_row
        with self._lock:
            if budget is not None and (exact := self._near_limits.exactly_within(*_parts(state), budget)) is not None:
                return _read_only(exact)
            number = self._row_numbers.get(state)
            if number is None:
                if self._num_misses % _MISSES_CHECKED == _MISSES_CHECKED - 1:
                    self._make_room()
                number = self._new_row_number(state)
            mask = self._masks[state] = self._automaton.rows.get(number)
            return mask if budget is None else _read_only(self._near_limits.within(*_parts(state), mask, budget))

    def fill_masks(self, states: Sequence[State], out: NDArray[np.uint32]) -> None:
        """Write mask(states[k]) to out[k]. out: uint32 [len(states), ceil(V / 32)], writable; anything else raises
        ValueError."""
        if out.shape != (len(states), self._automaton.shared_vocabulary.words) or out.dtype != np.uint32:
            expected = (len(states), self._automaton.shared_vocabulary.words)
            raise ValueError(f"fill_masks needs a uint32 array of shape {expected}, got {out.dtype} {out.shape}")
        numbers, rows = self.mask_rows(states)
        rows.take(numbers, out)

    def mask_rows(self, states: Sequence[State]) -> tuple[NDArray[np.int32], MaskRows]:
        """(numbers, rows): the masks of `states` without copying them. mask(states[k]) is rows.get(numbers[k]); equal
        masks have equal numbers. numbers: int32 [len(states)].

        A number stays what it is until more than `limits.row_bytes` of rows are there; `rows` is another object from
        then on.
        """
        with self._lock:
            numbers = list(map(self._row_numbers.get, states))
            if None in numbers:
                self._make_room()
                numbers = [self._row_number(state) for state in states]
            return np.array(numbers, np.int32), self._automaton.rows

    def knows_mask(self, state: State) -> bool:
        """Whether the mask of a state is there, so that `mask` only looks it up."""
        return state in self._row_numbers or state == FINISHED

    def begin_masks(self, states: Iterable[State]) -> list[tuple[State, tuple[int, ...]]] | None:
        """(state, what compiled code is to be called with) for those of some states whose masks are not known, for mask_batches.py.
        Nobody else has the constraint from then on, until `end_masks`.

        None where masks are not made so: by a constraint of several parts, for a vocabulary in which some byte is no token, where a
        limit is nearly used up, and while another thread has the constraint.
        """
        if type(self) is not Constraint or not self._spells_every_byte or not self._lock.acquire(blocking=False):
            return None
        try:
            if self._automaton.is_nearly_full:
                self._lock.release()
                return None
            self._make_room()
            return [(state, self._automaton.asked(*_parts(state))) for state in states if not self.knows_mask(state)]
        except BaseException:
            self._lock.release()
            raise

    def end_masks(self, answers: Iterable[tuple[State, int, int]]) -> None:
        """Keep what was made since `begin_masks`. What could not be made is left to `mask`, which also raises what is to be
        raised. answers: (state, number of its row, class that wants tables)."""
        try:
            if self._automaton.end_asking():
                for state, number, wanted in answers:
                    self._automaton.give_tables(wanted)
                    if number != NO_ROOM:
                        self._count_miss()
                        self._row_numbers[state] = number
        finally:
            self._lock.release()

    def advance(self, state: State, token_id: int) -> State | None:
        """The state after the token `token_id`; None when it is not allowed. Raises ValueError for an id outside the vocabulary."""
        after = self._moves.get((state, token_id), _UNKNOWN)
        if after != _UNKNOWN:
            return after
        self._check_token(token_id)
        with self._lock:
            try:
                after = self._advance(state, token_id)
            except ConstraintLimit:
                after = self._surely(self._advance, state, token_id)
            self._moves[state, token_id] = after
            if len(self._moves) > _MAX_KEPT:
                self._moves.clear()
        return after

    def _advance(self, state: State, token_id: int) -> State | None:
        automaton = self._automaton
        if token_id in self._eos_ids:
            return FINISHED if self.is_accepting(state) else None
        if state == FINISHED:
            return None
        if self._remembers:
            after, held = automaton.advance_remembering(*_parts(state), token_id)
        else:
            after, held = automaton.advance_one(state, token_id), NO_REGISTER  # type: ignore[arg-type]  # as `_parts`
        if after == DEAD or (not self._spells_every_byte and automaton.cost(after) >= INFINITE):
            return None
        return after | held << 32  # type: ignore[return-value]  # as `_pack`

    def advance_batch(self, states: Sequence[State], token_ids: Sequence[int]) -> list[State | None]:
        """advance(states[k], token_ids[k]) for every k."""
        if len(states) != len(token_ids):
            raise ValueError(f"advance_batch needs as many tokens as states, got {len(token_ids)} and {len(states)}")
        moves = self._moves
        after = [moves.get(move, _UNKNOWN) for move in zip(states, token_ids, strict=True)]
        if _UNKNOWN in after:
            with self._lock:
                after = self._surely(self._advance_all, states, token_ids)
                if len(self._moves) > _MAX_KEPT:
                    self._moves.clear()
                self._moves.update(zip(zip(states, token_ids, strict=True), after, strict=True))
        return after

    def _advance_all(self, states: Sequence[State], token_ids: Sequence[int]) -> list[State | None]:
        tokens = np.asarray(token_ids, np.int64)
        for token in (int(tokens.min(initial=0)), int(tokens.max(initial=0))):
            self._check_token(token)
        plain = not self._remembers and self._spells_every_byte
        if not plain or FINISHED in states or not self._eos_ids.isdisjoint(token_ids):
            return [self._advance(state, int(token)) for state, token in zip(states, token_ids, strict=True)]
        after = self._automaton.advance(np.array(states, np.int32), tokens.astype(np.int32))
        return [State(s) if s != DEAD else None for s in after.tolist()]

    def successors(self, state: State) -> NDArray[np.int64] | None:
        """The state after each token, NOWHERE where it is not allowed, for users who keep tables of their own. int64
        [V]

        None where keys or items are remembered: what is remembered may differ after every token.
        """
        if self._remembers:
            return None
        after = np.full(self.vocabulary.size, NOWHERE, np.int64)
        if state != FINISHED:
            shared_vocabulary = self._automaton.shared_vocabulary
            with self._lock:
                ends = self._near_limits.ends(StateId(state))
                survives = ends != DEAD
                if not shared_vocabulary.spells_every_byte:
                    survives &= self._automaton.costs(ends) < INFINITE
            after[shared_vocabulary.trie.order[survives]] = ends[survives]
        if self.is_accepting(state):
            after[list(self.vocabulary.eos_token_ids)] = FINISHED
        return after

    def distant(self, state: State) -> Distant:
        """The state that stands for all states which differ from `state` only in counts that no token brings to their
        ends (counter_abstraction.py).

        Its mask is theirs. A token leads from it to a state that stands for those to which the token leads from them,
        as long as the `room`, a number of bytes, is not used up. A state for which no other one stands is returned
        itself.
        """
        if self._remembers or state == FINISHED or self._automaton.counts_far:
            return Distant(StateId(state), PLENTY, 0, self.min_tokens(state), 0)
        with self._lock:
            found = self._surely(self._automaton.distant, _parts(state)[0])
            return found if found.reach else found._replace(needed=self._min_tokens(_parts(state)[0], NO_REGISTER))

    def after_bytes(self, state: State) -> NDArray[np.int64] | None:
        """The state after each byte, NOWHERE where it does not survive. int64 [256]; None where keys or items are
        remembered."""
        if self._remembers:
            return None
        after = np.full(256, NOWHERE, np.int64)
        if state != FINISHED:
            with self._lock:
                ends, _ = self._surely(self._automaton.end_states, StateId(state), EVERY_BYTE)
            after[ends != DEAD] = ends[ends != DEAD]
        return after

    def advance_bytes(self, state: State, data: bytes) -> State | None:
        """The state after `data`, which need not end where a token ends; None when it does not survive."""
        if not data:
            return state
        if state == FINISHED:
            return None
        with self._lock:
            after, held, _ = self._run(state, data)
        return None if after == DEAD else self._pack(after, held)

    def accepts(self, data: bytes | str) -> bool:
        """Whether a text, `data`, as a whole satisfies the constraint."""
        after = self.advance_bytes(self.start(), data.encode() if isinstance(data, str) else data)
        return after is not None and self.is_accepting(after)

    def forced(self, state: State) -> bytes:
        """The longest byte prefix common to all completions; b"" when accepting."""
        if state == FINISHED:
            return b""
        with self._lock:
            return self._surely(self._automaton.forced, _parts(state)[0])

    def min_tokens(self, state: State) -> int:
        """A number of tokens that suffices to complete the text, EOS not counted; 0 exactly when accepting.

        Some allowed token always lowers it by at least one. Exact for regular constraints within `limits.search_nodes`, elsewhere
        an upper bound.
        """
        if state == FINISHED:
            return 0
        with self._lock:
            return self._min_tokens(*_parts(state))

    def explain(self, state: State, token_id: int, *, num_nearest: int = NUM_NEAREST) -> Explanation:
        """Why the token `token_id` is allowed or masked: the part of the grammar, the byte where it dies, the nearest legal tokens.

        num_nearest: how many of these; finding them compares all legal tokens, so 0 is much faster in a large vocabulary.
        """
        self._check_token(token_id)
        with self._lock:
            return explain(self, state, token_id, num_nearest)

    def paths(self, state: State) -> tuple[str, ...]:
        """The parts of the grammar (schema paths, rule names) that begin next: here, or behind what is being read. A state does
        not know what has come, so where a text is in its schema `places_of` tells (front_end.py)."""
        if state == FINISHED:
            return ()
        places = self._places.get(state)
        if places is None:
            places = self._automaton.paths(_parts(state)[0])
            _keep(self._places, state, places)
        return places

    def survives(self, state: State, data: bytes) -> tuple[int, str]:
        """(n, expected): how many bytes of `data` survive from `state`, and what could stand where the next one dies."""
        if state == FINISHED:
            return 0, ""
        read = self._run(state, data)[2]
        at = self.advance_bytes(state, data[:read])
        if at is None or at == FINISHED:
            return read, ""
        expected = self._expected.get(at)
        if expected is None:
            expected = byte_set(self._automaton.live_bytes(_parts(at)[0]))
            _keep(self._expected, at, expected)
        return read, expected

    def step(self, state: State, byte: int) -> tuple[State | None, frozenset[Hashable]]:
        """(state after a byte, segments of the grammar in which the byte may have been read)."""
        known = self._steps.get((state, byte))
        if known is None:
            with self._lock:
                after = self.advance_bytes(state, bytes([byte]))
                segments = frozenset() if after is None else self._automaton.segments(_parts(state)[0], byte)
                if len(self._steps) >= _MAX_KEPT:
                    self._steps.clear()
                known = self._steps[state, byte] = after, segments
        return known

    # -- inside -----------------------------------------------------------------------------------------------------

    def _check_token(self, token_id: int) -> None:
        if not 0 <= token_id < self._num_tokens:
            raise ValueError(f"token id {token_id} is outside the vocabulary of {self._num_tokens}")

    @staticmethod
    def _pack(state: int, held: int) -> State:
        return state | held << 32  # type: ignore[return-value]  # calling State takes as long as all of this

    def _run(self, state: State, data: bytes) -> tuple[StateId, RegisterId, int]:
        """(automaton state, register, bytes that survived)."""
        if self._remembers:
            return self._near_limits.read(self._automaton.run_remembering, *_parts(state), data)
        after, read = self._near_limits.read(self._automaton.run, _parts(state)[0], data)
        return after, NO_REGISTER, read

    def _min_tokens(self, state: StateId, held: RegisterId) -> int:
        return self._surely(self._distances.of, state, held) if self._remembers else self._surely(self._distances.of, state)

    def _make_room(self) -> None:
        """Forget rows and answers, if there are too many of them, before new rows are made."""
        if self._automaton.drop_rows() or len(self._row_numbers) >= _MAX_KEPT:
            self._row_numbers.clear()
            self._masks.clear()

    def _count_miss(self) -> None:
        self._num_misses += 1
        self._automaton.shared_vocabulary.num_mask_misses += 1

    def _row_number(self, state: State) -> int:
        number = self._row_numbers.get(state)
        return self._new_row_number(state) if number is None else number

    def _new_row_number(self, state: State) -> int:
        """The number of a row that was not asked for before."""
        self._count_miss()
        if state == FINISHED:
            number = self._automaton.rows.keep(self._automaton.shared_vocabulary.eos_row)
        else:
            number = self._near_limits.row_number(*_parts(state))
        self._row_numbers[state] = number
        return number


def _parts(state: State) -> tuple[StateId, RegisterId]:
    """The automaton's state and its register."""
    return state & _OF_AUTOMATON, state >> 32  # type: ignore[return-value]  # to name the types takes longer than all of this


def _keep(kept: dict[State, T], state: State, value: T) -> None:
    if len(kept) >= _MAX_KEPT:
        kept.clear()
    kept[state] = value


def _read_only(mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
    view = mask.view()
    view.setflags(write=False)
    return view


def as_token_ids(mask: NDArray[np.uint32]) -> list[int]:
    """The token ids whose bits are set."""
    ids: list[int] = token_ids(mask).tolist()
    return ids


def token_ids(mask: NDArray[np.uint32]) -> NDArray[np.intp]:
    """The same as an array: as objects of Python those of a wide mask take longer than the mask."""
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))

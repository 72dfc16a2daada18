"""A constraint some of whose parts take at most so many tokens each.

The text is followed through the stages of the grammar (`stages.py`), in all ways that are left, each with what it may still spend;
beside them stands the state of the whole without budgets, which knows at once what no way allows. Most tokens stay in a stage,
and the stage's own mask says which of them leave enough tokens to end it. Those that cross into another stage are followed byte
by byte, in byte order, so that what has come to an end is not followed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstraintError
from ..base.kinds import INFINITE
from ..grammar.expression import Grammar
from ..grammar.source import Source
from ..grammar.stages import HasStages, StageOf, Stages
from ..grammar.tokens import tell_vocabulary
from .accompanied import AccompaniedConstraint, whole_of
from .constraint import Constraint, State

_MAX_KEPT = 1 << 12  # masks; and transitions, 64 times as many
_MAX_CROSSINGS = 256  # places whose tokens into other stages are kept
_GIVEN = -1  # left, of a way that may spend what the state says, which is not looked at


class Way(NamedTuple):
    """A place in a stage. `left`: tokens that may be spent in it, INFINITE without a budget."""

    stage: int
    state: State
    left: int


class Following(NamedTuple):
    """A way inside a token. `counted`: whether the token has been counted in this stage already."""

    way: Way
    counted: bool


class Ways(NamedTuple):
    """All ways to read the text so far that have not spent more than they may."""

    whole: State
    ways: frozenset[Way]


@dataclass
class Crossings:
    """What is known of tokens that lead into other stages. judged: a bit for each token that was looked at; distances:
    tokens that suffice behind each of those that are possible."""

    judged: NDArray[np.uint32]
    distances: dict[int, int] = field(default_factory=dict)


class StagedConstraint(AccompaniedConstraint):
    """The constraint `whole`, cut into `stages`; `parts` are the constraints of the stages.

    A token is spent in a stage when one of its bytes is. While a stage with a budget goes on, as many tokens are left
    as end it by themselves; so it always ends, within what it was given.
    """

    def __init__(self, whole: Constraint, parts: Sequence[Constraint], stages: Stages) -> None:
        super().__init__(whole, parts)
        self.stages = stages
        self._least = [part.min_tokens(part.start()) for part in parts]
        for stage, least in zip(stages.all, self._least, strict=True):
            if stage.budget is not None and least > stage.budget.max_tokens:
                reason = f"what it stands at takes {least} tokens at least"
                raise ConstraintError(reason, keyword="max_tokens", instead=f"{least} or more")
        self._is_whole = [stage.budget is not None and stage.budget.is_whole for stage in stages.all]
        self._behind = self._costs_behind()
        self._masks_of: dict[tuple[Ways, int | None], NDArray[np.uint32]] = {}
        self._byte_moves: dict[tuple[int, State, int], State | None] = {}
        self._crossings: dict[frozenset[Way], Crossings] = {}
        self._steps_of_ways: dict[tuple[frozenset[Following], int], frozenset[Following]] = {}
        self._distances_behind: dict[frozenset[Following], int] = {}

    @property
    def narrowing(self) -> Any:
        """The stages."""
        return self.stages.as_lists()

    def start(self) -> Any:
        first = self._entered(self.stages.first)
        return Ways(self.unbudgeted.start(), self._settled(first))

    def is_accepting(self, state: Any) -> bool:
        return self.min_tokens(state) == 0

    def min_tokens(self, state: Any) -> int:
        if not isinstance(state, Ways):
            return self.unbudgeted.min_tokens(state)
        return self._distance(state.ways)

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]:
        if not isinstance(state, Ways):
            return self.unbudgeted.mask(state, budget)
        known = self._masks_of.get((state, budget))
        if known is None:
            if len(self._masks_of) >= _MAX_KEPT:
                self._masks_of.clear()
            known = self._masks_of[state, budget] = self._mask(state, budget)
            known.setflags(write=False)
        return known

    def advance(self, state: Any, token_id: int) -> Any:
        whole = self.unbudgeted.advance(whole_of(state), token_id)
        if not isinstance(state, Ways):
            return whole
        if token_id in self._ends:
            return whole if self.is_accepting(state) else None
        spelled = self.vocabulary.spellings[token_id]
        return None if whole is None or spelled is None else self._advanced(state, whole, spelled, counts=True)

    def advance_bytes(self, state: Any, data: bytes) -> Any:
        """The state after some text. No tokens are counted for it."""
        whole = self.unbudgeted.advance_bytes(whole_of(state), data)
        if whole is None or not isinstance(state, Ways):
            return whole
        return self._advanced(state, whole, data, counts=False)

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _ends(self) -> Sequence[int]:
        return self.vocabulary.eos_token_ids

    def _mask(self, state: Ways, budget: int | None) -> NDArray[np.uint32]:
        allowed, ends = self.unbudgeted.mask(state.whole), _bits(self._ends, self.vocabulary.size)
        sure = np.zeros_like(allowed)
        for way in state.ways:
            tokens = way.left if budget is None else min(way.left, budget - self._behind[way.stage])
            if tokens > 0:
                part = self.parts[way.stage]
                sure |= part.mask(way.state) if tokens >= INFINITE else part.mask(way.state, tokens)
        sure &= ~ends
        allowed = sure | self._crossing(state, allowed & ~sure & ~ends, budget)
        return allowed | ends if self.is_accepting(state) else allowed

    def _crossing(self, state: Ways, doubtful: NDArray[np.uint32], budget: int | None) -> NDArray[np.uint32]:
        """The mask of those of the `doubtful` tokens that some way allows which passes from stage to stage.

        How much a way may still spend in its stage does not matter for such tokens, as long as it is something: they
        leave that stage.
        """
        places = frozenset(Way(stage, at, left if left >= INFINITE else _GIVEN) for stage, at, left in state.ways if left > 0)
        known = self._crossings.get(places)
        if known is None:
            if len(self._crossings) >= _MAX_CROSSINGS:
                self._crossings.clear()
            known = self._crossings[places] = Crossings(np.zeros_like(doubtful))
        unknown = np.flatnonzero(np.unpackbits((doubtful & ~known.judged).view(np.uint8), bitorder="little"))
        if unknown.size:
            known.distances.update(self._crossed(places, unknown))
            known.judged |= doubtful
        most = INFINITE if budget is None else budget - 1
        return doubtful & _bits([token for token, distance in known.distances.items() if distance <= most], self.vocabulary.size)

    def _crossed(self, places: frozenset[Way], tokens: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Some tokens that lead from stage to stage, each with how many tokens suffice behind it. Others are left out."""
        spellings, order = self.vocabulary.spellings, self.vocabulary.spelled_ids
        at = [frozenset(Following(way, False) for way in places)]  # after each byte of `read`
        read, dead = b"", None
        for token in order[np.isin(order, tokens)].tolist():
            spelled = spellings[token]
            if spelled is None or (dead is not None and spelled.startswith(dead)):
                continue
            common = _common_length(read, spelled)
            del at[common + 1 :]
            read, dead = spelled[:common], None
            for byte in spelled[common:]:
                read += bytes([byte])
                at.append(self._known_step(at[-1], byte))
                if not at[-1]:
                    dead = read
                    break
            distance = self._distance_behind(at[-1])
            if distance < INFINITE:
                yield token, distance

    def _known_step(self, at: frozenset[Following], byte: int) -> frozenset[Following]:
        key = at, byte
        if key not in self._steps_of_ways:
            if len(self._steps_of_ways) >= 64 * _MAX_KEPT:
                self._steps_of_ways.clear()
            self._steps_of_ways[key] = self._step_all(at, byte, counts=True)
        return self._steps_of_ways[key]

    def _distance_behind(self, at: frozenset[Following]) -> int:
        if at not in self._distances_behind:
            if len(self._distances_behind) >= 64 * _MAX_KEPT:
                self._distances_behind.clear()
            ways = self._settled(following.way for following in at)
            self._distances_behind[at] = self._distance(ways) if ways else INFINITE
        return self._distances_behind[at]

    def _distance(self, ways: Iterable[Way]) -> int:
        return min(self.parts[way.stage].min_tokens(way.state) + self._behind[way.stage] for way in ways)

    def _advanced(self, state: Ways, whole: State, data: bytes, counts: bool) -> Ways | None:
        at = frozenset(Following(way, False) for way in state.ways)
        for byte in data:
            at = self._step_all(at, byte, counts)
        reached = {following.way for following in at}
        ways = self._settled(reached | self._closed(reached, between_tokens=True))
        return Ways(whole, ways) if ways else None

    def _step_all(self, at: Iterable[Following], byte: int, counts: bool) -> frozenset[Following]:
        after = set[Following]()
        for way, counted in at:
            is_bounded = way.left != _GIVEN and self.stages.all[way.stage].budget is not None
            spends = counts and not counted and is_bounded
            if spends and way.left == 0:
                continue
            state = self._after_byte(way.stage, way.state, byte)
            if state is not None:
                after.add(Following(Way(way.stage, state, way.left - spends), counted or spends))
        entered = self._closed((following.way for following in after), between_tokens=not counts)
        return frozenset(after | {Following(way, False) for way in entered})

    def _after_byte(self, stage: int, state: State, byte: int) -> State | None:
        key = stage, state, byte
        if key not in self._byte_moves:
            if len(self._byte_moves) >= 64 * _MAX_KEPT:
                self._byte_moves.clear()
            self._byte_moves[key] = self.parts[stage].advance_bytes(state, bytes([byte]))
        return self._byte_moves[key]

    def _entered(self, stages: Iterable[int]) -> set[Way]:
        """The ways at the beginnings of stages, and of the stages behind those that may be empty."""
        ways = {Way(k, self.parts[k].start(), self._budget(k)) for k in stages}
        return ways | self._closed(ways, between_tokens=True)

    def _closed(self, ways: Iterable[Way], between_tokens: bool) -> set[Way]:
        """The beginnings of what may follow stages that may end. Those of one whole token begin and end only between tokens."""
        entered: set[Way] = set()
        work = [way for way in ways if self.parts[way.stage].is_accepting(way.state)]
        while work:
            stage = work.pop().stage
            if self._is_whole[stage] and not between_tokens:
                continue
            for k in self.stages.all[stage].following:
                if self._is_whole[k] and not between_tokens:
                    continue
                way = Way(k, self.parts[k].start(), self._budget(k))
                if way not in entered:
                    entered.add(way)
                    if self.parts[k].is_accepting(way.state):
                        work.append(way)
        return entered

    def _budget(self, stage: int) -> int:
        budget = self.stages.all[stage].budget
        return INFINITE if budget is None else budget.max_tokens

    def _settled(self, ways: Iterable[Way]) -> frozenset[Way]:
        """The ways that can still end in time; of two ways at the same place, the one that may spend more."""
        best: dict[tuple[int, State], int] = {}
        for stage, state, left in ways:
            if left > best.get((stage, state), -1):
                best[stage, state] = left
        return frozenset(
            Way(stage, state, left) for (stage, state), left in best.items()
            if self.parts[stage].min_tokens(state) <= left and self.parts[stage].min_tokens(state) < INFINITE
        )  # fmt: skip

    def _costs_behind(self) -> list[int]:
        """How many tokens suffice behind each stage."""
        behind = [0 if stage.may_end else INFINITE for stage in self.stages.all]
        changed = True
        while changed:
            changed = False
            for k, stage in enumerate(self.stages.all):
                least = min((self._least[other] + behind[other] for other in stage.following), default=INFINITE)
                if least < behind[k]:
                    behind[k] = least
                    changed = True
        return behind


def staged(source: HasStages, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
    """The constraint of a source with its budgets of tokens, if it has any."""
    vocabulary, scratch = constraint.vocabulary, Grammar()
    tell_vocabulary(scratch, vocabulary)
    stages = source.stages(scratch, constraint.limits)
    if all(stage.budget is None for stage in stages.all):
        return constraint
    return StagedConstraint(constraint, [compiled(StageOf(source, k)) for k in range(len(stages.all))], stages)


def _bits(tokens: Iterable[int], size: int) -> NDArray[np.uint32]:
    """Tokens as a mask, uint32 [ceil(size / 32)]."""
    flags = np.zeros(-(-size // 32) * 32, np.uint8)
    flags[list(tokens)] = 1
    return np.packbits(flags, bitorder="little").view(np.uint32)


def _common_length(left: bytes, right: bytes) -> int:
    length = min(len(left), len(right))
    return next((k for k in range(length) if left[k] != right[k]), length)

"""Constraints that narrow another one: their states are those of the other one with something beside them.

A budget of tokens is such a narrowing. What is not narrowed is asked of the other constraint.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grammar.source import Limits, Source
from ..masks.mask_rows import MaskRows
from ..saved.constraint_file import SavedAutomaton
from ..vocabulary.vocabulary import Vocabulary
from .constraint import Constraint, State
from .explanation import NUM_NEAREST, Explanation, explain


class AccompaniedConstraint(Constraint):
    """`unbudgeted`, narrowed by constraints of its parts.

    A state is one of `unbudgeted`, or a tuple with such a state as `whole`. Classes derived from this one define
    `mask`, `advance` and `advance_bytes` for tuples, and `narrowing`, which says how the parts narrow the whole.
    """

    def __init__(self, whole: Constraint, parts: Sequence[Constraint]) -> None:
        self.unbudgeted, self.parts = whole, tuple(parts)
        self.residue = whole.residue

    @property
    def notes(self) -> tuple[str, ...]:
        return self.unbudgeted.notes

    @property
    def vocabulary(self) -> Vocabulary:
        return self.unbudgeted.vocabulary

    @cached_property
    def fingerprint(self) -> str:
        return self.unbudgeted.fingerprint

    @property
    def source(self) -> Source | None:
        return self.unbudgeted.source

    @property
    def limits(self) -> Limits:
        return self.unbudgeted.limits

    def saved_automata(self, found: bool) -> list[SavedAutomaton]:
        return [one for constraint in (self.unbudgeted, *self.parts) for one in constraint.saved_automata(found)]

    @property
    @abstractmethod
    def narrowing(self) -> Any: ...

    @property
    def nbytes(self) -> int:
        return self.unbudgeted.nbytes + sum(part.nbytes for part in self.parts)

    @property
    def num_mask_misses(self) -> int:
        return self.unbudgeted.num_mask_misses + sum(part.num_mask_misses for part in self.parts)

    @property
    def is_half_full(self) -> bool:
        return self.unbudgeted.is_half_full or any(part.is_half_full for part in self.parts)

    @property
    def statistics(self) -> dict[str, int]:
        return self.unbudgeted.statistics

    def is_accepting(self, state: Any) -> bool:
        return self.unbudgeted.is_accepting(whole_of(state))

    def fill_masks(self, states: Sequence[Any], out: NDArray[np.uint32]) -> None:
        self.unbudgeted.fill_masks(list(map(whole_of, states)), out)
        for k, state in enumerate(states):
            if is_beside(state):
                out[k] = self.mask(state)

    def mask_rows(self, states: Sequence[Any]) -> tuple[NDArray[np.int32], MaskRows]:
        numbers, rows = self.unbudgeted.mask_rows(list(map(whole_of, states)))
        for k, state in enumerate(states):
            if is_beside(state):
                numbers[k] = rows.keep(self.mask(state))
        return numbers, rows

    def advance_batch(self, states: Sequence[Any], token_ids: Sequence[int]) -> list[Any]:
        if len(states) != len(token_ids):
            raise ValueError(f"advance_batch needs as many tokens as states, got {len(token_ids)} and {len(states)}")
        return [self.advance(state, token_id) for state, token_id in zip(states, token_ids, strict=True)]

    def forced(self, state: Any) -> bytes:
        """The bytes that every completion begins with, as `Constraint.forced` has them. Where the budget leaves few
        tokens, all completions may have more in common than this."""
        return self.unbudgeted.forced(whole_of(state))

    def min_tokens(self, state: Any) -> int:
        return self.unbudgeted.min_tokens(whole_of(state))

    def explain(self, state: Any, token_id: int, *, num_nearest: int = NUM_NEAREST) -> Explanation:
        found = self.unbudgeted.explain(whole_of(state), token_id, num_nearest=num_nearest)
        if not found.allowed or not is_beside(state) or self.advance(state, token_id) is not None:
            return found
        return explain(self, state, token_id, num_nearest)

    def paths(self, state: Any) -> tuple[str, ...]:
        return self.unbudgeted.paths(whole_of(state))

    def survives(self, state: Any, data: bytes) -> tuple[int, str]:
        return self.unbudgeted.survives(whole_of(state), data)

    def step(self, state: Any, byte: int) -> tuple[Any, frozenset[Hashable]]:
        return self.unbudgeted.step(whole_of(state), byte)


def is_beside(state: Any) -> bool:
    """Whether a state has something beside the state of the whole."""
    return isinstance(state, tuple)


def whole_of(state: Any) -> State:
    """The state of the whole."""
    whole: State = state.whole if is_beside(state) else state
    return whole

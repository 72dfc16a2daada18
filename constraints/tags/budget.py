"""A constraint whose first part ends within a number of tokens.

The whole and the first part alone are followed side by side. A token that the whole allows and the part does not is one
that ends the part (and may go beyond it). All others have to leave enough tokens to end it: that is the mask of the part
with a budget.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..constraint import Constraint, State
from ..explanation import Explanation, explain
from ..rows import MaskRows

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary


class Inside(NamedTuple):
    """A state before the first part has ended."""

    whole: State
    part: State
    left: int  # tokens that may be spent until its end


class BudgetedConstraint(Constraint):
    """`whole`, whose first part is `part` and takes at most `max_tokens` tokens. States after that part are those of `whole`."""

    def __init__(self, whole: Constraint, part: Constraint, max_tokens: int) -> None:
        self.unbudgeted, self.part, self.max_tokens = whole, part, max_tokens
        self.residue, self.notes = whole.residue, whole.notes

    @property
    def vocabulary(self) -> Vocabulary:
        return self.unbudgeted.vocabulary

    @cached_property
    def fingerprint(self) -> str:
        return self.unbudgeted.fingerprint

    @property
    def nbytes(self) -> int:
        return self.unbudgeted.nbytes + self.part.nbytes

    @property
    def is_worn(self) -> bool:
        return self.unbudgeted.is_worn or self.part.is_worn

    @property
    def statistics(self) -> dict[str, int]:
        return self.unbudgeted.statistics

    @property
    def num_mask_misses(self) -> int:
        return self.unbudgeted.num_mask_misses

    def start(self) -> Any:
        return Inside(self.unbudgeted.start(), self.part.start(), self.max_tokens)

    def is_accepting(self, state: Any) -> bool:
        return self.unbudgeted.is_accepting(_whole(state))

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]:
        mask = self.unbudgeted.mask(_whole(state), budget)
        if not isinstance(state, Inside):
            return mask
        plain, within = self.part.mask(state.part), self.part.mask(state.part, state.left)
        return mask if within is plain else _read_only(mask & (within | ~plain))

    def fill_masks(self, states: Sequence[Any], out: NDArray[np.uint32]) -> None:
        self.unbudgeted.fill_masks(list(map(_whole, states)), out)
        for k, state in enumerate(states):
            if isinstance(state, Inside):
                out[k] = self.mask(state)

    def mask_rows(self, states: Sequence[Any]) -> tuple[NDArray[np.int32], MaskRows]:
        numbers, rows = self.unbudgeted.mask_rows(list(map(_whole, states)))
        for k, state in enumerate(states):
            if isinstance(state, Inside):
                numbers[k] = rows.keep(self.mask(state))
        return numbers, rows

    def advance(self, state: Any, token_id: int) -> Any:
        whole = self.unbudgeted.advance(_whole(state), token_id)
        if whole is None or not isinstance(state, Inside):
            return whole
        part = self.part.advance(state.part, token_id)
        if part is None or self.part.is_accepting(part):
            return whole
        left = state.left - 1
        return Inside(whole, part, left) if self.part.min_tokens(part) <= left else None

    def advance_batch(self, states: Sequence[Any], token_ids: Sequence[int]) -> list[Any]:
        if len(states) != len(token_ids):
            raise ValueError(f"advance_batch needs as many tokens as states, got {len(token_ids)} and {len(states)}")
        return [self.advance(state, token_id) for state, token_id in zip(states, token_ids, strict=True)]

    def advance_bytes(self, state: Any, data: bytes) -> Any:
        """The state after some text. No tokens are counted for it."""
        whole = self.unbudgeted.advance_bytes(_whole(state), data)
        if whole is None or not isinstance(state, Inside):
            return whole
        part = self.part.advance_bytes(state.part, data)
        return whole if part is None or self.part.is_accepting(part) else Inside(whole, part, state.left)

    def forced(self, state: Any) -> bytes:
        """As of any constraint. Where the budget leaves few tokens, more may be common to all completions than this."""
        return self.unbudgeted.forced(_whole(state))

    def min_tokens(self, state: Any) -> int:
        return self.unbudgeted.min_tokens(_whole(state))

    def explain(self, state: Any, token_id: int) -> Explanation:
        found = self.unbudgeted.explain(_whole(state), token_id)
        if not found.allowed or not isinstance(state, Inside) or self.advance(state, token_id) is not None:
            return found
        inside: Any = state
        return explain(self, inside, token_id)

    def _paths(self, state: Any) -> tuple[str, ...]:
        return self.unbudgeted._paths(_whole(state))

    def _survives(self, state: Any, data: bytes) -> tuple[int, str]:
        return self.unbudgeted._survives(_whole(state), data)

    def _step(self, state: Any, byte: int) -> tuple[Any, frozenset[Hashable]]:
        return self.unbudgeted._step(_whole(state), byte)


def _whole(state: Any) -> State:
    return state.whole if isinstance(state, Inside) else state


def _read_only(mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
    mask.setflags(write=False)
    return mask

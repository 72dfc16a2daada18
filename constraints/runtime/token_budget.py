"""A constraint whose first part ends within a number of tokens.

The whole and the first part alone are followed side by side. A token that the whole allows and the part does not is one
that ends the part (and may go beyond it). All others have to leave enough tokens to end it: that is the mask of the part
with a budget.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .accompanied import AccompaniedConstraint, whole_of
from .constraint import Constraint, State


class Inside(NamedTuple):
    """A state before the first part has ended."""

    whole: State
    part: State
    left: int  # tokens that may be spent until its end


class BudgetedConstraint(AccompaniedConstraint):
    """`whole`, whose first part is `part` and takes at most `max_tokens` tokens. States after that part are those of `whole`."""

    def __init__(self, whole: Constraint, part: Constraint, max_tokens: int) -> None:
        super().__init__(whole, [part])
        self.part, self.max_tokens = part, max_tokens

    @property
    def narrowing(self) -> Any:
        """The budget of the first part."""
        return self.max_tokens

    def start(self) -> Any:
        return Inside(self.unbudgeted.start(), self.part.start(), self.max_tokens)

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]:
        mask = self.unbudgeted.mask(whole_of(state), budget)
        if not isinstance(state, Inside):
            return mask
        plain, within = self.part.mask(state.part), self.part.mask(state.part, state.left)
        return mask if within is plain else _read_only(mask & (within | ~plain))

    def advance(self, state: Any, token_id: int) -> Any:
        whole = self.unbudgeted.advance(whole_of(state), token_id)
        if whole is None or not isinstance(state, Inside):
            return whole
        part = self.part.advance(state.part, token_id)
        if part is None or self.part.is_accepting(part):
            return whole
        left = state.left - 1
        return Inside(whole, part, left) if self.part.min_tokens(part) <= left else None

    def advance_bytes(self, state: Any, data: bytes) -> Any:
        """The state after some text. No tokens are counted for it."""
        whole = self.unbudgeted.advance_bytes(whole_of(state), data)
        if whole is None or not isinstance(state, Inside):
            return whole
        part = self.part.advance_bytes(state.part, data)
        return whole if part is None or self.part.is_accepting(part) else Inside(whole, part, state.left)


def _read_only(mask: NDArray[np.uint32]) -> NDArray[np.uint32]:
    mask.setflags(write=False)
    return mask

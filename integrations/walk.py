"""One output's way through its constraint, as engines ask about it: take, look ahead, go back.

Imports nothing of the constraint core: engines load this in every process, most of which never compile.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..constraints.runtime.constraint import Constraint

FINISHED = -1  # constraints.runtime.constraint.FINISHED
ALL_ONES = np.uint32(0xFFFFFFFF)
MOST_MOVED = 4096  # walks that are kept until a mask is missing


class Walk:
    """The states behind the tokens that were taken, the start first. States are values, so going back is dropping some."""

    __slots__ = ("_size", "_states", "constraint")

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._size = constraint.vocabulary.size
        self._states: list[Any] = [constraint.start()]

    @property
    def state(self) -> Any:
        """Where the output is."""
        return self._states[-1]

    @property
    def num_taken(self) -> int:
        """Tokens that were taken and not given back, with the one that ended the text."""
        return len(self._states) - 1

    @property
    def is_finished(self) -> bool:
        """Whether a token that ends the text was taken."""
        return bool(self._states[-1] == FINISHED)

    def take(self, token_ids: Sequence[int]) -> bool:
        """Go on by these tokens. False, and nothing is taken, where one of them is not allowed. What follows the end of the
        text is neither looked at nor counted."""
        states, advance, size = self._states, self.constraint.advance, self._size
        before = len(states)
        for token_id in token_ids:
            if (state := states[-1]) == FINISHED:
                break
            after = advance(state, token_id) if 0 <= token_id < size else None
            if after is None:
                del states[before:]
                return False
            states.append(after)
        return True

    def legal_prefix(self, token_ids: Sequence[int]) -> list[int]:
        """The tokens that could be taken one after another, up to the one that ends the text. Nothing is taken."""
        state, advance, legal = self._states[-1], self.constraint.advance, list[int]()
        for token_id in token_ids:
            if state == FINISHED or not 0 <= token_id < self._size:
                break
            state = advance(state, token_id)
            if state is None:
                break
            legal.append(token_id)
        return legal

    def back(self, num_tokens: int) -> None:
        """Give back the tokens taken last. Raises ValueError where not so many were taken."""
        if not 0 <= num_tokens < len(self._states):
            raise ValueError(f"{num_tokens} tokens cannot be given back: {self.num_taken} were taken")
        if num_tokens:
            del self._states[-num_tokens:]

    def restart(self) -> None:
        """Give back all tokens."""
        del self._states[1:]

    def copy(self) -> Walk:
        """One that has come as far and goes on by itself."""
        twin = Walk.__new__(Walk)
        twin.constraint, twin._size, twin._states = self.constraint, self._size, self._states.copy()
        return twin

    def write_mask(self, row: NDArray[np.uint32]) -> None:
        """What may come next. row: uint32 [ceil(V / 32)]; all ones behind the end of the text."""
        state = self._states[-1]
        row[:] = ALL_ONES if state == FINISHED else self.constraint.mask(state)

    def forced_text(self) -> str:
        """The whole characters that come next in every completion; none where the output ends within a character, or where a
        special token comes first."""
        state = self._states[-1]
        forced = b"" if state == FINISHED else self.constraint.forced(state)
        try:
            return getincrementaldecoder("utf-8")().decode(forced)
        except UnicodeDecodeError as error:  # what no text has spells a special token
            return forced[: error.start].decode()

    def retake(self, old: Sequence[int], new: Sequence[int]) -> bool:
        """Put `new` in the place of `old`, the tokens taken last: a text is tokenised anew when more is put behind it.
        False, and nothing has changed, where `new` is not allowed there. Raises ValueError where not so many were taken."""
        if len(old) > self.num_taken:
            raise ValueError(f"{len(old)} tokens cannot be given back: {self.num_taken} were taken")
        most = min(len(old), len(new))
        kept = next((k for k in range(most) if old[k] != new[k]), most)
        before = self._states
        self._states = before[: len(before) - len(old) + kept]
        if self.take(new[kept:]):
            return True
        self._states = before
        return False


class Moved:
    """The walks that have moved, for engines that ask for one row after the other: where a mask is not known, those of all walks
    that have moved since are made together."""

    __slots__ = ("_walks",)

    def __init__(self) -> None:
        self._walks: set[Walk] = set()

    def note(self, walk: Walk) -> None:
        """A walk has taken tokens."""
        if len(self._walks) >= MOST_MOVED:  # as no mask was missing for long
            self._walks = set()
        self._walks.add(walk)

    def make_masks(self, wanted: Walk) -> None:
        """Make what may come next in a walk, and in the others, where it is not known."""
        if self._walks and not wanted.constraint.knows_mask(wanted.state):
            from ..constraints.runtime.mask_batches import make_masks

            walks, self._walks = self._walks, set()
            make_masks((walk.constraint, walk.state) for walk in walks)

"""A constraint behind a text whose last token is taken back, and written anew by the model, perhaps as a part of a longer one.

A prompt that ends within a word ends with a token that a model has seldom seen there: behind `http:` come tokens that begin with
`//`, yet `://` is what it knows. So the last token's bytes are owed: the output writes them first, in whatever tokens, and then
what the constraint says. (Token healing; guidance has it, and transformers' `token_healing`.)

The prompt's end may itself be the beginning of the constraint's text, as of a reply that its client has begun. Then the bytes that
are owed are the end of that beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..masks.mask_rows import MaskRows
from .accompanied import AccompaniedConstraint
from .constraint import Constraint
from .explanation import NUM_NEAREST, Explanation, byte_set, explain
from .values import OpenValue, Places, Values


class Owed(NamedTuple):
    """A state before the text of the constraint: these bytes come first."""

    bytes: bytes


class HealedConstraint(AccompaniedConstraint):
    """`unbudgeted`, before whose texts stand the bytes `owed`; or of its texts those that begin with the bytes `begun`. Behind them
    its states are those of `unbudgeted`."""

    def __init__(self, constraint: Constraint, owed: bytes, begun: bytes = b"") -> None:
        """begun: a beginning of the constraint's texts that the prompt ends with; `owed`, with which it ends, is taken back."""
        super().__init__(constraint, ())
        self.owed, self.begun = owed, begun
        assert begun.endswith(owed) or not begun, "what is owed is the end of the beginning"
        behind = constraint.advance_bytes(constraint.start(), begun)
        assert behind is not None, "some text begins so"
        self._behind = behind
        self._after: dict[bytes, dict[int, Any]] = {}  # states after the tokens that are legal where these bytes are owed

    @property
    def narrowing(self) -> Any:
        """Files hold the constraint alone."""
        return None

    def start(self) -> Any:
        return Owed(self.begun or self.owed)

    def mask(self, state: Any, budget: int | None = None) -> NDArray[np.uint32]:
        if not isinstance(state, Owed):
            return self.unbudgeted.mask(state, budget)
        allowed = np.zeros(-(-self.vocabulary.size // 32) * 32, np.uint8)
        for token_id, after in self._legal(state.bytes).items():
            allowed[token_id] = budget is None or self.min_tokens(after) <= budget - 1
        mask = np.packbits(allowed, bitorder="little").view(np.uint32)
        mask.setflags(write=False)
        return mask

    def advance(self, state: Any, token_id: int) -> Any:
        if not isinstance(state, Owed):
            return self.unbudgeted.advance(state, token_id)
        return self._legal(state.bytes).get(token_id)

    def advance_bytes(self, state: Any, data: bytes) -> Any:
        if not isinstance(state, Owed):
            return self.unbudgeted.advance_bytes(state, data)
        if len(data) < len(state.bytes):
            return Owed(state.bytes[len(data) :]) if state.bytes.startswith(data) else None
        is_paid = data.startswith(state.bytes)
        return self.unbudgeted.advance_bytes(self._behind, data[len(state.bytes) :]) if is_paid else None

    def is_accepting(self, state: Any) -> bool:
        return not isinstance(state, Owed) and self.unbudgeted.is_accepting(state)

    def forced(self, state: Any) -> bytes:
        if not isinstance(state, Owed):
            return self.unbudgeted.forced(state)
        return state.bytes + self.unbudgeted.forced(self._behind)

    def min_tokens(self, state: Any) -> int:
        if not isinstance(state, Owed):
            return self.unbudgeted.min_tokens(state)
        if len(state.bytes) > len(self.owed):  # before what the prompt ends with, where nothing is generated
            return self.unbudgeted.min_tokens(self.unbudgeted.start())
        return 1 + min(map(self.min_tokens, set(self._legal(state.bytes).values())))

    def fill_masks(self, states: Sequence[Any], out: NDArray[np.uint32]) -> None:
        for k, state in enumerate(states):
            out[k] = self.mask(state)

    def mask_rows(self, states: Sequence[Any]) -> tuple[NDArray[np.int32], MaskRows]:
        inner = self.unbudgeted
        numbers, rows = inner.mask_rows([self._behind if isinstance(state, Owed) else state for state in states])
        for k, state in enumerate(states):
            if isinstance(state, Owed):
                numbers[k] = rows.keep(self.mask(state))
        return numbers, rows

    def explain(self, state: Any, token_id: int, *, num_nearest: int = NUM_NEAREST) -> Explanation:
        if not isinstance(state, Owed):
            return self.unbudgeted.explain(state, token_id, num_nearest=num_nearest)
        return explain(self, state, token_id, num_nearest)

    def paths(self, state: Any) -> tuple[str, ...]:
        return () if isinstance(state, Owed) else self.unbudgeted.paths(state)

    def survives(self, state: Any, data: bytes) -> tuple[int, str]:
        if not isinstance(state, Owed):
            return self.unbudgeted.survives(state, data)
        for place, (byte, wanted) in enumerate(zip(data, state.bytes, strict=False)):
            if byte != wanted:
                return place, byte_set([wanted])
        if len(data) < len(state.bytes):
            return len(data), byte_set([state.bytes[len(data)]])
        read, expected = self.unbudgeted.survives(self._behind, data[len(state.bytes) :])
        return len(state.bytes) + read, expected

    def step(self, state: Any, byte: int) -> tuple[Any, frozenset[Any]]:
        if not isinstance(state, Owed):
            return self.unbudgeted.step(state, byte)
        return self.advance_bytes(state, bytes([byte])), frozenset()

    @cached_property
    def can_merge(self) -> bool:
        """Whether some legal token holds all that is owed and more: else taking the token back changes nothing."""
        tokens, length = self.vocabulary.text_tokens, len(self.owed)
        return any(len(tokens[token_id] or b"") > length for token_id in self._legal(self.owed))

    def _legal(self, owed: bytes) -> dict[int, Any]:
        """The states after tokens, where `owed` is what is left of the bytes. No token leads to bytes that none can spell."""
        if owed not in self._after:
            self._after[owed] = {
                token_id: after
                for token_id, token in self._candidates
                if owed.startswith(token) or token.startswith(owed)
                if (after := self.advance_bytes(Owed(owed), token)) is not None
                if not isinstance(after, Owed) or self._legal(after.bytes)
            }
        return self._after[owed]

    @cached_property
    def _candidates(self) -> list[tuple[int, bytes]]:
        """Tokens that begin with a byte that is owed."""
        begins = frozenset(self.owed)
        return [(number, token) for number, token in enumerate(self.vocabulary.text_tokens) if token and token[0] in begins]


class ValuesBehind:
    """The values of a text that begins behind some bytes, which are read and are in none of them."""

    def __init__(self, values: Values, num_before: int) -> None:
        self._values, self._num_before, self._num_left = values, num_before, num_before

    def read(self, data: bytes) -> None:
        """The next bytes of the whole."""
        skipped = min(self._num_left, len(data))
        self._num_left -= skipped
        self._values.read(data[skipped:])

    @property
    def open(self) -> Sequence[OpenValue]:
        return [value._replace(start=value.start + self._num_before) for value in self._values.open]

    def fork(self) -> ValuesBehind:
        child = ValuesBehind(self._values.fork(), self._num_before)
        child._num_left = self._num_left
        return child


class PlacesBehind:
    """The places of a text that begins behind some bytes, which are in none of them."""

    def __init__(self, places: Places, num_before: int) -> None:
        self._places, self._num_left = places, num_before

    def read(self, data: bytes) -> tuple[str, ...]:
        """The places to which the next bytes of the whole belong."""
        skipped = min(self._num_left, len(data))
        self._num_left -= skipped
        return self._places.read(data[skipped:])

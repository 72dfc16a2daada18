"""Constraints of finitely many states: their byte automata, and the masks of all states, which the device can compute at once.

The engine leaves that off (`Capacity.finite`): the host follows every sequence and needs its masks too, to see what is forced and
what is complete, and makes one in the time of listing a state of the byte automaton. It pays where nobody else needs the masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...constraints.runtime.constraint import FINISHED, NOWHERE, State
from ...kernels.automaton.backend import Operations
from ...kernels.automaton.vocabulary import ByteAutomaton, TokenBytes
from ..device.uploads import Uploads
from .mask_pool import MaskPool

if TYPE_CHECKING:
    from ...constraints.runtime.constraint import Constraint

DEAD = 0  # of the byte automaton
NO_TEXT = 0xF5  # no UTF-8 text has bytes from here on; constraints spell special tokens with them


class FiniteRows:
    """Rows of the mask pool that the device fills, all those of a constraint when one of its states is asked for first."""

    def __init__(self, most: int, operations: Operations, pool: MaskPool, uploads: Uploads) -> None:
        """most: states of a constraint; one with more is left to the host."""
        self._most, self._operations, self._pool, self._uploads = most, operations, pool, uploads
        self._rows: dict[Constraint, dict[State, int]] = {}
        self._vocabulary: tuple[Any, TokenBytes] | None = None

    def row(self, constraint: Any, state: Any) -> int | None:
        """The row of a state; None where the host has to make it, or there is no room for all of them."""
        if not self._most or not hasattr(constraint, "after_bytes"):
            return None
        if constraint not in self._rows:
            self._rows[constraint] = self._fill(constraint)
        return self._rows[constraint].get(state)

    def forget(self) -> None:
        """Give all rows back: nobody uses them any more."""
        for rows in self._rows.values():
            for row in rows.values():
                self._pool.drop(row)
        self._rows.clear()

    def _fill(self, constraint: Constraint) -> dict[State, int]:
        listed = byte_automaton(constraint, self._most, self._uploads.device)
        rows = [] if listed is None else self._pool.take(len(listed[1]) - 1)
        if listed is None or not rows:
            return {}
        automaton, states = listed
        vocabulary, pool, operations = self._tokens(constraint), self._pool.rows, self._operations

        def work() -> None:
            numbers = torch.arange(1, len(states), dtype=torch.int32, device=pool.device)
            made = torch.empty(len(rows), pool.shape[1], dtype=torch.int32, device=pool.device)
            operations.mask_rows(numbers, automaton, vocabulary, made)
            pool.index_copy_(0, torch.tensor(rows, device=pool.device), made)

        self._uploads.do(work)
        return dict(zip(states[1:], rows, strict=True))

    def _tokens(self, constraint: Constraint) -> TokenBytes:
        vocabulary = constraint.vocabulary
        if self._vocabulary is None or self._vocabulary[0] != vocabulary:
            tokens = TokenBytes.of(vocabulary.text_tokens, vocabulary.eos_token_ids, self._uploads.device)
            self._vocabulary = vocabulary, tokens
        return self._vocabulary[1]


def byte_automaton(
    constraint: Constraint, max_states: int = 4096, device: torch.device | str = "cpu"
) -> tuple[ByteAutomaton, list[State]] | None:
    """The automaton, and the constraint's state for each of its states, of which number 0 is dead and without meaning.

    None where there are more than `max_states` states: recursion, or a large bound. None, too, where the vocabulary lacks a byte,
    for then a live state may be one from which no tokens finish, and where the constraint asks for special tokens or remembers.
    """
    if constraint.after_bytes(constraint.start()) is None or not spells_every_byte(constraint):
        return None
    number: dict[State, int] = {FINISHED: DEAD, constraint.start(): 1}
    states, rows = [FINISHED, constraint.start()], [np.zeros(256, np.int32)]
    while len(rows) < len(states):
        after = constraint.after_bytes(states[len(rows)])
        assert after is not None
        if (after[NO_TEXT:] != NOWHERE).any():
            return None
        reached, first = np.unique(after, return_index=True)
        for state in reached[np.argsort(first)].tolist():
            if state != NOWHERE and state not in number:
                if len(states) > max_states:
                    return None
                number[state] = len(states)
                states.append(state)
        rows.append(np.array([DEAD if state == NOWHERE else number[state] for state in after.tolist()], np.int32))
    columns, byte_class = np.unique(np.stack(rows), axis=1, return_inverse=True)
    accepting = np.array([0, *map(constraint.is_accepting, states[1:])], np.int32)
    arrays = columns.astype(np.int32), byte_class.astype(np.uint8), accepting
    return ByteAutomaton(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays)), states


def spells_every_byte(constraint: Constraint) -> bool:
    """Whether each byte that begins or continues a UTF-8 character is a token."""
    single = {text for text in constraint.vocabulary.text_tokens if text is not None and len(text) == 1}
    return all(bytes([byte]) in single for byte in range(NO_TEXT))

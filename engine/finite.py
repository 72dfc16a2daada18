"""The byte automaton of a constraint that has finitely many states, for computing all its mask rows on the device at once.

The engine does not use it: to list the automaton takes 256 questions a state, 6 ms, where the walk of the vocabulary's trie makes
the mask of a state in 7 us (145 to 179 states, a vocabulary of 7,000 tokens, a busy CPU). It pays where there is an automaton.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ..constraints.constraint import FINISHED, State
from ..kernels.automaton.vocabulary import ByteAutomaton

if TYPE_CHECKING:
    from ..constraints.constraint import Constraint

DEAD = 0  # of the byte automaton
NO_TEXT = 0xF5  # no UTF-8 text has bytes from here on; constraints spell special tokens with them


def byte_automaton(
    constraint: Constraint, max_states: int = 4096, device: torch.device | str = "cpu"
) -> tuple[ByteAutomaton, list[State]] | None:
    """The automaton, and the constraint's state for each of its states, of which number 0 is dead and without meaning.

    None where there are more than `max_states` states: recursion, or a large bound. None, too, where the vocabulary lacks a byte,
    for then a live state may be one from which no tokens finish, and where the constraint asks for special tokens or remembers.
    Each state is asked for all 256 bytes, about 1 ms.
    """
    if constraint.successors(constraint.start()) is None or not spells_every_byte(constraint):
        return None
    number: dict[State, int] = {FINISHED: DEAD, constraint.start(): 1}
    states, rows = [FINISHED, constraint.start()], [np.zeros(256, np.int32)]
    while len(rows) < len(states):
        state = states[len(rows)]
        row = np.zeros(256, np.int32)
        for byte in range(256):
            after = constraint.advance_bytes(state, bytes([byte]))
            if after is None:
                continue
            if after not in number:
                if len(states) > max_states:
                    return None
                number[after] = len(states)
                states.append(after)
            row[byte] = number[after]
        if row[NO_TEXT:].any():
            return None
        rows.append(row)
    columns, byte_class = np.unique(np.stack(rows), axis=1, return_inverse=True)
    accepting = np.array([0, *map(constraint.is_accepting, states[1:])], np.int32)
    arrays = columns.astype(np.int32), byte_class.astype(np.uint8), accepting
    return ByteAutomaton(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays)), states


def spells_every_byte(constraint: Constraint) -> bool:
    """Whether each byte that begins or continues a UTF-8 character is a token."""
    single = {text for text in constraint.vocabulary.text_tokens if text is not None and len(text) == 1}
    return all(bytes([byte]) in single for byte in range(NO_TEXT))

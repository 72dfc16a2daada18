"""Cycles: short texts that can be read again and again, found in the automaton itself.

What is kept of a text grows where it repeats itself, and only with some repetitions of many. Behind a beginning all texts of a few
bytes are cycles that may be tried, but for these:

    of two bytes that lead to the same state one is enough
    `bba` again and again is `abb` again and again, but for its first bytes
    `abab` is `ab`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..base.ids import StateId
from ..token_automaton.token_automaton import EVERY_BYTE, TokenAutomaton

_LONGEST = 7  # bytes
_MOST_OF_A_LENGTH = 200  # texts that are carried on; of more, every second or third one


def cycles(automaton: TokenAutomaton, beginnings: Iterable[bytes], most: int) -> Iterator[tuple[bytes, bytes]]:
    """(beginning, cycle), for each beginning the shortest first, and `most` at most. Whether the automaton reads a cycle twice is
    not looked at."""
    found: dict[StateId, list[tuple[bytes, StateId]]] = {}

    def steps(state: StateId) -> list[tuple[bytes, StateId]]:
        """A byte for each state that comes next."""
        if state not in found:
            ends, _ = automaton.end_states(state, EVERY_BYTE)
            states, first = np.unique(ends, return_index=True)
            found[state] = [(bytes([first[k]]), StateId(int(states[k]))) for k in np.argsort(first) if states[k] != 0]
        return found[state]

    known: set[tuple[StateId, bytes]] = set()
    for beginning in beginnings:
        start, _ = automaton.run(automaton.start, beginning)
        texts, left = [(b"", start)], most if start else 0
        for _ in range(_LONGEST):
            longer = [(text + byte, after) for text, state in texts for byte, after in steps(state)]
            texts = longer[:: len(longer) // _MOST_OF_A_LENGTH + 1]
            for text, _ in texts:
                key = (start, _turned(text))
                if left > 0 and key not in known and not _repeats(text):
                    known.add(key)
                    left -= 1
                    yield beginning, text
            if left <= 0:
                break


def _turned(text: bytes) -> bytes:
    """The first, by the alphabet, of all texts that go on in the same way."""
    return min(text[k:] + text[:k] for k in range(len(text)))


def _repeats(text: bytes) -> bool:
    return any(len(text) % k == 0 and text == len(text) // k * text[:k] for k in range(1, len(text)))

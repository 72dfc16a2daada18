"""Cycles: short texts that can be read again and again, found in the automaton itself.

What is kept of a text grows where it repeats itself, and only with some repetitions of many. Behind a beginning all texts of a few
bytes are cycles that may be tried, but for these:

    of two bytes that lead to the same state one is enough
    `bba` again and again is `abb` again and again, but for its first bytes
    `abab` is `ab`
    a cycle that leads back to the state which it left keeps nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..base.errors import ConstraintLimit
from ..base.ids import StateId
from ..token_automaton.pumping import LARGEST_COUNTER
from ..token_automaton.token_automaton import EVERY_BYTE, TokenAutomaton

_TIMES = 3  # that a cycle is read to see whether it may be tried
_MOST_OF_A_LENGTH = 200  # texts that are carried on; of more, every second or third one


def cycles(
    automaton: TokenAutomaton, beginnings: Sequence[bytes], longest: int, most: int, most_work: int = LARGEST_COUNTER
) -> Iterator[tuple[bytes, bytes]]:
    """(beginning, cycle) of `longest` bytes at most, the shortest first, of `most` for each beginning those that lead
    to ever other states, or take more than `most_work` until that is known. Raises `ConstraintLimit`."""
    found: dict[StateId, list[tuple[bytes, StateId]]] = {}

    def steps(state: StateId) -> list[tuple[bytes, StateId]]:
        """A byte for each state that comes next."""
        if state not in found:
            with automaton.spending(most_work):
                ends, _ = automaton.end_states(state, EVERY_BYTE)
            states, first = np.unique(ends, return_index=True)
            found[state] = [(bytes([first[k]]), StateId(int(states[k]))) for k in np.argsort(first) if states[k] != 0]
        return found[state]

    starts = [automaton.run(automaton.start, beginning)[0] for beginning in beginnings]
    texts = [[(b"", start)] if start else [] for start in starts]
    left = [most] * len(starts)
    known: set[tuple[StateId, bytes]] = set()
    for _ in range(longest):
        for k, start in enumerate(starts):
            longer = [(text + byte, after) for text, state in texts[k] if left[k] > 0 for byte, after in steps(state)]
            texts[k] = longer[:: len(longer) // _MOST_OF_A_LENGTH + 1]
            for text, after in texts[k]:
                if left[k] > 0 and not _repeats(text) and (key := (start, _turned(text))) not in known:
                    known.add(key)
                    left[k] -= 1
                    if _leads_on(automaton, after, text, most_work):
                        yield beginnings[k], text


def _leads_on(automaton: TokenAutomaton, after: StateId, cycle: bytes, most_work: int) -> bool:
    """Whether a cycle can be read some times more, and leads to other states then, as far as so much work shows."""
    try:
        with automaton.spending(most_work):
            for _ in range(_TIMES):
                before, (after, _) = after, automaton.run(after, cycle)
                if after in (0, before):
                    return False
    except ConstraintLimit as error:
        if error.limit != "byte_words":
            raise
    return True


def _turned(text: bytes) -> bytes:
    """The first, by the alphabet, of all texts that go on in the same way."""
    return min(text[k:] + text[:k] for k in range(len(text)))


def _repeats(text: bytes) -> bool:
    return any(len(text) % k == 0 and text == len(text) // k * text[:k] for k in range(1, len(text)))

"""Ways out: of all that may follow, one text that ends what was begun, and the tokens along it.

Where a limit is met inside of a text, other texts would need states for which there is no room. One text needs few: the search for
it follows single bytes, those first behind which the shortest text is left (`size` of shortest_completion.py, which looks at parts
by themselves), as A* does. Whoever takes a token along it stays on it, so the text is finished however long it is. Where names of
members or items must differ, sizes do not know it, and the search may end without one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automaton.tables import DEAD
from ..base.ids import RegisterId, StateId
from ..vocabulary.trie import TokenTrie
from ..vocabulary.vocabulary import TOKEN_CLOSE
from .token_automaton import EVERY_BYTE, TokenAutomaton

_MOST_VISITED = 10_000  # states and registers, of one search
_FIRST = ord("a")  # of bytes behind which as much is left those that come from here on are taken first

Configuration = tuple[StateId, RegisterId]


class Visited(NamedTuple):
    """A state and a register that a search has come to, by a byte."""

    at: Configuration
    cause: int  # its number, that of the first one is -1
    byte: int
    length: int  # bytes from the first one


class WaysOut:
    """The ways out of the states of one automaton, remembered."""

    def __init__(self, automaton: TokenAutomaton) -> None:
        self._automaton = automaton
        self._texts: dict[Configuration, bytes] = {}

    @cached_property
    def _bytes(self) -> list[int]:
        """Those that tokens spell, and those with which special tokens are spelled."""
        single = self._automaton.shared_vocabulary.single_bytes
        spelled = [byte for byte in range(256) if byte >= TOKEN_CLOSE[0] or single[byte]]
        return sorted(spelled, key=lambda byte: (byte - _FIRST) % 256)

    def row(self, state: StateId, held: RegisterId) -> NDArray[np.uint32] | None:
        """The mask of the tokens along the way out, EOS where the text may end; None where no way is found. uint32 [words]"""
        text = self.text(state, held)
        if text is None:
            return None
        shared = self._automaton.shared_vocabulary
        return shared.mask_of(np.concatenate([*tokens_along(shared.trie, text)])) if text else shared.eos_row

    def text(self, state: StateId, held: RegisterId) -> bytes | None:
        """A short text with which `state` is finished, empty where it may end; None where none is found."""
        if (state, held) not in self._texts:
            self._search((state, held))
        return self._texts.get((state, held))

    def _search(self, origin: Configuration) -> None:
        visited = [Visited(origin, -1, 0, 0)]
        seen = {origin}
        waiting = [(0, 0, 0)]  # (bytes of the whole text at least, those that are left, number)
        while waiting and len(visited) < _MOST_VISITED:
            number = heapq.heappop(waiting)[2]
            state, length = visited[number].at[0], visited[number].length + 1
            if self._automaton.is_accepting(state):
                self._keep(visited, number)
                return
            for byte, after in self._behind(visited[number].at):
                if after not in seen:
                    seen.add(after)
                    left = self._automaton.size(after[0])
                    heapq.heappush(waiting, (length + left, left, len(visited)))
                    visited.append(Visited(after, number, byte, length))

    def _behind(self, at: Configuration) -> Iterator[tuple[int, Configuration]]:
        """The bytes that may come, and what they lead to."""
        ends, _ = self._automaton.end_states(at[0], EVERY_BYTE)
        for byte in self._bytes:
            if ends[byte] == DEAD:
                continue
            after, held = StateId(int(ends[byte])), at[1]
            if self._automaton.remembers:
                after, held, _ = self._automaton.run_remembering(*at, bytes([byte]))
            if after != DEAD:
                yield byte, (after, held)

    def _keep(self, visited: list[Visited], number: int) -> None:
        """Remember the way to what was visited last, for all that is on it."""
        text = b""
        while number >= 0:
            at, cause, byte, _ = visited[number]
            self._texts[at] = text
            text, number = bytes([byte]) + text, cause


def tokens_along(trie: TokenTrie, text: bytes) -> Iterator[NDArray[np.int32]]:
    """The ids of the tokens with which a text begins, the shortest ones first."""
    node, end = 0, trie.num_nodes
    for byte in text:
        while node < end and trie.byte[node] != byte:
            node = int(trie.skip[node])
        if node >= end:
            return
        yield trie.order[trie.first[node] : trie.first[node + 1]]
        node, end = node + 1, int(trie.skip[node])

"""Ways out: of all that may follow, one text that ends what was begun, and the tokens along it.

Where a limit is met inside of a text, other texts would need states for which there is no room. One text needs few: the search for
it follows single bytes, those first behind which the shortest text is left (`size` of shortest_completion.py, which looks at parts
by themselves). Whoever takes a token along it stays on it, so the text is finished however long it is.

Where names of members or items must differ, sizes do not know it: the shortest text may be there already, and the byte that would
end it is refused. Then the search goes back as little as it can, and on with what leaves the least. Nothing of what may follow is a
dead end, and what differs from all that is there in one byte can be ended as its size says: so a search comes nearer to the end
within about as many steps as there are bytes in the names or items that are there.
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

MOST_STEPS = 20_000  # of a search that comes no nearer to the end
_FIRST = ord("a")  # of bytes behind which as much is left those that come from here on are taken first

Configuration = tuple[StateId, RegisterId]


class Visited(NamedTuple):
    """A state and a register that a search has come to, by a byte."""

    at: Configuration
    cause: int  # its number, that of the first one is -1
    byte: int
    onward: Iterator[tuple[int, Configuration]]  # that were not looked at yet: bytes, and what they lead to


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

    def tokens(self, state: StateId, held: RegisterId) -> NDArray[np.int32] | None:
        """The ids of the tokens along the way out, none where the text may end; None where no way is found. int32 [tokens]"""
        text = self.text(state, held)
        if text is None:
            return None
        return np.concatenate([np.empty(0, np.int32), *tokens_along(self._automaton.shared_vocabulary.trie, text)])

    def text(self, state: StateId, held: RegisterId) -> bytes | None:
        """A short text with which `state` is finished, empty where it may end; None where none is found."""
        if (state, held) not in self._texts:
            self._search((state, held))
        return self._texts.get((state, held))

    def _search(self, origin: Configuration) -> None:
        visited = [Visited(origin, -1, 0, self._behind(origin))]
        seen = {origin}
        least = self._automaton.size(origin[0])  # bytes left, of all that was visited
        waiting = [(least, 0)]  # (bytes left, number) of those whose bytes have not all been looked at
        steps = 0  # since it came nearer to the end
        if self._automaton.is_accepting(origin[0]):
            self._keep(visited, 0)
            return
        while waiting and steps < MOST_STEPS:
            number = waiting[0][1]
            byte, after = next(visited[number].onward, (-1, origin))
            steps += 1
            if byte < 0:
                heapq.heappop(waiting)
            if after in seen:
                continue
            seen.add(after)
            visited.append(Visited(after, number, byte, self._behind(after)))
            if self._automaton.is_accepting(after[0]):
                self._keep(visited, len(visited) - 1)
                return
            left = self._automaton.size(after[0])
            if left < least:
                least, steps = left, 0
            heapq.heappush(waiting, (left, len(visited) - 1))

    def _behind(self, at: Configuration) -> Iterator[tuple[int, Configuration]]:
        """The bytes that may come, and what they lead to, those first behind which the least is left."""
        ends, _ = self._automaton.end_states(at[0], EVERY_BYTE)
        alive = [(byte, StateId(int(ends[byte]))) for byte in self._bytes if ends[byte] != DEAD]
        left = {after: self._automaton.size(after) for after in {after for _, after in alive}}
        for byte, after in sorted(alive, key=lambda step: left[step[1]]):
            held = at[1]
            if self._automaton.remembers:
                after, held, _ = self._automaton.run_remembering(*at, bytes([byte]))
            if after != DEAD:
                yield byte, (after, held)

    def _keep(self, visited: list[Visited], number: int) -> None:
        """Remember the way to what was visited under a number, for all that is on it."""
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

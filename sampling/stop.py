"""Stop strings, found wherever they fall across tokens, in time linear in the text.

All stop strings are followed at once by the automaton of Aho and Corasick (CACM 18, 1975). Its state after some text
stands for the longest end of that text that begins a stop string, so the state's depth is also how much text may not be
shown yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

ROOT = 0


class StopStrings:
    """The automaton of a set of stop strings, immutable and shared. State 0 is the root."""

    def __init__(self, strings: Sequence[str]) -> None:
        self._next: list[dict[str, int]] = [{}]  # [states] trie edges
        self._failure: list[int] = [ROOT]  # [states] longest proper end of this state's string that is also a state
        self.depth: list[int] = [0]  # [states] characters from the root
        self.match_length: list[int] = [0]  # [states] longest stop string that ends here, 0 = none
        for string in strings:
            self._insert(string)
        self._link()

    def step(self, state: int, character: str) -> int:
        while state != ROOT and character not in self._next[state]:
            state = self._failure[state]
        return self._next[state].get(character, ROOT)

    def _insert(self, string: str) -> None:
        state = ROOT
        for character in string:
            state = self._next[state].get(character) or self._add_state(state, character)
        self.match_length[state] = len(string)

    def _add_state(self, parent: int, character: str) -> int:
        state = self._next[parent][character] = len(self._next)
        self._next.append({})
        self._failure.append(ROOT)
        self.depth.append(self.depth[parent] + 1)
        self.match_length.append(0)
        return state

    def _link(self) -> None:
        """Failure links, breadth first: those of shorter strings are ready when longer ones need them."""
        queue = deque(self._next[ROOT].values())
        while queue:
            state = queue.popleft()
            for character, child in self._next[state].items():
                self._failure[child] = self.step(self._failure[state], character)
                self.match_length[child] = self.match_length[child] or self.match_length[self._failure[child]]
                queue.append(child)


class StopMatcher:
    """Follows one output. `feed` gives the text that may be shown; once a stop string is complete, `matched` names it.

    The first stop string to be completed ends the output; of those completed by the same character, the longest. So the
    result does not depend on how the text was cut into pieces.
    """

    def __init__(self, stop: StopStrings | Sequence[str], *, include_stop_in_output: bool = False) -> None:
        self._strings = stop if isinstance(stop, StopStrings) else StopStrings(stop)
        self._include_stop = include_stop_in_output
        self._state = ROOT
        self._held_back = ""  # may be the beginning of a stop string
        self.matched: str | None = None

    def feed(self, piece: str) -> str:
        """Reads the next piece of text and returns what may now be shown. Nothing is read after a match."""
        if self.matched is not None:
            return ""
        text = self._held_back + piece
        for end in range(len(self._held_back) + 1, len(text) + 1):
            self._state = self._strings.step(self._state, text[end - 1])
            if length := self._strings.match_length[self._state]:
                return self._finish(text[:end], length)
        shown = len(text) - self._strings.depth[self._state]
        self._held_back = text[shown:]
        return text[:shown]

    def flush(self) -> str:
        """The text that is still held back; called when the output ends without a stop string."""
        rest, self._held_back = self._held_back, ""
        return rest

    def _finish(self, text: str, length: int) -> str:
        self.matched, self._held_back = text[-length:], ""
        return text if self._include_stop else text[:-length]

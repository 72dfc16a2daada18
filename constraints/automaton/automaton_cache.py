"""Minimal automata of formats and patterns that were met before, kept for the whole process.

What one keyword says of a text is the same in every schema, and most intersections are of few such: to determinise `email` takes 15
milliseconds. The key is how an expression is built, whatever grammar it is in, so equal ones are one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from .finite_automata import FiniteAutomaton, TooManyStates

_MAX_WORDS = 4_000_000  # of all automata that are kept
_WORDS_OF_OTHERS = 1_000  # of an automaton beside its transitions, and of one that has too many states


class AutomatonCache:
    """The most recently used automata. Thread-safe.

    Attributes: `hits` and `misses` count what was asked for.
    """

    def __init__(self, max_words: int = _MAX_WORDS) -> None:
        self._lock, self._max_words = threading.Lock(), max_words
        self._kept: OrderedDict[Hashable, FiniteAutomaton | int] = OrderedDict()  # or the states that it has more of
        self._num_words = self.hits = self.misses = 0

    def automaton(self, key: Hashable, most_states: int, make: Callable[[], FiniteAutomaton]) -> FiniteAutomaton:
        """The automaton that `make` makes for a key, which means the same in every grammar. Raises `TooManyStates` where it is
        known to have more than `most_states`, and when `make` does."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
            is_known = isinstance(known, FiniteAutomaton) or (known is not None and known >= most_states)
            self.hits, self.misses = self.hits + is_known, self.misses + (not is_known)
        if is_known:
            if isinstance(known, FiniteAutomaton) and known.num_states <= most_states:
                return known
            raise TooManyStates
        try:
            made = make()
        except TooManyStates:
            self._keep(key, most_states)
            raise
        self._keep(key, made)
        return made

    def _keep(self, key: Hashable, value: FiniteAutomaton | int) -> None:
        with self._lock:
            if key in self._kept:
                self._num_words -= _words_of(self._kept.pop(key))
            self._kept[key] = value
            self._num_words += _words_of(value)
            while self._num_words > self._max_words:
                self._num_words -= _words_of(self._kept.popitem(last=False)[1])


def _words_of(value: FiniteAutomaton | int) -> int:
    return _WORDS_OF_OTHERS + (value.next.size if isinstance(value, FiniteAutomaton) else 0)


AUTOMATON_CACHE = AutomatonCache()  # of the process

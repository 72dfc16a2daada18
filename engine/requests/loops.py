"""Loops: the last tokens are one cycle, again and again. Found in the tokens alone, with O(longest cycle) work a token at most."""

from __future__ import annotations

import copy
from dataclasses import dataclass

LONGEST_CYCLE = 48  # tokens
FEWEST_REPETITIONS = 4
MOST_BOUNDS = 8  # how many times the bound may be asked about: twice of characters, which have up to 4 bytes, a token each


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that was ended: the choice of tokens was narrowed to bring its value to an end."""

    path: str  # of the value: a JSON Pointer, "#/name", behind the name of the tool in its arguments, "f#/name"
    text: str  # what was repeated
    count: int  # how often, until it was seen
    start: int  # number of the token of the output with which that began


class LoopWatch:
    """Reads tokens and knows with which cycle they end, if it covers `bound` tokens and comes FEWEST_REPETITIONS times, at least.

    A cycle of period p covers the last m tokens when each of the last m - p is equal to the one p before it.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.num_read = 0
        self.longest = max(MOST_BOUNDS * bound, self.num_needed(LONGEST_CYCLE)) + LONGEST_CYCLE  # tokens that are remembered
        self._tokens: list[int] = []  # the last ones
        self._last_at: dict[int, int] = {}  # token -> its last place
        self._num_near = 0  # of the last tokens, how many on end were among the LONGEST_CYCLE before them
        self._fewest_near = min(self.num_needed(period) - period for period in range(1, LONGEST_CYCLE + 1))

    def num_needed(self, period: int, times: int = 1) -> int:
        """Tokens that a cycle has to cover at least, of `times` the bound."""
        return max(self.bound * times, FEWEST_REPETITIONS * period)

    def take(self, token_id: int) -> None:
        last = self._last_at.get(token_id)
        self._num_near = self._num_near + 1 if last is not None and self.num_read - last <= LONGEST_CYCLE else 0
        self._last_at[token_id] = self.num_read
        self._tokens.append(token_id)
        self.num_read += 1
        if len(self._tokens) > 4 * self.longest:
            del self._tokens[: -self.longest]

    def clear(self) -> None:
        """What was read so far is no part of any loop."""
        self._tokens.clear()
        self._last_at.clear()
        self._num_near = 0

    def fork(self) -> LoopWatch:
        child = copy.copy(self)
        child._tokens, child._last_at = self._tokens.copy(), self._last_at.copy()
        return child

    def period(self) -> int | None:
        """The shortest period of a cycle that covers what it has to."""
        if self._num_near < self._fewest_near:
            return None
        return next((period for period in self._candidates() if not self._num_missing(period)), None)

    def covered(self, period: int) -> int:
        """How many of the last tokens that are remembered a cycle of this period covers."""
        return self._covered(period, len(self._tokens))

    def covers(self, period: int, length: int) -> bool:
        """Whether a cycle of this period covers the last `length` tokens."""
        return self._covered(period, length) >= length

    def is_none_within(self, num_tokens: int) -> bool:
        """Whether, whatever the next so many tokens are, `period` is None behind each of them."""
        if self._num_near + num_tokens < self._fewest_near:
            return True
        fresh = min(self.num_needed(period) - period for period in range(1, LONGEST_CYCLE + 1))
        return num_tokens < min((fresh, *map(self._num_missing, self._candidates())))

    def last(self, length: int) -> list[int]:
        """The last tokens, of those that are remembered."""
        return self._tokens[-length:]

    def _num_missing(self, period: int) -> int:
        """How many tokens more a cycle has to cover."""
        needed = self.num_needed(period)
        return needed - min(self._covered(period, needed), needed)

    def _candidates(self) -> list[int]:
        """Periods of which the last token is part of a cycle, the shortest first."""
        tokens, last = self._tokens, len(self._tokens) - 1
        found, place = list[int](), max(last - LONGEST_CYCLE, 0)
        while (place := tokens.index(tokens[last], place)) < last:
            found.append(last - place)
            place += 1
        return found[::-1]

    def _covered(self, period: int, most: int) -> int:
        """How many of the last tokens a cycle covers, up to `most`."""
        tokens, covered = self._tokens, period
        most = min(most, len(tokens))
        while covered < most and tokens[-1 - covered] == tokens[-1 - covered + period]:
            covered += 1
        return covered

"""Strings of decimal digits between two bounds: what the texts of numbers are made of.

Bounds are compared digit by digit, from the last position to the first, so that rests are shared and an interval costs a
number of nodes linear in the digits of its bounds. "Any k more digits" is a counter.
"""

from __future__ import annotations

from ...grammar.expression import EMPTY, FAIL, Grammar, Node


class Digits:
    """Builds digit strings; at most `limit` digits stand before a point, and as many after it."""

    def __init__(self, grammar: Grammar, limit: int) -> None:
        self.grammar, self.limit = grammar, limit

    def one(self, low: int, high: int) -> Node:
        """One digit out of low..high."""
        if low > high:
            return FAIL
        return self.grammar.literal(str(low)) if low == high else self.grammar.chars([(48 + low, 48 + high)])

    def some(self, low: int, high: int) -> Node:
        """`low` to `high` digits."""
        return self.grammar.repeat(self.one(0, 9), low, high)

    def integers(self, first: int, last: int) -> Node:
        """The integers first..last (0 <= first) without leading zeros; those of more than `limit` digits are left out."""
        last = min(last, 10**self.limit - 1)
        if first > last:
            return FAIL
        if first == 0:
            return self.grammar.alt(self.one(0, 0), self.integers(1, last))
        low, high = str(first), str(last)
        if len(low) == len(high):
            return self.same_length(low, high)
        starts_full, ends_full = first == 10 ** (len(low) - 1), last == 10 ** len(high) - 1
        shortest, longest = len(low) + (not starts_full), len(high) - (not ends_full)
        return self.grammar.alt(
            FAIL if starts_full else self.same_length(low, "9" * len(low)),
            self.grammar.seq(self.one(1, 9), self.some(shortest - 1, longest - 1)) if shortest <= longest else FAIL,
            FAIL if ends_full else self.same_length("1" + "0" * (len(high) - 1), high),
        )

    def same_length(self, low: str, high: str) -> Node:
        """Digit strings from `low` to `high`, which have the same length."""
        at_least = at_most = within = EMPTY  # rests after digits equal to low's, to high's, to both's
        shared = shared_prefix_length(low, high)
        for index in reversed(range(len(low))):
            free = self.some(len(low) - index - 1, len(low) - index - 1)
            a, b = int(low[index]), int(high[index])
            if index < shared:
                within = self.grammar.seq(self.one(a, a), within)
                continue
            if index == shared:
                within = self._fork((a, a, at_least), (a + 1, b - 1, free), (b, b, at_most))
            at_least = self._fork((a, 9, free)) if at_least == free else self._fork((a, a, at_least), (a + 1, 9, free))
            at_most = self._fork((0, b, free)) if at_most == free else self._fork((0, b - 1, free), (b, b, at_most))
        return within

    def _fork(self, *options: tuple[int, int, Node]) -> Node:
        return self.grammar.alt(*(self.grammar.seq(self.one(low, high), rest) for low, high, rest in options))


class FractionBounds:
    """The digits behind a point, from `low` to `high`; None means no bound. No fraction is empty or ends in 0."""

    def __init__(
        self, digits: Digits, low: str | None = None, high: str | None = None, includes_low: bool = True, includes_high: bool = True
    ) -> None:
        self.digits, self.low, self.high = digits, low, high
        self.includes_low, self.includes_high = low is None or includes_low, high is None or includes_high

    def node(self) -> Node:
        """All fractions within the bounds."""
        if self.low is None and self.high is None:
            return self._anything(0)
        memo = self.digits.grammar.memo
        key = ("fraction", self.digits.limit, self.low, self.high, self.includes_low, self.includes_high)
        known = memo.get(key)
        if known is None:
            known = memo[key] = self._new_node()
        return known

    def _new_node(self) -> Node:
        low, high = self.low or "", self.high or ""
        rests: dict[tuple[bool, bool], Node] = {}  # keys: equal to low, to high, up to here
        for index in reversed(range(max(len(low), len(high)) + 1)):
            rests = {(a, b): self._rest(index, a, b, rests) for a in (False, True) for b in (False, True)}
        return rests[self.low is not None, self.high is not None]

    def _rest(self, index: int, on_low: bool, on_high: bool, later: dict[tuple[bool, bool], Node]) -> Node:
        """What may follow `index` digits, all of them equal to those of low (if `on_low`) and of high (if `on_high`)."""
        low, high = (self.low or "")[index:], (self.high or "")[index:]
        on_low = on_low and low != ""  # past the end of low, everything not empty is greater
        if index >= self.digits.limit or (on_high and not high):
            return FAIL
        if not on_low and not on_high:
            return self._anything(index)
        first, last = int(low[0]) if on_low else 0, int(high[0]) if on_high else 9
        if first > last:
            return FAIL
        options = [
            self._digit(index, edge, on_low and edge == first, on_high and edge == last, later)
            for edge in sorted({first, last})
        ]
        after_middle = self.digits.grammar.alt(EMPTY, self._anything(index + 1))
        options.append(self.digits.grammar.seq(self.digits.one(first + 1, last - 1), after_middle))
        return self.digits.grammar.alt(*options)

    def _digit(self, index: int, digit: int, on_low: bool, on_high: bool, later: dict[tuple[bool, bool], Node]) -> Node:
        """The digit at `index` and what may follow it, the end included."""
        below_low = on_low and not (self.low is not None and len(self.low) == index + 1 and self.includes_low)
        above_high = on_high and not (self.high is not None and (len(self.high) > index + 1 or self.includes_high))
        end = FAIL if digit == 0 or below_low or above_high else EMPTY
        rest = later[on_low, on_high] if on_low or on_high else self._anything(index + 1)
        return self.digits.grammar.seq(self.digits.one(digit, digit), self.digits.grammar.alt(end, rest))

    def _anything(self, index: int) -> Node:
        """Any rest, not empty, after `index` digits."""
        room = self.digits.limit - index
        return self.digits.grammar.seq(self.digits.some(0, room - 1), self.digits.one(1, 9)) if room > 0 else FAIL


def shared_prefix_length(left: str, right: str) -> int:
    """Length of the longest common prefix."""
    shortest = min(len(left), len(right))
    for index in range(shortest):
        if left[index] != right[index]:
            return index
    return shortest

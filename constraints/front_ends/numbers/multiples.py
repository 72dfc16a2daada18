"""The multiples of a decimal, each in its one canonical spelling (see numbers.py).

A step is `factor * 10**exponent`, with a factor that ten does not divide. A multiple is then a whole number of units of
10**exponent that the factor divides. It is written as its digits and zeros (exponent > 0) or with a point among its digits
(exponent < 0, where zeros at the end of the fraction are left out). Along the bounds its digits are spelled out; elsewhere only
the remainder of the digits so far is carried along (`Grammar.multiple`), so nothing depends on the size of the factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, gcd

from ...base.errors import ConstraintError, ConstraintLimit
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...numba_support.divisors import COUNTS, MAX_MODULUS
from .digits import shared_prefix_length
from .numbers import DEFAULT_DIGITS, MIN_MAGNITUDE, MIN_PLAIN, Interval, canonical_number, number_node, shifted

_MAX_LISTED = 1_000  # multiples within bounds that are listed, where remainders would be slow or too large
_ONE = Decimal(1)
_MAX_EXPONENT = 10_000  # of a step; far beyond every double


def multiple_node(
    grammar: Grammar,
    step: Decimal,
    *,
    integer: bool,
    low: Decimal | None = None,
    high: Decimal | None = None,
    exclusive_low: bool = False,
    exclusive_high: bool = False,
    digits: int = DEFAULT_DIGITS,
) -> Node:
    """The canonical spellings of all multiples of `step` between `low` and `high`; of integers only, if `integer`.

    FAIL when there is none. Raises `ConstraintError` for a step that is not positive, `ConstraintLimit` for one with too many
    digits: a factor beyond 31 bits, or more places than `digits`.
    """
    key = ("multiple", step, integer, low, high, exclusive_low, exclusive_high, digits)
    if key not in grammar.memo:
        interval = Interval(low=low, high=high, exclusive_low=exclusive_low, exclusive_high=exclusive_high)
        factor, exponent = _factored(step, integer)
        few = _few_multiples(factor, exponent, interval, digits)
        if few is not None and factor > MAX_MODULUS:
            return grammar.words(canonical_number(value, digits).encode() for value in few)
        if factor > MAX_MODULUS:
            raise ConstraintLimit(f"multiples of {step}, which has too many digits", limit="modulus", value=MAX_MODULUS)
        if max(-exponent, digits) >= COUNTS or -exponent > digits:
            raise ConstraintLimit(f"multiples of {step}, with more than {digits} digits", limit="digits", value=digits)
        multiples, longest = _Multiples(grammar, factor, max(-exponent, 0)), digits - exponent
        zero = grammar.literal("0") if interval.contains(0) else FAIL
        positive, negative = (multiples.positive(*_units(part, exponent, longest)) for part in (interval, interval.mirrored()))
        zeros = grammar.literal("0" * min(max(exponent, 0), digits))
        grammar.memo[key] = grammar.alt(zero, grammar.seq(positive, zeros), grammar.seq(grammar.literal("-"), negative, zeros))
    return grammar.memo[key]


def not_multiple_node(
    grammar: Grammar,
    steps: list[Decimal],
    *,
    integer: bool,
    multiple_of: Decimal | None = None,
    low: Decimal | None = None,
    high: Decimal | None = None,
    exclusive_low: bool = False,
    exclusive_high: bool = False,
    digits: int = DEFAULT_DIGITS,
) -> Node:
    """The numbers in an interval (multiples of `multiple_of`, if it is given) that are multiples of none of some steps."""
    if any(divides(step, multiple_of, integer) for step in steps):
        return FAIL
    if steps and (multiple_of is not None or integer):
        interval = Interval(low=low, high=high, exclusive_low=exclusive_low, exclusive_high=exclusive_high)
        few = _few_multiples(*_factored(multiple_of or _ONE, integer), interval, digits)
        if few is not None:
            kept = (value for value in few if not any(_is_multiple(value, step) for step in steps))
            return grammar.words(canonical_number(value, digits).encode() for value in kept)
    if multiple_of is None:
        out = number_node(
            grammar, integer=integer, low=low, high=high, exclusive_low=exclusive_low, exclusive_high=exclusive_high, digits=digits
        )
    else:
        out = multiple_node(
            grammar, multiple_of, integer=integer, low=low, high=high, exclusive_low=exclusive_low,
            exclusive_high=exclusive_high, digits=digits,
        )  # fmt: skip
    for step in steps:
        if step == 1:
            multiples = number_node(grammar, integer=True, digits=digits)
        else:
            multiples = multiple_node(grammar, step, integer=integer, digits=digits)
        out = grammar.without(out, multiples)
    return out


def divides(step: Decimal, whole: Decimal | None, integer: bool) -> bool:
    """Whether all multiples of `whole` (all numbers, if None), or all integers among them, are multiples of `step`."""
    if whole is None and not integer:
        return False
    factor, exponent = _factored(step, integer)
    other, shift = (1, 0) if whole is None else _factored(whole, integer)
    least = min(exponent, shift)
    return other * 10 ** (shift - least) % (factor * 10 ** (exponent - least)) == 0


def common_step(left: Decimal, right: Decimal) -> Decimal:
    """The step whose multiples are the multiples of both."""
    (a, x), (b, y) = _factored(left, False), _factored(right, False)
    least = min(x, y)
    a, b = a * 10 ** (x - least), b * 10 ** (y - least)
    return shifted(Decimal(a * b // gcd(a, b)), least)


def _factored(step: Decimal, integer: bool) -> tuple[int, int]:
    """Factor and exponent of a step; of its least common multiple with 1, if `integer`."""
    if not step.is_finite() or step <= 0:
        raise ConstraintError(f"multiples of {step} are not defined", instead="a number above 0")
    _, shown, exponent = step.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, shown)).rstrip("0")
    exponent += len(shown) - len(text)
    if max(abs(exponent), len(text)) > _MAX_EXPONENT:
        raise ConstraintLimit("a step with too many digits", limit="digits", value=_MAX_EXPONENT)
    factor = int(text)
    return (factor // gcd(factor, 10**-exponent), 0) if integer and exponent < 0 else (factor, exponent)


def _few_multiples(factor: int, exponent: int, interval: Interval, digits: int) -> list[Decimal] | None:
    """The multiples of factor * 10**exponent in an interval if they are few, with at most `digits` digits each; else
    None."""
    low, high = interval.low, interval.high
    if low is None or high is None or interval.is_empty() or exponent < -digits:
        return None
    if max(abs(low.adjusted()), abs(high.adjusted()), len(low.as_tuple().digits), len(high.as_tuple().digits)) > digits:
        return None
    step = Fraction(factor) * Fraction(10) ** exponent
    first, last = ceil(Fraction(low) / step), floor(Fraction(high) / step)
    if last - first >= _MAX_LISTED or exponent > digits:
        return None
    values = (shifted(Decimal(count * factor), exponent) for count in range(first, last + 1))
    return [value for value in values if interval.contains(value)]


def _is_multiple(value: Decimal, step: Decimal) -> bool:
    return (Fraction(value) / Fraction(step)).denominator == 1


def _units(interval: Interval, exponent: int, longest: int) -> tuple[int, int]:
    """(first, last) of the positive numbers x of at most `longest` digits for which x * 10**exponent is in the
    interval."""
    above_all = interval.low is not None and interval.low > 0 and interval.low.adjusted() >= longest + exponent
    if longest < 1 or above_all or (interval.high is not None and interval.high <= 0):
        return 1, 0
    first, last = 1, 10**longest - 1
    if exponent < 0:
        first = max(first, _ceiling(shifted(MIN_MAGNITUDE, -exponent)))
    if interval.low is not None and interval.low > 0:
        scaled = shifted(interval.low, -exponent)
        first = max(first, _floor(scaled) + 1 if interval.exclusive_low else _ceiling(scaled))
    if interval.high is not None and interval.high.adjusted() < longest + exponent:
        scaled = shifted(interval.high, -exponent)
        last = min(last, _ceiling(scaled) - 1 if interval.exclusive_high else _floor(scaled))
    return first, last


def _floor(value: Decimal) -> int:
    return 0 if value.adjusted() < 0 else int(value)


def _ceiling(value: Decimal) -> int:
    floor = _floor(value)
    return floor if value == floor else floor + 1


@dataclass(frozen=True, slots=True)
class _Multiples:
    """Builds the texts of positive numbers of units, divisible by `modulus`; `places` digits of a number are behind its point."""

    grammar: Grammar
    modulus: int
    places: int

    def positive(self, first: int, last: int) -> Node:
        """The texts of all numbers from `first` to `last`, with an exponent where they are so small that it is written."""
        one, least_plain = 10**self.places, 10 ** max(self.places + MIN_PLAIN.adjusted(), 0)
        below_one = self._spelled(max(first, least_plain), min(last, one - 1), self.places)
        parts = [self._from_one(max(first, one), last), self.grammar.seq(self.grammar.literal("0"), below_one)]
        for places in range(self.places + MIN_PLAIN.adjusted()):
            mantissa = _Multiples(self.grammar, self.modulus, places)
            texts = mantissa._from_one(max(first, 10**places), min(last, 10 ** (places + 1) - 1))
            parts.append(self.grammar.seq(texts, self.grammar.literal(f"e-{self.places - places:02d}")))
        return self.grammar.alt(*parts)

    def _from_one(self, first: int, last: int) -> Node:
        """The texts of numbers with at least one digit before the point, the first of them not 0."""
        if first > last:
            return FAIL
        shortest, longest = len(str(first)), len(str(last))
        starts_full, ends_full = first == 10 ** (shortest - 1), last == 10**longest - 1
        if shortest == longest and not (starts_full and ends_full):
            return self._spelled(first, last, longest)
        low, high = shortest - self.places - starts_full, longest - self.places - 2 + ends_full  # digits after the first
        return self.grammar.alt(
            FAIL if starts_full else self._spelled(first, 10**shortest - 1, shortest),
            self._led(low, high) if low <= high else FAIL,
            FAIL if ends_full else self._spelled(10 ** (longest - 1), last, longest),
        )

    def _led(self, low: int, high: int) -> Node:
        """A digit that is not 0, `low` to `high` digits, perhaps a fraction."""
        rests = [self.grammar.multiple(self.modulus, digit, self.places, low, high) for digit in range(1, 10)]
        return self._fork(dict(enumerate(rests, 1)))

    def _spelled(self, first: int, last: int, width: int) -> Node:
        """The texts of exactly `width` digits, zeros in front included. Rests are built from the last digit to the
        first."""
        if first > last:
            return FAIL
        low, high = str(first).zfill(width), str(last).zfill(width)
        shared = shared_prefix_length(low, high)
        on_low = on_high = on_both = FAIL  # what may follow after digits equal to those of low, of high, of both
        for index in reversed(range(width)):
            a, b, rest_of_low = int(low[index]), int(high[index]), low[index + 1 :]
            if index < shared:
                on_both = self._after(low, index, {a: (on_both, rest_of_low)})
                continue
            from_low = {a: (on_low, rest_of_low)}
            if index == shared:
                between = dict.fromkeys(range(a + 1, b))
                on_both = self._after(low, index, {**from_low, **between, b: (on_high, "")})
            on_high = self._after(high, index, {**dict.fromkeys(range(b)), b: (on_high, "")})
            on_low = self._after(low, index, {**from_low, **dict.fromkeys(range(a + 1, 10))})
        return on_both

    def _after(self, text: str, index: int, digits: dict[int, tuple[Node, str] | None]) -> Node:
        """What may follow text[:index]: digits, each with what may follow it and the digits of the lower bound, None = anything."""
        left, written = len(text) - index - 1, int(text[:index] or "0")
        options = {}
        for digit, edge in digits.items():
            remainder = (10 * written + digit) % self.modulus
            rest, rest_of_low = edge or (self._anything(remainder, left), "")
            is_whole = left == self.places or (left < self.places and digit > 0)
            ends = is_whole and remainder * 10**left % self.modulus == 0 and not rest_of_low.strip("0")
            options[digit] = self.grammar.alt(EMPTY if ends else FAIL, rest)
        point = self.grammar.literal("." if left + 1 == self.places else "")
        return self.grammar.seq(point, self._fork(options))

    def _anything(self, remainder: int, left: int) -> Node:
        """What may follow when `left` digits of any kind are left, without ending here."""
        if left > self.places:
            return self.grammar.multiple(self.modulus, remainder, self.places, left - self.places, left - self.places)
        fraction = self.grammar.fraction(self.modulus, remainder, left)
        return self.grammar.seq(self.grammar.literal("."), fraction) if left == self.places else fraction

    def _fork(self, rests: dict[int, Node]) -> Node:
        """One of some digits, then its rest."""
        digits: dict[Node, list[tuple[int, int]]] = {}
        for digit, rest in rests.items():
            digits.setdefault(rest, []).append((0x30 + digit, 0x30 + digit))
        return self.grammar.alt(*(self.grammar.seq(self.grammar.chars(ranges), rest) for rest, ranges in digits.items()))

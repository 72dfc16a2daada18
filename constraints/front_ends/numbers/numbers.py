"""JSON numbers in an interval, each in its one canonical spelling.

An integer value is spelled without fraction or exponent, any other number as Python's `repr` spells it: plain notation from
0.0001 upwards ("12.5"), otherwise a mantissa and a negative exponent of at least two digits ("2.5e-07"). Values are decimals:
at most `digits` digits stand before the point and as many after it, and exponents end where doubles end (e-324).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Final

from ...base.errors import ConstraintError, ConstraintLimit
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.lowering_cache import LOWERING_CACHE
from .digits import Digits, FractionBounds

DEFAULT_DIGITS: Final = 300
MIN_PLAIN: Final = Decimal("0.0001")  # smaller magnitudes are spelled with an exponent
MIN_MAGNITUDE: Final = Decimal("3e-324")  # smaller magnitudes are zero when read as doubles
_MIN_PLAIN_DIGITS: Final = 4  # behind its point
_ZERO: Final = Decimal(0)
_ONE: Final = Decimal(1)
_TEN: Final = Decimal(10)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The numbers from `low` to `high`; None means no bound."""

    low: Decimal | None = None
    high: Decimal | None = None
    exclusive_low: bool = False
    exclusive_high: bool = False

    def contains(self, value: Decimal | int) -> bool:
        return self._is_above_low(value) and self._is_below_high(value)

    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and not (self.contains(self.low) or self.low < self.high)

    def from_(self, low: Decimal, exclusive: bool = False) -> Interval:
        """The part that is at least (greater than, if `exclusive`) `low`."""
        if self.low is not None and (self.low > low or (self.low == low and self.exclusive_low)):
            return self
        return replace(self, low=low, exclusive_low=exclusive)

    def below(self, high: Decimal) -> Interval:
        """The part that is less than `high`."""
        return self if self.high is not None and self.high < high else replace(self, high=high, exclusive_high=True)

    def within(self, other: Interval) -> Interval:
        """The part that lies in `other` too."""
        out = self if other.low is None else self.from_(other.low, other.exclusive_low)
        return out if other.high is None else out.mirrored().from_(other.high.copy_negate(), other.exclusive_high).mirrored()

    def mirrored(self) -> Interval:
        """The numbers -x."""
        low = None if self.high is None else self.high.copy_negate()
        high = None if self.low is None else self.low.copy_negate()
        return Interval(low=low, high=high, exclusive_low=self.exclusive_high, exclusive_high=self.exclusive_low)

    def scaled(self, exponent: int) -> Interval:
        """The numbers x * 10**exponent, exactly."""
        low = None if self.low is None else shifted(self.low, exponent)
        high = None if self.high is None else shifted(self.high, exponent)
        return replace(self, low=low, high=high)

    def _is_above_low(self, value: Decimal | int) -> bool:
        return self.low is None or value > self.low or (value == self.low and not self.exclusive_low)

    def _is_below_high(self, value: Decimal | int) -> bool:
        return self.high is None or value < self.high or (value == self.high and not self.exclusive_high)


def number_node(
    grammar: Grammar,
    *,
    integer: bool,
    low: Decimal | None = None,
    high: Decimal | None = None,
    exclusive_low: bool = False,
    exclusive_high: bool = False,
    digits: int = DEFAULT_DIGITS,
) -> Node:
    """The canonical spellings of all numbers between `low` and `high` (None = no bound); of integers only, if `integer`.

    FAIL when there is none. Raises `ConstraintLimit` when a bound needs more than `digits` digits on a side of its point.
    """
    key = ("number", integer, low, high, exclusive_low, exclusive_high, digits)
    known = grammar.memo.get(key)
    if known is None:
        interval = Interval(low=low, high=high, exclusive_low=exclusive_low, exclusive_high=exclusive_high)
        if low is None and high is None:  # part by part, so that what others have in common with it is known
            known = _interval_node(grammar, interval, integer, digits)
        else:
            lower = partial(_interval_node, grammar, interval, integer, digits)
            known = LOWERING_CACHE.node(grammar, key, lower, may_be_rare=True)
        grammar.memo[key] = known
    return known


def _interval_node(grammar: Grammar, interval: Interval, integer: bool, digits: int) -> Node:
    magnitudes = _Magnitudes(Digits(grammar, digits), integer)
    positive = negative = FAIL
    if interval.high is None or interval.high >= 0:
        positive = magnitudes.node(_within_digits(interval.from_(_ZERO), digits))
    if interval.low is None or interval.low < 0:
        negative = magnitudes.node(_within_digits(interval.mirrored().from_(_ZERO, exclusive=True), digits))
    return grammar.alt(positive, grammar.seq(grammar.literal("-"), negative))


def canonical_number(value: Decimal | int | float, digits: int = DEFAULT_DIGITS) -> str:
    """The one text of a number, as `number_node` spells it.

    Raises `ConstraintError` for NaN and infinities, `ConstraintLimit` for more than `digits` digits on a side of the point.

    >>> canonical_number(1e16), canonical_number(Decimal("0.00250")), canonical_number(2.5e-7)
    ('10000000000000000', '0.0025', '2.5e-07')
    """
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ConstraintError(f"{value} is not a JSON number", instead="a finite number")
    magnitude, sign = exact.copy_abs(), "-" if exact < 0 else ""
    if 0 < magnitude < MIN_PLAIN:
        exponent = -magnitude.adjusted()
        return f"{sign}{canonical_number(shifted(magnitude, exponent), digits)}e-{exponent:02d}"
    whole, fraction = split_decimal(magnitude, digits)
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def split_decimal(value: Decimal, digits: int = DEFAULT_DIGITS) -> tuple[int, str]:
    """Integer part and fraction digits, without trailing zeros, of a number that is not negative.

    Raises `ConstraintLimit` when either has more than `digits` digits.
    """
    _, shown, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, shown)).rstrip("0")
    exponent += len(shown) - len(text)
    if max(len(text) + exponent, -exponent if text else 0) > digits:
        raise ConstraintLimit(f"a number of more than {digits} digits", limit="digits", value=digits)
    whole = text[:exponent] if exponent < 0 else text + "0" * exponent
    return int(whole or "0"), text[exponent:].rjust(-exponent, "0") if exponent < 0 and text else ""


def shifted(value: Decimal, exponent: int) -> Decimal:
    """value * 10**exponent without rounding."""
    sign, shown, old = value.as_tuple()
    assert isinstance(old, int)
    return Decimal((sign, shown, old + exponent))


def _within_digits(interval: Interval, digits: int) -> Interval:
    """An interval of the same spellable numbers, without a bound beyond all of them."""
    if interval.high is not None and interval.high.adjusted() >= digits:
        return replace(interval, high=None, exclusive_high=False)
    return interval


class _Magnitudes:
    """Builds the texts of numbers without a sign. What most intervals have in common, such as all numbers without an exponent, is
    made once for each grammar."""

    def __init__(self, digits: Digits, integer: bool) -> None:
        self.digits, self.integer = digits, integer

    def node(self, interval: Interval) -> Node:
        """All numbers of an interval that has a lower bound, 0 or more."""
        grammar = self.digits.grammar
        key = ("magnitudes", self.integer, self.digits.limit, interval)
        known = grammar.memo.get(key)
        if known is None:
            zero = self.digits.one(0, 0) if interval.contains(0) else FAIL
            if self.integer:
                known = grammar.alt(zero, self._plain(interval.from_(_ONE)))
            else:
                tiny = self._tiny(interval.from_(MIN_MAGNITUDE).below(MIN_PLAIN))
                known = grammar.alt(zero, self._plain(interval.from_(MIN_PLAIN)), tiny)
            grammar.memo[key] = known
        return known

    def _plain(self, interval: Interval) -> Node:
        """Numbers without exponent, not zero."""
        if interval.is_empty():
            return FAIL
        assert interval.low is not None
        room = max(self.digits.limit, _MIN_PLAIN_DIGITS)
        first, low = split_decimal(interval.low, room)
        last, high = (10**room, "") if interval.high is None else split_decimal(interval.high, room)
        if first == last:
            return self._with_integer_part(first, last, interval, low, high)
        return self.digits.grammar.alt(
            self._with_integer_part(first, first, interval, low, None),
            self._with_integer_part(first + 1, last - 1, interval, None, None),
            self._with_integer_part(last, last, interval, None, high),
        )

    def _with_integer_part(self, first: int, last: int, interval: Interval, low: str | None, high: str | None) -> Node:
        """The integers first..last: by themselves where the interval contains them, or followed by a fraction between
        `low` and `high`."""
        if first > last:
            return FAIL
        grammar = self.digits.grammar
        options = [EMPTY if first > 0 and interval.contains(first) else FAIL]
        if not self.integer:
            bounds = FractionBounds(self.digits, low, high, not interval.exclusive_low, not interval.exclusive_high)
            options.append(grammar.seq(grammar.literal("."), bounds.node()))
        return grammar.seq(self.digits.integers(first, last), grammar.alt(*options))

    def _tiny(self, interval: Interval) -> Node:
        """Numbers below `MIN_PLAIN`: mantissa and exponent."""
        if interval.is_empty():
            return FAIL
        grammar = self.digits.grammar
        key = ("tiny", self.digits.limit, interval)
        known = grammar.memo.get(key)
        if known is None:
            known = grammar.memo[key] = self._new_tiny(interval)
        return known

    def _new_tiny(self, interval: Interval) -> Node:
        assert interval.low is not None and interval.high is not None
        least, greatest = -interval.low.adjusted(), -interval.high.adjusted()  # exponents without their sign
        if least == greatest:
            return self._scientific(interval.scaled(least), least, least)
        decade = Interval(low=_ONE).below(_TEN)
        return self.digits.grammar.alt(
            self._scientific(interval.scaled(least).below(_TEN), least, least),
            self._scientific(decade, greatest + 1, least - 1),
            self._scientific(interval.scaled(greatest).from_(_ONE), greatest, greatest),
        )

    def _scientific(self, mantissas: Interval, first: int, last: int) -> Node:
        """A mantissa of an interval within [1, 10) and one of the exponents -first to -last."""
        exponents = []
        if first <= min(last, 99):
            exponents.append(self.digits.same_length(f"{first:02d}", f"{min(last, 99):02d}"))
        if max(first, 100) <= last:
            exponents.append(self.digits.same_length(str(max(first, 100)), str(last)))
        grammar = self.digits.grammar
        return grammar.seq(self._plain(mantissas), grammar.literal("e-"), grammar.alt(*exponents))

"""`decimal.Decimal` as JSON: a number, or a string of digits, whichever can say all that is asked of the value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_QUOTIENT_DIGITS = 28  # to which Python divides decimals; more are an error
MAX_FRACTION_DIGITS = 4  # multiples of 10**-k are spelled without exponent up to here
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def decimal_schemas(constraints: Any) -> list[dict[str, Any]]:
    """The JSON schemas of a decimal with Pydantic's constraints (`ge`, `max_digits`, ...), any of which may hold.

    A number cannot limit digits in total, nor have many places without an exponent. A string that is compared with a bound other
    than zero, or with a step, is spelled as a number is.
    """
    bounds = {name: Decimal(constraints[name]) for name in _BOUNDS if constraints.get(name) is not None}
    digits, places, step = (constraints.get(name) for name in ("max_digits", "decimal_places", "multiple_of"))
    whole = None if digits is None or places is None else max(digits - places, 0)  # digits before the point
    places = places if digits is None or places is None else min(digits, places)
    limits = {_BOUNDS[name]: json_number(bound) for name, bound in bounds.items()}
    if step is not None:
        limits |= _divisible(Decimal(step), limits)
    schemas = []
    if (digits is None or whole is not None) and (places or 0) <= MAX_FRACTION_DIGITS:
        schemas.append(_number(limits, whole, places))
    is_unsigned = step is None and bounds in ({"ge": 0}, {"gt": 0})
    texts = "|".join(_texts(digits, places, whole, is_unsigned and "gt" in bounds))
    text = {"type": "string", "pattern": f"^{'' if is_unsigned else '-?'}(?:{texts})$"}
    return [*schemas, text | ({"x-maskwright-number": limits} if limits and not is_unsigned else {})]


def _divisible(step: Decimal, limits: dict[str, Any]) -> dict[str, Any]:
    """The limits of values that can be told to be multiples of a step."""
    most = json_number(step.scaleb(_QUOTIENT_DIGITS))
    low, high = limits.get("exclusiveMinimum", -most), limits.get("exclusiveMaximum", most)
    return {"multipleOf": json_number(step), "exclusiveMinimum": max(low, -most), "exclusiveMaximum": min(high, most)}


def _number(limits: dict[str, Any], whole: int | None, places: int | None) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = [limits]
    if whole is not None:
        end = json_number(Decimal(10) ** whole)
        conditions.append({"exclusiveMaximum": end, "exclusiveMinimum": -end})
    if whole == 0:
        conditions.append({"not": {"const": 0}})  # its one digit stands before the point
    if places is not None:
        conditions.append({"multipleOf": json_number(Decimal(1).scaleb(-places))})
    out: dict[str, Any] = {"type": "number"}
    more = []
    for condition in filter(None, conditions):
        if out.keys() & condition.keys():
            more.append(condition)
        else:
            out |= condition
    return out | ({"allOf": more} if more else {})


def _texts(digits: int | None, places: int | None, whole: int | None, is_positive: bool) -> list[str]:
    """Patterns of the digits, without a sign: at most `digits` in total, `whole` before the point and `places` behind it."""
    fraction = None if digits is None and places is None else min(x for x in (digits, places) if x is not None)
    below_one = _positive_fractions(fraction) if is_positive else ["0" + _fraction(fraction, is_needed=whole == 0)]
    if digits is None:
        return [*below_one, r"[1-9]\d*" + _fraction(fraction)]
    if whole is not None:
        return [*below_one, *([rf"[1-9]\d{{0,{whole - 1}}}" + _fraction(places)] if whole > 0 else [])]
    return [*below_one, *(rf"[1-9]\d{{{i - 1}}}" + _fraction(digits - i) for i in range(1, digits + 1))]


def _fraction(places: int | None, is_needed: bool = False) -> str:
    if places == 0:
        return ""
    return rf"(?:\.\d{'+' if places is None else f'{{1,{places}}}'}){'' if is_needed else '?'}"


def _positive_fractions(places: int | None) -> list[str]:
    """0.x, not zero."""
    if places is None:
        return [r"0\.0*[1-9]\d*"]
    return [rf"0\.0{{{zeros}}}[1-9]\d{{0,{places - 1 - zeros}}}" for zeros in range(places)]


def json_number(value: Decimal) -> int | float | Decimal:
    """The plainest Python number equal to a decimal."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else value

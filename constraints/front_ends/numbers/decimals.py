"""`decimal.Decimal` as JSON: a number, or a string of digits, whichever can say all that is asked of the value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_QUOTIENT_DIGITS = 28  # to which Python divides decimals; more are an error
MAX_FRACTION_DIGITS = 4  # multiples of 10**-k are spelled without exponent up to here
_SMALL = Decimal("0.0001")  # numbers below are spelled with an exponent
_MIRRORED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}  # of bounds, those of the negated value
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def decimal_schemas(constraints: Any) -> list[dict[str, Any]]:
    """The JSON schemas of a decimal with Pydantic's constraints (`ge`, `max_digits`, ...), any of which may hold.

    A number cannot limit digits in total, nor have many places without an exponent. A string that is compared with a bound other
    than zero, or with a step, is spelled as a number is; without a step also below 1e-4, where a number would have an exponent.
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
    if not schemas and limits and not is_unsigned and step is None:
        small = (f"^{condition}-?(?:{texts})$" for condition in _small_conditions(bounds))
        schemas += [{"type": "string", "pattern": pattern} for pattern in small]
    text = {"type": "string", "pattern": f"^{'' if is_unsigned else '-?'}(?:{texts})$"}
    return [*schemas, text | ({"x-maskwright-number": limits} if limits and not is_unsigned else {})]


def _small_conditions(bounds: dict[str, Decimal]) -> list[str]:
    """Lookaheads for the texts of what lies within bounds and between zero and _SMALL, one for each sign."""
    signs = {"": bounds, "-": {_MIRRORED[name]: -bound for name, bound in bounds.items()}}
    conditions = []
    for sign, sizes in signs.items():
        if all(bound < _SMALL if name in ("ge", "gt") else bound > 0 for name, bound in sizes.items()):
            within = (_digits(name, bound) for name, bound in sizes.items() if 0 < bound < _SMALL)
            conditions.append(rf"(?={sign}0\.0000\d*[1-9])" + "".join(rf"(?={sign}0\.(?:{each})$)" for each in within))
    return conditions


def _digits(name: str, bound: Decimal) -> str:
    """The digits behind the point of what lies on one side of a bound between 0 and 1."""
    digits = f"{bound:f}".partition(".")[2].rstrip("0")
    if name in ("ge", "gt"):
        beyond = [f"{digits[:place]}[{int(digit) + 1}-9]\\d*" for place, digit in enumerate(digits) if digit < "9"]
        return "|".join([*beyond, digits + (r"\d*" if name == "ge" else r"\d*[1-9]\d*")])
    beyond = [f"{digits[:place]}[0-{int(digit) - 1}]\\d*" for place, digit in enumerate(digits) if digit > "0"]
    shorter = [digits[:place] for place in range(1, len(digits))]
    return "|".join([*beyond, *shorter, *([f"{digits}0*"] if name == "le" else [])])


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

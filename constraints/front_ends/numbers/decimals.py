"""`decimal.Decimal` as JSON: a number, or a string of digits, whichever can say all that is asked of the value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

MAX_FRACTION_DIGITS = 4  # multiples of 10**-k are spelled without exponent up to here
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def decimal_schemas(constraints: Any) -> list[dict[str, Any]]:
    """The JSON schemas of a decimal with Pydantic's constraints (`ge`, `max_digits`, ...), any of which may hold.

    A number cannot limit digits in total, a string cannot compare with a bound other than zero. Where neither form can say it
    all, the number says what JSON Schema can, and compiling refuses the rest by name.
    """
    bounds = {name: Decimal(constraints[name]) for name in _BOUNDS if constraints.get(name) is not None}
    digits, places = constraints.get("max_digits"), constraints.get("decimal_places")
    is_text = "multiple_of" not in constraints and bounds in ({}, {"ge": 0}, {"gt": 0})
    is_number = (digits is None or places is not None) and (places or 0) <= MAX_FRACTION_DIGITS
    schemas = []
    if is_number or not is_text:
        schemas.append(_number(bounds, digits, places, constraints.get("multiple_of")))
    if is_text:
        sign = "" if bounds else "-?"
        schemas.append({"type": "string", "pattern": f"^{sign}(?:{'|'.join(_texts(digits, places, 'gt' in bounds))})$"})
    return schemas


def _number(bounds: dict[str, Decimal], digits: int | None, places: int | None, step: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "number"} | {_BOUNDS[name]: json_number(bound) for name, bound in bounds.items()}
    if digits is not None and places is not None:
        end = Decimal(10) ** max(digits - places, 0)
        if not any(bounds[name] < end for name in ("le", "lt") if name in bounds):
            out |= {"exclusiveMaximum": json_number(end)}
        if not any(bounds[name] > -end for name in ("ge", "gt") if name in bounds):
            out |= {"exclusiveMinimum": json_number(-end)}
    if step is not None:
        out["multipleOf"] = json_number(Decimal(step))
    elif places is not None:
        out["multipleOf"] = json_number(Decimal(1).scaleb(-places))
    elif digits is not None:
        out["x-maxDigits"] = digits
    return out


def _texts(digits: int | None, places: int | None, is_positive: bool) -> list[str]:
    """Patterns of the digits, without a sign: at most `digits` in total and `places` behind the point."""
    fraction = None if digits is None and places is None else min(x for x in (digits, places) if x is not None)
    below_one = _positive_fractions(fraction) if is_positive else ["0" + _fraction(fraction)]
    if digits is None:
        return [*below_one, r"[1-9]\d*" + _fraction(fraction)]
    if places is not None:
        whole = digits - places
        return [*below_one, *([rf"[1-9]\d{{0,{whole - 1}}}" + _fraction(places)] if whole > 0 else [])]
    return [*below_one, *(rf"[1-9]\d{{{i - 1}}}" + _fraction(digits - i) for i in range(1, digits + 1))]


def _fraction(places: int | None) -> str:
    return r"(?:\.\d+)?" if places is None else rf"(?:\.\d{{1,{places}}})?" if places else ""


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

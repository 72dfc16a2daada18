"""JSON values: parsed without rounding, compared as JSON compares them, written in their one canonical text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from ....base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError
from ....base.utf8 import BYTE_ORDER_MARK
from ....grammar.source import Limits
from ...numbers.numbers import DEFAULT_DIGITS, canonical_number
from .paths import escape_token

_quote = json.encoder.encode_basestring  # compiled, where there is a C compiler
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode  # TypeError for a Decimal
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT_INTEGER = 60  # bits

# What a value is; "fraction" is a number that is not an integer, so that integers are numbers by plain set arithmetic.
ATOMS = ("null", "boolean", "integer", "fraction", "string", "array", "object")


def parse_json(text: str) -> Any:
    """The value of a JSON text, which may begin with a byte order mark; numbers with fraction or exponent become `Decimal`.

    Raises `GrammarSyntaxError`, and `ConstraintError` for NaN and infinities.
    """
    unmarked = text.removeprefix(BYTE_ORDER_MARK)
    try:
        return _DECODER.decode(unmarked)
    except _NotFinite:
        return plain_value(_LENIENT_DECODER.decode(unmarked))  # which says where it is
    except json.JSONDecodeError as error:
        raise GrammarSyntaxError(f"not JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise ConstraintLimit("JSON nested too deeply", limit="nesting", value=Limits().nesting) from None


def _parse_integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < 1000 else Decimal(digits)


def _parse_fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent beyond those of decimals
        raise ConstraintLimit("an exponent of too many digits", limit="digits", value=Limits().digits) from None


class _NotFinite(Exception):
    """A number that JSON does not have, where the decoder does not tell its place."""


def _refuse_constant(name: str) -> Any:
    raise _NotFinite


_DECODER = json.JSONDecoder(parse_float=_parse_fraction, parse_int=_parse_integer, parse_constant=_refuse_constant)
_LENIENT_DECODER = json.JSONDecoder(parse_float=_parse_fraction, parse_int=_parse_integer)


def plain_value(value: Any) -> Any:
    """A copy of a Python value in the form that `parse_json` returns. Raises `ConstraintError`, with the place, for what JSON
    cannot hold."""
    try:
        return _plain(value)
    except ConstraintError as error:
        error.move_below(_place(value))
        raise


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int, Decimal)):
        return value
    if isinstance(value, (dict, Mapping)):  # whether something is a Mapping takes long to find out
        for key in value:
            if not isinstance(key, str):
                raise ConstraintError(f"the key {key!r} is not a string", instead="string keys, as in JSON")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if not isinstance(value, float):
        raise ConstraintError(f"a {type(value).__name__} is not a JSON value", instead="dict, list, str, number, bool or None")
    if value - value != 0:
        raise ConstraintError(f"{value} is not a JSON number", instead="a finite number")
    return Decimal(repr(value))


def _place(value: Any) -> str:
    """The pointer to the part of a value that JSON cannot hold."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for at, item in items:
        try:
            _plain(item)
        except ConstraintError:
            return f"#/{escape_token(str(at))}{_place(item).removeprefix('#')}"
    return "#"


def atom_of(value: Any) -> str:
    """Which of `ATOMS` a value is."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, Decimal)):
        return "integer" if is_integral(value) else "fraction"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def string_text(text: str) -> str:
    """A string as JSON with quotes; only what has no UTF-8 form is spelled as an escape beyond those that JSON requires."""
    quoted = _quote(text)
    if quoted.isascii():
        return quoted
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def scalar_text(value: Any, digits: int = DEFAULT_DIGITS) -> str:
    """The canonical text of a value that is neither array nor object."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return string_text(value) if isinstance(value, str) else canonical_number(value, digits)


def dump_json(value: Any, sort_keys: bool = False) -> str:
    """A JSON text of a value; equal values have equal texts if `sort_keys`."""
    if not sort_keys:
        try:
            text = _encode(value)
            text.encode()
        except (TypeError, UnicodeEncodeError):  # a fraction is in it, or what has no UTF-8 form
            pass
        else:
            return text
    if isinstance(value, dict):
        items = sorted(value.items()) if sort_keys else value.items()
        return "{" + ",".join(f"{string_text(key)}:{dump_json(item, sort_keys)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump_json(item, sort_keys) for item in value) + "]"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return _number_key(value) if sort_keys else str(Decimal(value))
    return scalar_text(value)


def is_integral(value: int | Decimal) -> bool:
    """Whether a number is an integer; its digits are not expanded."""
    return isinstance(value, int) or _significant(value)[2] >= 0


def _number_key(value: int | Decimal) -> str:
    if isinstance(value, int) and 0 < value.bit_length() < _SHORT_INTEGER:  # most, and without decimals it takes a third
        digits = str(value)
        kept = digits.rstrip("0")
        return f"{kept}e{len(digits) - len(kept)}"
    sign, digits, exponent = _significant(Decimal(value))
    return f"{sign}{digits}e{exponent}"


def _significant(value: Decimal) -> tuple[str, str, int]:
    """Sign, digits without trailing zeros, exponent; exact, unlike `Decimal.normalize`, which rounds."""
    sign, shown, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, shown)).lstrip("0")
    kept = digits.rstrip("0")
    return ("-" if sign and kept else "", kept or "0", exponent + len(digits) - len(kept) if kept else 0)


def equality_key(value: Any) -> str:
    """A key that is equal for equal JSON values: 1.0 equals 1, the order of keys means nothing."""
    return string_text(value) if isinstance(value, str) else dump_json(value, sort_keys=True)

"""Schemas of numbers, strings, bytes and listed values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from ....base.errors import ConstraintError
from ....grammar.source import Limits
from ...numbers.decimals import decimal_schemas, json_number
from ...regex.regex import parse_pattern
from .trials import accepted_values
from .walk import CoreNode, Schema, Walk, both

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_COMPLEX = r"^[+-]?\d{1,300}(?:\.\d{1,300})?(?:[+-]\d{1,300}(?:\.\d{1,300})?j)?$"
_FRACTION = r"^-?(?:0|[1-9]\d{0,299})(?:/[1-9]\d{0,299}|\.\d{1,300})?$"
_STRIPPED = r"^(?:\S(?s:.*\S)?)?$"
_HEX = "[0-9A-Fa-f]"
_FLAGS = {re.ASCII: "a", re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}
_INLINE_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def any_value(walk: Walk, node: CoreNode) -> Schema:
    return {}


def none(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "null"}


def boolean(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "boolean"}


def integer(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "integer"} | bounds_of(node)


def floating(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "number"} | bounds_of(node)


def decimal(walk: Walk, node: CoreNode) -> Schema:
    return any_of(decimal_schemas(node))


def fraction(walk: Walk, node: CoreNode) -> Schema:
    number = {"type": "number"} | bounds_of(node)
    return number if len(number) > 1 else any_of([{"type": "string", "pattern": _FRACTION}, number])


def complex_number(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "string", "pattern": _COMPLEX}


def bounds_of(node: CoreNode) -> Schema:
    """The bounds of a number and its step."""
    given = {_BOUNDS[name]: node[name] for name in _BOUNDS if node.get(name) is not None}
    return {keyword: _number(value) for keyword, value in given.items() if isfinite(value)}


def _number(value: Any) -> Any:
    return (
        value
        if isinstance(value, int)
        else json_number(Decimal(repr(value) if isinstance(value, float) else str(float(value))))
    )


def string(walk: Walk, node: CoreNode) -> Schema:
    out: Schema = {"type": "string"}
    low, high = walk.option(node, "min_length", "str_min_length"), walk.option(node, "max_length", "str_max_length")
    out |= ({"minLength": low} if low else {}) | ({} if high is None else {"maxLength": high})
    if walk.option(node, "strip_whitespace", "str_strip_whitespace"):
        out["x-maskwright-rustPattern"] = _STRIPPED  # the lengths are those of what is left
    if node.get("pattern") is not None:
        out = both(out, pattern(node["pattern"], walk.option(node, "regex_engine") or "rust-regex"))
    return out


def pattern(given: str | re.Pattern[str], engine: str) -> Schema:
    """A condition that a pattern matches somewhere, in the dialect of the engine that searches."""
    text = given if isinstance(given, str) else _with_flags(given)
    dialect = "python" if engine == "python-re" or not isinstance(given, str) else "rust"
    return {"pattern": text} if _is_plain(text, dialect) else {f"x-maskwright-{dialect}Pattern": text}


def _with_flags(compiled: re.Pattern[str]) -> str:
    """The text of a compiled pattern with all of its flags."""
    text = compiled.pattern[match.end() :] if (match := _INLINE_FLAGS.match(compiled.pattern)) else compiled.pattern
    flags = "".join(letter for flag, letter in _FLAGS.items() if compiled.flags & flag)
    return f"(?{flags}){text}" if flags else text


def _is_plain(text: str, dialect: str) -> bool:
    """Whether a pattern means the same in ECMA-262."""
    try:
        return parse_pattern(text, "ecma", Limits()) == parse_pattern(text, dialect, Limits())
    except ConstraintError:
        return False


def byte_string(walk: Walk, node: CoreNode) -> Schema:
    mode, low, high = walk.config.get("val_json_bytes", "utf8"), node.get("min_length") or 0, node.get("max_length")
    if mode == "base64":
        either = (base64_pattern(digits, low, high) for digits in ("A-Za-z0-9+/", r"A-Za-z0-9_\-"))  # Pydantic writes the second
        return {"type": "string", "pattern": f"^(?:{'|'.join(either)})$"}
    if mode == "hex":
        return {"type": "string", "pattern": f"^(?:{_HEX}{_HEX}){{{low},{'' if high is None else high}}}$"}
    return {"type": "string"} | utf8_length(low, high)


def utf8_length(low: int, high: int | None) -> Schema:
    """A condition on the bytes of a string."""
    limits = ({"minimum": low} if low else {}) | ({} if high is None else {"maximum": high})
    return {"x-maskwright-utf8Length": limits} if limits else {}


def base64_pattern(digits: str, low: int = 0, high: int | None = None) -> str:
    """The base64 texts of `low` to `high` bytes, padded. digits: the alphabet, as members of a set."""
    one = f"[{digits}]"
    ends = {0: "", 1: f"{one}[AQgw]==", 2: f"{one}{{2}}[AEIMQUYcgkosw048]="}
    options = []
    for rest, end in ends.items():
        least, most = max(-(-(low - rest) // 3), 0), None if high is None else (high - rest) // 3
        if most is None or most >= least:
            options.append(f"(?:{one}{{4}}){{{least},{'' if most is None else most}}}{end}")
    return f"(?:{'|'.join(options)})" if options else "[]"


def listed(walk: Walk, node: CoreNode, values: Iterable[Any], shown: str) -> Schema:
    """The schema of those values that Pydantic reads from JSON."""
    bare = [value.value if isinstance(value, Enum) else value for value in values]
    numbers = [json_number(value) for value in bare if isinstance(value, Decimal) and value.is_finite()]  # else written as strings
    kept = accepted_values(walk, node, [*bare, *numbers])
    if not kept:
        instead = "its values as a Literal, or an enumeration whose members are strings or integers (StrEnum, IntEnum)"
        raise walk.refuse(f"no JSON is read as {shown}", instead)
    types = {_TYPES.get(type(value)) for value in kept}
    kind = types.pop() if len(types) == 1 else None
    return ({"type": kind} if kind else {}) | ({"const": kept[0]} if len(kept) == 1 else {"enum": kept})


def literal(walk: Walk, node: CoreNode) -> Schema:
    return listed(walk, node, node["expected"], f"Literal[{', '.join(map(str, node['expected']))}]")


def enumeration(walk: Walk, node: CoreNode) -> Schema:
    kind = node["cls"]
    bare = {key: value for key, value in node.items() if key not in ("ref", "metadata")}
    out = {"title": kind.__name__} | listed(walk, bare, node["members"], f"a member of {kind.__name__}")
    if "const" in out:
        out["enum"] = [out.pop("const")]
    description = (kind.__doc__ or "").strip()
    return out if description in ("", "An enumeration.") else out | {"description": description}


def uuid(walk: Walk, node: CoreNode) -> Schema:
    return {"type": "string", "format": f"uuid{node['version']}" if node.get("version") else "uuid"}


def any_of(options: list[Schema]) -> Schema:
    """The values of any of some schemas."""
    options = [option for i, option in enumerate(options) if option not in options[:i]]
    return options[0] if len(options) == 1 else {"anyOf": options}

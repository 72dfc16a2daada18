"""Which values keywords may have: those of their form, and others whose meaning is plain, which are remarked upon."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .keyword_table import CHECKED_AFTERWARDS, KEYWORDS, TYPE_NAMES, Form
from .values import is_integral

_TYPES = frozenset(TYPE_NAMES)
# Keywords of which `remark_on` has something to say, besides any that is null or empty.
REMARKABLE = frozenset(
    {"required", "exclusiveMinimum", "exclusiveMaximum", "items", "dependencies", "$defs", "definitions", CHECKED_AFTERWARDS}
)
_OF_EMPTY = {"enum": "is empty: no value satisfies it", "prefixItems": "is empty: says nothing"}
# What keywords that say nothing of values hold by their drafts. Another value changes nothing, so it is not refused.
DESCRIBED_BY: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("title", "description", "$comment", "contentEncoding", "contentMediaType", "id"), (str, "a string")),
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated"), (bool, "true or false")),
    "examples": (list, "a list"), "contentSchema": ((dict, bool), "a schema"),
}  # fmt: skip
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})


def written(schema: dict[str, Any], draft: int) -> dict[str, Any]:
    """The keywords of a schema without those whose value says that they are not there."""
    if None not in schema.values() and not isinstance(schema.get("required"), bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if not _is_unset(keyword, value, draft)}


def _is_unset(keyword: str, value: Any, draft: int) -> bool:
    if value is None:
        return keyword in CHECK_OF and keyword != "type"  # null under `type` may be meant as the type
    return keyword == "required" and isinstance(value, bool) and not (value and draft > 4)


def remark_on(keyword: str, value: Any, draft: int) -> str:
    """What is to be said of a value that is read in another way than its draft has it; "" for most values."""
    if _is_unset(keyword, value, draft):
        if value is None:
            return "is null: read as not there"
        return f"is {str(value).lower()}: says nothing since draft 4; the object around a member lists the names that are required"
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool) is (draft > 4):
        return "is read as in draft 4: it excludes the bound beside it" if draft > 4 else "is read as in later drafts: a bound"
    if keyword == "items" and isinstance(value, list) and draft >= 2020:
        return "is a list: read as in earlier drafts, where it is prefixItems"
    if keyword in ("$defs", "definitions"):
        wrong = next((name for name, each in value.items() if not isinstance(each, (dict, bool))), None)
        return "" if wrong is None else f"has no schema under {wrong!r}: ignored"
    if value == []:
        return _OF_EMPTY.get(keyword, "")
    if keyword == "dependencies" and any(isinstance(names, str) for names in value.values()):
        return "has a name alone: read as a list of one name"
    return ""


def describes(keyword: str, value: Any) -> bool:
    """Whether a keyword that says nothing of values has what its drafts let it have."""
    held = DESCRIBED_BY.get(keyword)
    return held is None or isinstance(value, held[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _is_number_or_flag(value: Any) -> bool:
    return isinstance(value, (int, Decimal))


def _is_step(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and is_integral(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _are_types(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(name, str) and name in _TYPES for name in value)
    return isinstance(value, str) and value in _TYPES


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_limits(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() <= _LIMITS and all(map(_is_number, value.values()))


def _are_lists_of_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_are_names, value.values()))


def _are_dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(_are_names(part) for part in value.values() if isinstance(part, list))


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_schema_or_list(value: Any) -> bool:
    return isinstance(value, (dict, bool, list))


_CHECKS: dict[Form, Callable[[Any], bool]] = {
    Form.COUNT: _is_count,
    Form.NUMBER: _is_number,
    Form.BOUND: _is_number_or_flag,
    Form.STEP: _is_step,
    Form.TEXT: _is_text,
    Form.FLAG: _is_flag,
    Form.VALUES: _is_list,
    Form.NAMES: _are_names,
    Form.TYPES: _are_types,
    Form.SCHEMA: _is_schema,
    Form.SCHEMA_OR_LIST: _is_schema_or_list,
    Form.LIST: _is_list,
    Form.FILLED_LIST: _is_filled_list,
    Form.MAP: _is_object,
    Form.LISTS_OF_NAMES: _are_lists_of_names,
    Form.DEPENDENCIES: _are_dependencies,
    Form.OBJECT: _is_object,
    Form.LIMITS: _are_limits,
}
# Whether a value is of the form of its keyword, for all that have one. Whether schemas stand where it holds some is not looked at.
CHECK_OF = {name: _CHECKS[entry.form] for name, entry in KEYWORDS.items() if entry.form is not Form.ANYTHING}

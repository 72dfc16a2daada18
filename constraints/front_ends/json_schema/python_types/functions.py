"""Schemas of nodes that call a Python function.

What Pydantic's own functions check is said in the schema. Of others it is noted that they check.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from zoneinfo import available_timezones

from pydantic.types import Base64Encoder, Base64UrlEncoder, EncodedBytes, EncodedStr

from .networks import ip_address, ip_interface, ip_network
from .scalars import base64_pattern, byte_string
from .walk import REMARK, CoreNode, Schema, Walk, both, noted

_TRANSPARENT = frozenset({  # they make a value of what is valid already
    "pydantic.types.SecretStr", "pydantic.types.SecretBytes", "operator.attrgetter",
    "pydantic.types.Secret.__get_pydantic_core_schema__.<locals>.<lambda>",
    "pydantic.networks._BaseUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
    "pydantic.networks._BaseMultiHostUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
    "pydantic._internal._generate_schema.GenerateSchema._path_schema.<locals>.path_validator",
    "pydantic._internal._generate_schema.GenerateSchema._literal_schema.<locals>.<lambda>",
    "pydantic._internal._validators.sequence_validator", "pydantic._internal._validators.defaultdict_validator",
})  # fmt: skip
_CONDITIONS = {
    "greater_than_validator": ("gt", "exclusiveMinimum"), "greater_than_or_equal_validator": ("ge", "minimum"),
    "less_than_validator": ("lt", "exclusiveMaximum"), "less_than_or_equal_validator": ("le", "maximum"),
    "multiple_of_validator": ("multiple_of", "multipleOf"),
    "min_length_validator": ("min_length", "minLength"), "max_length_validator": ("max_length", "maxLength"),
}  # fmt: skip
_VALIDATORS = "pydantic._internal._validators."
_SECRETS = frozenset({"pydantic.types.SecretStr", "pydantic.types.SecretBytes"})
_OF_STRINGS = frozenset({"str_min_length", "str_max_length", "str_strip_whitespace"})  # of a configuration
_LENGTHS = frozenset({"minLength", "maxLength"})
_COUNTED = {"str": "Length", "list": "Items", "deque": "Items"}  # by node, what its length is that of
_BYTE_SIZE_CHECK = "pydantic.types.ByteSize._validate"
_BYTES_AS_NUMBER: Schema = {"type": "integer", "minimum": 0}
_BYTE_SIZE: Schema = {"anyOf": [
    _BYTES_AS_NUMBER,
    {"type": "string", "pattern": r"^\d{1,15}(?:\.\d{1,6})? ?(?:(?:[KMGTPEkmgtpe][Ii]?)?[Bb])?$"},
]}  # fmt: skip
_ALPHABETS: dict[Any, str] = {Base64Encoder: "A-Za-z0-9+/", Base64UrlEncoder: r"A-Za-z0-9_\-"}
_ASCII_DIGITS: dict[Any, tuple[str, str, str, str]] = {  # of base64, for three bytes below 128
    Base64Encoder: ("[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]", "[A-Za-z0-9+/]"),
    Base64UrlEncoder: ("[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]", r"[A-Za-z0-9_\-]"),
}


def name_of(function: Any) -> str:
    """The module and the qualified name of a function, without the arguments of a partial."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _remark(function: Any) -> str:
    return f"the validator {name_of(function).rpartition('.')[2]}"


def _function_of(node: CoreNode) -> Any:
    return node["function"]["function"]


def _input(walk: Walk, node: CoreNode, otherwise: CoreNode | None) -> Schema:
    """The schema of what a function takes from JSON."""
    told = node.get("json_schema_input_schema") or otherwise
    return walk.schema(told) if told else {}


def before(walk: Walk, node: CoreNode) -> Schema:
    return noted(_input(walk, node, node["schema"]), _remark(_function_of(node)))


def wrap(walk: Walk, node: CoreNode) -> Schema:
    function = _function_of(node)
    if name_of(function) in _TRANSPARENT:
        return walk.schema(node["schema"])
    return noted(_input(walk, node, node["schema"]), _remark(function))


def plain(walk: Walk, node: CoreNode) -> Schema:
    function = _function_of(node)
    name = name_of(function)
    if name == f"{_VALIDATORS}pattern_bytes_validator":
        raise walk.refuse("no JSON is read as a regular expression of bytes", "one of str")
    known = PLAIN.get(name)
    return known() if known else noted(_input(walk, node, None), _remark(function))


def after(walk: Walk, node: CoreNode) -> Schema:
    inner, conditions = _without_conditions(node)
    if inner is not node:
        return _conditioned(walk, inner, conditions)
    function, name = _function_of(node), name_of(_function_of(node))
    if name in AFTER:
        return _of_what_is_read(walk, node, AFTER[name]())
    if _is_base64(walk, node):
        return _of_what_is_read(walk, node, _encoded(function.__self__, 0, None))
    schema = walk.schema(node["schema"])
    return schema if name in _TRANSPARENT else noted(schema, _remark(function))


def _of_what_is_read(walk: Walk, node: CoreNode, known: Schema) -> Schema:
    """What a function is known to take, of the strings that are read before it: a configuration may say more of these."""
    return both(walk.schema(node["schema"]), known) if walk.config.keys() & _OF_STRINGS else known


def _is_base64(walk: Walk, node: CoreNode) -> bool:
    """Whether a function decodes base64 as it is written: no letters changed before it, no bytes decoded."""
    owner = getattr(_function_of(node), "__self__", None)
    if not isinstance(owner, EncodedBytes | EncodedStr) or owner.encoder not in _ALPHABETS:
        return False
    if isinstance(owner, EncodedStr):
        return not (walk.config.get("str_to_lower") or walk.config.get("str_to_upper"))
    return bool(walk.config.get("val_json_bytes", "utf8") == "utf8")


def _without_conditions(node: CoreNode) -> tuple[CoreNode, dict[str, Any]]:
    """What stands inside of nodes that check a bound or a length, and these, the innermost first."""
    conditions: dict[str, Any] = {}
    while node["type"] == "function-after" and isinstance(partial := _function_of(node), functools.partial):
        known = _CONDITIONS.get(name_of(partial).removeprefix(_VALIDATORS))
        if known is None or known[1] in conditions:
            break
        conditions[known[1]] = partial.keywords[known[0]]
        node = node["schema"]
    return node, conditions


def _conditioned(walk: Walk, node: CoreNode, conditions: dict[str, Any]) -> Schema:
    """The schema of a node of whose values more is checked."""
    if node["type"] == "function-after" and _is_base64(walk, node) and conditions.keys() <= _LENGTHS:
        known = _encoded(_function_of(node).__self__, conditions.get("minLength", 0), conditions.get("maxLength"))
        return _of_what_is_read(walk, node, known)
    schema, said = _BYTES_AS_NUMBER, conditions  # of a ByteSize, whose strings have units
    if node["type"] != "function-after" or name_of(_function_of(node)) != _BYTE_SIZE_CHECK:
        schema = walk.schema(node)
        said = {} if REMARK in schema else _said(walk, node, conditions)
    if said and all(isinstance(value, int | float) for value in conditions.values()):
        return both(schema, said)
    return noted(schema, f"its {' and '.join(conditions)}")


def _said(walk: Walk, node: CoreNode, conditions: dict[str, Any]) -> Schema:
    """Conditions on a value as keywords for its JSON; none where its JSON is not the number, or has not the length, that it has."""
    node = _read_from_json(walk, node)
    if node["type"] == "union":
        choices = (each[0] if isinstance(each, tuple) else each for each in node["choices"])
        return _said_of_all([_said(walk, choice, conditions) for choice in choices])
    if node["type"] == "any":
        walk.is_any_compared = True
        return _said_of_any(conditions)
    if not conditions.keys() <= _LENGTHS:
        return conditions if node["type"] in ("int", "float") else {}
    if node["type"] == "bytes":
        return byte_string(walk, {"min_length": conditions.get("minLength"), "max_length": conditions.get("maxLength")})
    counted = _COUNTED.get(node["type"])
    return {} if counted is None else {name.replace("Length", counted): value for name, value in conditions.items()}


def _said_of_any(conditions: dict[str, Any]) -> Schema:
    """Conditions on any JSON value: those without a size or length raise errors. A float has no multiples to rely on."""
    if conditions.keys() <= _LENGTHS:
        counted = ("Length", "Items", "Properties")
        out = {name.replace("Length", each): value for name, value in conditions.items() for each in counted}
        return {"type": ["string", "array", "object"]} | out
    if not conditions.keys().isdisjoint(_LENGTHS) or not isinstance(conditions.get("multipleOf", 1), int):
        return {}
    return {"type": "integer" if "multipleOf" in conditions else "number"} | conditions


def _said_of_all(said: list[Schema]) -> Schema:
    """What is said of each of several alternatives in one: a keyword is for values of its own type."""
    out: Schema = {}
    for each in said:
        if not each or "type" in each:  # that of bytes is for all strings
            return {}
        out |= each
    return out


def _read_from_json(walk: Walk, node: CoreNode) -> CoreNode:
    """The node that makes the value, or one of the same number or length, of JSON."""
    node = walk.target(node)
    if node["type"] == "lax-or-strict":
        return _read_from_json(walk, node["strict_schema" if walk.option(node, "strict") else "lax_schema"])
    if node["type"] == "json-or-python":
        return _read_from_json(walk, node["json_schema"])
    if node["type"] == "function-after" and name_of(_function_of(node)) in _SECRETS:
        return _read_from_json(walk, node["schema"])
    return node


def _encoded(kind: EncodedBytes | EncodedStr, low: int, high: int | None) -> Schema:
    """The base64 texts of `low` to `high` bytes; of so many characters of ASCII, if these are text in turn."""
    pattern = base64_pattern(_ALPHABETS[kind.encoder], low, high)
    if not isinstance(kind, EncodedStr):
        return {"type": "string", "pattern": f"^{pattern}$"}
    first, second, third, fourth = _ASCII_DIGITS[kind.encoder]
    ascii_only = f"(?:{first}{second}{third}{fourth})*(?:{first}[AQgw]==|{first}{second}[AEIMQUYcgkosw048]=)?"
    return {"type": "string", "pattern": f"^(?={ascii_only}$){pattern}$"}


def _email() -> Schema:
    return noted({"type": "string", "format": "email"}, "the address, by email-validator")


def _regular_expression() -> Schema:
    return noted({"type": "string", "format": "regex"}, "whether Python compiles the regular expression")


def _object_by_name() -> Schema:
    text: Schema = {
        "type": "string",
        "pattern": r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?::[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)?$",
    }
    return noted(text, "whether Python can import it")


def _time_zone() -> Schema:
    return {"type": "string", "enum": sorted(available_timezones())}


PLAIN: dict[str, Callable[[], Schema]] = {
    f"{_VALIDATORS}import_string": _object_by_name,
    f"{_VALIDATORS}validate_str_is_valid_iana_tz": _time_zone,
    **{f"{_VALIDATORS}pattern_{kind}_validator": _regular_expression for kind in ("either", "str")},
    **{
        f"{_VALIDATORS}ip_v{version}_{kind}_validator": functools.partial(schema, version)
        for version in (4, 6)
        for kind, schema in (("address", ip_address), ("network", ip_network), ("interface", ip_interface))
    },
    **{
        f"pydantic.networks.IPvAny{kind}._validate": functools.partial(schema, None)
        for kind, schema in (("Address", ip_address), ("Network", ip_network), ("Interface", ip_interface))
    },
}
AFTER: dict[str, Callable[[], Schema]] = {
    _BYTE_SIZE_CHECK: lambda: dict(_BYTE_SIZE),
    "pydantic.networks.EmailStr._validate": _email,
    **{
        f"ipaddress.IPv{version}{kind}": functools.partial(schema, version)
        for version in (4, 6)
        for kind, schema in (("Address", ip_address), ("Network", ip_network), ("Interface", ip_interface))
    },
}

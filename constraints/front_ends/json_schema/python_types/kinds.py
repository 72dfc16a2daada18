"""The kinds of nodes in Pydantic's core schema, each with its handler and with what is promised of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from . import containers, functions, members, networks, scalars, times, unions
from .walk import CoreNode, Schema, Walk


class Promise(Enum):
    """What a constraint promises of the values of a node."""

    EXACT = "exact"
    AFTERWARDS = "checked afterwards"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of node. says: what its texts are, and what is left out or checked afterwards."""

    name: str
    handler: Callable[[Walk, CoreNode], Schema]
    promise: Promise
    says: str


_EXACT, _AFTERWARDS, _REFUSED = Promise
_SAME = "those of the node inside"
_ENTRIES = (
    Kind("any", scalars.any_value, _EXACT, "any JSON value"),
    Kind("none", scalars.none, _EXACT, "`null`"),
    Kind("bool", scalars.boolean, _EXACT,
         "`true` and `false`; none of the strings and numbers that Pydantic takes for them"),
    Kind("int", scalars.integer, _EXACT, "integers, with bounds and `multiple_of`"),
    Kind("float", scalars.floating, _EXACT,
         "numbers, with bounds and `multiple_of`; no NaN and no infinity, which JSON lacks. One of 17 digits and more may lie "
         "within an exclusive bound as it is written, and be rejected as it is read: rounded to the bound"),
    Kind("decimal", scalars.decimal, _EXACT,
         "numbers, and strings of digits. A string that is compared with a bound or a step is spelled as a number is; "
         "numbers only where digits are not counted in total and at most four places are wanted. With a step: up to 10**28 "
         "steps, as Python divides no more"),
    Kind("fraction", scalars.fraction, _EXACT, "numbers, and without bounds the strings `1/2` and `0.5`"),
    Kind("complex", scalars.complex_number, _EXACT, "strings such as `1.5-2j`"),
    Kind("str", scalars.string, _EXACT,
         "strings, with lengths in code points, and patterns in the dialect of the engine: Rust's, or Python's for "
         "`regex_engine='python-re'` and compiled patterns. With `strip_whitespace`: strings that have none to strip"),
    Kind("bytes", scalars.byte_string, _EXACT,
         "strings, with lengths in bytes of UTF-8; base64 in either alphabet or hexadecimal digits under `val_json_bytes`"),
    Kind("date", times.date_kind, _EXACT,
         "`2024-02-29`, within bounds; that a date is past or future is checked afterwards"),
    Kind("time", times.time_kind, _EXACT,
         "`12:30`, `12:30:15.5`, with an offset or without, within bounds. Where a bound has an offset: values without"
         " one, and in UTC"),
    Kind("datetime", times.datetime_kind, _EXACT,
         "`2024-02-29T12:30:15Z`, with an offset or without as `tz_constraint` asks, within bounds. Where a bound has "
         "an offset, others than Z come two days away from it; past and future are checked afterwards"),
    Kind("timedelta", times.timedelta_kind, _EXACT,
         "durations of ISO 8601 without months and weeks; within bounds those in which each unit stays below the next "
         "larger one (years have 365 days)"),
    Kind("uuid", scalars.uuid, _EXACT, "UUIDs with hyphens, of a version if one is asked for"),
    Kind("url", networks.url, _EXACT,
         "URLs in ASCII of the allowed schemes, with hosts that are names, IPv4 or IPv6 addresses"),
    Kind("multi-host-url", networks.multi_host_url, _EXACT, "the same with one host or several"),
    Kind("literal", scalars.literal, _EXACT,
         "those of the values that Pydantic reads from JSON, which it is asked; refused if none is, as with members of"
         " a plain `Enum`"),
    Kind("enum", scalars.enumeration, _EXACT, "the same for values of the members; not those that `_missing_` finds"),
    Kind("list", containers.array, _EXACT, "arrays"),
    Kind("deque", containers.array, _EXACT, "arrays"),
    Kind("generator", containers.array, _EXACT, "arrays; Pydantic looks at an item when it is read"),
    Kind("set", containers.unique_array, _EXACT,
         "arrays whose items differ in their texts. Items that cannot be hashed are refused; with a least length above"
         " one it is checked afterwards how many differ as values, unless these are integers, strings, dates, ..."),
    Kind("frozenset", containers.unique_array, _EXACT, "as for set"),
    Kind("tuple", containers.tuple_kind, _EXACT,
         f"arrays; at most {containers.MOST_UNPACKED} items in place of a `*` in the middle"),
    Kind("dict", containers.mapping, _EXACT,
         "objects. Keys are strings that are read as the type of the keys: numbers with bounds, dates, UUIDs, listed "
         "values; a type that no key is read as (`None`, a tuple) or whose values cannot be hashed is refused"),
    Kind("frozendict", containers.mapping, _EXACT, "as for dict"),
    Kind("ordered-dict", containers.mapping, _EXACT, "as for dict"),
    Kind("counter", containers.mapping, _EXACT, "as for dict"),
    Kind("model", members.model, _EXACT,
         "those of its fields. `model_post_init` and `__init__` of the class can reject afterwards"),
    Kind("model-fields", members.model_fields, _EXACT,
         "closed objects, unless `extra='allow'`, with the names and types of what is extra. A field is read at its "
         "alias: the first that is a single name, else at the path of an `AliasPath`; one that no JSON can give is "
         "left out if it has a default"),
    Kind("model-field", members.field, _EXACT, _SAME),
    Kind("computed-field", members.none_of_json, _REFUSED, "never read"),
    Kind("typed-dict", members.typed_dict, _EXACT, "as for models"),
    Kind("typed-dict-field", members.field, _EXACT, _SAME),
    Kind("dataclass", members.dataclass_kind, _EXACT, "as for models. `__post_init__` can reject afterwards"),
    Kind("dataclass-args", members.dataclass_arguments, _EXACT, "as for models, of the fields that `__init__` takes"),
    Kind("dataclass-field", members.field, _EXACT, _SAME),
    Kind("named-tuple", members.named_tuple, _EXACT, "arrays"),
    Kind("named-tuple-field", members.field, _EXACT, _SAME),
    Kind("arguments", members.arguments, _EXACT,
         "objects, with what `**` collects; arrays where an argument has no name to be passed by"),
    Kind("arguments-v3", members.arguments, _EXACT, "the same"),
    Kind("call", members.call, _AFTERWARDS,
         "those of the arguments; the function can reject, unless it makes a named tuple"),
    Kind("nullable", unions.nullable, _EXACT, "`null`, and those of the node inside"),
    Kind("union", unions.union, _EXACT, "those of any alternative; one without JSON is passed over"),
    Kind("tagged-union", unions.tagged_union, _EXACT,
         "those of the alternatives, with the tag, also where it has a default. With a function for the tag, which "
         "alternative it chooses is checked afterwards"),
    Kind("default", unions.with_default, _EXACT, _SAME),
    Kind("chain", unions.chain, _AFTERWARDS, "those of the first step; the others can reject"),
    Kind("lax-or-strict", unions.lax_or_strict, _EXACT, "those of the one that is in force"),
    Kind("json-or-python", unions.json_or_python, _EXACT, "those for JSON"),
    Kind("custom-error", unions.inner, _EXACT, _SAME),
    Kind("json", unions.json_text, _AFTERWARDS,
         "strings. For numbers, booleans, `null` and listed values their JSON; that other texts are JSON of the type is "
         "checked afterwards"),
    Kind("function-after", functions.after, _AFTERWARDS,
         "those of the node inside; the function can reject. What Pydantic's own functions check is exact: base64, "
         "secrets, paths, `ByteSize` (with bounds numbers of bytes), bounds and lengths"),
    Kind("function-before", functions.before, _AFTERWARDS,
         "those of `json_schema_input_type`, else of the node inside; the function can reject"),
    Kind("function-wrap", functions.wrap, _AFTERWARDS, "the same; exact for URLs and default dictionaries"),
    Kind("function-plain", functions.plain, _AFTERWARDS,
         "those of `json_schema_input_type` or of the type's own JSON Schema, else all; the function can reject. Exact"
         " for IP addresses, networks (of version 6 with prefixes of whole hexadecimal digits), interfaces and time "
         "zones"),
    Kind("definitions", unions.definitions, _EXACT, _SAME),
    Kind("definition-ref", unions.definition_reference, _EXACT, "those of what it refers to, which may be recursive"),
    Kind("missing-sentinel", unions.missing, _REFUSED, "nothing; passed over in a union"),
    Kind("ellipsis", members.none_of_json, _REFUSED, "nothing"),
    Kind("callable", members.none_of_json, _REFUSED,
         "nothing; passed over in a union, and left out as a field with a default"),
    Kind("is-instance", members.none_of_json, _REFUSED, "the same"),
    Kind("is-subclass", members.none_of_json, _REFUSED, "the same"),
    Kind("invalid", members.none_of_json, _REFUSED, "nothing"),
)  # fmt: skip
KINDS = {kind.name: kind for kind in _ENTRIES}


def walk_of(config: CoreNode) -> Walk:
    """A walk through a type. config: of its adapter."""
    return Walk({name: kind.handler for name, kind in KINDS.items()}, config)


def kinds_page() -> str:
    """The content of `docs/python-types.md`."""
    rows = [f"| `{kind.name}` | {kind.promise.value} | {kind.says} |" for kind in _ENTRIES]
    return "\n".join([_PAGE_HEAD, *rows, "", _PAGE_END])


_PAGE_HEAD = """# Python types

`JsonSchema(Person)`, `schema=Person` and the parameters of a function that is a tool mean what Pydantic enforces: every text
that the constraint accepts is accepted by `TypeAdapter(Person).validate_json`. What that checks beyond the constraint, such as
a validator of your own, is told before: `constraint.notes` has an entry with the path of the value that begins with `checked
afterwards`. A rejection is then `ValidationFailed`, with the text. What no JSON can stand for is refused by name while
compiling.

What is read is not Pydantic's JSON Schema but its core schema, with which it validates. Each of its nodes is of one of these
kinds. "exact" means that no text is rejected; the third column says which texts there are. Pydantic takes others too (`"1"` for
1, `20240229` for a date): they are left out, so that each value has the spelling that people expect.

| kind of node | promise | texts |
|---|---|---|"""

_PAGE_END = """## Keywords for what JSON Schema cannot say

The schema of a type is JSON Schema with five keywords more. They may stand in other schemas too.

| keyword | value | meaning |
|---|---|---|
| `x-maskwright-rustPattern` | a pattern | the string matches it somewhere, as Rust's crate `regex` reads it |
| `x-maskwright-pythonPattern` | a pattern | the same as Python's `re` reads it |
| `x-maskwright-number` | `minimum`, `multipleOf`, ... | the string is such a number, spelled as numbers are in JSON |
| `x-maskwright-utf8Length` | `minimum`, `maximum` | the string has so many bytes in UTF-8 |
| `x-maskwright-checkedAfterwards` | a text | a note: what is checked once the text is complete |

A pattern that means the same in ECMA-262 is written as `pattern`. Which characters a class has (`\\w`, `\\p{Greek}`,
`[a-z&&[^aeiou]]`) is asked of the crate itself, so it is that of the installed Pydantic.

This page is printed by `maskwright.constraints.front_ends.json_schema.python_types.kinds.kinds_page()`.
"""

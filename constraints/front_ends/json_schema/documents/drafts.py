"""The drafts: their names, the keywords that each has, and where in a schema its subschemas stand."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

from ....base.errors import UnsupportedKeyword

DRAFTS = (4, 6, 7, 2019, 2020)
LATEST = DRAFTS[-1]
NAMES = ("4", "6", "7", "2019-09", "2020-12")
_DRAFT_NAMES = {
    **dict(zip(NAMES, DRAFTS, strict=True)),
    **{f"draft{name}": draft for name, draft in zip(NAMES, DRAFTS, strict=True)},
    "draft-04": 4, "draft-06": 6, "draft-07": 7,
}  # fmt: skip
_META_SCHEMAS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    "json-schema.org/schema": LATEST,
}

# The draft that introduced a keyword, and the last one that has it. An older or newer schema means nothing by it.
SINCE = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "dependentRequired": 2019,
    "dependentSchemas": 2019, "minContains": 2019, "maxContains": 2019, "unevaluatedItems": 2019, "unevaluatedProperties": 2019,
    "$recursiveRef": 2019, "prefixItems": 2020, "$dynamicRef": 2020,
}  # fmt: skip
UNTIL = {"$recursiveRef": 2019}

# The vocabulary (last part of its address) of each keyword that a meta-schema can leave out.
_BY_VOCABULARY = {
    "applicator": (
        "properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependencies", "items",
        "prefixItems", "additionalItems", "contains", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
    ),
    "unevaluated": ("unevaluatedItems", "unevaluatedProperties"),
    "validation": (
        "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
        "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "required", "minProperties",
        "maxProperties", "dependentRequired",
    ),
    "format": ("format",),
}  # fmt: skip
VOCABULARY_OF = {keyword: name for name, keywords in _BY_VOCABULARY.items() for keyword in keywords}
# Keywords that say nothing about a value; "$id" and its like matter to documents, which is settled before.
ANNOTATIONS = frozenset({
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "contentEncoding",
    "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description", "examples", "id", "readOnly",
    "title", "writeOnly",
})  # fmt: skip
_WITHOUT_KEYWORDS = ("core", "meta-data", "content")  # core is always in force


class Position(Enum):
    """What stands at a place of a schema document."""

    SCHEMA = "a schema"
    MAP = "an object of schemas"
    LIST = "a list of schemas"
    OTHER = "a value, or what no keyword gives a meaning"


_SINGLE = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_MAPS = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_HOLDERS = _SINGLE | _MAPS | _LISTS


def position(above: Position, token: str, value: Any, draft: int) -> Position:
    """What `value` is, which stands under `token` in something at position `above`."""
    if above is not Position.SCHEMA:
        return Position.OTHER if above is Position.OTHER else Position.SCHEMA
    if token not in _HOLDERS or not has_keyword(draft, token):
        return Position.OTHER
    if isinstance(value, list):
        return Position.LIST if token in _LISTS else Position.OTHER
    if token in _MAPS:
        return Position.MAP if isinstance(value, dict) else Position.OTHER
    return Position.SCHEMA if token in _SINGLE else Position.OTHER


def has_keyword(draft: int, keyword: str) -> bool:
    """Whether a draft gives a keyword a meaning; true for keywords of no draft."""
    return SINCE.get(keyword, 0) <= draft <= UNTIL.get(keyword, LATEST)


@cache
def without_meaning(draft: int, vocabularies: frozenset[str] | None) -> frozenset[str]:
    """The keywords that mean nothing in a draft, or to a meta-schema of these vocabularies (None: all)."""
    hidden = {keyword for keyword in SINCE.keys() | UNTIL.keys() if not has_keyword(draft, keyword)}
    if vocabularies is not None:
        hidden |= {keyword for keyword, name in VOCABULARY_OF.items() if name not in vocabularies}
    return frozenset(hidden)


def known_draft(name: str) -> int | None:
    """The draft of a name such as "7", or of the address of its meta-schema."""
    return _DRAFT_NAMES.get(name) or _META_SCHEMAS.get(without_scheme(name))


def unknown_draft(name: str, path: str | None) -> UnsupportedKeyword:
    """That no such draft is known; `path` of the schema that names it, None for an option."""
    return UnsupportedKeyword(
        f"no draft {name!r} is known", path=path, keyword="$schema" if path else "draft",
        instead="draft= one of " + ", ".join(NAMES) + ("; or its meta-schema in resources=" if path else ""),
    )  # fmt: skip


def vocabularies_of(meta_schema: dict[str, Any], path: str) -> frozenset[str] | None:
    """The vocabularies that a meta-schema names, None for all. Raises `UnsupportedKeyword` for an unknown one that is required."""
    declared = meta_schema.get("$vocabulary")
    if not isinstance(declared, dict):
        return None
    names = {"core"}
    for address, is_required in declared.items():
        name = address.rpartition("/vocab/")[2].removesuffix("-annotation").removesuffix("-assertion")
        is_known = "json-schema.org/draft/" in address and (name in _BY_VOCABULARY or name in _WITHOUT_KEYWORDS)
        if is_known:
            names.add(name)
        elif is_required:
            reason = f"the meta-schema requires the vocabulary {address!r}, which is not known"
            raise UnsupportedKeyword(reason, path=path, keyword="$vocabulary", instead="a vocabulary of the drafts")
        if is_known and name == "applicator" and "/2019-09/" in address:
            names.add("unevaluated")
    return frozenset(names)


def without_scheme(address: str) -> str:
    """An address as meta-schemas are compared: http or https, with or without the empty fragment."""
    return address.removeprefix("https://").removeprefix("http://").rstrip("#").rstrip("/")

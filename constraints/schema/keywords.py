"""What each keyword is: enforced here, an annotation, or refused by name."""

from __future__ import annotations

from typing import Any

from .document import LATEST, Site

TYPES: dict[str, frozenset[str]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "fraction"}),
    "string": frozenset({"string"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}  # the atoms of values.py that each type name covers

# Keywords that say something about the value itself, by the type they concern.
GENERAL = ("type", "enum", "const")
NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
STRING = ("minLength", "maxLength", "pattern", "format")
ARRAY = ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
OBJECT = (
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
)  # fmt: skip
OWN = frozenset(GENERAL + NUMERIC + STRING + ARRAY + OBJECT)
# Keywords that apply schemas to the value itself, under conditions.
APPLICATORS = (
    "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentRequired",
    "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")

# The draft that introduced a keyword, and the last one that has it. An older or newer schema means nothing by it.
SINCE = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "dependentRequired": 2019,
    "dependentSchemas": 2019, "unevaluatedItems": 2019, "unevaluatedProperties": 2019, "$recursiveRef": 2019,
    "prefixItems": 2020, "$dynamicRef": 2020,
}  # fmt: skip
UNTIL = {"$recursiveRef": 2019}

_NEXT = "the same meaning with the keywords that are enforced, or on_unsupported='relax'"
INSTEAD = {
    "oneOf": "anyOf, or branches that a required const property tells apart",
    "uniqueItems": "an array of at most one item, or check uniqueness afterwards with on_unsupported='relax'",
    "patternProperties": "properties, or additionalProperties with a schema",
    "multipleOf": "type 'integer', or a power of ten from 0.0001 to 1",
    "dependencies": "anyOf over the cases",
    "dependentRequired": "anyOf over the cases",
    "dependentSchemas": "anyOf over the cases",
    "if": "anyOf over the cases",
    "not": "the values that remain, spelled out",
    "$dynamicRef": "$ref",
    "$recursiveRef": "$ref",
}


def in_force(site: Site, keyword: str) -> bool:
    """Whether a schema has a keyword, and its draft gives it a meaning."""
    if keyword not in site.keywords:
        return False
    draft = site.document.draft
    if draft <= 7 and keyword != "$ref" and "$ref" in site.keywords:
        return False  # up to draft 7 a reference replaces everything beside it
    return SINCE.get(keyword, 0) <= draft <= UNTIL.get(keyword, LATEST)


def value_of(site: Site, keyword: str) -> Any:
    """The value of a keyword in force; None when there is none."""
    return site.keywords[keyword] if in_force(site, keyword) else None


def ignored(site: Site) -> list[str]:
    """Keywords of a schema that exist in other drafts only."""
    return [key for key in site.keywords if (key in SINCE or key in UNTIL) and not in_force(site, key)]


def is_anything(schema: Any) -> bool:
    """Whether a schema obviously admits every value."""
    return schema is True or schema == {}


def instead_of(keyword: str) -> str:
    return INSTEAD.get(keyword, _NEXT)

"""What each keyword is: enforced here, an annotation, or refused by name."""

from __future__ import annotations

from typing import Any

from .document import Site
from .drafts import SINCE, UNTIL, VOCABULARY_OF

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
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords that apply schemas to the value itself, under conditions.
APPLICATORS = (
    *REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentRequired", "dependentSchemas",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")

_NEXT = "the same meaning with the keywords that are enforced, or on_unsupported='relax'"
INSTEAD = {
    "uniqueItems": "an array of at most one item, or check uniqueness afterwards with on_unsupported='relax'",
    "format": "a pattern, or formats='annotate'",
}


def in_force(site: Site, keyword: str) -> bool:
    """Whether a schema has a keyword, and its draft and vocabularies give it a meaning."""
    return keyword in site.active


def value_of(site: Site, keyword: str) -> Any:
    """The value of a keyword in force; None when there is none."""
    return site.active.get(keyword)


def ignored(site: Site) -> list[str]:
    """Keywords of a schema that exist in other drafts only, or in a vocabulary that its meta-schema leaves out."""
    if len(site.active) == len(site.keywords):
        return []
    known = VOCABULARY_OF if site.document.vocabularies is not None else _CHANGING
    return [key for key in site.keywords if key in known and not in_force(site, key)]


_CHANGING = SINCE.keys() | UNTIL.keys()


def is_anything(schema: Any) -> bool:
    """Whether a schema obviously admits every value."""
    return schema is True or schema == {}


def instead_of(keyword: str) -> str:
    return INSTEAD.get(keyword, _NEXT)

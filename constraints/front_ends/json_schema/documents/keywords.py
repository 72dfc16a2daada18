"""The keywords of one site: which of them its draft and vocabularies give a meaning. What each keyword is: keyword_table.py."""

from __future__ import annotations

from typing import Any

from .document import Site
from .keyword_table import SINCE, UNTIL, VOCABULARY_OF

TYPES: dict[str, frozenset[str]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "fraction"}),
    "string": frozenset({"string"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}  # the atoms of values.py that each type name covers


def in_force(site: Site, keyword: str) -> bool:
    """Whether a schema has a keyword to which its draft and vocabularies give a meaning."""
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

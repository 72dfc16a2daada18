"""The drafts: their names, which keywords have a meaning in each, and where in a schema its subschemas stand."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from ....base.errors import UnsupportedKeyword
from .keyword_table import SINCE, UNTIL, VOCABULARY_OF, Position, holding

DRAFTS: Final = (4, 6, 7, 2019, 2020)
LATEST: Final = DRAFTS[-1]
NAMES: Final = ("4", "6", "7", "2019-09", "2020-12")
_DRAFT_NAMES: Final = {
    **dict(zip(NAMES, DRAFTS, strict=True)),
    **{f"draft{name}": draft for name, draft in zip(NAMES, DRAFTS, strict=True)},
    "draft-04": 4, "draft-06": 6, "draft-07": 7,
}  # fmt: skip
_META_SCHEMAS: Final = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    "json-schema.org/schema": LATEST,
}

_VOCABULARIES: Final = frozenset(VOCABULARY_OF.values()) | {"core", "meta-data", "content"}  # core is always in force
_SINGLE: Final = holding(Position.SCHEMA)
_MAPS: Final = holding(Position.MAP)
_LISTS: Final = holding(Position.LIST)
_HOLDERS: Final = _SINGLE | _MAPS | _LISTS


def position(above: Position, token: str, value: Any, draft: int) -> Position:
    """The position of `value`, which stands under `token` in something at position `above`."""
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
    """The error that no such draft is known. path: of the schema that names the draft; None where an option names it."""
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
        is_known = "json-schema.org/draft/" in address and name in _VOCABULARIES
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

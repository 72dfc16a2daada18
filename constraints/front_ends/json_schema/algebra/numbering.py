"""Numbers of schemas. Two schemas that say the same have equal numbers, whatever describes them, and are lowered once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..documents.document import Document, Scope, Site
from ..documents.drafts import position
from ..documents.keyword_table import ALWAYS_EXACT, DESCRIPTIONS, Position

_NOTHING: frozenset[str] = frozenset()


class Numbering:
    """Numbers the parts of schemas, inner parts first, each once.

    tells_all: what is refused or remarked is told of every place, so schemas of which that may happen are not taken for one.
    """

    def __init__(self, tells_all: bool) -> None:
        self._tells_all = tells_all
        self._by_content: dict[Hashable, int] = {}
        self._by_identity: dict[tuple[int, int] | None, int] = {}  # of schemas that documents hold, and their drafts

    def of(self, schema: Any, document: Document, scope: Scope) -> Hashable:
        """A key that is equal for schemas which say the same of the same values."""
        if isinstance(schema, bool):
            return schema
        return self._number(schema, Position.SCHEMA, document.draft), document, scope

    def is_lowered_once(self, schema: Any) -> bool:
        """Whether a schema is taken for an equal one wherever it stands."""
        return not self._tells_all or (isinstance(schema, dict) and schema.keys() <= ALWAYS_EXACT)

    def outline(self, site: Site) -> Hashable:
        """A key that is quickly made and equal for sites that say the same. Most sites that differ have different keys."""
        properties = site.keywords.get("properties")
        names = tuple(properties) if isinstance(properties, dict) else None
        return tuple(site.keywords), names, site.document, site.scope

    def _number(self, value: dict[str, Any] | list[Any], kind: Position, draft: int) -> int:
        if isinstance(value, list):
            return self._number_of_content(self._content_of_list(value, kind, draft))
        place = (id(value), draft) if kind is Position.SCHEMA else None
        known = self._by_identity.get(place)
        if known is not None:
            return known
        without = _NOTHING if place is None else DESCRIPTIONS  # what is under `$defs` counts where a reference leads to it
        content: list[Hashable] = [dict]
        for name, item in value.items():
            if name in without:
                continue
            of_type = type(item)
            content.append(name)
            if of_type is dict or of_type is list:
                content.append(self._number(item, position(kind, name, item, draft), draft))
            else:
                content.append(item if of_type is str else (of_type, item))  # 1, 1.0 and true are equal in Python
        number = self._number_of_content(tuple(content))
        if place is not None:
            self._by_identity[place] = number
        return number

    def _content_of_list(self, value: list[Any], kind: Position, draft: int) -> Hashable:
        types = tuple(map(type, value))
        if dict not in types and list not in types:
            return types, tuple(value)
        return types, tuple(
            self._number(item, position(kind, "", item, draft), draft) if isinstance(item, (dict, list)) else item for item in value
        )

    def _number_of_content(self, content: Hashable) -> int:
        return self._by_content.setdefault(content, len(self._by_content))

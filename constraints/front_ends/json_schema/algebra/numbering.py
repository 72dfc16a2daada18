"""Numbers of schemas: equal where two say the same, whatever describes them, so that both are lowered once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..documents.document import Site
from ..documents.drafts import ANNOTATIONS, Position, position
from ..documents.keywords import GENERAL, NUMERIC

# Annotations that nothing refers to. What is under `$defs` counts where a reference leads to it.
DESCRIPTIONS = ANNOTATIONS - {"$anchor", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "id"}
_NOTHING: frozenset[str] = frozenset()
_NEVER_REFUSED = frozenset({*GENERAL, *NUMERIC, "minLength", "maxLength", "minItems", "maxItems"}) | DESCRIPTIONS


class Numbering:
    """Numbers the parts of a schema, those inside first, each once.

    tells_all: what is refused or remarked is told of every place, so schemas of which that may happen are not taken for one.
    """

    def __init__(self, tells_all: bool) -> None:
        self._tells_all = tells_all
        self._by_content: dict[Hashable, int] = {}
        self._by_identity: dict[tuple[int, int] | None, int] = {}  # of schemas that documents hold, and their drafts

    def of(self, site: Site, schema: Any) -> Hashable:
        """Equal for subschemas of sites that say the same of the same values.

        schema: of the site, or of one below it that has no address of its own.
        """
        if isinstance(schema, bool):
            return schema
        return self._number(schema, Position.SCHEMA, site.document.draft), site.document, site.scope

    def is_lowered_once(self, schema: Any) -> bool:
        """Whether a schema is taken for an equal one wherever it stands."""
        return not self._tells_all or (isinstance(schema, dict) and schema.keys() <= _NEVER_REFUSED)

    def outline(self, site: Site) -> Hashable:
        """Equal for sites that say the same, and found at once; most that differ have different ones."""
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
        without = _NOTHING if place is None else DESCRIPTIONS
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

"""What the members of a schema mean: by its draft, and by the vocabularies of its meta-schema."""

from __future__ import annotations

from typing import Any

from .drafts import without_meaning
from .forms import written

# Of one schema the members that are there, and of these the ones that have a meaning, with their values.
Reading = tuple[dict[str, Any], dict[str, Any]]


class Dialect:
    """A draft, and which of its vocabularies are in force (None: all)."""

    def __init__(self, draft: int, vocabularies: frozenset[str] | None = None) -> None:
        self.draft, self.vocabularies = draft, vocabularies
        self._hidden = without_meaning(draft, vocabularies)

    def read(self, schema: dict[str, Any] | bool) -> Reading:
        """The keywords of a schema; none of `true` and `false`."""
        if isinstance(schema, bool):
            return {}, {}
        keywords = written(schema, self.draft)
        if self.draft <= 7 and "$ref" in keywords:
            return keywords, {"$ref": keywords["$ref"]}  # up to draft 7 a reference replaces everything beside it
        if self._hidden.isdisjoint(keywords):
            return keywords, keywords
        return keywords, {key: keywords[key] for key in keywords if key not in self._hidden}

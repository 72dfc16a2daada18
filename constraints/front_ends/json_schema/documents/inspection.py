"""Schemas are looked at as they are written before any is made a site: a value that is not of its keyword's form is refused.

So what reads sites need not ask whether a keyword has a list or an object. A schema is looked at with all below it, whether or not
a value will ever meet that. What stands under `$defs` counts where a reference leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from ....base.errors import ConstraintError
from .forms import is_well_formed, remark_on, written
from .keyword_table import ANNOTATIONS, KEYWORDS, TYPE_NAMES, Position
from .paths import escape_token, shown


class _Dialect(Protocol):
    def active(self, keywords: dict[str, Any]) -> dict[str, Any]: ...


class _Document(Protocol):
    @property
    def draft(self) -> int: ...

    @property
    def dialect(self) -> _Dialect: ...

    def at(self, value: Any, path: str) -> _Document: ...


class Inspection:
    """Looks at the schemas of a library, each once, and collects remarks."""

    def __init__(self) -> None:
        self._seen: set[int] = set()  # identities of schemas that the library holds
        self._remarks: dict[str, None] = {}
        self._unknown: dict[str, list[str]] = {}  # by word that is no keyword: the paths of the schemas that have it

    @property
    def remarks(self) -> list[str]:
        """What is read in another way than it is written, by its path; of a word that is no keyword, the first place."""
        unknown = (
            f"{path}: {word!r} is not a keyword of JSON Schema: ignored{f', here and elsewhere ({len(more)} more)' if more else ''}"
            for word, (path, *more) in self._unknown.items()
        )
        return [*self._remarks, *unknown]

    def look_at(self, document: _Document, schema: Any, path: str) -> None:
        """Look at a schema and all below it. Raises `ConstraintError` for the first value that is malformed."""
        todo = [(document, schema, path)]
        while todo:
            document, schema, path = todo.pop()
            if not isinstance(schema, (dict, bool)):
                raise ConstraintError(f"a schema is an object or a boolean, not {shown(schema)}", path=path)
            if isinstance(schema, dict) and id(schema) not in self._seen:
                self._seen.add(id(schema))
                with suppress(ConstraintError):  # of an address or draft: told where a value meets it
                    document = document.at(schema, path)
                keywords = self._keywords(document, schema, path)
                todo += reversed([(document, *below) for below in _subschemas(keywords, path)])

    def _keywords(self, document: _Document, schema: dict[str, Any], path: str) -> dict[str, Any]:
        """The keywords of a schema that mean something, each of its form."""
        draft = document.draft
        active = document.dialect.active(written(schema, draft))
        for keyword, value in active.items():
            if keyword not in KEYWORDS:
                self._unknown.setdefault(keyword, []).append(path)
            elif not is_well_formed(keyword, value):
                raise _malformed(path, keyword, value)
        for keyword, value in schema.items():
            if remark := remark_on(keyword, value, draft):
                self._remarks[f"{path}: {keyword!r} {remark}"] = None
        return active


def _subschemas(keywords: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """What stands where keywords hold schemas, with its path."""
    for keyword, value in keywords.items():
        entry = KEYWORDS.get(keyword)
        if entry is None or not entry.holds or keyword in ANNOTATIONS:
            continue
        place = f"{path}/{keyword}"
        if isinstance(value, list):
            yield from ((item, f"{place}/{index}") for index, item in enumerate(value))
        elif Position.MAP in entry.holds:
            names = (list, str) if keyword == "dependencies" else ()
            yield from ((item, f"{place}/{escape_token(name)}") for name, item in value.items() if not isinstance(item, names))
        else:
            yield value, place


def _malformed(path: str, keyword: str, value: Any) -> ConstraintError:
    reason, instead = f"{KEYWORDS[keyword].form.value} is expected, not {shown(value)}", None
    if keyword == "type":
        named = value if isinstance(value, list) else [value]
        reason = f"there is no type {shown(next(name for name in named if name not in TYPE_NAMES))}"
        instead = f"one of {', '.join(TYPE_NAMES)}"
    elif keyword == "required" and value is True:
        instead = "the name in the required of the object around it"
    return ConstraintError(reason, path=path, keyword=keyword, instead=instead)

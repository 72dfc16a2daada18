"""Schemas are looked at as they are written before any is made a site: a value that is not of its keyword's form is refused.

So what reads sites need not ask whether a keyword has a list or an object. A schema is looked at with all below it, whether or not
a value will ever meet that. What stands under `$defs` counts where a reference leads to it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

from ....base.errors import ConstraintError
from .forms import CHECK_OF, REMARKABLE, remark_on, written
from .keyword_table import ANNOTATIONS, KEYWORDS, TYPE_NAMES, Position
from .paths import escape_token, shown

# Keywords that hold schemas where a value meets them: whether an object of the keyword's value holds them by name.
_HOLDERS = {name: Position.MAP in one.holds for name, one in KEYWORDS.items() if one.holds and name not in ANNOTATIONS}


class _Dialect(Protocol):
    def active(self, keywords: dict[str, Any]) -> dict[str, Any]: ...


class _Document(Protocol):
    @property
    def draft(self) -> int: ...

    @property
    def dialect(self) -> _Dialect: ...

    def at(self, value: Any, path: str) -> _Document: ...


# Where a schema stands: its path, or what is above it and the tokens from there on. Paths are written when they are told.
Place = str | tuple[Any, ...]


class Inspection:
    """Looks at the schemas of a library, each once, and collects remarks."""

    def __init__(self) -> None:
        self._seen: set[int] = set()  # identities of schemas that the library holds
        self._remarks: dict[str, None] = {}
        self._unknown: dict[str, list[Place]] = {}  # by word that is no keyword: the schemas that have it

    @property
    def remarks(self) -> list[str]:
        """What is read in another way than it is written, by its path; of a word that is no keyword, the first place."""
        unknown = (
            f"{_path(place)}: {word!r} is not a keyword of JSON Schema: ignored"
            f"{f', here and elsewhere ({len(more)} more)' if more else ''}"
            for word, (place, *more) in self._unknown.items()
        )
        return [*self._remarks, *unknown]

    def look_at(self, document: _Document, schema: Any, path: str) -> None:
        """Look at a schema and all below it, if it was not looked at before. Raises `ConstraintError` for the first value that is
        malformed."""
        if id(schema) in self._seen:
            return
        todo: list[tuple[_Document, Any, Place]] = [(document, schema, path)]
        while todo:
            document, schema, place = todo.pop()
            if not isinstance(schema, dict):
                if not isinstance(schema, bool):
                    raise ConstraintError(f"a schema is an object or a boolean, not {shown(schema)}", path=_path(place))
            elif id(schema) not in self._seen:
                self._seen.add(id(schema))
                if "$id" in schema or "id" in schema:
                    with suppress(ConstraintError):  # of an address or draft: told where a value meets it
                        document = document.at(schema, _path(place))
                keywords = self._keywords(document, schema, place)
                for below, where in _subschemas(keywords, place)[::-1]:
                    todo.append((document, below, where))

    def _keywords(self, document: _Document, schema: dict[str, Any], place: Place) -> dict[str, Any]:
        """The keywords of a schema that mean something, each of its form."""
        draft = document.draft
        active = document.dialect.active(written(schema, draft))
        for keyword, value in active.items():
            check = CHECK_OF.get(keyword)
            if check is None:
                if keyword not in KEYWORDS:
                    self._unknown.setdefault(keyword, []).append(place)
            elif not check(value):
                raise _malformed(_path(place), keyword, value)
        if "x-checkedAfterwards" in active:
            self._remarks[f"{_path(place)}: checked afterwards: {active['x-checkedAfterwards']}"] = None
        for keyword, value in schema.items():
            if (value is None or keyword in REMARKABLE) and (remark := remark_on(keyword, value, draft)):
                self._remarks[f"{_path(place)}: {keyword!r} {remark}"] = None
        return active


def _subschemas(keywords: dict[str, Any], place: Place) -> list[tuple[Any, Place]]:
    """What stands where keywords hold schemas."""
    found: list[tuple[Any, Place]] = []
    for keyword, value in keywords.items():
        if keyword not in _HOLDERS:
            continue
        if isinstance(value, list):
            found += [(item, (place, keyword, index)) for index, item in enumerate(value)]
        elif _HOLDERS[keyword]:
            names = (list, str) if keyword == "dependencies" else ()
            found += [(item, (place, keyword, name)) for name, item in value.items() if not isinstance(item, names)]
        else:
            found.append((value, (place, keyword)))
    return found


def _path(place: Place) -> str:
    """A place as a JSON pointer in a URI fragment."""
    tokens: list[str] = []
    while isinstance(place, tuple):
        place, *below = place
        tokens += [escape_token(str(token)) for token in reversed(below)]
    return "/".join((place, *reversed(tokens)))


def _malformed(path: str, keyword: str, value: Any) -> ConstraintError:
    reason, instead = f"{KEYWORDS[keyword].form.value} is expected, not {shown(value)}", None
    if keyword == "type":
        named = value if isinstance(value, list) else [value]
        reason = f"there is no type {shown(next(name for name in named if name not in TYPE_NAMES))}"
        instead = f"one of {', '.join(TYPE_NAMES)}"
    elif keyword == "required" and value is True:
        instead = "the name in the required of the object around it"
    return ConstraintError(reason, path=path, keyword=keyword, instead=instead)

"""Schemas are looked at as they are written before any is made a site: a value that is not of its keyword's form is refused.

So what reads sites need not ask whether a keyword has a list or an object. A schema is looked at with all below it, whether or not
a value will ever meet that. What stands under `$defs` counts where a reference leads to it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Protocol

from ....base.errors import ConstraintError
from ....grammar.stopwatch import look
from .dialect import Dialect, Reading
from .forms import CHECK_OF, DESCRIBED_BY, REMARKABLE, describes, remark_on
from .keyword_table import ANNOTATIONS, CHECKED_AFTERWARDS, KEYWORDS, REFERENCES, TYPE_NAMES, Position
from .near_words import meant_by, type_meant_by
from .paths import escape_token, shown

_BETWEEN_LOOKS: Final = 1023  # schemas that are read
# Keywords that hold schemas where a value meets them: whether an object of the keyword's value holds them by name.
_HOLDERS: Final = {name: Position.MAP in one.holds for name, one in KEYWORDS.items() if one.holds and name not in ANNOTATIONS}
_REFERENCES: Final = frozenset(REFERENCES)


class _Document(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    def at(self, value: Any, path: str) -> _Document: ...


# Where a schema stands: its path, or what is above it and the tokens from there on. Paths are written when they are told.
Place = str | tuple[Any, ...]


class Inspection:
    """Reads the schemas of a library, looks at each once, and collects remarks."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[Dialect, Reading]] = {}  # by identity; the library holds these schemas
        self._above_references: set[int] = set()  # by identity: what has a reference inside
        self._remarks: dict[str, None] = {}
        self._ignored: dict[str, list[Place]] = {}  # by word that is ignored: the schemas in which it is

    @property
    def remarks(self) -> list[str]:
        """What is read in another way than it is written, by its path; of a word that is ignored, the first place."""
        return [*self._remarks, *(_ignored(word, places) for word, places in self._ignored.items())]

    def look_at(self, document: _Document, schema: Any, path: str) -> Reading:
        """What a schema says. It and all below it are looked at, if they were not before. Raises `ConstraintError` for the first
        value that is malformed."""
        if id(schema) not in self._read:
            self._look_below(document, schema, path)
        dialect = document.dialect
        known = self._read.get(id(schema))
        if known is None or known[0] is not dialect:  # true or false, or met from a document of another dialect
            return dialect.read(schema)
        return known[1]

    def alone(self, schema: dict[str, Any], dialect: Dialect) -> dict[str, Any] | None:
        """The keywords of a schema that was looked at, if nothing inside refers to others, and all of them mean something."""
        known = self._read.get(id(schema))
        if known is None or known[0] is not dialect or id(schema) in self._above_references:
            return None
        keywords, active = known[1]
        return active if len(active) == len(keywords) else None

    def _look_below(self, document: _Document, schema: Any, path: str) -> None:
        dialect, top = document.dialect, schema
        todo: list[tuple[_Document, Dialect, Any, Place]] = [(document, dialect, schema, path)]
        while todo:
            document, dialect, schema, place = todo.pop()
            if not isinstance(schema, dict):
                if not isinstance(schema, bool):
                    raise _no_schema(place, schema)
            elif id(schema) not in self._read:
                if "$id" in schema or "id" in schema:
                    with suppress(ConstraintError):  # of an address or draft: told where a value meets it
                        document = document.at(schema, _path(place))
                        dialect = document.dialect
                read = dialect.read(schema)
                self._read[id(schema)] = dialect, read
                if not len(self._read) & _BETWEEN_LOOKS:
                    look()
                self._check(schema, read[1], dialect.draft, place)
                if not _REFERENCES.isdisjoint(read[1]):
                    self._note_reference(top, place)
                for below, where in _subschemas(read[1], place)[::-1]:
                    todo.append((document, dialect, below, where))
            elif id(schema) in self._above_references:  # read before what is around it
                self._note_reference(top, place)

    def _note_reference(self, top: Any, place: Place) -> None:
        """Note what is around a schema with a reference, and the schema itself. top: where looking began."""
        tokens: list[Any] = []
        while isinstance(place, tuple):
            place, *below = place
            tokens += reversed(below)
        self._above_references.add(id(top))
        while tokens:
            top = top[tokens.pop()]
            self._above_references.add(id(top))

    def _check(self, schema: dict[str, Any], active: dict[str, Any], draft: int, place: Place) -> None:
        """Refuse a keyword that means something and is not of its form; remark on those that are read in another way."""
        is_remarkable = False
        for keyword, value in active.items():
            check = CHECK_OF.get(keyword)
            if check is None:
                if keyword not in KEYWORDS or not describes(keyword, value):
                    self._ignored.setdefault(keyword, []).append(place)
            elif not check(value):
                raise _malformed(_path(place), keyword, value)
            elif keyword in REMARKABLE or (not value and value == []):
                is_remarkable = True
        if is_remarkable or active is not schema:
            self._remark(schema, draft, place)

    def _remark(self, schema: dict[str, Any], draft: int, place: Place) -> None:
        if CHECKED_AFTERWARDS in schema:
            self._remarks[f"{_path(place)}: checked afterwards: {schema[CHECKED_AFTERWARDS]}"] = None
        for keyword, value in schema.items():
            if (not value or keyword in REMARKABLE) and (remark := remark_on(keyword, value, draft)):
                self._remarks[f"{_path(place)}: {keyword!r} {remark}"] = None


def _ignored(word: str, places: list[Place]) -> str:
    """What is told of a word that is no keyword, or of one that describes values with something else than it should."""
    elsewhere = f", here and elsewhere ({len(places) - 1} more)" if len(places) > 1 else ""
    if word in DESCRIBED_BY:
        return f"{_path(places[0])}: {word!r} is not {DESCRIBED_BY[word][1]}: ignored{elsewhere}"
    meant = meant_by(word)
    hint = f"; perhaps {meant} is meant" if meant else ""
    return f"{_path(places[0])}: {word!r} is not a keyword of JSON Schema: ignored{elsewhere}{hint}"


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


def _no_schema(place: Place, value: Any) -> ConstraintError:
    meant = type_meant_by(value)
    keyword = str(place[1]) if isinstance(place, tuple) else None
    instead = f'{{"type": "{meant}"}}' if meant else None
    reason = f"a schema is an object or a boolean, not {shown(value)}"
    return ConstraintError(reason, path=_path(place), keyword=keyword, instead=instead)


def _malformed(path: str, keyword: str, value: Any) -> ConstraintError:
    reason, instead = f"{KEYWORDS[keyword].form.value} is expected, not {shown(value)}", None
    if keyword == "type" and value != []:
        named = value if isinstance(value, list) else [value]
        unknown = next(name for name in named if name not in TYPE_NAMES)
        reason = f"there is no type {shown(unknown)}"
        instead = f"{type_meant_by(unknown)!r}" if type_meant_by(unknown) else f"one of {', '.join(TYPE_NAMES)}"
    elif keyword == "required" and value in (True, "true"):
        instead = "the name in the required of the object around it"
    return ConstraintError(reason, path=path, keyword=keyword, instead=instead)

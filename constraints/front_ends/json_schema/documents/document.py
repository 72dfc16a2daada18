"""Schema documents: their sites (one subschema each), their addresses and anchors, and where references lead.

A *document* here is what the specification calls a schema resource: a whole document, or the part of one that has an address
(`$id`) of its own. A site belongs to the innermost document around it, and its path is that of the text it was read from.

Where a dynamic reference leads depends on the documents entered on the way to it. Of these a site keeps its *scope*: for each name
of a dynamic anchor the first document that has it. Documents without dynamic anchors leave no trace in it, so that elsewhere there
is one site for each path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit, uses_relative

from ....base.errors import ConstraintError, UnsupportedKeyword
from ....grammar.stopwatch import look
from .dialect import Dialect, Reading
from .drafts import LATEST, known_draft, position, unknown_draft, vocabularies_of, without_scheme
from .inspection import Inspection
from .keyword_table import KEYWORDS, Position
from .paths import escape_token, shown

_RECURSIVE: Final = "#"  # the name that `$recursiveAnchor` stands for; no anchor is called so
_DYNAMIC_NAMES: Final = ('"$dynamicAnchor"', '"$recursiveAnchor"')


@dataclass(eq=False)
class Scope:
    """The documents entered on the way to a site, as far as they matter. Equal scopes of a library are the same object."""

    first: dict[str, Document] = field(default_factory=dict)  # by name of a dynamic anchor: the first document that has it
    after: dict[Document, Scope] = field(default_factory=dict, repr=False)  # what entering a document makes of this one


class Site:
    """One subschema where it stands. Compared by identity: there is one site for each path and scope.

    path: a JSON pointer as a fragment, "#/properties/a"; of another text behind its address. keywords: the members of the schema,
    each of its keyword's form, without those that are null; none for `true` and `false`. active: those that its draft and
    vocabularies give a meaning, and that are enforced. is_loose: several branches of its `oneOf` may hold.
    """

    def __init__(self, schema: dict[str, Any] | bool, path: str, document: Document, scope: Scope, read: Reading) -> None:
        self.schema, self.path, self.document, self.scope = schema, path, document, scope
        self.keywords, self.active = read
        dropped = document.library.dropped.get(path, {})
        self.is_loose = "oneOf" in dropped
        if dropped:
            self.active = {key: value for key, value in self.active.items() if key not in dropped or key == "oneOf"}

    def __repr__(self) -> str:
        return f"Site({self.path!r}, {self.schema!r})"

    def child(self, *tokens: str | int) -> Site:
        """The subschema below this one, for instance `child("properties", "a")`."""
        path = self.path
        value: Any = self.schema
        for token in tokens:
            path, value = f"{path}/{escape_token(str(token))}", value[token]
        return self.document.library.site(self.document, value, path, self.scope)

    def error(self, keyword: str, reason: str, instead: str | None = None) -> ConstraintError:
        """The error that a keyword of this schema is malformed or cannot be satisfied."""
        return ConstraintError(reason, path=self.path, keyword=keyword, instead=instead)

    def unsupported(self, keyword: str, reason: str, instead: str | None = None) -> UnsupportedKeyword:
        """The error that a keyword of this schema is not enforced exactly. `instead` None: what the table of keywords says."""
        return UnsupportedKeyword(reason, path=self.path, keyword=keyword, instead=instead or KEYWORDS[keyword].instead)


@dataclass(frozen=True)
class Place:
    """Where a reference leads before the scope is known."""

    document: Document
    value: Any
    path: str


class Document:
    """A schema with an address: its draft and vocabularies, and its anchors."""

    def __init__(self, library: Library, schema: Any, path: str, base: str, dialect: Dialect, is_dynamic: bool) -> None:
        self.library, self.schema, self.path, self.dialect = library, schema, path, dialect
        self.is_dynamic = is_dynamic  # whether dynamic anchors occur in its text
        self.address = joined(base, own_address(schema, dialect.draft) or "", path).partition("#")[0]
        self._places: dict[str, Place] = {}  # where references lead, by their text
        self.anchors: dict[str, Place] = {}  # these two are filled when the text is indexed
        self.dynamic_anchors: dict[str, Place] = {}

    @property
    def draft(self) -> int:
        return self.dialect.draft

    @property
    def vocabularies(self) -> frozenset[str] | None:
        """Names of the vocabularies in force; None for all."""
        return self.dialect.vocabularies

    def resolve(self, site: Site, keyword: str = "$ref") -> Site:
        """Where "$ref", "$dynamicRef" or "$recursiveRef" of a site of this document leads.

        Raises `ConstraintError` for a dangling reference, `UnsupportedKeyword` for one to a document that was not given.
        """
        reference: str = site.keywords[keyword]
        if keyword == "$recursiveRef" and reference != "#":
            raise site.error(keyword, f"the only such reference is '#', not {shown(reference)}")
        place = self._places.get(reference)
        if place is None:
            place = self._places[reference] = self._place(site, keyword, reference)
        if keyword != "$ref":
            self.library.index()
            name = _RECURSIVE if keyword == "$recursiveRef" else unquote(reference.partition("#")[2])
            own = place.document.dynamic_anchors.get(name)
            if own is not None and own.path == place.path:
                place = site.scope.first.get(name, place.document).dynamic_anchors[name]
        return self.library.site(
            place.document, place.value, place.path, self.library.entered(site.scope, place.document)
        )

    def at(self, value: Any, path: str) -> Document:
        """The document of a subschema of this one: itself, or a new one where the subschema has an address."""
        if not isinstance(value, dict) or path == self.path:
            return self
        if "$id" not in value and "id" not in value:
            return self
        draft = self.draft
        if "$schema" in value:
            draft = self.library.dialect_of(value, path, self.dialect).draft
        address = own_address(value, draft)
        if address is None or joined(self.address, address, path).partition("#")[0] == self.address:
            return self
        return self.library.embedded(self, value, path)

    def _place(self, site: Site, keyword: str, reference: str) -> Place:
        if is_here := reference.startswith("#"):  # mostly
            address, fragment = self.address, reference[1:]
        else:
            address, _, fragment = joined(self.address, reference, site.path).partition("#")
            is_here = address == self.address
        document = self if is_here else self.library.document(address)
        if document is None:
            instead = "resources={address: schema}, or a copy under $defs"
            raise site.unsupported(keyword, f"{reference!r} is another document", instead)
        fragment = unquote(fragment)
        if not fragment or fragment.startswith("/"):
            return document._follow(fragment, site, keyword, reference)
        self.library.index()
        if fragment not in document.anchors:
            where = "" if is_here else f" in {address}"
            raise site.error(keyword, f"{reference!r} leads nowhere: there is no anchor {fragment!r}{where}")
        return document.anchors[fragment]

    def _follow(self, pointer: str, site: Site, keyword: str, reference: str) -> Place:
        """The place of a JSON pointer from the root of this document. It may lead into documents embedded in this one."""
        value, path, kind, document = self.schema, self.path, Position.SCHEMA, self
        for escaped in pointer.split("/")[1:]:
            token = escaped.replace("~1", "/").replace("~0", "~")
            value = _member(value, token)
            if value is _MISSING:
                raise site.error(keyword, f"{reference!r} leads nowhere: there is no {token!r} in {path}")
            path = f"{path}/{escape_token(token)}"
            kind = position(kind, token, value, document.draft)
            if kind is Position.SCHEMA:
                document = document.at(value, path)
        return Place(document if kind is Position.SCHEMA else document.at(value, path), value, path)


class Library:
    """All documents that a schema can refer to, by address. Nothing is fetched: `texts` are those given, parsed when needed.

    dropped: keywords that are not enforced, by the path of their schema, each with the reason (see relaxation.py).
    """

    def __init__(
        self, texts: Mapping[str, str], parse: Callable[[str], Any], dropped: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    ) -> None:
        self.dropped = dropped
        self._texts, self._parse = dict(texts), parse
        self.inspection = Inspection()
        self._waiting = dict(texts)  # not read so far
        self._by_address: dict[str, Document] = {}
        self._embedded: dict[str, Document] = {}  # by path
        self._sites: dict[tuple[str, Scope], Site] = {}
        self._outside = Scope()
        self._scopes: dict[tuple[tuple[str, Document], ...], Scope] = {}
        self._to_index: list[Document] = []  # whole texts whose addresses and anchors have not been collected
        self._dialects: dict[str, Dialect] = {}  # by address of the meta-schema
        self._default = Dialect(LATEST)  # of texts that name no draft: that of the schema itself

    def root(self, text: str, draft: str | int | None) -> Site:
        """The site of a schema as a whole. `draft` None reads `$schema`, else the latest."""
        schema = self._parse(text)
        self._default = self.dialect_of(schema, "#", self._default, draft)
        document = self._add("", schema, text, self._default)
        return self.site(document, schema, document.path, self.entered(self._outside, document))

    def site(self, around: Document, value: Any, path: str, scope: Scope) -> Site:
        """The site of a subschema that stands in the document `around`, the same object each time."""
        known = self._sites.get((path, scope))
        if known is None:
            document = around.at(value, path)
            read = self.inspection.look_at(document, value, path)
            entered = scope if document is around else self.entered(scope, document)
            known = self._sites.setdefault((path, entered), Site(value, path, document, entered, read))
        return known

    def entered(self, scope: Scope, document: Document) -> Scope:
        """The scope of a document's sites, where the way to it has led through `scope`."""
        if not document.is_dynamic:
            return scope
        self.index()
        known = scope.after.get(document)
        if known is None:
            first = {**dict.fromkeys(document.dynamic_anchors, document), **scope.first}
            known = (
                self._scopes.setdefault(tuple(sorted(first.items(), key=lambda item: item[0])), Scope(first))
                if first
                else scope
            )
            scope.after[document] = known
        return known

    def document(self, address: str) -> Document | None:
        """The document of an address: one read so far, one given, one inside those, or a meta-schema."""
        if address not in self._by_address:
            self.index()
        if address not in self._by_address:
            self._load(address)
        if address not in self._by_address:
            for other in list(self._waiting):
                with suppress(ConstraintError):  # of an unknown draft, or malformed: told where a reference needs it
                    self._load(other)
            self.index()
        if address not in self._by_address and (name := without_scheme(address)).startswith("json-schema.org/"):
            for schema, text in _meta_schemas().get(name, ()):
                self._add(address, schema, text, self.dialect_of(schema, address + "#", self._default))
        return self._by_address.get(address)

    def embedded(self, around: Document, schema: Any, path: str) -> Document:
        """The document of a subschema with an address of its own."""
        known = self._embedded.get(path)
        if known is None:
            dialect = self.dialect_of(schema, path, around.dialect)
            known = Document(self, schema, path, around.address, dialect, around.is_dynamic)
            self._embedded[path] = known
        return known

    def dialect_of(self, schema: Any, path: str, default: Dialect, draft: str | int | None = None) -> Dialect:
        """The dialect that `$schema` names, with `draft` in place of its draft if one is given.

        Raises `UnsupportedKeyword` for a dialect that is not known.
        """
        declared = schema.get("$schema") if isinstance(schema, dict) else None
        asked = None if draft is None else known_draft(str(draft))
        if draft is not None and asked is None:
            raise unknown_draft(str(draft), None)
        if declared is None or (asked and (not isinstance(declared, str) or declared.rstrip("#") not in self._texts)):
            return Dialect(asked) if asked else default
        if not isinstance(declared, str):
            raise ConstraintError(f"$schema is a string, not {shown(declared)}", path=path, keyword="$schema")
        dialect = self._dialects.get(declared) or self._dialect(declared, path)
        self._dialects[declared] = dialect
        return Dialect(asked, dialect.vocabularies) if asked else dialect

    def index(self) -> None:
        """Collect the addresses and anchors in all texts read so far."""
        while self._to_index:
            for document, value, path in _schemas(self._to_index.pop()):
                look()
                self._by_address.setdefault(document.address, document)
                _note_anchors(document, value, path)

    def _load(self, address: str) -> None:
        text = self._waiting.pop(address, None)
        if text is not None:
            schema = self._parse(text)
            self._add(address, schema, text, self.dialect_of(schema, address + "#", self._default))

    def _add(self, address: str, schema: Any, text: str, dialect: Dialect) -> Document:
        is_dynamic = any(name in text for name in _DYNAMIC_NAMES)
        document = Document(self, schema, address + "#", address, dialect, is_dynamic)
        self._by_address.setdefault(address, document)
        self._by_address.setdefault(document.address, document)
        self._to_index.append(document)
        return document

    def _dialect(self, declared: str, path: str) -> Dialect:
        """The dialect of a meta-schema: a draft, or one among the texts, whose own meta-schema leads to a draft."""
        draft, meta_schema = known_draft(declared), None
        address, passed = declared, set()
        while draft is None:
            text = self._texts.get(address.rstrip("#"))
            above = self._parse(text) if text is not None and address not in passed else None
            if not isinstance(above, dict) or not isinstance(above.get("$schema"), str):
                raise unknown_draft(declared, path)
            meta_schema = meta_schema or above
            passed.add(address)
            address = above["$schema"]
            draft = known_draft(address)
        return Dialect(draft, vocabularies_of(meta_schema, path) if meta_schema else None)


def _schemas(root: Document) -> Iterator[tuple[Document, dict[str, Any], str]]:
    """Every schema of a text that is an object, in document order, with the document it belongs to and its path."""
    todo: list[tuple[Document, Any, str, Position]] = [(root, root.schema, root.path, Position.SCHEMA)]
    while todo:
        document, value, path, kind = todo.pop()
        if kind is Position.SCHEMA and isinstance(value, dict):
            document = document.at(value, path)
            yield document, value, path
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        children = []
        for token, item in items:
            below = position(kind, str(token), item, document.draft)
            if below is not Position.OTHER:
                children.append((document, item, f"{path}/{escape_token(str(token))}", below))
        todo.extend(reversed(children))


def _note_anchors(document: Document, schema: dict[str, Any], path: str) -> None:
    place = Place(document, schema, path)
    if document.draft <= 7:
        identifier = schema.get("id" if document.draft == 4 else "$id")
        if isinstance(identifier, str) and "#" in identifier and "$ref" not in schema:
            document.anchors.setdefault(identifier.partition("#")[2], place)
        return
    for keyword in ("$anchor", "$dynamicAnchor") if document.draft >= 2020 else ("$anchor",):
        name = schema.get(keyword)
        if isinstance(name, str) and name:
            document.anchors.setdefault(name, place)
            if keyword == "$dynamicAnchor":
                document.dynamic_anchors.setdefault(name, place)
    if document.draft == 2019 and path == document.path and schema.get("$recursiveAnchor") is True:
        document.dynamic_anchors[_RECURSIVE] = place


@cache
def _meta_schemas() -> dict[str, list[tuple[Any, str]]]:
    """The meta-schemas of the drafts and their vocabularies: a value and its text by address without scheme."""
    from jsonschema_specifications import REGISTRY

    from .values import dump_json, plain_value

    plain = {without_scheme(address): plain_value(REGISTRY[address].contents) for address in REGISTRY}
    return {address: [(schema, dump_json(schema))] for address, schema in plain.items()}


_MISSING: Final = object()
_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}")  # of a list, in a JSON pointer


def _member(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, _MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
        return value[int(token)]
    return _MISSING


def own_address(schema: Any, draft: int) -> str | None:
    """The `$id` of a schema, unless it is an anchor or stands beside a `$ref` that hides it."""
    if not isinstance(schema, dict) or (draft <= 7 and "$ref" in schema):
        return None
    address = schema.get("id" if draft == 4 else "$id")
    return address if isinstance(address, str) and not address.startswith("#") else None


def joined(base: str, reference: str, path: str) -> str:
    """A reference made absolute (RFC 3986), for schemes that Python does not know too. Raises `ConstraintError` for no address."""
    if not reference or reference.startswith("#"):
        return base.partition("#")[0] + reference
    if not base:
        return reference
    try:
        scheme = urlsplit(base).scheme
        if scheme in uses_relative or urlsplit(reference).scheme or not base.startswith(scheme + "://"):
            return urljoin(base, reference)
        return scheme + urljoin("http" + base[len(scheme) :], reference)[4:]
    except ValueError as error:
        raise ConstraintError(f"{reference!r} is no address: {error}", path=path, keyword="$ref") from None

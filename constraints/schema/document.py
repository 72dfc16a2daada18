"""A schema document: its draft, its sites (one subschema each), and where a `$ref` leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from ..errors import ConstraintError, UnsupportedKeyword

DRAFTS = (4, 6, 7, 2019, 2020)
LATEST = DRAFTS[-1]
_DRAFT_NAMES = {
    "4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020,
    "draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020,
    "draft-04": 4, "draft-06": 6, "draft-07": 7,
}  # fmt: skip
_META_SCHEMAS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    "json-schema.org/schema": LATEST,
}


@dataclass(eq=False, slots=True)
class Site:
    """One subschema where it stands. Compared by identity: a document makes one site per path."""

    schema: dict[str, Any] | bool
    path: str  # JSON pointer as a fragment: "#/properties/a"; of another document behind its address
    document: Document = field(repr=False)
    is_embedded: bool = False  # inside a schema with an `$id` of its own

    @property
    def keywords(self) -> dict[str, Any]:
        """The members of the schema; none for `true` and `false`."""
        return self.schema if isinstance(self.schema, dict) else {}

    def child(self, *tokens: str | int) -> Site:
        """The subschema below this one, for instance `child("properties", "a")`."""
        path, value = self.path, self.schema
        for token in tokens:
            path, value = f"{path}/{escape_token(str(token))}", value[token]  # type: ignore[index]
        return self.document.site(value, path, self.is_embedded)

    def error(self, keyword: str, reason: str, instead: str | None = None) -> ConstraintError:
        """That a keyword of this schema is malformed or cannot be satisfied."""
        return ConstraintError(reason, path=self.path, keyword=keyword, instead=instead)

    def unsupported(self, keyword: str, reason: str, instead: str) -> UnsupportedKeyword:
        """That a keyword of this schema is not enforced exactly yet."""
        return UnsupportedKeyword(reason, path=self.path, keyword=keyword, instead=instead)


class Document:
    """A schema document and what its references need. `library` holds all documents of a constraint by address."""

    def __init__(self, schema: Any, address: str, draft: int, library: dict[str, Document]) -> None:
        self.draft, self.library = draft, library
        self.address = urldefrag(urljoin(address, own_address(schema, draft) or ""))[0]
        self._prefix = "" if not library else address  # of paths: the first document is the one the user wrote
        self._sites: dict[str, Site] = {}
        library.setdefault(address, self)
        library.setdefault(self.address, self)
        self._schema = schema
        self.root = self.site(schema, self._prefix + "#", is_root=True)

    def site(self, value: Any, path: str, is_embedded: bool = False, is_root: bool = False) -> Site:
        """The site of a subschema at a path, the same object each time."""
        known = self._sites.get(path)
        if known is None:
            if not isinstance(value, (dict, bool)):
                raise ConstraintError(f"a schema is an object or a boolean, not {shown(value)}", path=path)
            is_embedded = is_embedded or (not is_root and own_address(value, self.draft) is not None)
            known = self._sites[path] = Site(value, path, self, is_embedded)
        return known

    def resolve(self, site: Site, keyword: str = "$ref") -> Site:
        """Where the `$ref` of a site leads. Raises `ConstraintError` for a dangling one, `UnsupportedKeyword` for other kinds."""
        if keyword != "$ref":
            raise site.unsupported(keyword, "not enforced yet", "$ref")
        reference = site.keywords["$ref"]
        if not isinstance(reference, str):
            raise site.error("$ref", f"a reference is a string, not {shown(reference)}")
        if site.is_embedded:
            raise site.unsupported("$id", "a reference inside a schema with an address of its own", "a JSON pointer from the root")
        address, fragment = urldefrag(urljoin(self.address, reference) if not reference.startswith("#") else reference)
        target = self.library.get(address) if address else self
        if target is None:
            instead = "resources={address: schema}, or a copy under $defs"
            raise site.unsupported("$ref", f"{reference!r} is another document", instead)
        if fragment and not fragment.startswith("/"):
            raise site.unsupported("$ref", f"{reference!r} refers to an anchor", "a JSON pointer such as '#/$defs/name'")
        return target._at(unquote(fragment), site, reference)

    def _at(self, pointer: str, origin: Site, reference: str) -> Site:
        value, path, is_embedded = self._schema, self._prefix + "#", False
        for token in pointer.split("/")[1:]:
            value = _member(value, token.replace("~1", "/").replace("~0", "~"))
            if value is _MISSING:
                raise origin.error("$ref", f"{reference!r} leads nowhere: there is no {token!r} in {path}")
            path = f"{path}/{token}"
            is_embedded = is_embedded or own_address(value, self.draft) is not None
        if is_embedded:
            raise origin.unsupported("$id", f"{reference!r} leads into a schema with an address of its own", "$defs without $id")
        return self.site(value, path, is_root=path.endswith("#"))


_MISSING = object()


def _member(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, _MISSING)
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
        return value[int(token)]
    return _MISSING


def own_address(schema: Any, draft: int) -> str | None:
    """The `$id` of a schema, unless it is an anchor or stands beside a `$ref` that hides it."""
    if not isinstance(schema, dict) or (draft <= 7 and "$ref" in schema):
        return None
    address = schema.get("id" if draft == 4 else "$id")
    return address if isinstance(address, str) and not address.startswith("#") else None


def escape_token(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def shown(value: Any) -> str:
    """A value in an error message, in a few characters."""
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def draft_of(schema: Any, asked: str | int | None) -> int:
    """The draft that a schema is written in: as asked for, else its `$schema`, else the latest."""
    if asked is not None:
        return _named_draft(str(asked), None)
    declared = schema.get("$schema") if isinstance(schema, Mapping) else None
    if declared is None:
        return LATEST
    if not isinstance(declared, str):
        raise ConstraintError(f"$schema is a string, not {shown(declared)}", path="#", keyword="$schema")
    return _named_draft(declared, "#")


def _named_draft(name: str, path: str | None) -> int:
    plain = name.removeprefix("https://").removeprefix("http://").rstrip("#").rstrip("/")
    draft = _DRAFT_NAMES.get(name) or _META_SCHEMAS.get(plain)
    if draft is None:
        raise UnsupportedKeyword(
            f"no draft {name!r} is known", path=path, keyword="$schema" if path else "draft",
            instead="draft= one of " + ", ".join(("4", "6", "7", "2019-09", "2020-12")),
        )  # fmt: skip
    return draft

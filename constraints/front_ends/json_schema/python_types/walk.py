"""The walk over Pydantic's core schema of a type, which makes a JSON schema of the texts that its validation takes.

A core schema is what Pydantic validates with. Each of its nodes is of a kind, and each kind has a handler in `kinds.py`. What a
handler cannot say it leaves as a remark in the schema (`x-maskwright-checkedAfterwards`), so the constraint tells it in its notes;
what has no JSON at all it refuses with `NotInJson`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic.json_schema import WithJsonSchema
from pydantic_core import to_jsonable_python

from ....base.errors import ConstraintError
from ..documents.keyword_table import ANNOTATIONS, CHECKED_AFTERWARDS, KEYWORDS

Schema = dict[str, Any]
CoreNode = Mapping[str, Any]  # a node of a core schema
REMARK = CHECKED_AFTERWARDS
DEFINITIONS = "#/$defs/"
_NOTHING = object()
_DESCRIPTIVE = ("title", "description", "examples", "deprecated", "readOnly", "writeOnly", "$comment")


class NotInJson(ConstraintError):
    """No JSON text stands for a value of a type."""


class Walk:
    """Makes the schemas of one type and of all that it refers to.

    config: of the model around, as Pydantic's core has it.
    """

    def __init__(self, handlers: Mapping[str, Callable[[Walk, CoreNode], Schema]], config: CoreNode) -> None:
        self._handlers, self.config = handlers, config
        self.definitions: dict[str, Schema] = {}
        self._names: dict[str, str] = {}  # of definitions, by reference in the core schema
        self._waiting: dict[str, CoreNode] = {}  # nodes that are defined and not yet referred to, by reference
        self._path: list[str] = []  # members that lead here
        self.has_alternatives = self.is_any_compared = False  # somewhere; a comparison with an `Any`

    def whole(self, node: CoreNode) -> Schema:
        """The schema of a type, with the definitions that it refers to."""
        schema = self.schema(node)
        name = schema.get("$ref", "").removeprefix(DEFINITIONS) if len(schema) == 1 else ""
        if name and name not in _referred(self.definitions):
            schema = self.definitions.pop(name)
        if self.has_alternatives and self.is_any_compared:  # what cannot be compared is an error, not another alternative
            schema = noted(schema, "that no alternative compares a value that has no size or length")
        return schema | ({"$defs": self.definitions} if self.definitions else {})

    def schema(self, node: CoreNode) -> Schema:
        """The schema of a node; a reference to it, if others may refer to it too."""
        reference = node.get("ref")
        if reference is None:
            return self._described(node)
        if reference not in self._names:
            name = self._names[reference] = self._new_name(reference)
            self.definitions[name] = {}
            try:
                self.definitions[name] = self._described(node)
            except NotInJson:
                del self._names[reference], self.definitions[name]
                raise
        return {"$ref": DEFINITIONS + self._names[reference]}

    def define(self, nodes: list[CoreNode]) -> None:
        """Keep nodes that others refer to."""
        self._waiting |= {node["ref"]: node for node in nodes}

    def waiting(self) -> list[CoreNode]:
        """The nodes that others refer to."""
        return list(self._waiting.values())

    def target(self, node: CoreNode) -> CoreNode:
        """What a node refers to, or the node itself."""
        while node["type"] in ("definition-ref", "definitions"):
            if node["type"] == "definitions":
                self.define(node["definitions"])
                node = node["schema"]
            else:
                node = self._waiting[node["schema_ref"]]
        return node

    def referred(self, reference: str) -> Schema:
        """The schema of a node by its reference."""
        if reference in self._names:
            return {"$ref": DEFINITIONS + self._names[reference]}
        return self.schema(self._waiting[reference])

    def resolved(self, schema: Schema) -> Schema:
        """What a schema that is a reference refers to."""
        while "$ref" in schema:
            schema = self.definitions[schema["$ref"].removeprefix(DEFINITIONS)]
        return schema

    def option(self, node: CoreNode, name: str, in_config: str = "") -> Any:
        """An option of a node, or else of the configuration around it."""
        own = node.get(name)
        return self.config.get(in_config or name) if own is None else own

    @contextmanager
    def within(self, config: CoreNode | None) -> Iterator[None]:
        """Walk what has its own configuration."""
        before, self.config = self.config, self.config if config is None else config
        try:
            yield
        finally:
            self.config = before

    @contextmanager
    def member(self, name: str) -> Iterator[None]:
        """Walk what a member has. An error names it."""
        self._path.append(name)
        try:
            yield
        finally:
            self._path.pop()

    def refuse(self, reason: str, instead: str) -> NotInJson:
        """The error for a type without JSON, with the member that has it."""
        where = f"{'.'.join(self._path)}: " if self._path else ""
        return NotInJson(where + reason, instead=instead)

    def _new_name(self, reference: str) -> str:
        name = reference.partition("[")[0].rpartition(":")[0].rpartition(".")[2] or reference.rpartition(".")[2]
        numbers = (f"{name}_{number}" if number > 1 else name for number in range(1, len(self.definitions) + 2))
        return next(each for each in numbers if each not in self.definitions)

    # -- what types say of themselves -------------------------------------------------------------------------------------

    def _described(self, node: CoreNode) -> Schema:
        """The schema of a node with its title and description, and with what its type adds to its JSON schema."""
        metadata = node.get("metadata") or {}
        schema = self._handlers[node["type"]](self, node)
        updates = metadata.get("pydantic_js_updates") or {}
        schema = schema | in_json({key: updates[key] for key in _DESCRIPTIVE if key in updates})
        if extra := metadata.get("pydantic_js_extra"):
            schema = with_extra(schema, extra)
        functions = (*metadata.get("pydantic_js_functions", ()), *metadata.get("pydantic_js_annotation_functions", ()))
        for function in functions if node["type"] == "any" else filter(_is_users, functions):
            schema = self._given(schema, function, node)
        return schema

    def _given(self, schema: Schema, function: Callable[..., Any], node: CoreNode) -> Schema:
        """The schema that a type's own function makes of `schema`. What it says of values need not be what is validated."""
        given: Schema = function(node, _Handler(self, node, schema))
        if node["type"] == "any":
            return given  # it says more
        if _claims(given) == _claims(schema):
            return {**given, **schema, **{key: given[key] for key in _DESCRIPTIVE if key in given}}
        return noted(given, "whether the value is valid, as the type gives a JSON Schema of its own")


class _Handler:
    """What a type's function for its JSON schema gets from Pydantic."""

    mode = "validation"

    def __init__(self, walk: Walk, node: CoreNode, schema: Schema) -> None:
        self._walk, self._node, self._schema = walk, node, schema

    def __call__(self, node: CoreNode) -> Schema:
        return dict(self._schema) if node is self._node else self._walk.schema(node)

    def resolve_ref_schema(self, schema: Schema) -> Schema:
        return self._walk.resolved(schema)


def noted(schema: Schema, remark: str) -> Schema:
    """A schema that tells what is checked afterwards."""
    remarks = dict.fromkeys([*filter(None, schema.get(REMARK, "").split("; ")), remark])
    return schema | {REMARK: "; ".join(remarks)}


def both(first: Schema, second: Schema) -> Schema:
    """The values of two schemas."""
    if REMARK in second:
        second = dict(second)
        first = noted(first, second.pop(REMARK))
    if any(first[key] != second[key] for key in first.keys() & second.keys()):
        return first | {"allOf": [*first.get("allOf", ()), second]}
    return first | second


def with_extra(schema: Schema, extra: Any) -> Schema:
    """A schema with what `json_schema_extra` adds: what describes the value, and what claims more of it."""
    if isinstance(extra, Mapping):
        added = dict(extra)
    else:
        changed = dict(schema)
        extra(changed)
        added = {key: value for key, value in changed.items() if schema.get(key) != value}
    told = {key: value for key, value in added.items() if key in ANNOTATIONS or key not in KEYWORDS}
    claims = {key: value for key, value in added.items() if key not in told}
    return both(schema | in_json(told), to_jsonable_python(claims))


def in_json(told: Mapping[str, Any]) -> Schema:
    """What is told of values in JSON: without what it does not have, such as a default of infinity, which says nothing of them."""
    return {key: plain for key, value in told.items() if (plain := _plain(value)) is not _NOTHING}


def _plain(value: Any) -> Any:
    """A value as JSON has it; `_NOTHING` for one that it does not have."""
    try:
        plain = to_jsonable_python(value)
        json.dumps(plain, allow_nan=False)
    except Exception:  # Pydantic's, or that of any serializer
        return _NOTHING
    return plain


def _claims(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key in KEYWORDS and key not in ANNOTATIONS}


def _is_users(function: Callable[..., Any]) -> bool:
    """Whether a function for the JSON schema of a type is not one of Pydantic's own types."""
    owner = getattr(function, "__self__", None)
    module = str(getattr(function, "__module__", ""))
    return isinstance(owner, WithJsonSchema) or module.partition(".")[0] != "pydantic"


def _referred(value: Any) -> set[str]:
    """The names of definitions that schemas refer to."""
    if isinstance(value, list):
        return set().union(*map(_referred, value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*map(_referred, value.values()))
    reference = value.get("$ref")
    return found | {reference.removeprefix(DEFINITIONS)} if isinstance(reference, str) else found

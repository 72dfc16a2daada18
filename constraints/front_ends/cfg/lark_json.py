"""`%json {...}` inside of a grammar: a schema, with llguidance's options in `x-guidance` at its top.

Source: llguidance, docs/json_schema.md. What stands around a value is the grammar's affair, so no white space belongs to it.
Strings may spell control characters in either way (`\\n`, `\\u000a`), and all characters with `json_allow_general_unicode_escapes`,
as long as nothing in the schema compares strings: two spellings of one string would count as different.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...base.errors import ConstraintError, UnsupportedKeyword
from ...grammar.emptiness import shows_empty
from ...grammar.expression import EMPTY, Grammar, Node
from ...grammar.source import Limits
from ..json_schema.documents.values import dump_json, parse_json
from ..json_schema.json_schema import JsonSchema
from ..json_schema.strings.escapes import EscapedText, Spellings
from ..json_schema.strings.text import JsonText
from ..regex.regex import lower_pattern

_ALL_ESCAPES = 'nrbtf\\"u'
_COMPARING = frozenset(  # keywords under which a string is told from others by its spelling
    ["not", "oneOf", "if", "uniqueItems", "contains", "patternProperties", "propertyNames", "unevaluatedProperties",
     "unevaluatedItems", "dependentSchemas", "dependencies"]
)  # fmt: skip
_MAPS = frozenset(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"])  # of schemas
_VALUES = frozenset(["const", "enum", "default", "examples", "x-guidance"])


@dataclass(frozen=True, slots=True)
class Guidance:
    """The options of `x-guidance`."""

    item_separator: str = ","
    key_separator: str = ":"
    whitespace_flexible: bool = True
    whitespace_pattern: str | None = None
    coerce_one_of: bool = False
    lenient: bool = False
    json_allowed_escapes: str | None = None
    json_allow_general_unicode_escapes: bool = False

    @classmethod
    def of(cls, options: Any) -> Guidance:
        """Raises `ConstraintError` for options that do not exist or are of another type."""
        known = {one.name: one for one in fields(cls)}
        if not isinstance(options, Mapping):
            raise ConstraintError("an object of options is expected", keyword="x-guidance")
        for name, value in options.items():
            if name not in known:
                raise ConstraintError(f"there is no option {name!r}", keyword="x-guidance", instead=" or ".join(known))
            is_text = name.endswith(("separator", "pattern", "allowed_escapes"))
            if not (isinstance(value, str if is_text else bool) or (value is None and known[name].default is None)):
                reason = f"{name} is {'a string' if is_text else 'true or false'}, not {value!r}"
                raise ConstraintError(reason, keyword="x-guidance")
        found = cls(**options)
        if wrong := set(found.json_allowed_escapes or "") - set(_ALL_ESCAPES):
            reason = f"json_allowed_escapes are out of {_ALL_ESCAPES}, not {sorted(wrong)[0]!r}"
            raise ConstraintError(reason, keyword="x-guidance")
        return found

    @property
    def whitespace(self) -> str:
        """The white space, in the form that `JsonSchema` takes."""
        if self.whitespace_pattern is not None:
            return f"(?:{self.whitespace_pattern})?"
        return "flexible" if self.whitespace_flexible else "compact"


@dataclass(frozen=True, slots=True)
class InlineJson(JsonSchema):
    """A schema inside of a grammar."""

    guidance: Guidance = field(default_factory=Guidance)
    spellings: Spellings = Spellings.CONTROLS

    @property
    def is_plain_json(self) -> bool:
        """False: separators may be any text."""
        return False

    def _text(self, grammar: Grammar, limits: Limits) -> JsonText:
        guidance = self.guidance
        allowed = _ALL_ESCAPES if guidance.json_allowed_escapes is None else guidance.json_allowed_escapes
        of_keys = self.spellings if self.spellings is Spellings.ALL else Spellings.NEEDED
        text = EscapedText(grammar, self.whitespace, limits, allowed, of_keys)
        if self.spellings is not of_keys:
            text.values = EscapedText(grammar, self.whitespace, limits, allowed, self.spellings)
        text.margin = EMPTY
        text.comma = grammar.seq(_separator(grammar, guidance.item_separator, limits), text.gap)
        text.colon = grammar.seq(text.gap, _separator(grammar, guidance.key_separator, limits), text.gap)
        if self.spellings is Spellings.ALL:
            grammar.residue.append("keys that differ in their escapes only are taken for different keys")
        return text


def inline_json(text: str) -> InlineJson:
    """The schema of `%json text`. Raises `ConstraintError` (`.path` in the schema), `UnsupportedKeyword`."""
    schema = parse_json(text)
    options = schema.get("x-guidance", {}) if isinstance(schema, dict) else {}
    guidance = Guidance.of(options)
    found = list(_schemas(schema))
    compares = sorted(_COMPARING & {keyword for one in found for keyword in one})
    if compares and guidance.json_allow_general_unicode_escapes:
        raise _refused("json_allow_general_unicode_escapes", f"beside {compares[0]!r}, which compares strings as they are spelled")
    if guidance.item_separator != "," and "uniqueItems" in compares:
        raise _refused("item_separator", "beside 'uniqueItems'")
    if guidance.json_allowed_escapes is not None:
        _check_spelled(found, guidance.json_allowed_escapes)
    if guidance.coerce_one_of or guidance.lenient:
        _coerce(found)
    spellings = Spellings.ALL if guidance.json_allow_general_unicode_escapes else Spellings.CONTROLS
    return InlineJson(
        schema, whitespace=guidance.whitespace, on_unsupported="relax" if guidance.lenient else "refuse",
        guidance=guidance, spellings=Spellings.NEEDED if compares else spellings,
    )  # fmt: skip


def _separator(grammar: Grammar, pattern: str, limits: Limits) -> Node:
    node = lower_pattern(grammar, pattern, dialect="python", full=True, unit=grammar.chars, limits=limits)
    if shows_empty(grammar, node):
        raise _refused(f"the separator {pattern!r}", "it may be empty", instead="a separator of at least one character")
    return node


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """The schemas of a document, each an object, the outermost first."""
    work = [schema]
    while work:
        value = work.pop()
        if isinstance(value, list):
            work.extend(value)
        elif isinstance(value, dict):
            yield value
            for keyword, inner in value.items():
                if keyword in _MAPS and isinstance(inner, dict):
                    work.extend(inner.values())
                elif keyword not in _VALUES:
                    work.append(inner)


def _check_spelled(schemas: list[dict[str, Any]], allowed: str) -> None:
    """Check that names and values which are given have one spelling, and that it is allowed."""
    for schema in schemas:
        names = schema.get("properties")
        given = dump_json([schema.get("const"), schema.get("enum"), list(names) if isinstance(names, dict) else []])
        for letter in re.findall(r"\\(.)", given):
            if letter not in allowed:
                raise _refused("json_allowed_escapes", f"a name or value that is given needs \\{letter}")


def _coerce(schemas: list[dict[str, Any]]) -> None:
    """Turn `oneOf` into `anyOf`."""
    for schema in schemas:
        others = schema.get("allOf") or []
        if isinstance(schema.get("oneOf"), list) and isinstance(others, list):  # else they are refused as they are
            schema["allOf"] = [*others, {"anyOf": schema.pop("oneOf")}]


def _refused(option: str, reason: str, instead: str = "the schema without it") -> UnsupportedKeyword:
    return UnsupportedKeyword(f"{option}: {reason}", keyword="x-guidance", instead=instead)

"""Single arguments by their schema, for styles that write each by itself.

Notations of a value:

    json      its JSON text
    python    a Python literal: JSON with None, True and False
    bare      a string without quotes
    either    a bare string, or the JSON text of a value of other types; a string that could be read as such a value is left out
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ConstraintError
from ..expression import FAIL, Grammar, Node
from ..json_schema import FORMATS_OPTIONS, JsonSchema
from ..numbers import number_node
from ..schema.claims import ALL_ATOMS
from ..schema.document import Site
from ..schema.lowering import Lowering
from ..schema.policy import Policy
from ..schema.text import BareText, JsonText, PythonText
from ..schema.values import atom_of, parse_json, scalar_text
from ..source import Limits
from ..utf8 import ALL

_ANNOTATIONS = {
    "title",
    "description",
    "$comment",
    "examples",
    "default",
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "strict",
}
_UNDERSTOOD = {"type", "properties", "required", "additionalProperties"} | _ANNOTATIONS
_PYTHON_CONSTANTS = {"None": "null", "True": "true", "False": "false"}
_PYTHON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|None|True|False')


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: a source of its values, in one notation."""

    schema: JsonSchema  # of all arguments
    name: str
    notation: str
    end: str = ""  # what follows a bare value, which goes to the first place where that stands
    others_only: bool = False  # the JSON texts of all values but strings

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts of the values."""
        values = _Values(self.schema, self.name, grammar, limits)
        if self.others_only:
            return values.others()
        if self.notation in ("json", "python"):
            return values.all(JsonText if self.notation == "json" else PythonText)
        text = self._bounded(values, grammar)
        return (
            text if self.notation == "bare" else grammar.alt(grammar.without(text, values.misread()), values.others())
        )

    def _bounded(self, values: _Values, grammar: Grammar) -> Node:
        """The strings without those behind which `end` stands for the second time, perhaps overlapping with the first."""
        end, anything = self.end, values.any_string()
        if not end:
            return values.strings()
        overlaps = (end[:-size] for size in range(1, len(end)) if end.endswith(end[:size]))
        early = (grammar.seq(anything, grammar.literal(beginning)) for beginning in overlaps)
        return grammar.without(
            values.strings(), grammar.alt(grammar.seq(anything, grammar.literal(end), anything), *early)
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a schema says about one parameter."""

    name: str
    is_required: bool
    notation: str  # "json", "bare" or "either" of strings that are written bare
    is_free: bool  # any string


def parameters_of(schema: JsonSchema, limits: Limits) -> list[Parameter]:
    """The parameters that an object schema declares, in order. Others are never written.

    Raises `UnsupportedKeyword` for what several of them have to satisfy together.
    """
    root = schema.root(limits)
    for keyword in root.keywords:
        if keyword not in _UNDERSTOOD:
            instead = "a style that writes arguments as a JSON object"
            raise root.unsupported(
                keyword, "says something of several parameters, which this style writes one by one", instead
            )
    properties = root.keywords.get("properties", {})
    required = root.keywords.get("required", [])
    if not isinstance(properties, dict):
        raise root.error("properties", "an object is expected")
    if not isinstance(required, list):
        raise root.error("required", "a list is expected")
    missing = [name for name in required if name not in properties]
    if missing:
        raise root.error("required", f"{missing[0]!r} is not declared", "it under properties")
    scratch = Grammar.after(schema.beginning(limits))
    found = (_parameter(_Values(schema, name, scratch, limits), name in required) for name in properties)
    return [parameter for parameter in found if parameter is not None]


def _parameter(values: _Values, is_required: bool) -> Parameter | None:
    """None for one that has no values and need not be there."""
    strings, others = values.strings(), values.others()
    if strings == others == FAIL and not is_required:
        return None
    notation = "json" if strings == FAIL else "bare" if others == FAIL else "either"
    return Parameter(values.name, is_required, notation, notation == "bare" and strings == values.any_string())


class _Values:
    """The values of one parameter, lowered into a grammar in several notations."""

    def __init__(self, schema: JsonSchema, name: str, grammar: Grammar, limits: Limits) -> None:
        self._schema, self.name, self._grammar, self._limits = schema, name, grammar, limits
        self._root = schema.root(limits)
        self._site = self._root.child("properties", name)

    def all(self, text: type[JsonText]) -> Node:
        node = self._lowered(text, ALL_ATOMS)
        if node == FAIL:
            raise ConstraintError(
                "no value satisfies the schema", path=self._site.path, instead="a schema with a value"
            )
        return node

    def strings(self) -> Node:
        """Strings as they are."""
        return self._lowered(BareText, frozenset({"string"}))

    def others(self) -> Node:
        """The JSON texts of all values but strings."""
        return self._lowered(JsonText, ALL_ATOMS - {"string"})

    def any_string(self) -> Node:
        return self._grammar.repeat(self._grammar.chars(ALL))

    def misread(self) -> Node:
        """Bare strings that `as_json` would take for values of other types."""
        grammar = self._grammar
        constants = grammar.words([b"null", b"true", b"false"])
        numbers = number_node(grammar, integer=False, digits=self._limits.digits)
        brackets = grammar.seq(grammar.chars([(ord("["), ord("[")), (ord("{"), ord("{"))]), self.any_string())
        return grammar.alt(constants, numbers, brackets)

    def _lowered(self, text: type[JsonText], atoms: frozenset[str]) -> Node:
        schema, grammar = self._schema, self._grammar
        policy = Policy(grammar, schema.on_unsupported == "relax", self._limits.seconds)
        lowering = Lowering(
            grammar, self._limits, policy, text(grammar, schema.whitespace, self._limits),
            assert_formats=FORMATS_OPTIONS[schema.formats], is_ordered=schema.property_order == "declared",
        )  # fmt: skip
        return lowering.all_of(self._site, *([] if atoms == ALL_ATOMS else [self._typed(atoms)]))

    def _typed(self, atoms: frozenset[str]) -> Site:
        """A schema of some types, beside the parameter's."""
        names = (
            sorted(atoms - {"fraction"})
            if "fraction" not in atoms
            else sorted(atoms - {"fraction", "integer"} | {"number"})
        )
        root = self._root
        return root.document.library.site(
            root.document, {"type": names}, f"{self._site.path} as {' or '.join(names)}", root.scope
        )


# -- back to JSON -------------------------------------------------------------------------------------------------------


def as_json(text: str, notation: str) -> str:
    """The JSON text of a value in some notation."""
    return _READERS[notation](text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _of_either(text: str) -> str:
    return text if _is_other(text) else _quoted(text)


def _is_other(text: str) -> bool:
    """Whether a text stands for something that is no string."""
    if text[:1] in ("[", "{"):
        return True
    try:
        value = parse_json(text)
    except ConstraintError:
        return False
    return atom_of(value) != "string" and scalar_text(value) == text


def _of_python(text: str) -> str:
    return _PYTHON_TOKEN.sub(lambda match: _PYTHON_CONSTANTS.get(match[0], match[0]), text)


_READERS: dict[str, Callable[[str], str]] = {"json": str, "python": _of_python, "bare": _quoted, "either": _of_either}

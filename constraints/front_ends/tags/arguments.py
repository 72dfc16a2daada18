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

from ...base.errors import ConstraintError
from ...base.utf8 import ALL
from ...grammar.expression import FAIL, Grammar, Node
from ...grammar.source import Limits
from ..json_schema.algebra.claims import ALL_ATOMS
from ..json_schema.documents.document import Site
from ..json_schema.documents.values import atom_of, parse_json, scalar_text
from ..json_schema.json_schema import FORMATS_OPTIONS, JsonSchema
from ..json_schema.lowering.lowering import Lowering
from ..json_schema.strings.text import BareText, JsonText, PythonText
from ..numbers.numbers import number_node

Place = tuple[tuple[str, ...], ...]  # the way to a subschema, each step relative to what references before it lead to
DESCRIBING = {
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
_UNDERSTOOD = {"type", "properties", "required", "additionalProperties"} | DESCRIBING
_PYTHON_CONSTANTS = {"None": "null", "True": "true", "False": "false"}
_PYTHON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|None|True|False')


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: a source of its values, in one notation."""

    schema: JsonSchema  # of all arguments
    place: Place  # where it stands in that
    notation: str
    end: str = ""  # what follows a bare value, which goes to the first place where that stands
    atoms: frozenset[str] = ALL_ATOMS  # its values are of these types

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The texts of the values."""
        values = Values(self.schema, self.place, grammar, limits, self.atoms)
        if self.notation in ("json", "python"):
            return values.all(JsonText if self.notation == "json" else PythonText)
        text = self._bounded(values, grammar)
        return (
            text if self.notation == "bare" else grammar.alt(grammar.without(text, values.misread()), values.others())
        )

    def _bounded(self, values: Values, grammar: Grammar) -> Node:
        """The strings behind which `end` is found where it is meant: none that contain it, or would contain it earlier
        together with the `end` that follows them."""
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
    place: Place
    is_required: bool
    notation: str  # "json", "bare" or "either" of strings that are written bare
    is_free: bool  # any string, of which nothing is to be told


def parameters_of(schema: JsonSchema, limits: Limits, place: Place = ()) -> list[Parameter]:
    """The parameters that an object schema declares, in order. Members that it does not declare are never written.

    Raises `UnsupportedKeyword` for what several of them have to satisfy together.
    """
    site = site_at(schema, place, limits)
    for keyword in site.keywords:
        if keyword not in _UNDERSTOOD:
            instead = "a style that writes arguments as a JSON object"
            raise site.unsupported(
                keyword, "says something of several parameters, which this style writes one by one", instead
            )
    properties = site.keywords.get("properties", {})
    required = site.keywords.get("required", [])
    missing = [name for name in required if name not in properties]
    if missing:
        raise site.error("required", f"{missing[0]!r} is not declared", "it under properties")
    scratch = schema.new_grammar(limits)
    found = []
    for name in properties:
        values = Values(schema, (*place, ("properties", name)), scratch, limits)
        if (parameter := _parameter(values, name, name in required)) is not None:
            found.append(parameter)
    return found


def _parameter(values: Values, name: str, is_required: bool) -> Parameter | None:
    """One parameter; None when there is no value for it and it need not be there."""
    strings, others = values.strings(), values.others()
    if strings == others == FAIL and not is_required:
        return None
    notation = "json" if strings == FAIL else "bare" if others == FAIL else "either"
    return Parameter(name, values.place, is_required, notation, notation == "bare" and values.is_free_text)


def site_at(schema: JsonSchema, place: Place, limits: Limits) -> Site:
    """The subschema at a place, behind references that say nothing else."""
    site = schema.root(limits)
    for step in ((), *place):
        site = site.child(*step) if step else site
        for _ in range(limits.nesting):
            if "$ref" not in site.active or not set(site.active) <= {"$ref"} | DESCRIBING:
                break
            site = site.document.resolve(site)
    return site


class Values:
    """The values of one parameter, lowered into a grammar in several notations."""

    def __init__(
        self, schema: JsonSchema, place: Place, grammar: Grammar, limits: Limits, atoms: frozenset[str] = ALL_ATOMS
    ) -> None:
        self._schema, self.place, self._grammar, self._limits, self._atoms = schema, place, grammar, limits, atoms
        self._site = site_at(schema, place, limits)

    def all(self, text: type[JsonText]) -> Node:
        node = self._lowered(text, self._atoms)
        if node == FAIL:
            raise ConstraintError(
                "no value satisfies the schema", path=self._site.path, instead="a schema with a value"
            )
        return node

    def has(self, atoms: frozenset[str]) -> bool:
        """Whether there are values of some types."""
        return self._lowered(JsonText, atoms) != FAIL

    def strings(self) -> Node:
        """Strings as they are."""
        return self._lowered(BareText, frozenset({"string"}))

    def others(self) -> Node:
        """The JSON texts of all values but strings."""
        return self._lowered(JsonText, self._atoms - {"string"})

    def any_string(self) -> Node:
        return self._grammar.repeat(self._grammar.chars(ALL))

    @property
    def is_free_text(self) -> bool:
        """Whether strings are any strings, and there are no remarks about the schema, which lowering them leaves in the grammar."""
        return self.strings() == self.any_string() and not self._grammar.notes and not self._grammar.residue

    def misread(self) -> Node:
        """Bare strings that `as_json` would take for values of other types."""
        grammar = self._grammar
        constants = grammar.words([b"null", b"true", b"false"])
        numbers = number_node(grammar, integer=False, digits=self._limits.digits)
        brackets = grammar.seq(grammar.chars([(ord("["), ord("[")), (ord("{"), ord("{"))]), self.any_string())
        return grammar.alt(constants, numbers, brackets)

    def _lowered(self, text: type[JsonText], atoms: frozenset[str]) -> Node:
        schema, grammar = self._schema, self._grammar
        policy = schema.policy(grammar, self._limits.seconds)
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
        site = self._site
        return site.document.library.site(
            site.document, {"type": names}, f"{site.path} as {' or '.join(names)}", site.scope
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

"""The constraint that a request asks for, under any of the names that servers use.

    response_format       OpenAI: text, json_object, json_schema, and structural_tag, regex, grammar, choice
    structured_outputs    vLLM: {"json" | "regex" | "choice" | "grammar" | "json_object" | "structural_tag": ...}
    guided_json, guided_regex, guided_choice, guided_grammar       vLLM before
    json_schema, grammar                                           llama.cpp
    regex, ebnf                                                    SGLang

One output has one constraint; two are refused. Beside tools it is that of a reply without calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import Field

from ..constraint_choice import FREE, ConstraintChoice, choose
from ..constraints import ConstraintError, Ebnf, Gbnf, JsonSchema, Lark, StructuralTag
from ..constraints.front_ends.tags.tools import ANSWER_PATH
from ..constraints.lab.grammar_file import GRAMMAR_LANGUAGES
from ..errors import UsageError
from .body import Body, is_empty
from .errors import ApiError, api_error
from .requested_forms import AskedFormat, AskedStructure


class ConstraintNames(Body):
    """Part of every request body: the names of a constraint that are not OpenAI's."""

    structured_outputs: AskedStructure | None = Field(None, description="vLLM's form of the same.")
    guided_json: dict[str, Any] | str | bool | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    guided_whitespace_pattern: str | None = Field(None, description="White space between tokens of JSON, as a regular expression.")
    json_schema: dict[str, Any] | str | bool | None = Field(None, description="A JSON Schema for the output.")
    grammar: str | None = Field(None, description="A grammar for the output, in GBNF or Lark's language.")
    regex: str | None = Field(None, description="A regular expression for the whole output.")
    ebnf: str | None = Field(None, description="A grammar in EBNF.")

    @property
    def named_constraints(self) -> dict[str, Any]:
        """The names that are given, with their values, but for those that ask for nothing."""
        names = (name for name in ConstraintNames.model_fields if name != "guided_whitespace_pattern")
        return {name: getattr(self, name) for name in names if not _asks_nothing(getattr(self, name))}


class ConstraintBody(ConstraintNames):
    """Part of the request bodies of completions."""

    response_format: AskedFormat | None = Field(
        None, description="text, json_object, json_schema, structural_tag, regex, grammar or choice."
    )


@dataclass(frozen=True, slots=True)
class AskedConstraint:
    """A constraint, and where in the request it stands."""

    choice: ConstraintChoice = FREE
    param: str | None = None
    answer_param: str | None = None  # of tools: where the constraint of a reply without calls stands

    def spaced_freely(self) -> AskedConstraint:
        """The same with any white space that JSON allows, for a text of which the client has written the beginning."""
        source = self.choice.source
        if not isinstance(source, JsonSchema):
            return self
        return replace(self, choice=replace(self.choice, source=replace(source, whitespace="flexible")))

    def blame(self, error: Exception) -> ApiError:
        """An error about the constraint, at its place in the request."""
        if not isinstance(error, ConstraintError) or not (error.path or "").startswith(ANSWER_PATH):
            return api_error(error, self.param)
        error.path = "#" + (error.path or "").removeprefix(ANSWER_PATH)
        return api_error(error, self.answer_param)


def asked_constraint(body: ConstraintBody, *, allows_grammars: bool, languages: Sequence[str] = ()) -> AskedConstraint:
    """The constraint of the output. Raises ApiError for two constraints, for what cannot be read, and for what is
    refused. languages: registered ones that a grammar may be written in, beside those that ship."""
    given = ({"response_format": body.response_format} if body.response_format is not None else {}) | body.named_constraints
    structured = given.get("structured_outputs")
    if structured is not None and all(map(_asks_nothing, structured.values())):
        del given["structured_outputs"]
    if given.get("response_format", {}).get("type") == "text":
        _check_members(given.pop("response_format"), "response_format", "type")
    if len(given) > 1:
        message = f"{' and '.join(given)} contradict each other: an output has one constraint"
        raise ApiError(400, message, param=list(given)[1], code="invalid_value")
    if not given:
        return AskedConstraint()
    ((name, value),) = given.items()
    param = name
    try:
        kind, value, param = _located(name, value, languages)
        if not allows_grammars and kind not in ("json", "loose json", "json_object", "choice"):
            message = f"{param}: this server takes no grammars from clients, only JSON schemas"
            raise ApiError(403, message, param=param, code="grammars_refused")
        make = _MAKERS[kind] if kind in _MAKERS else partial(_of_language, kind, param)
        return _spaced(AskedConstraint(make(value), param), body)
    except (ConstraintError, UsageError) as error:
        raise api_error(error, param) from error


def _spaced(asked: AskedConstraint, body: ConstraintNames) -> AskedConstraint:
    """The constraint with the white space of JSON that vLLM's members ask for."""
    form, source = body.structured_outputs or {}, asked.choice.source
    given = {f"structured_outputs.{name}": form[name] for name in _SPACING if not is_empty(form.get(name))}
    given |= {"guided_whitespace_pattern": body.guided_whitespace_pattern} if body.guided_whitespace_pattern else {}
    if not given:
        return asked
    param, value = next(iter(given.items()))
    if not isinstance(source, JsonSchema):
        raise _wrong(param, "is about the white space of JSON, and the constraint is no schema")
    pattern = "compact" if value is True else value
    if not isinstance(pattern, str):
        raise _wrong(param, "is a regular expression" if param.endswith("pattern") else "is true or false")
    return replace(asked, choice=replace(asked.choice, source=replace(source, whitespace=pattern)))


def json_schema_choice(schema: Any, strict: bool | None = None) -> ConstraintChoice:
    """The constraint of a JSON Schema. With strict=False what cannot be enforced exactly is left out, and listed in the
    constraint's residue; else it is refused."""
    policy = "relax" if strict is False else "refuse"
    return choose({"constraint": JsonSchema(schema, on_unsupported=policy)})


_MAKERS: Mapping[str, Callable[[Any], ConstraintChoice]] = {
    "json": json_schema_choice,
    "json_object": lambda _: json_schema_choice({"type": "object"}),
    "loose json": lambda schema: json_schema_choice(schema, strict=False),
    "regex": lambda pattern: choose({"regex": pattern}),
    "choice": lambda options: choose({"choice": options}),
    "grammar": lambda text: choose({"grammar": text}),
    "gbnf": lambda text: choose({"constraint": Gbnf(text)}),
    "lark": lambda text: choose({"constraint": Lark(text)}),
    "ebnf": lambda text: choose({"constraint": Ebnf(text)}),
    "structural_tag": lambda form: choose({"constraint": StructuralTag(form)}),
}
_ALIASES = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "json_schema": "json",
    "grammar": "grammar",
    "regex": "regex",
    "ebnf": "ebnf",
}


_SPACING = ("disable_any_whitespace", "whitespace_pattern")  # members of vLLM's form beside the constraint
KINDS = {Mapping: "an object", bool: "true or false", str: "a string", list: "a list"}


def _of_language(name: str, param: str, text: str) -> ConstraintChoice:
    """The constraint of a grammar in a language that a plugin has registered. What the plugin raises refuses the text."""
    try:
        source = GRAMMAR_LANGUAGES[name].read(text, None)
    except (ConstraintError, UsageError):
        raise
    except Exception as error:
        message = f"{param} cannot be read as {name}: {type(error).__name__}: {error}"
        raise ApiError(400, message, param=param, code="constraint_syntax") from error
    return choose({"constraint": source})


def _located(name: str, value: Any, languages: Sequence[str]) -> tuple[str, Any, str]:
    """(which function or language makes the constraint, what it takes, where that stands in the request)."""
    if name == "response_format":
        return _of_response_format(value, languages)
    if name == "structured_outputs":
        return _of_structured_outputs(value)
    return _ALIASES[name], value, name


def _of_response_format(form: Mapping[str, Any], languages: Sequence[str]) -> tuple[str, Any, str]:
    kind, place = form.get("type"), "response_format"
    if kind == "json_schema":
        return _of_json_schema(form)
    if kind == "json_object":
        _check_members(form, place, "type", "schema")
        if form.get("schema") is None:
            return "json_object", None, place
        return "json", _member(form, "schema", place, Mapping, bool, str), f"{place}.schema"
    if kind == "structural_tag":
        return kind, form, place
    if kind == "regex":
        member = "pattern" if "pattern" in form else "regex"
        _check_members(form, place, "type", member)
        return kind, _member(form, member, place, str), f"{place}.{member}"
    if kind == "grammar":
        _check_members(form, place, "type", "grammar", "syntax")
        syntax = form.get("syntax", "grammar")
        if syntax not in ("grammar", "gbnf", "lark", "ebnf", *languages):
            raise _wrong(f"{place}.syntax", f"is {', '.join(('gbnf', 'lark', *languages))} or ebnf, not {syntax!r}")
        return syntax, _member(form, "grammar", place, str), f"{place}.grammar"
    if kind == "choice":
        _check_members(form, place, "type", "choice")
        return kind, _member(form, "choice", place, list), f"{place}.choice"
    known = "text, json_object, json_schema, structural_tag, regex, grammar or choice"
    raise _wrong(f"{place}.type", f"is {known}, not {kind!r}")


def _of_json_schema(form: Mapping[str, Any]) -> tuple[str, Any, str]:
    """OpenAI's {"json_schema": {"name", "schema", "strict"}}, and the flat form of its Responses interface."""
    is_flat = "json_schema" not in form and "schema" in form
    place = "response_format" if is_flat else "response_format.json_schema"
    inner = form if is_flat else _member(form, "json_schema", "response_format", Mapping)
    _check_members(form, "response_format", "type", *(("name", "description", "schema", "strict") if is_flat else ("json_schema",)))
    _check_members(inner, place, "name", "description", "schema", "strict", *(("type",) if is_flat else ()))
    strict = inner.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise _wrong(f"{place}.strict", "is true or false")
    if "name" in inner:
        _member(inner, "name", place, str)
    if inner.get("description") is not None:
        _member(inner, "description", place, str)
    schema = _member(inner, "schema", place, Mapping, bool, str)
    return "loose json" if strict is False else "json", schema, f"{place}.schema"


def _of_structured_outputs(form: Mapping[str, Any]) -> tuple[str, Any, str]:
    kinds = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
    form = {name: value for name, value in form.items() if name in kinds or not is_empty(value)}
    if "disable_additional_properties" in form:
        instead = 'write "additionalProperties": false where it is meant'
        raise _wrong("structured_outputs.disable_additional_properties", f"is not supported: {instead}")
    _check_members(form, "structured_outputs", *kinds, *_SPACING, "disable_fallback")
    if not isinstance(form.get("json_object"), bool | None):
        raise _wrong("structured_outputs.json_object", "is true or false")
    given = [kind for kind in kinds if not _asks_nothing(form.get(kind)) and not (kind == "json_object" and form[kind] is False)]
    if len(given) != 1:
        raise _wrong("structured_outputs", f"has one constraint, not {' and '.join(given) or 'none'}")
    return given[0], form[given[0]], f"structured_outputs.{given[0]}"


def _asks_nothing(value: Any) -> bool:
    """Whether a constraint asks for nothing: false is a schema, and empty texts and lists are none."""
    return value is not False and is_empty(value)


def _member(form: Mapping[str, Any], name: str, place: str, *kinds: type) -> Any:
    value = form.get(name)
    if not isinstance(value, kinds):
        wanted = " or ".join(KINDS[kind] for kind in kinds)
        raise _wrong(f"{place}.{name}", "is missing" if value is None else f"is {wanted}, not {value!r:.40}")
    return value


def _check_members(form: Mapping[str, Any], place: str, *known: str) -> None:
    unknown = next((name for name, value in form.items() if name not in known and value is not None), None)
    if unknown is not None:
        raise ApiError(400, f"unknown parameter: {place}.{unknown}", param=f"{place}.{unknown}", code="unknown_parameter")


def _wrong(param: str, reason: str) -> ApiError:
    return ApiError(400, f"{param} {reason}", param=param, code="invalid_value")

"""What a request to an engine says, as a constraint.

Engines hand over a kind and a text. The kinds, by the name that `source_of` takes:

    json_schema      a JSON Schema
    json_object      any JSON object; the text is not read
    json_value       any JSON value; the text is not read
    regex            a regular expression, for the whole output
    grammar          a grammar: the notation is found out, see `grammar_of`
    choice           a JSON list of strings
    structural_tag   XGrammar's structural tags, with "format" or, older, with "structures" and "triggers"

All else, and what cannot be enforced exactly, is a `ConstraintError` that says what, where and what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..constraints import (
    Choice,
    ConstraintError,
    Ebnf,
    GrammarSyntaxError,
    JsonSchema,
    Lark,
    Regex,
    StructuralTag,
)
from ..constraints.front_ends.cfg.ebnf_syntax import notation_of
from ..constraints.front_ends.json_schema.documents.values import parse_json
from ..constraints.grammar.source import Source

BYTE_ORDER_MARK = "\ufeff"
_BNF_RULE = re.compile(r"^[ \t]*(?:<[^<>\n]+>|[\w.-]+(?:\[[^\]\n]*\])?)\s*::=", re.MULTILINE)
_ISO_RULE = re.compile(r"^[ \t]*[A-Za-z][\w \t-]*=(?!=)", re.MULTILINE)
_LARK_LINE = re.compile(r"^[ \t]*(?:%|[?!]*\w+(?:\.-?\d+)?(?:\{[^}\n]*\}|\[[^\]\n]*\]|::\w+)*\s*:)", re.MULTILINE)


def source_of(kind: str, text: str, whitespace: str = "auto") -> Source:
    """The constraint that a request asks for. whitespace: of JSON, as `JsonSchema` takes it.

    Raises `ConstraintError` for what cannot be read; compiling refuses what is read but not enforced exactly.
    """
    maker = _MAKERS.get(kind)
    if maker is None:
        raise ConstraintError(f"{kind!r} is no kind of constraint", instead=", ".join(_MAKERS))
    if not isinstance(text, str):
        raise ConstraintError(f"{kind} is asked for by a string, not {type(text).__name__}", keyword=kind)
    return maker(text, whitespace)


def grammar_of(text: str) -> Source:
    """The grammar in whichever notation it is written.

    A rule with `::=` makes it EBNF of the W3C or of XGrammar, which reads all of GBNF; `name = ... ;` without any line of lark's
    makes it ISO 14977's EBNF; else it is lark's.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        raise ConstraintError("the grammar is empty", keyword="grammar", instead='root ::= "..." in GBNF, or start: "..." in Lark')
    if text.lstrip().startswith("{"):
        raise ConstraintError(
            "a grammar is text, this is JSON", keyword="grammar", instead="a JSON Schema as such, or %json {...} within Lark"
        )
    if _BNF_RULE.search(text):
        return Ebnf(text, notation=notation_of(text))
    return Ebnf(text, notation="iso") if _ISO_RULE.search(text) and not _LARK_LINE.search(text) else Lark(text)


def choices_of(text: str) -> Choice:
    """The constraint of a JSON list of strings."""
    options = parse_json(text)
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise ConstraintError("choices are a list of strings", keyword="choice")
    return Choice(options)


def structural_tag_of(text: str) -> StructuralTag:
    """The constraint of a structural tag as engines write it: the "type" at the top may be missing, the older form may say
    "at_least_one", and a part whose schema is null is any JSON value there."""
    form = with_schemas(parse_json(text))
    if not isinstance(form, Mapping):
        raise ConstraintError(f"an object is expected, not {type(form).__name__}", path="#", keyword="structural_tag")
    if "type" not in form and ("structures" in form or "format" in form):
        form = {"type": "structural_tag", **form}
    return StructuralTag(_as_format(form) if "structures" in form and "at_least_one" in form else form)


def _as_format(form: Mapping[str, Any]) -> dict[str, Any]:
    """The older form, which cannot say "at_least_one" by itself, in the newer one."""
    tags = form["structures"]
    if not isinstance(tags, list) or not all(isinstance(tag, Mapping) for tag in tags):
        raise ConstraintError("a list of objects is expected", path="#/structures", keyword="structures")
    contents = [{"type": "json_schema", "json_schema": _schema(tag.get("schema", True))} for tag in tags]
    written = [{**{k: v for k, v in tag.items() if k != "schema"}, "content": c} for tag, c in zip(tags, contents, strict=True)]
    moved = {name: form[name] for name in ("triggers", "at_least_one") if name in form}
    others = {name: value for name, value in form.items() if name not in ("structures", *moved)}
    return {**others, "format": {"type": "triggered_tags", "tags": written, **moved}}


def _schema(schema: Any) -> Any:
    return parse_json(schema) if isinstance(schema, str) else schema


def with_schemas(value: Any) -> Any:
    """A structural tag in which each schema that is null allows any value, as servers read a tool without parameters."""
    if isinstance(value, Mapping):
        if value.get("type") == "json_schema" or ("begin" in value and "end" in value):
            value = {key: True if key in ("schema", "json_schema") and inner is None else inner for key, inner in value.items()}
        return {key: inner if key in ("schema", "json_schema") else with_schemas(inner) for key, inner in value.items()}
    return [with_schemas(inner) for inner in value] if isinstance(value, list) else value


_MAKERS: Mapping[str, Callable[[str, str], Source]] = {
    "json_schema": lambda text, whitespace: JsonSchema(_given(text, "json_schema"), whitespace=whitespace),
    "json_object": lambda _, whitespace: JsonSchema({"type": "object"}, whitespace=whitespace),
    "json_value": lambda _, whitespace: JsonSchema(True, whitespace=whitespace),
    "regex": lambda text, _: Regex(text),
    "grammar": lambda text, _: grammar_of(text),
    "choice": lambda text, _: choices_of(text),
    "structural_tag": lambda text, _: structural_tag_of(_given(text, "structural_tag")),
}


def _given(text: str, keyword: str) -> str:
    if not text.strip():
        raise GrammarSyntaxError("an empty text is no JSON", keyword=keyword)
    return text

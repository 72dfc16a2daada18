"""What a request asks for as a tree: XGrammar's structural tags, the response formats of OpenAI and vLLM.

    {"type": "structural_tag", "format": {"type": "triggered_tags", ...}}
    {"type": "structural_tag", "structures": [{"begin", "schema", "end"}], "triggers": [...]}
    {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}, "json_object", "text", "regex", "grammar", "choice"
    {"type": "json_schema", "name", "schema", "strict"}                      OpenAI's Responses interface
    {"json": ..., "regex": ..., "choice": ..., "grammar": ..., "structural_tag": ...}      one of these: vLLM's `structured_outputs`

Members that are not known are refused by name, so that nothing is silently ignored. Source: `xgrammar/structural_tag.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...base.errors import ConstraintError, ConstraintLimit
from ...grammar.source import Limits
from ..cfg.ebnf import Ebnf
from ..cfg.lark_grammar import Lark
from ..json_schema.documents.nesting import depth_of
from ..json_schema.documents.values import parse_json
from ..json_schema.json_schema import JsonSchema
from ..regex.choice import Choice
from ..regex.regex import Regex
from .reading import JsonObject, child, children, read_tree, shown
from .tree import Located, Part, Tag, Text, Triggered


def read_structural_tag(form: Mapping[str, Any] | str) -> Part:
    """The tree that a request describes. Raises `ConstraintError` with the path of what is wrong."""
    value = parse_json(form) if isinstance(form, str) else form
    if not isinstance(value, Mapping):
        raise ConstraintError(f"an object is expected, not {shown(value)}", path="#")
    if depth_of(value) > (limit := Limits().nesting):
        raise ConstraintLimit("a structural tag nested too deeply", limit="nesting", value=limit, path="#")
    top = JsonObject(value, "#")
    if "type" not in value and not _STRUCTURED_OUTPUTS.keys().isdisjoint(value):
        return _read_structured_outputs(top)
    reader = _RESPONSE_FORMATS.get(top.kind)
    return reader(top) if reader else read_tree(top)


def _read_request(one: JsonObject) -> Part:
    """The new form with "format", or the older one with "structures" and "triggers"."""
    if "format" in one.members:
        tree = read_tree(child(one, "format"))
        one.check_all_known()
        return tree
    if "structures" not in one.members and "triggers" not in one.members:
        raise ConstraintError("'format' is missing", path=one.path, keyword="format")
    triggers, tags = one.strings("triggers"), []
    for each in children(one, "structures"):
        schema = Located(JsonSchema(each.take("schema", Mapping, str, bool)), f"{each.path}/schema")
        tags.append(Tag(each.take("begin", str), schema, each.take("end", str)))
        each.check_all_known()
    one.check_all_known()
    return Located(Triggered(triggers, tags), "#")


def _read_schema_format(one: JsonObject) -> Part:
    """OpenAI: {"json_schema": {"name", "schema", "strict", "description"}}; also the schema itself, as XGrammar spells it."""
    is_flat = "schema" in one.members and "json_schema" not in one.members
    wrapped = one.members if is_flat else one.take("json_schema", Mapping, bool)
    if not isinstance(wrapped, Mapping) or "schema" not in wrapped:
        return read_tree(one)
    if not is_flat:
        one.check_all_known()
    inner = one if is_flat else JsonObject(wrapped, "#/json_schema")
    inner.known |= {"name", "description", "strict"}
    part = Located(JsonSchema(inner.take("schema", Mapping, bool)), f"{inner.path}/schema")
    inner.check_all_known()
    return part


def _read_json_object(one: JsonObject) -> Part:
    one.check_all_known()
    return JsonSchema({"type": "object"})


def _read_plain(one: JsonObject) -> Part:
    one.check_all_known()
    return Text()


def _read_choice(one: JsonObject) -> Part:
    choice = Choice(one.strings("choice"))
    one.check_all_known()
    return choice


def _read_structured_outputs(one: JsonObject) -> Part:
    """vLLM: one member says what is constrained."""
    given = [name for name in one.members if name in _STRUCTURED_OUTPUTS and one.members[name] is not None]
    if len(given) != 1:
        raise ConstraintError(
            f"one constraint is expected, not {' and '.join(given) or 'none'}",
            path=one.path,
            keyword="structured_outputs",
        )
    one.known |= {name for name in _STRUCTURED_OUTPUTS if one.members.get(name) is None}
    one.known.discard("type")
    part = Located(_STRUCTURED_OUTPUTS[given[0]](one), f"{one.path}/{given[0]}")
    one.check_all_known()
    return part


def _read_json(one: JsonObject) -> Part:
    return JsonSchema(one.take("json", Mapping, str, bool))


def _read_any_object(one: JsonObject) -> Part:
    if not one.take("json_object", bool):
        raise ConstraintError("true is expected", path=one.path, keyword="json_object")
    return JsonSchema({"type": "object"})


def _read_any_grammar(one: JsonObject) -> Part:
    """vLLM: the notation of XGrammar, or lark's."""
    text = one.take("grammar", str)
    return Ebnf(text, root="root", notation="xgrammar") if "::=" in text else Lark(text)


_STRUCTURED_OUTPUTS: dict[str, Callable[[JsonObject], Part]] = {
    "json": _read_json,
    "json_object": _read_any_object,
    "regex": lambda one: Regex(one.take("regex", str)),
    "choice": lambda one: Choice(one.strings("choice")),
    "grammar": _read_any_grammar,
    "structural_tag": lambda one: read_structural_tag(one.take("structural_tag", Mapping, str)),
}

_RESPONSE_FORMATS: dict[str, Callable[[JsonObject], Part]] = {
    "structural_tag": _read_request,
    "json_schema": _read_schema_format,
    "json_object": _read_json_object,
    "text": _read_plain,
    "choice": _read_choice,
}

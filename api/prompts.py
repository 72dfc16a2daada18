"""How a constraint is told to the embedded model: chat messages made from a schema, tools, choices, a pattern or a grammar.

A mask keeps the output legal; the prompt says what is wanted. The embedded model was trained on exactly these system messages:

    Fill {"name":string,"age"?:integer,"tags":[string],"plan":"free"|"pro"}      a schema, see `compact_schema`
    Call get_weather{"city":string,"unit"?:"celsius"|"fahrenheit"}               one line per tool
    Choose "positive"|"negative"
    Match \\d{3}-\\d{4}
    Follow root ::= "on" | "off"

followed by the user's text. Without a constraint there is no system message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Message = dict[str, str]

MAX_DEPTH = 6  # of nested or recursive schemas; deeper values are written as `any`
FORMATS_SHOWN = {"date", "date-time", "time", "email", "uri", "uuid"}


def render_messages(
    prompt: str,
    *,
    schema: Any | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    choice: Sequence[str] | None = None,
    regex: str | None = None,
    grammar: str | None = None,
) -> list[Message]:
    """The chat messages for `prompt` under at most one constraint.

    `schema` is a JSON Schema (a mapping or a boolean), `tools` a list of `{"name", "parameters"}` mappings, bare or in OpenAI's
    `{"type": "function", "function": …}` wrapping.
    """
    system = system_text(schema=schema, tools=tools, choice=choice, regex=regex, grammar=grammar)
    user: Message = {"role": "user", "content": prompt}
    return [user] if system is None else [{"role": "system", "content": system}, user]


def system_text(
    *,
    schema: Any | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    choice: Sequence[str] | None = None,
    regex: str | None = None,
    grammar: str | None = None,
) -> str | None:
    """The system message for one constraint, or None without any."""
    if schema is not None:
        return f"Fill {compact_schema(schema)}"
    if tools is not None:
        return "Call " + "\n".join(compact_tool(tool) for tool in tools)
    if choice is not None:
        return "Choose " + "|".join(_json(option) for option in choice)
    if regex is not None:
        return f"Match {regex}"
    return None if grammar is None else f"Follow {grammar.strip()}"


def compact_tool(tool: Mapping[str, Any]) -> str:
    """`name{"argument":type,…}` for one tool."""
    function = tool.get("function", tool)
    parameters = function.get("parameters") or {"type": "object"}
    return function["name"] + compact_schema(parameters)


def compact_schema(schema: Any) -> str:
    """A JSON Schema as a short line of types: keys in declared order, `?` after a key that may be absent.

    Only shape and literals are shown (types, formats, enums, items, unions); bounds, patterns and titles are left to the mask.
    """
    return _compact(schema, schema, MAX_DEPTH)


def _compact(schema: Any, root: Any, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth == 0:
        return "any"
    if "$ref" in schema:
        return _compact(_resolve(schema["$ref"], root), root, depth - 1)
    if "const" in schema:
        return _json(schema["const"])
    if "enum" in schema:
        return "|".join(_json(value) for value in schema["enum"])
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return "|".join(dict.fromkeys(_compact(branch, root, depth) for branch in branches))
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _compact(schema["allOf"][0], root, depth)
    return _compact_type(schema, root, depth)


def _compact_type(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "any")
    if isinstance(kind, list):
        return "|".join(_compact_type({**schema, "type": each}, root, depth) for each in kind)
    if kind == "object":
        return _compact_object(schema, root, depth - 1)
    if kind == "array":
        prefix = [_compact(item, root, depth - 1) for item in schema.get("prefixItems", ())]
        return "[" + ",".join(prefix or [_compact(schema.get("items"), root, depth - 1)]) + "]"
    if kind == "string" and schema.get("format") in FORMATS_SHOWN:
        return str(schema["format"])
    return str(kind)


def _compact_object(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    required = schema.get("required", ())
    entries = [
        f"{_json(key)}{'' if key in required else '?'}:{_compact(value, root, depth)}"
        for key, value in schema.get("properties", {}).items()
    ]
    if not entries and isinstance(schema.get("additionalProperties"), Mapping):
        entries = [f"any:{_compact(schema['additionalProperties'], root, depth)}"]
    return "{" + ",".join(entries) + "}"


def _resolve(reference: str, root: Any) -> Any:
    """What a local JSON pointer names, or None; the compiler is the one to complain about a broken reference."""
    node = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

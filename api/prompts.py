"""How a constraint is told to the embedded model: chat messages made from a schema, tools, choices, a pattern or a grammar.

A mask keeps the output legal; the prompt says what is wanted. The embedded model was trained on exactly these system messages:

    Fill {"name":string,"age"?:integer,"tags":[string],"plan":"free"|"pro"}      a schema, see `compact_schema`
    Call get_weather{"city":string,"unit"?:"celsius"|"fahrenheit"}               one line per tool
    Choose "positive"|"negative"
    Match \\d{3}-\\d{4}
    Follow root ::= "on" | "off"

followed by the user's text. Without a constraint there is no system message. What is told has at most MAX_CHARACTERS: schemas and
tools are shown less deep until they fit, and of what still does not fit the beginning is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .constraints.front_ends.json_schema.documents.keyword_table import TYPE_NAMES
from .constraints.front_ends.json_schema.documents.values import dump_json, plain_value

Message = dict[str, str]

ANY_OBJECT = '{"text":string}'  # how an object of which nothing is said is told: the model has learned to fill named members
MAX_DEPTH = 6  # of nested or recursive schemas; deeper values are written as `any`
MAX_CHARACTERS = 2000  # of a constraint as it is told, about half of the 2,048 tokens that the embedded model reads
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
    """The system message for one constraint, or None without any. Of tools beside another constraint the tools are told."""
    if tools is not None:
        return f"Call {compact_tools(tools)}"
    if schema is not None:
        return f"Fill {ANY_OBJECT if schema == {'type': 'object'} else compact_schema(schema)}"
    if choice is not None:
        return "Choose " + "|".join(_json(option) for option in choice)[:MAX_CHARACTERS]
    if regex is not None:
        return f"Match {regex[:MAX_CHARACTERS]}"
    return None if grammar is None else f"Follow {grammar.strip()[:MAX_CHARACTERS]}"


def compact_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """`name{"argument":type,…}`, one line per tool."""

    def write(line: Line) -> str:
        return "\n".join(_compact_tool(tool, line) for tool in tools)

    return _fitting(write)


def _compact_tool(tool: Mapping[str, Any], line: Line) -> str:
    function = tool.get("function", tool)
    parameters = function.get("parameters") or {"type": "object"}
    return line.take(function["name"]) + _compact(parameters, parameters, line.depth, line)


def compact_schema(schema: Any) -> str:
    """A JSON Schema as a short line of types: keys in declared order, `?` after a key that may be absent.

    Only shape and literals are shown (types, formats, enums, items, unions); bounds, patterns and titles are left to the mask.
    """
    return _fitting(lambda line: _compact(schema, schema, line.depth, line))


@dataclass(slots=True)
class Line:
    """A line of types that is being written: how deep, and for how many characters there is room.

    Where there is none left, everything is `any`, so that what references multiply is never written.
    """

    depth: int
    room: int = MAX_CHARACTERS

    def take(self, text: str) -> str:
        self.room -= len(text)
        return text


def _fitting(write: Callable[[Line], str]) -> str:
    """What is written as deep as it fits; the beginning of the line above where only `any` would."""
    deeper = ""
    for depth in range(MAX_DEPTH, 0, -1):
        line = Line(depth)
        text = write(line)
        if line.room >= 0 and len(text) <= MAX_CHARACTERS and (text != "any" or not deeper):
            return text
        deeper = deeper if text == "any" else text
    return deeper[:MAX_CHARACTERS]


def _compact(schema: Any, root: Any, depth: int, line: Line) -> str:
    if not isinstance(schema, Mapping) or depth == 0 or line.room < 0:
        return line.take("any")
    if isinstance(schema.get("$ref"), str):
        return _compact(_resolve(schema["$ref"], root), root, depth - 1, line)
    if "const" in schema:
        return line.take(_json(schema["const"]))
    if values := _list(schema, "enum"):
        return line.take("|".join(_json(value) for value in values))
    if branches := _list(schema, "anyOf") or _list(schema, "oneOf"):
        return "|".join(dict.fromkeys(_compact(branch, root, depth, line) for branch in branches))
    if len(parts := _list(schema, "allOf")) == 1:
        return _compact(parts[0], root, depth, line)
    return _compact_type(schema, root, depth, line)


def _compact_type(schema: Mapping[str, Any], root: Any, depth: int, line: Line) -> str:
    kind = schema.get("type") or ("object" if isinstance(schema.get("properties"), Mapping) else "any")
    if isinstance(kind, list):
        return "|".join(_compact_type({**schema, "type": each}, root, depth, line) for each in kind)
    if kind == "object":
        return _compact_object(schema, root, depth - 1, line)
    if kind == "array":
        prefix = [_compact(item, root, depth - 1, line) for item in _list(schema, "prefixItems")]
        return "[" + ",".join(prefix or [_compact(schema.get("items"), root, depth - 1, line)]) + "]"
    if kind == "string" and isinstance(name := schema.get("format"), str) and name in FORMATS_SHOWN:
        return line.take(name)
    return line.take(kind if kind in TYPE_NAMES else "any")


def _compact_object(schema: Mapping[str, Any], root: Any, depth: int, line: Line) -> str:
    required = _list(schema, "required")
    entries = [
        f"{line.take(_json(key))}{'' if key in required else '?'}:{_compact(value, root, depth, line)}"
        for key, value in _map(schema, "properties").items()
    ]
    if not entries and isinstance(schema.get("additionalProperties"), Mapping):
        entries = [f"any:{_compact(schema['additionalProperties'], root, depth, line)}"]
    return "{" + ",".join(entries) + "}"


def _list(schema: Mapping[str, Any], keyword: str) -> Sequence[Any]:
    """What a keyword lists; nothing where it has no list: the compiler is the one to say what is malformed."""
    value = schema.get(keyword)
    return value if isinstance(value, (list, tuple)) else ()


def _map(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    """What a keyword has by name; nothing where it has no object."""
    value = schema.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _resolve(reference: str, root: Any) -> Any:
    """What a local JSON pointer names, or None; the compiler is the one to complain about a broken reference."""
    node = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node


def _json(value: Any) -> str:
    return dump_json(plain_value(value))

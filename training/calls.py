"""Calls of tools: which one a text asks for, and with which arguments."""

from __future__ import annotations

from typing import Any

from domains import JsonSchema, closed
from example import Example, canonical_json, placeholders
from tools import TOOLS, Tool
from values import Source, Value


def call(source: Source) -> Example:
    """A request, the tools on offer, and the call."""
    rng = source.rng
    tool = rng.choice(TOOLS[:4] if rng.random() < 0.5 else TOOLS)
    request = source.phrasing(tool.requests)
    mentioned = list(dict.fromkeys(placeholders(request)))
    values = {name: tool.arguments[name].make(source) for name in mentioned}
    offered, answer = offer(source, tool, values)
    text = request.format(**{name: value.text for name, value in values.items()})
    text = rng.choice(["", "", "", "", "", "Hey, ", "Please: ", "Hi! "]) + text
    return Example("call", text, canonical_json(answer), {"tools": offered})


def call_of(source: Source, tool: Tool, values: dict[str, Value], text: str) -> Example:
    """The example of a text that mentions these values."""
    offered, answer = offer(source, tool, values)
    return Example("call", text, canonical_json(answer), {"tools": offered})


def offer(source: Source, tool: Tool, values: dict[str, Value]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The tools on offer, in any order, and the call that states the values."""
    rng, mentioned = source.rng, list(values)
    spec, keys = tool_spec(source, tool, mentioned)
    arguments = {keys[name]: values[name].json for name in tool.arguments if name in keys and name in mentioned}
    declared = list(spec["parameters"]["properties"])
    answer = {"name": spec["name"], "arguments": {key: arguments[key] for key in declared if key in arguments}}
    others = [other for other in rng.sample(TOOLS, rng.choice([0, 0, 1, 2, 2])) if other.names != tool.names]
    offered = [spec, *(tool_spec(source, other, list(other.arguments)[:1])[0] for other in others)]
    offered = list({each["name"]: each for each in reversed(offered)}.values())
    rng.shuffle(offered)
    return offered, answer


def tool_spec(source: Source, tool: Tool, mentioned: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """A declaration of the tool, with the key chosen for each argument that it keeps."""
    rng = source.rng
    kept = [name for name in tool.arguments if name in mentioned or rng.random() < 0.35]
    if rng.random() < 0.15:
        rng.shuffle(kept)
    plain = rng.random() < 0.65
    keys: dict[str, str] = {}
    for name in kept:
        key = tool.arguments[name].keys[0] if plain else rng.choice(tool.arguments[name].keys)
        keys[name] = name if key in keys.values() else key
    properties = {keys[name]: tool.arguments[name].schema for name in kept}
    optional = {keys[name] for name in kept if name not in mentioned or (name != mentioned[0] and rng.random() < 0.2)}
    name = rng.choice(tool.names)
    return {"name": name, "parameters": closed(properties, frozenset(optional))}, keys


def call_schema(tools: list[dict[str, Any]]) -> JsonSchema:
    """The JSON Schema of a call of one of the tools."""
    calls = [closed({"name": {"const": tool["name"]}, "arguments": tool["parameters"]}) for tool in tools]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}

"""The requests that engines are tried with: constraints of all kinds, each with a judge that knows nothing of Maskwright."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema

NUM_REQUESTS = 64
TOOL = {"type": "object", "properties": {"city": {"enum": ["Paris", "Oslo"]}}, "required": ["city"], "additionalProperties": False}


@dataclass(frozen=True)
class Case:
    """A request. kind: the member of vLLM's `StructuredOutputsParams`; is_valid: judges a finished text."""

    name: str
    kind: str
    value: Any
    is_valid: Callable[[str], bool]


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def schema_case(name: str, schema: dict[str, Any], as_text: bool = False) -> Case:
    def is_valid(text: str) -> bool:
        try:
            jsonschema.validate(json.loads(text), schema, format_checker=jsonschema.FormatChecker())
        except (ValueError, jsonschema.ValidationError):
            return False
        return True

    return Case(name, "json", json.dumps(schema) if as_text else schema, is_valid)


def pattern_case(name: str, kind: str, value: Any, pattern: str) -> Case:
    return Case(name, kind, value, lambda text: re.fullmatch(pattern, text, re.DOTALL) is not None)


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def cases() -> list[Case]:
    """64 of them, all different."""
    found = [Case("any object", "json_object", True, is_object)]
    for n in range(1, 16):
        found.append(schema_case(f"integers below {10**n}", closed(**{f"n{n}": {"type": "integer", "minimum": 0, "maximum": 10**n}}), n % 2 == 0))
        found.append(schema_case(f"strings of {n}", closed(name={"type": "string", "maxLength": n}, kind={"enum": ["a", "b", str(n)]})))
        found.append(pattern_case(f"regex {n}", "regex", rf"[a-f]{{{n}}}-\d{{1,{n}}}", rf"[a-f]{{{n}}}-\d{{1,{n}}}"))
    for n in range(1, 5):
        found.append(Case(f"choice {n}", "choice", [f"{n} yes", f"{n} no", "maybe"], {f"{n} yes", f"{n} no", "maybe"}.__contains__))
        found.append(pattern_case(f"gbnf {n}", "grammar", f'root ::= "<" item ("," item){{0,{n}}} ">"\nitem ::= [0-9]', rf"<\d(,\d){{0,{n}}}>"))
        found.append(pattern_case(f"lark {n}", "grammar", f'start: "({n}" WORD ")"\nWORD: /[a-z]{{1,{n}}}/', rf"\({n}[a-z]{{1,{n}}}\)"))
    call = r'<tool_call>\s*\{\s*"city"\s*:\s*"(Paris|Oslo)"\s*\}</tool_call>'
    tag = {"type": "tag", "begin": "<tool_call>", "content": {"type": "json_schema", "json_schema": TOOL}, "end": "</tool_call>"}
    found.append(pattern_case("tag", "structural_tag", json.dumps({"type": "structural_tag", "format": tag}), call))
    forced = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [tag], "at_least_one": True, "stop_after_first": True}
    found.append(pattern_case("triggered tag", "structural_tag", json.dumps({"type": "structural_tag", "format": forced}), call))
    unique = {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2, "maxItems": 3}
    found.append(schema_case("unique items", closed(picked=unique)))
    found.append(schema_case("multiples", closed(n={"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 700})))
    found.append(schema_case("if and then", {**closed(a={"enum": [1, 2]}, b={"enum": [1, 2]}), "if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": {"const": 2}}}}))
    found.append(schema_case("one of", {"oneOf": [closed(a={"type": "integer", "minimum": 5, "maximum": 9}), closed(b={"type": "null"})]}))
    assert len(found) == NUM_REQUESTS, len(found)
    return found


REFUSED = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"(x)\1"}}}  # no regular language

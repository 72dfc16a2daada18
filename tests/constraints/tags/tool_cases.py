"""Tools, calls of them that are right and wrong, and the compilers that tests of tool calls share."""

from __future__ import annotations

import json
from typing import Any

from maskwright.constraints import Compiler, Constraint, Tools, Vocabulary, parse_output

from .tool_texts import Call

SPECIAL = [
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "<|call|>",
    "<|constrain|>",
    "<|python_tag|>",
]
BYTES = [bytes([byte]) for byte in range(256)]
PLAIN = Compiler(Vocabulary([*BYTES, None], eos_token_ids=[256]))
MARKED = Vocabulary(
    [*BYTES, None, *[None] * len(SPECIAL)],
    eos_token_ids=[256],
    special_tokens={name: 257 + i for i, name in enumerate(SPECIAL)},
)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["C", "F"]},
                "at": {"type": ["string", "null"]},
                "options": {
                    "type": "object",
                    "properties": {"snow": {"type": "boolean"}},
                    "additionalProperties": False,
                },
                "tags": {"type": "array", "items": {"type": "string"}},
                "code": {"type": "string", "pattern": "^[A-Z]{2,3}$"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
PING = {"name": "get", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
TOOLS = [WEATHER, PING]
CALLS: list[Call] = [
    ("get_weather", {"city": "Oslo"}),
    ("get", {}),
    (
        "get_weather",
        {
            "city": 'a "quoted"\nÅ <tag>',
            "days": 14,
            "unit": "F",
            "at": None,
            "options": {"snow": True},
            "tags": ["x", "]"],
            "code": "ABC",
        },
    ),
    ("get_weather", {"city": "", "at": "noon", "options": {}, "tags": []}),
]
WRONG: list[Call] = [
    ("get_weather", {}),
    ("get_weather", {"city": 3}),
    ("get_weather", {"city": "Oslo", "days": 15}),
    ("get_weather", {"city": "Oslo", "unit": "K"}),
    ("get_weather", {"city": "Oslo", "code": "abc"}),
    ("get_weather", {"city": "Oslo", "other": 1}),
    ("get_weather", {"days": 3}),
    ("fetch", {}),
]  # fmt: skip


def compiled(style: str, compiler: Compiler = PLAIN, tools: Any = TOOLS, **options: Any) -> Constraint:
    return compiler.compile(Tools(tools, style=style, **options))


def parsed_calls(constraint: Constraint, reply: str) -> list[Call]:
    return [(call.name, json.loads(call.arguments)) for call in parse_output(constraint, reply).calls]

"""How the parts of requests look that have no model of their own, for the documentation.

They are checked where they are read, which names the wrong member by its path: `messages.py`, `asked_tools.py`,
`asked_constraint.py`, `anthropic_conversation.py`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from ..conversation import ROLES, TEXT_PARTS

Form = dict[str, Any]
TEXT: Form = {"type": "string"}
OBJECT: Form = {"type": "object"}
SCHEMA: Form = {"anyOf": [{"type": "object"}, {"type": "boolean"}], "description": "A JSON Schema."}


def _object(required: str = "", **members: Form) -> Form:
    return {"type": "object", "properties": members, "required": required.split()}


def _closed(required: str = "", **members: Form) -> Form:
    return _object(required, **members) | {"additionalProperties": False}


def _either(*forms: Form) -> Form:
    return {"anyOf": list(forms)}


def _list(item: Form) -> Form:
    return {"type": "array", "items": item}


def _one_of(*words: str) -> Form:
    return {"enum": list(words)}


NULL: Form = {"type": "null"}
MAYBE_TEXT, MAYBE_BOOLEAN = _either(TEXT, NULL), _either({"type": "boolean"}, NULL)

# -- OpenAI's -------------------------------------------------------------------------------------------------------------

_PART = _either(
    _object("type text", type=_one_of(*(kind for kind in TEXT_PARTS if kind != "refusal")), text=TEXT),
    _object("type refusal", type=_one_of("refusal"), refusal=TEXT),
)
_ARGUMENTS = _either(TEXT, OBJECT, NULL)
_CALL = _object("function", id=TEXT, type={}, function=_object("name", name=TEXT, arguments=_ARGUMENTS))
_MESSAGE = _object(
    "role",
    role=_one_of(*ROLES),
    content=_either(TEXT, _list(_PART), NULL),
    name=MAYBE_TEXT,
    tool_call_id=MAYBE_TEXT,
    tool_calls=_either(_list(_CALL), NULL),
    reasoning_content=MAYBE_TEXT,
)
_FUNCTION = _object("name", name=TEXT, description=MAYBE_TEXT, parameters=_either(SCHEMA, NULL), strict=MAYBE_BOOLEAN)
_TOOL = _either(_object("function", type=_one_of("function"), function=_FUNCTION), _FUNCTION)
_NAMED = _either(_object("function", type=_one_of("function"), function=_object("name", name=TEXT)), _object("name", name=TEXT))
_ALLOWED = _object("tools", mode=_one_of("auto", "required"), tools=_list(_NAMED))
_CHOICE_WORD = _closed("type", type=_one_of("auto", "none", "required", "any"))
_ALLOWED_ONES = _object("type allowed_tools", type=_one_of("allowed_tools"), allowed_tools=_ALLOWED)
_TOOL_CHOICE = _either(_CHOICE_WORD, _NAMED, _ALLOWED_ONES, _ALLOWED)
_NAMED_SCHEMA = {"name": TEXT, "description": MAYBE_TEXT, "schema": SCHEMA, "strict": MAYBE_BOOLEAN}
_RESPONSE_FORMAT = _either(
    _closed("type", type=_one_of("text")),
    _closed("type", type=_one_of("json_object"), schema=_either(SCHEMA, NULL)),
    _closed("type json_schema", type=_one_of("json_schema"), json_schema=_closed("schema", **_NAMED_SCHEMA)),
    _closed("type schema", type=_one_of("json_schema"), **_NAMED_SCHEMA),
    _closed("type pattern", type=_one_of("regex"), pattern=TEXT),
    _closed("type regex", type=_one_of("regex"), regex=TEXT),
    _closed("type grammar", type=_one_of("grammar"), grammar=TEXT, syntax=_one_of("grammar", "gbnf", "lark", "ebnf")),
    _closed("type choice", type=_one_of("choice"), choice=_list(TEXT)),
    _object("type format", type=_one_of("structural_tag"), format=OBJECT),
)
_STRUCTURED = _closed(
    json=_either(SCHEMA, TEXT), json_object={"type": "boolean"}, regex=TEXT, choice=_list(TEXT), grammar=TEXT,
    structural_tag=OBJECT, disable_any_whitespace={"type": "boolean"}, whitespace_pattern=TEXT,
)  # fmt: skip
_ITEM = _either(
    _object("role content", type=_one_of("message"), role=_one_of(*ROLES), content=_either(TEXT, _list(_PART))),
    _object("type call_id name arguments", type=_one_of("function_call"), call_id=TEXT, name=TEXT, arguments=TEXT),
    _object("type call_id output", type=_one_of("function_call_output"), call_id=TEXT, output=_either(TEXT, _list(_PART))),
    _object("type", type=_one_of("reasoning")),
    _object("type id", type=_one_of("item_reference"), id=TEXT),
)

AskedMessage = Annotated[dict[str, Any], WithJsonSchema(_MESSAGE)]
AskedTool = Annotated[dict[str, Any], WithJsonSchema(_TOOL)]
AskedToolChoice = Annotated[dict[str, Any], WithJsonSchema(_TOOL_CHOICE)]
AskedFormat = Annotated[dict[str, Any], WithJsonSchema(_RESPONSE_FORMAT)]
AskedStructure = Annotated[dict[str, Any], WithJsonSchema(_STRUCTURED)]
AskedItem = Annotated[dict[str, Any], WithJsonSchema(_ITEM)]
AskedText = Annotated[dict[str, Any], WithJsonSchema(_closed(format=_RESPONSE_FORMAT, verbosity=MAYBE_TEXT))]
_THOUGHT = _closed(effort=MAYBE_TEXT, summary=MAYBE_TEXT, generate_summary=MAYBE_TEXT)
AskedReasoning = Annotated[dict[str, Any], WithJsonSchema(_THOUGHT)]

# -- Anthropic's ----------------------------------------------------------------------------------------------------------

_TEXT_BLOCK = _object("type text", type=_one_of("text"), text=TEXT)
_SOURCE = _either(
    _object("type data", type=_one_of("text"), data=TEXT),
    _object("type content", type=_one_of("content"), content=_either(TEXT, _list(_TEXT_BLOCK))),
)
_BLOCK = _either(
    _TEXT_BLOCK,
    _object("type source", type=_one_of("document"), title=MAYBE_TEXT, context=MAYBE_TEXT, source=_SOURCE),
    _object("type content", type=_one_of("search_result"), title=MAYBE_TEXT, source=MAYBE_TEXT, content=_list(_TEXT_BLOCK)),
    _object("type thinking", type=_one_of("thinking"), thinking=TEXT, signature=TEXT),
    _object("type id name input", type=_one_of("tool_use"), id=TEXT, name=TEXT, input=OBJECT),
    _object("type tool_use_id", type=_one_of("tool_result"), tool_use_id=TEXT, content=_either(TEXT, _list(_TEXT_BLOCK))),
)
_SINGLE = {"disable_parallel_tool_use": {"type": "boolean"}}
_SAID = _closed("role content", role=_one_of("user", "assistant", "system"), content=_either(TEXT, _list(_BLOCK)))
_USED = _object("name input_schema", type=_one_of("custom"), name=TEXT, description=TEXT, input_schema=OBJECT)
_CHOSEN = _either(
    _closed("type", type=_one_of("auto", "any", "none"), **_SINGLE),
    _closed("type name", type=_one_of("tool"), name=TEXT, **_SINGLE),
)
_BUDGET = {"type": "integer", "minimum": 1}
_THINKING = _closed(
    "type", type=_one_of("enabled", "adaptive", "disabled"), budget_tokens=_BUDGET, display=_one_of("summarized", "omitted")
)
_OUTPUT = _closed(format=_either(_RESPONSE_FORMAT, NULL), effort=MAYBE_TEXT)

AnthropicMessage = Annotated[dict[str, Any], WithJsonSchema(_SAID)]
AnthropicTextBlock = Annotated[dict[str, Any], WithJsonSchema(_TEXT_BLOCK)]
AnthropicTool = Annotated[dict[str, Any], WithJsonSchema(_USED)]
AnthropicToolChoice = Annotated[dict[str, Any], WithJsonSchema(_CHOSEN)]
AnthropicThinking = Annotated[dict[str, Any], WithJsonSchema(_THINKING)]
AnthropicFormat = Annotated[dict[str, Any], WithJsonSchema(_RESPONSE_FORMAT)]
AnthropicOutput = Annotated[dict[str, Any], WithJsonSchema(_OUTPUT)]

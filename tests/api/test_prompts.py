"""How a constraint is told to the embedded model: as it was trained, and never longer than it can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright import LLM, SamplingParams
from maskwright.chat import Turn
from maskwright.constraint_choice import ConstraintChoice
from maskwright.prompts import MAX_CHARACTERS, compact_schema, system_text


def all_call_all(width: int) -> dict[str, Any]:
    """Definitions that all have all of them as members."""
    names = [f"kind{number}" for number in range(width)]
    members = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    return {"$ref": "#/$defs/kind0", "$defs": {name: {"type": "object", "properties": members} for name in names}}


def test_a_short_schema_is_told_as_the_model_learned_it() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", 1]}}, "next": {"$ref": "#"}},
        "required": ["name"],
    }
    leaf = '{"name":string,"tags"?:["a"|1],"next"?:any}'
    deepest = leaf.replace('"a"|1', "any")
    assert compact_schema(schema) == leaf.replace("any", leaf).replace("any", deepest)


def test_what_does_not_fit_is_told_less_deep() -> None:
    schema = all_call_all(30)
    assert compact_schema(schema) == "{" + ",".join(f'"kind{number}"?:any' for number in range(30)) + "}"


@pytest.mark.parametrize(
    "constraint",
    [
        {"schema": all_call_all(200)},
        {"schema": {"anyOf": [{"const": number} for number in range(5000)]}},
        {"schema": {"enum": ["x" * 9000]}},
        {"tools": [{"name": f"tool{number}", "parameters": all_call_all(20)} for number in range(99)]},
        {"choice": [str(number) for number in range(5000)]},
        {"regex": "a" * 9000},
        {"grammar": "root ::= " + "'a' " * 3000},
    ],
    ids=["references", "branches", "values", "tools", "choice", "regex", "grammar"],
)
def test_what_is_told_is_bounded(constraint: dict[str, Any]) -> None:
    told = system_text(**constraint)
    assert told is not None and 20 < len(told) <= len("Choose ") + MAX_CHARACTERS


def test_a_schema_that_multiplies_leaves_room_for_the_prompt() -> None:
    llm = LLM()
    choice = ConstraintChoice(told={"schema": all_call_all(26)})
    assert len(json.dumps(choice.told)) > 20_000
    (request,) = llm.planner.plan_replies(Turn(({"role": "user", "content": "nothing"},), (), choice), SamplingParams()).requests
    assert len(request.prompt_token_ids) < 1600

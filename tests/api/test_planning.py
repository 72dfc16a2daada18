"""What the model is shown, and the sampling it recommends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from maskwright import LLM, SamplingParams
from maskwright.planning import Plan, recommended_sampling


class Person(BaseModel):
    name: str


def shown(llm: LLM, plan: Plan) -> str:
    """The prompt as text, special tokens by their names."""
    names = {token_id: name.encode() for name, token_id in llm.vocabulary.special_tokens.items()}
    return b"".join(names.get(t) or llm.vocabulary.tokens[t] or b"" for t in plan.request.prompt_token_ids).decode()


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("plain", "Ada"),
        ("chat", "<|user|>Ada<|assistant|>"),
        ("task", '<|system|>Fill {"name":string}<|user|>Ada<|assistant|>'),
        ("auto", "Ada"),
    ],
)
def test_a_prompt_in_every_style(model_folder: Path, style: Any, expected: str) -> None:
    llm = LLM(model_folder, prompt_style=style)
    (plan,) = llm.planner.plan_all("Ada", None, {"schema": Person})
    assert shown(llm, plan) == expected


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"regex": r"\d+"}, r"Match \d+"),
        ({"choice": ["a", "b"]}, 'Choose "a"|"b"'),
        ({"grammar": 'root ::= "x"'}, 'Follow root ::= "x"'),
        ({"json_schema": '{"type": "integer"}'}, "Fill integer"),
    ],
)
def test_a_constraint_is_told_however_it_is_given(model_folder: Path, options: Any, told: str) -> None:
    llm = LLM(model_folder, prompt_style="task")
    (plan,) = llm.planner.plan_all("Ada", None, options)
    assert shown(llm, plan) == f"<|system|>{told}<|user|>Ada<|assistant|>"
    (again,) = llm.planner.plan_all("Ada", None, {"constraint": plan.choice.source})
    assert shown(llm, again) == shown(llm, plan)


def test_a_folder_may_say_that_it_learned_the_task_style(model_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"maskwright_prompt_style": "task"}))
    assert LLM(folder).planner.style == "task"


@pytest.mark.parametrize(
    ("generation", "sampling"),
    [
        ({}, SamplingParams(temperature=0.0)),
        ({"do_sample": False, "temperature": 0.6}, SamplingParams(temperature=0.0)),
        ({"do_sample": True}, SamplingParams()),
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 20}, SamplingParams(temperature=0.6, top_p=0.9, top_k=20)),
        ({"repetition_penalty": 1.1, "min_p": None}, SamplingParams(temperature=0.0, repetition_penalty=1.1)),
    ],
)
def test_recommended_sampling(generation: Any, sampling: SamplingParams) -> None:
    assert recommended_sampling(generation) == sampling


def test_what_tells_the_schema_is_pinned(model_folder: Path) -> None:
    """Its blocks outlive those of many other prompts, so that the next prompt with this schema computes only its own text."""
    llm = LLM(model_folder, prompt_style="task", num_kv_blocks=24, max_model_len=256)
    fields = {"type": "object", "properties": {f"number {place}": {"type": "integer"} for place in range(3)}, "additionalProperties": False}
    (plan,) = llm.planner.plan_all("Ada", None, {"json_schema": fields})
    told = shown(llm, plan).index("Ada")
    (free,) = llm.planner.plan_all("Ada", None, {})
    assert (plan.request.num_shared_tokens, free.request.num_shared_tokens) == (told_tokens(plan), 0) and told > 0

    def cached(prompt: str, options: dict[str, Any]) -> int:
        (output,) = llm.generate(prompt, sampling=SamplingParams(temperature=0.0, max_tokens=40), **options)
        return output.usage.cached_tokens

    cached("Ada", {"json_schema": fields})
    for number in range(6):  # each of 13 blocks
        cached(chr(98 + number) * 160, {})
    assert cached("Grace", {"json_schema": fields}) >= plan.request.num_shared_tokens // 16 * 16 > 16


def told_tokens(plan: Plan) -> int:
    """Tokens of the prompt before the user's own."""
    other = plan.request.prompt_token_ids
    return len(other) - len("Ada") - 1

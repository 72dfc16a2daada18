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

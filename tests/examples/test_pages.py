"""The examples in Python of README and of the pages run as they are written, with what each takes for granted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from maskwright import LLM, SamplingParams
from maskwright.constraints import Compiler, JsonSchema
from maskwright.model_folder import embedded_model

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
STAND_INS = {'"path/to/model"': repr(str(embedded_model())), "{...}": '{"type": "any_text"}'}  # for what a reader has to fill in
PAGES = ["README.md", "grammars/README.md", *(f"docs/{name}.md" for name in ("answers", "grammars", "saving", "searching", "sessions", "tags"))]
BEYOND = {("README.md", 2)}  # a server has to run; tests/server do that


class Person(BaseModel):
    name: str
    age: int
    city: str


class Ticket(BaseModel):
    product: str
    days_open: int


class Plan(BaseModel):
    plan: str


class Weather(BaseModel):
    city: str


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def examples() -> list[tuple[str, int, str]]:
    found = [(page, *each) for page in PAGES for each in enumerate(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))]
    return [each for each in found if each[:2] not in BEYOND]


@pytest.fixture(scope="module")
def granted() -> dict[str, Any]:
    """What examples call by names that they do not define."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    llm, tokenizer = LLM(), AutoTokenizer.from_pretrained(embedded_model())
    return {
        "llm": llm, "compiler": llm.compiler, "Compiler": Compiler, "JsonSchema": JsonSchema, "SamplingParams": SamplingParams,
        "tokenizer": tokenizer, "model": AutoModelForCausalLM.from_pretrained(embedded_model()), "inputs": tokenizer("Ada, 36, London.", return_tensors="pt"),
        "Person": Person, "Ticket": Ticket, "Plan": Plan, "Weather": Weather, "get_weather": get_weather, "tools": [get_weather],
        "prompts": ["Ada, 36, London.", "Grace, 85, Arlington."], "prompt": "Ada Lovelace, 36, lives in London.", "schema": {"type": "object"},
        "messages": [{"role": "user", "content": "Will it rain in Porto?"}], "enough": bool, "generated": [],
    }  # fmt: skip


@pytest.mark.parametrize(("page", "number", "code"), examples(), ids=lambda each: str(each)[:20])
def test_an_example_runs(
    page: str, number: int, code: str, granted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = dict(granted)
    if page == "docs/tags.md":
        names["tools"] = [{"name": "look", "parameters": {"type": "object", "properties": {}}}]
    for written, meant in STAND_INS.items():
        code = code.replace(written, meant)
    exec(compile(code, f"{page}, example {number}", "exec"), names)

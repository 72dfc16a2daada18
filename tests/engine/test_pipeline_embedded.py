"""The loops on the model that ships, with compiled constraints: JSON Schemas, also such as remember items, patterns and nesting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maskwright
from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import EngineConfig, EngineFeatures, Request, load
from maskwright.sampling import SamplingParams

from .conftest import run_all
from .test_pipeline import LOOPS, summaries

FOLDER = Path(maskwright.__file__).parent / "embedded"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SOURCES = [
    None,
    JsonSchema(PERSON),
    JsonSchema({"type": "array", "items": {"enum": [1, 2, 3, 14]}, "uniqueItems": True, "minItems": 2}),
    JsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
    Regex(r"[a-z]{3,9}@[a-z]+\.(com|org)"),
    Gbnf('root ::= "(" root ")" | [a-z]*'),
]


def config() -> EngineConfig:
    return EngineConfig(model=FOLDER, threads=1, max_sequences=8, max_batch_tokens=48, max_model_len=160, num_kv_blocks=60)


@pytest.fixture(scope="module")
def requests() -> dict[int, list[Request]]:
    tokenizer = load(config()).tokenizer
    compiler = Compiler(tokenizer.vocabulary)
    constraints = [None if source is None else compiler.compile(source) for source in SOURCES]
    prompt = tuple(tokenizer.encode("Ada Lovelace, 36, lives in London and writes programs.\n"))
    asked = []
    for number, (constraint, temperature) in enumerate((c, t) for c in constraints for t in (0.0, 0.8, 1.5)):
        budget = 40 if constraint is None else constraint.min_tokens(constraint.start()) + (1, 5, 60)[number % 3]
        options = {"stop": ("er", "."), "frequency_penalty": 0.5} if constraint is None else {"jump_forward": number % 4 == 1}
        sampling = SamplingParams(temperature=temperature, seed=number, max_tokens=budget, **options)
        asked.append(Request(prompt_token_ids=prompt[: 4 + number], sampling=sampling, constraint=constraint))
    return {0: asked[::2], 5: asked[1::2]}


@pytest.fixture(scope="module")
def plain(requests) -> list[tuple]:
    return summaries(run_all(load(config()).engine, requests))


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_tokens_are_those_of_the_plain_loop(loop, requests, plain):
    engine = load(config(), EngineFeatures(**loop)).engine
    assert summaries(run_all(engine, requests)) == plain


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if "steps_per_visit" in loop], ids=str)
def test_records_are_filled_in_visits(loop):
    """Constrained and free rows together, none of which needs the host at every step."""
    loaded = load(config(), EngineFeatures(**loop))
    constraint = Compiler(loaded.tokenizer.vocabulary).compile(JsonSchema(PERSON))
    prompt = tuple(loaded.tokenizer.encode("Ada Lovelace, 36.\n"))
    asked = [
        Request(prompt_token_ids=prompt, sampling=SamplingParams(seed=seed, max_tokens=60, temperature=0.9), constraint=constraint if seed % 3 else None)
        for seed in range(6)
    ]
    outputs = run_all(loaded.engine, {0: asked})
    assert summaries(outputs) == summaries(run_all(load(config()).engine, {0: asked}))
    assert all(set(json.loads(outputs[seed].text)) == {"name", "age"} for seed in (1, 2, 4, 5))

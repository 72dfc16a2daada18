"""Whatever is asked through the front door gets the same answer from every loop: step by step, overlapped, in visits, with guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwright import LLM, SamplingParams
from maskwright.constraints import Constraint, JsonSchema, Lark, Reasoning, Regex, Tools
from maskwright.constraints.capturing.capture import captures

LOOPS: list[dict[str, Any]] = [
    {"overlap": True},
    {"automaton": "device"},
    {"automaton": "device", "steps_per_visit": 4},
    {"automaton": "device", "overlap": True, "steps_per_visit": 3},
    {"speculation": "lookup"},
    {"speculation": "forced", "num_draft_tokens": 3},
    {"speculation": "draft"},
]
POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "tag": {"enum": ["thin", "there"]}}, "required": ["x", "tag"], "additionalProperties": False}
CAPTURING = Lark('start: a b\na[capture]: /[a-f]{1,6}/\nb[capture, max_tokens=5]: /=[a-z]*/')
WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"in": {"enum": ["ab", "the inn"]}}, "required": ["in"]}}
TEXTS = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "array", "items": {"type": "string"}}}, "required": ["a", "n"], "additionalProperties": False}
WRITER = {"name": "write", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
TOOLS = Tools([WEATHER], style="hermes", choice="auto")
ASKED: list[tuple[Any, dict[str, Any]]] = [
    (None, {"n": 3, "stop": ("e", "th"), "logprobs": 2, "max_tokens": 40}),
    (None, {"min_tokens": 4, "repetition_penalty": 1.2, "logit_bias": {70: 3.0}, "max_tokens": 30}),
    (None, {"temperature": 0.0, "ignore_eos": True, "max_tokens": 20}),
    (JsonSchema(POINT), {"n": 2, "frequency_penalty": 0.4}),
    (JsonSchema(POINT), {"jump_forward": True}),
    (JsonSchema(POINT), {"logprobs": 1, "top_p": 0.8}),
    (Reasoning(JsonSchema(POINT), max_tokens=16), {}),
    (Reasoning(Regex("(x|y) there in the then"), max_tokens=14), {"jump_forward": True}),
    (TOOLS, {"min_p": 0.02}),
    (Tools([WEATHER], style="hermes", choice="required"), {"best_of": 3, "temperature": 2.0}),
    (CAPTURING, {"presence_penalty": 0.5}),
    (JsonSchema(TEXTS), {"loop_bound": 6, "logit_bias": {70: 9.0}, "n": 2}),
    (Tools([WRITER], style="hermes", choice="required"), {"loop_bound": 5, "logit_bias": {70: 50.0}, "temperature": 0.0}),
    (Lark("start: /g+/"), {"loop_bound": 7, "logit_bias": {70: 50.0}, "temperature": 0.0}),
]  # fmt: skip


def answers(llm: LLM) -> list[tuple]:
    """All of that in one batch, and what each output says of itself."""
    requests = []
    for number, (source, options) in enumerate(ASKED):
        # of few candidates each: where two of hundreds meet, the rounding of another batch may decide
        sampling = SamplingParams(**{"temperature": 1.0, "top_k": 8, "seed": number, "max_tokens": 90, **options})
        constraint = {} if source is None else {"constraint": source}
        for plan in llm.planner.plan_all("in there the thing " * (1 + number % 3), sampling, constraint):
            requests += [each if number % 4 == 3 else replace(each, is_measured=True) for each in plan.requests]
    ids = llm.driver.submit(requests)
    return [told(request.constraint, ended(llm, request_id)) for request_id, request in zip(ids, requests, strict=True)]


def ended(llm: LLM, request_id: int) -> Any:
    while (event := llm.driver.next_event(request_id)).output is None:
        pass
    return event.output


def told(constraint: Constraint | None, output: Any) -> tuple:
    assert output.finish_reason != "error", output.error
    chances = [record.logprob for record in output.records]
    found: Sequence[Any] = ()
    if constraint is not None:
        assert constraint.accepts(output.text.encode())
        if constraint.source is CAPTURING:
            found = captures(constraint, output.token_ids)
            assert [each.name for each in found] == ["a", "b"]
    return output.token_ids, output.text, output.finish_reason, (output.closed_by_budget, output.loops), chances, found


def searched(llm: LLM) -> list[tuple]:
    (beams,) = llm.beam_search("in there", width=3, n=3, json_schema=POINT, sampling=SamplingParams(max_tokens=40))
    (drawn,) = llm.particles("in there", count=3, regex="[a-d]{2,5}", sampling=SamplingParams(seed=2, max_tokens=9))
    return [(each.text, each.token_ids) for best in (beams, drawn) for each in (best, *best.alternatives)]


@pytest.fixture(scope="module")
def plain(model_folder: Path) -> tuple[list[tuple], list[tuple]]:
    llm = LLM(model_folder, prefix_cache=False, skips_forced=False)
    found = answers(llm)
    assert sum(bool(each[3][1]) for each in found) >= 3
    return found, searched(llm)


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_every_loop_gives_the_answers_of_the_plain_one(loop: dict[str, Any], plain: tuple, model_folder: Path) -> None:
    guesser = {"draft_model": model_folder} if loop.get("speculation") == "draft" else {}
    llm = LLM(model_folder, **loop, **guesser)
    assert searched(llm) == plain[1]
    for found, expected in zip(answers(llm), plain[0], strict=True):
        assert found[:4] == expected[:4] and found[5] == expected[5]
        both = [pair for pair in zip(found[4], expected[4], strict=True) if None not in pair]  # what is forced has no chance
        assert all(mine == pytest.approx(its, abs=1e-3) for mine, its in both)
    assert llm.statistics.num_blocks_in_use == 0

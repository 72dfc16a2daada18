"""Several outputs of a prompt, and what makes the engine fast, where users look for it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from maskwright import LLM, AsyncLLM, SamplingParams, UsageError
from maskwright.cli import run


class Point(BaseModel):
    x: int
    y: int


PROMPT = "the thing in there " * 3
FORCED = r"(x|y) there in the then \d"  # "the" and "th" are tokens, so there are many spellings


def params(**options: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 1.0, "seed": 5, "max_tokens": 12, **options})


def test_n_outputs_of_one_prompt(llm: LLM) -> None:
    before = llm.statistics
    (output,) = llm.generate(PROMPT, sampling=params(n=4))
    texts = [output.text, *(each.text for each in output.alternatives)]
    assert len(texts) == len(set(texts)) == 4
    assert output.text == llm.generate(PROMPT, sampling=params())[0].text
    assert [each.usage.cached_tokens > 0 for each in output.alternatives] == [True] * 3
    after = llm.statistics
    assert after.num_cached_tokens - before.num_cached_tokens >= 3 * (output.usage.prompt_tokens // 16 * 16)
    assert llm.generate(PROMPT, sampling=params(n=4))[0].alternatives[2].text == texts[3]


def test_best_of_gives_the_most_probable(llm: LLM) -> None:
    (best,) = llm.generate(PROMPT, sampling=params(best_of=5, logprobs=0))
    (several,) = llm.generate(PROMPT, sampling=params(n=5, logprobs=0))
    everyone = [several, *several.alternatives]

    def mean(output: Any) -> float:
        return sum(record.logprob for record in output.logprobs) / len(output.logprobs)

    assert best.text == max(everyone, key=mean).text and best.alternatives == ()
    (two,) = llm.generate(PROMPT, sampling=params(n=2, best_of=5))
    assert [two.text, two.alternatives[0].text] == [each.text for each in sorted(everyone, key=mean, reverse=True)[:2]]


def test_n_with_a_constraint_and_asyncio(llm: LLM) -> None:
    sampling = params(n=3, max_tokens=60)
    (output,) = llm.generate(PROMPT, schema=Point, sampling=sampling)
    assert all(isinstance(each.parsed, Point) for each in (output, *output.alternatives))
    (same,) = asyncio.run(AsyncLLM(llm).generate(PROMPT, schema=Point, sampling=sampling))
    assert [each.text for each in same.alternatives] == [each.text for each in output.alternatives]


def test_a_stream_or_a_reply_is_one_output(llm: LLM) -> None:
    with pytest.raises(UsageError, match="a stream is of one; use generate"):
        next(llm.stream(PROMPT, sampling=params(n=2)))
    with pytest.raises(UsageError, match="n=2 asks for several"):
        llm.chat("hello", sampling=params(n=2))


@pytest.mark.parametrize(
    "features",
    [
        {"prefix_cache": False, "skips_forced": False},
        {"speculation": "lookup", "num_draft_tokens": 3},
        {"speculation": "forced"},
        {"speculation": "draft"},
        {"policy": "priority", "num_host_blocks": 8, "num_kv_blocks": 24},
    ],
)
def test_features_change_no_output(features: dict[str, Any], llm: LLM, model_folder: Path) -> None:
    if features.get("speculation") == "draft":
        features = {**features, "draft_model": model_folder}
    other = LLM(model_folder, **features)
    prompts = [PROMPT, PROMPT + "again", "in there"]
    for constraint in ({}, {"schema": Point}, {"regex": FORCED}):
        sampling = params(max_tokens=60)
        expected = [output.text for output in llm.generate(prompts, sampling=sampling, **constraint)]
        assert [output.text for output in other.generate(prompts, sampling=sampling, **constraint)] == expected
    if "speculation" in features:
        assert other.statistics.num_drafted_tokens > 0 or features["speculation"] == "lookup"
    if features.get("speculation") == "draft":
        assert other.statistics.acceptance_rate > 0.9


def test_jump_forward_gives_valid_outputs_in_fewer_steps(llm: LLM) -> None:
    steps = []
    for jump_forward in (False, True):
        before = llm.statistics.num_steps
        (output,) = llm.generate(PROMPT, regex=FORCED, sampling=params(max_tokens=60, jump_forward=jump_forward))
        assert re.fullmatch(FORCED, output.text) and (output.usage.jumped_tokens > 0) == jump_forward
        steps.append(llm.statistics.num_steps - before)
    assert steps[1] < steps[0]


def test_the_command_line_has_them_too(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--n", "3", "--seed", "1", "--temperature", "1", "--max-tokens", "60", "--jump-forward", "--regex", r"\d{3,5}"]
    code = run(["generate", PROMPT, "--model", str(model_folder), "--speculation", "forced", "--no-prefix-cache", *asked])
    lines = capsys.readouterr().out.splitlines()
    assert not code and len(lines) == 3 and all(3 <= len(line) <= 5 and line.isdigit() for line in lines)


def test_a_wrong_feature_is_named_before_a_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", PROMPT, "--model", "/nowhere", "--speculation", "psychic"])
    assert 'speculation must be one of off, lookup, forced, draft, got "psychic"' in " ".join(capsys.readouterr().err.split())


def test_several_outputs_of_a_file_of_prompts(model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = tmp_path / "prompts"
    prompts.write_text("one\ntwo\n")
    run(["generate", "--prompt-file", str(prompts), "--model", str(model_folder), "--n", "2", "--max-tokens", "3"])
    assert [json.loads(line)["prompt"] for line in capsys.readouterr().out.splitlines()] == ["one", "one", "two", "two"]


def test_an_urgent_prompt_goes_first(model_folder: Path) -> None:
    llm = LLM(model_folder, policy="priority", max_sequences=1, max_batch_tokens=64)
    slow = llm.planner.plan_all(PROMPT, params(max_tokens=40), {})[0].ranked(1, "")
    (request_id,) = llm.driver.submit([slow.request])
    llm.driver.next_event(request_id)
    llm.generate("now", sampling=params(max_tokens=3), priority=0)
    assert llm.statistics.num_preemptions == 1
    llm.driver.cancel(request_id)
    assert llm.statistics.num_blocks_in_use == 0

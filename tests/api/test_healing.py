"""`heal_prompt=True` through the front door: the last token of a prompt may become a part of a longer one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwright import LLM, Delta, RequestError, SamplingParams
from maskwright.constraint_choice import choose

HEALING = SamplingParams(temperature=2.0, max_tokens=30, heal_prompt=True)
PATTERN = "b[abc]{3,6}"


def test_the_text_is_the_constraint_s_and_its_tokens_begin_with_the_prompt_s_last(llm: LLM) -> None:
    prompt = llm.tokenizer.encode("xa")
    for seed in range(8):
        (output,) = llm.generate("xa", regex=PATTERN, sampling=replace(HEALING, seed=seed))
        tokens = b"".join(llm.vocabulary.tokens[each] or b"" for each in output.token_ids)
        assert tokens.decode() == "a" + output.text
        (plain,) = llm.generate("xa", regex=PATTERN, sampling=replace(HEALING, seed=seed, heal_prompt=False))
        assert plain.usage.prompt_tokens == len(prompt) == output.usage.prompt_tokens + 1
        assert output.text[0] == "b" and 4 <= len(output.text) <= 7 and output.is_complete


def test_nothing_changes_where_no_token_holds_both(llm: LLM) -> None:
    for prompt, pattern in (("x ", "[QZ]{3}"), ("a", "Z+")):
        outputs = [llm.generate(prompt, regex=pattern, sampling=replace(HEALING, seed=1, heal_prompt=heals))[0] for heals in (True, False)]
        assert outputs[0].token_ids == outputs[1].token_ids and outputs[0].usage == outputs[1].usage


def test_canonical_and_healed_is_the_tokenizer_s_spelling_of_prompt_and_text(llm: LLM) -> None:
    for seed in range(8):
        (output,) = llm.generate("xa", regex="[bc][abc]{3,6}", sampling=replace(HEALING, seed=seed, canonical=True))
        assert [*llm.tokenizer.encode("xa")[:-1], *output.token_ids] == list(llm.tokenizer.encode("xa" + output.text))


@pytest.mark.parametrize(
    "features",
    [
        {"overlap": True},
        {"automaton": "device"},
        {"automaton": "device", "overlap": True, "steps_per_visit": 4},
        {"speculation": "lookup"},
        {"speculation": "forced"},
    ],
)
def test_every_loop_heals(llm: LLM, model_folder: Path, features: dict[str, Any]) -> None:
    samplings = [replace(HEALING, seed=seed, jump_forward=seed % 2 == 0) for seed in range(6)]
    expected = llm.generate(["xa"] * 6, regex=PATTERN, sampling=samplings)
    outputs = LLM(model_folder, **features).generate(["xa"] * 6, regex=PATTERN, sampling=samplings)
    assert [(each.text, each.token_ids) for each in outputs] == [(each.text, each.token_ids) for each in expected]


def test_streams_searches_and_details_tell_the_text_alone(llm: LLM) -> None:
    sampling = replace(HEALING, seed=3)
    (whole,) = llm.generate("xa", regex=PATTERN, sampling=sampling)
    assert "".join(each.text for each in llm.stream("xa", regex=PATTERN, sampling=sampling) if isinstance(each, Delta)) == whole.text
    plain = SamplingParams(max_tokens=30, heal_prompt=True)
    (found,) = llm.beam_search("xa", width=3, regex=PATTERN, sampling=plain)
    (swarm,) = llm.particles("xa", count=4, regex=PATTERN, sampling=replace(plain, temperature=1.0, seed=1))
    assert all(each.text[0] == "b" for each in (found, *found.alternatives, swarm, *swarm.alternatives))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    (output,) = llm.generate("x{", schema=schema, sampling=replace(plain, field_details=True))
    assert isinstance(output.parsed["n"], int) and output.fields["n"].path == ("n",)
    (captured,) = llm.generate("xa", grammar='start: "b" w\nw[capture]: /[abc]{3}/', sampling=sampling)
    assert captured.captures == {"w": captured.text[1:]}


def test_a_budget_holds_with_the_token_that_is_written_anew(llm: LLM) -> None:
    (output,) = llm.generate("xa", regex="b[abc]*", sampling=replace(HEALING, max_tokens=5, seed=2))
    assert output.is_complete and len(output.token_ids) <= 5


def test_free_text_is_not_healed(llm: LLM) -> None:
    with pytest.raises(RequestError, match="heal_prompt"):
        llm.generate("xa", sampling=HEALING)


def test_prompts_of_tokens_that_there_are_not_are_refused_as_ever(llm: LLM) -> None:
    for last in (-1, llm.vocabulary.size, 10**30):
        plan = llm.planner.plan_tokens([1, last], HEALING, choose({"regex": PATTERN}))
        with pytest.raises(RequestError, match="the vocabulary has the ids"):
            llm.driver.submit(plan.requests)


def test_templates_are_not_healed(llm: LLM) -> None:
    with pytest.raises(RequestError, match="plain prompts"):
        llm.chat("xa", regex=PATTERN, sampling=HEALING)

"""`canonical=True` through the front door: outputs are spelt as the tokenizer spells them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maskwright import LLM, SamplingParams

HOT = SamplingParams(temperature=3.0, max_tokens=60, canonical=True)
PATTERN = "[abcetherin]{12,24}"  # letters of which the tokenizer's merges are made


def spelt(llm: LLM, outputs: list[Any]) -> list[bool]:
    """Whether each output has the tokens that the tokenizer writes its text in."""
    return [output.token_ids == llm.tokenizer.encode(output.text, add_special_tokens=False) for output in outputs]


def test_outputs_are_spelt_as_the_tokenizer_does(llm: LLM) -> None:
    samplings = [replace(HOT, seed=seed) for seed in range(12)]
    kept = llm.generate(["x"] * 12, regex=PATTERN, sampling=samplings)
    assert all(spelt(llm, kept)) and len({output.text for output in kept}) > 6
    free = llm.generate(["x"] * 12, regex=PATTERN, sampling=[replace(each, canonical=False) for each in samplings])
    assert not all(spelt(llm, free))  # the model does not do it by itself


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
def test_every_loop_keeps_to_it(llm: LLM, model_folder: Path, features: dict[str, Any]) -> None:
    samplings = [replace(HOT, seed=seed, jump_forward=seed % 2 == 0) for seed in range(4)]
    expected = llm.generate(["x"] * 4, regex=PATTERN, sampling=samplings)
    outputs = LLM(model_folder, **features).generate(["x"] * 4, regex=PATTERN, sampling=samplings)
    assert [output.token_ids for output in outputs] == [output.token_ids for output in expected] and all(spelt(llm, outputs))


def test_the_last_token_of_the_prompt_counts(llm: LLM) -> None:
    """Behind `a`, a `b` would have been written as one token with it."""
    for seed in range(6):
        (output,) = llm.generate("a", regex="[bc][x-z]", sampling=replace(HOT, seed=seed))
        assert output.text[0] == "c"
    (output,) = llm.generate("a", regex="b", sampling=HOT)  # where nothing else may come, it does
    assert output.text == "b"


def test_searches_and_tight_budgets_keep_to_it(llm: LLM) -> None:
    for is_kept in (True, False):
        drawn = SamplingParams(temperature=2.0, seed=1, max_tokens=60, canonical=is_kept)
        found = llm.particles(["x", "y"], count=8, resample_below=0, regex="[abcetherin]{20,40}", sampling=drawn)
        assert all(spelt(llm, [each for swarm in found for each in (swarm, *swarm.alternatives)])) == is_kept
    kept = SamplingParams(max_tokens=60, canonical=True)
    found = llm.beam_search(["x", "y", "z"], width=4, n=4, regex="[abcetherin]{20,40}", sampling=kept)
    assert all(spelt(llm, [each for beams in found for each in (beams, *beams.alternatives)]))
    (output,) = llm.generate("x", regex="(ab|th){8}x", sampling=replace(HOT, max_tokens=9, seed=3))
    assert output.is_complete and len(output.token_ids) <= 9

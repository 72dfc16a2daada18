"""Beam search and particles through the front door."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

from maskwright import LLM, RequestError, SamplingParams


class Choice(BaseModel):
    plan: Literal["free", "pro", "team"]
    yes: bool


def test_beams_are_parsed_and_ordered(llm: LLM) -> None:
    first, second = llm.beam_search(["Who?", "What?"], width=4, n=3, schema=Choice)
    for best in (first, second):
        outputs = [best, *best.alternatives]
        assert len({output.text for output in outputs}) == 3 and all(isinstance(output.parsed, Choice) for output in outputs)
        scores = [output.score.score for output in outputs if output.score is not None]
        assert scores == sorted(scores, reverse=True) and len(scores) == 3
    assert (first.prompt, second.prompt) == ("Who?", "What?")


def test_fewer_outputs_than_beams(llm: LLM) -> None:
    (best,) = llm.beam_search("Which?", width=6, n=6, choice=["left", "right"])
    assert {best.text, *(other.text for other in best.alternatives)} == {"left", "right"}


def test_particles_are_weighted(llm: LLM) -> None:
    (best,) = llm.particles("Which?", count=6, schema=Choice, sampling=SamplingParams(seed=3))
    outputs = [best, *best.alternatives]
    weights = [output.score.weight for output in outputs if output.score is not None and output.score.weight is not None]
    assert len(outputs) == 6 and sum(weights) == pytest.approx(1) and weights == sorted(weights, reverse=True)
    assert all(isinstance(output.parsed, Choice) for output in outputs)
    (again,) = llm.particles("Which?", count=6, schema=Choice, sampling=SamplingParams(seed=3))
    assert [output.text for output in (again, *again.alternatives)] == [output.text for output in outputs]


def test_what_a_search_does_not_understand_is_refused(llm: LLM) -> None:
    with pytest.raises(RequestError, match="beam search does not understand top_k=3"):
        llm.beam_search("x", sampling=SamplingParams(top_k=3))
    with pytest.raises(RequestError, match="particles does not understand"):
        llm.particles("x", sampling=SamplingParams(logprobs=1))
    assert not llm.driver.is_busy

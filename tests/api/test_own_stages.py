"""Stages of one's own from Python: for a model, for a call, for each prompt; beside chat, streams and sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maskwright import LLM, LogitsStage, SamplingParams, SessionError, UsageError
from maskwright.sampling.logits_stages import LOGITS_STAGES


class Favour(LogitsStage):
    """Prefers one byte, as text."""

    def __init__(self, text: str, amount: float = 50.0) -> None:
        self.text, self.amount = text, amount

    def setup(self, request):
        return [token for token, spelling in enumerate(request.spellings) if spelling == self.text.encode()]

    def apply(self, logits, context):
        for row, tokens in zip(logits, context.states, strict=True):
            row[tokens] += self.amount
        return logits

    def parameters(self):
        return {"text": self.text, "amount": self.amount}


def greedy(*stages: object, **options: object) -> SamplingParams:
    return SamplingParams(temperature=0.0, max_tokens=8, logits_processors=stages, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def favouring(model_folder: Path) -> LLM:
    return LLM(model_folder, logits_processors=[Favour("x", 60.0)])


def test_stages_are_asked_for_by_call_and_by_prompt(llm: LLM) -> None:
    first, second, third = llm.generate(["a", "b", "c"], regex="[a-z]{4}", sampling=[greedy(Favour("q")), greedy(), greedy(Favour("z"))])
    assert (first.text, third.text) == ("qqqq", "zzzz")
    assert second.text == llm.generate("b", regex="[a-z]{4}", sampling=greedy())[0].text
    (events,) = [list(llm.stream("a", regex="[a-z]{4}", sampling=greedy(Favour("q"))))]
    assert events[-1].output.text == "qqqq"  # type: ignore[union-attr]
    assert llm.chat("a", regex="[a-z]{4}", sampling=greedy(Favour("q"))).text == "qqqq"


def test_the_mask_has_the_last_word(llm: LLM) -> None:
    (output,) = llm.generate("a", regex="[a-p]{4}", sampling=greedy(Favour("q", float("inf"))))
    assert output.text == llm.generate("a", regex="[a-p]{4}", sampling=greedy())[0].text


def test_stages_of_a_model_are_those_of_each_request(favouring: LLM) -> None:
    assert favouring.generate("a", regex="[a-z]{4}", sampling=greedy())[0].text == "xxxx"
    assert favouring.generate("a", regex="[a-z]{4}", sampling=greedy(Favour("q", 100.0)))[0].text == "qqqq"


def test_functions_of_others_are_taken(llm: LLM) -> None:
    ids = {text: llm.vocabulary.tokens.index(text.encode()) for text in "qz"}

    def of_transformers(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.index_fill(1, torch.tensor([ids["q"]]), 99.0)

    def of_vllm(output_token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        logits[ids["z"]] = 150.0 if len(output_token_ids) > 1 else 0.0
        return logits

    sampling = greedy(of_transformers, of_vllm)
    assert llm.generate("a", regex="[a-z]{4}", sampling=sampling)[0].text == "qqzz"


def test_wrong_stages_are_refused_before_a_model_is_loaded() -> None:
    with pytest.raises(UsageError, match="logits_processors: 7 has no methods"):
        LLM("/nowhere", logits_processors=[7])
    with pytest.raises(UsageError, match='unknown logits processor "favor"'):
        LLM("/nowhere", logits_processors=["favor"])


def test_an_error_of_a_stage_is_that_of_its_output(llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")

    def broken(output_token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        raise KeyError("gone")

    bad, good = llm.generate(["a", "b"], regex="[a-z]{4}", sampling=[greedy(broken), greedy()])
    assert bad.finish_reason == "error" and bad.error == "StageFailure: logits processor \"broken\": KeyError: 'gone'"
    assert good.finish_reason == "stop"


def test_sessions_with_stages(llm: LLM, model_folder: Path, tmp_path: Path) -> None:
    sampling = greedy(Favour("q"))
    with llm.open("a", regex="[a-z]{6}", sampling=sampling) as session:
        next(iter(session))
        with pytest.raises(SessionError, match="Favour is not registered"):
            session.save(tmp_path / "refused")
        assert not (tmp_path / "refused").exists()
        with LOGITS_STAGES.registered("favour", Favour):
            session.save(tmp_path / "saved")
    with LOGITS_STAGES.registered("favour", Favour):
        assert llm.resume(tmp_path / "saved", regex="[a-z]{6}").result().text == "qqqqqq"
        session = llm.open("a", regex="[a-z]{6}", sampling=sampling)
        session.result()
        session.save(tmp_path / "ended")
        assert llm.resume(tmp_path / "ended", regex="[a-z]{6}").result().text == "qqqqqq"


def test_a_scorer_is_the_model(llm: LLM) -> None:
    logits = llm.scorer(max_contexts=1).logits([llm.tokenizer.encode("abc"), llm.tokenizer.encode("abcd")])
    best = int(logits[0].argmax())
    sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=1, ignore_eos=True)
    (output,) = llm.generate("abc", sampling=sampling)
    assert output.token_ids == (best,) and logits.shape == (2, llm.vocabulary.size)
    assert output.logprobs[0].logprob == pytest.approx(float(logits[0].log_softmax(-1)[best]), abs=1e-4)  # type: ignore[index]

"""Scores of a prompt's tokens equal transformers' logits: in ragged batches, in chunks, under preemption, beside a loop that overlaps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from maskwright.engine.requests.output import PromptScore
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import VOCAB_SIZE
from .test_generation import LENGTHS, expected, prompts

GREEDY = SamplingParams(temperature=0, max_tokens=24)
NUM_TOP = 3


def scored(num_top: int | None = NUM_TOP) -> list[Request]:
    return [Request(prompt_token_ids=tuple(prompt), sampling=GREEDY, num_prompt_logprobs=num_top) for prompt in prompts()]


def run(engine: Any, arrivals: dict[int, list[Request]]) -> tuple[dict[int, Any], dict[int, tuple[PromptScore, ...]]]:
    """(outputs, scores) by request id; requests arrive before the steps that are named."""
    outputs, scores, step = {}, {}, 0
    while engine.has_work or any(at >= step for at in arrivals):
        for request in arrivals.get(step, ()):
            engine.add_request(request)
        for event in engine.step():
            if event.prompt_scores is not None:
                assert event.request_id not in scores, "they are told once"
                scores[event.request_id] = event.prompt_scores
            if event.output is not None:
                outputs[event.request_id] = event.output
        step += 1
    return outputs, scores


def check(model: Any, prompt: list[int], scores: tuple[PromptScore, ...]) -> None:
    with torch.inference_mode():
        logits = model.reference(torch.tensor([prompt])).logits[0, :-1, :VOCAB_SIZE]
    logprobs = torch.log_softmax(logits.float(), -1)
    assert [score.token_id for score in scores] == prompt[1:]
    for row, score in zip(logprobs, scores, strict=True):
        assert score.logprob == pytest.approx(float(row[score.token_id]), abs=1e-3)
        assert score.rank == 1 + int((row > row[score.token_id] + 1e-6).sum())
        assert [each.logprob for each in score.top] == pytest.approx(row.topk(len(score.top)).values.tolist(), abs=1e-3)


@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral-sliding", "deepseek-v3"])
@pytest.mark.parametrize(
    "options",
    [{}, {"max_batch_tokens": 3, "max_sequences": 3}, {"num_blocks": 18, "max_model_len": 72}, {"overlap": True}, {"prefix_cache": False}],
    ids=str,
)
def test_scores_are_those_of_the_model(name: str, options: Any, tiny_model: Any, make_engine: Any) -> None:
    model = tiny_model(name)
    outputs, scores = run(make_engine(model.folder, **options), {0: scored()[:3], 3: scored()[3:]})
    assert [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)
    for number, prompt in enumerate(prompts()):
        check(model, prompt, scores[number])
        assert all(len(score.top) == NUM_TOP for score in scores[number])


def test_only_who_asks_is_told_and_what_is_known_is_computed_again(tiny_model: Any, make_engine: Any) -> None:
    model = tiny_model("llama")
    engine = make_engine(model.folder)
    plain = scored(None)
    run(engine, {0: plain})
    outputs, scores = run(engine, {0: [plain[6], scored(0)[6], plain[6]]})
    assert list(scores) == [len(plain) + 1] and outputs[len(plain)].num_cached_tokens > 0
    assert outputs[len(plain) + 1].num_cached_tokens == 0
    check(model, prompts()[6], scores[len(plain) + 1])
    assert all(score.top == () for score in scores[len(plain) + 1])


def test_a_step_reads_few_tokens_of_scored_prompts(tiny_model: Any, make_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.engine.scheduling.scheduler._Budget.__init__.__defaults__", (5,))
    model, widths = tiny_model("llama"), []
    engine = make_engine(model.folder)
    forward = engine.runner.forward
    monkeypatch.setattr(engine.runner, "forward", lambda chunks, columns: widths.append(sum(c.num_tokens for c in chunks if c.reads_all)) or forward(chunks, columns))
    outputs, scores = run(engine, {0: scored()})
    assert max(widths) == 5 and [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)
    for number, prompt in enumerate(prompts()):
        check(model, prompt, scores[number])


@pytest.mark.parametrize("overlap", [False, True])
def test_forgotten_prefixes_are_computed_again(overlap: bool, tiny_model: Any, make_engine: Any) -> None:
    model = tiny_model("llama")
    engine = make_engine(model.folder, overlap=overlap)
    long = Request(prompt_token_ids=tuple(prompts()[6]), sampling=GREEDY)
    run(engine, {0: [long]})
    assert run(engine, {0: [long]})[0][1].num_cached_tokens > 0
    engine.forget_prefixes()
    engine.space.validate()
    again = run(engine, {0: [long]})[0][2]
    assert again.num_cached_tokens == 0 and again.token_ids == expected(model)[6]
    running = [engine.add_request(long), engine.add_request(Request(prompt_token_ids=tuple(prompts()[2]), sampling=GREEDY))]
    for _ in range(4):
        engine.step()
    engine.forget_prefixes()
    engine.space.validate()
    outputs, _ = run(engine, {0: [long]})
    assert [outputs[i].token_ids for i in (*running, running[1] + 1)] == [expected(model)[6], expected(model)[2], expected(model)[6]]
    engine.space.validate()
    assert engine.scheduler.pool.num_free == engine.scheduler.pool.num_blocks

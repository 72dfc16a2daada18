"""Greedy output equals transformers' `generate` token for token: alone, in ragged batches, in chunks, under preemption."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import MODELS, VOCAB_SIZE, run_all, tiny_vocabulary

LENGTHS = [5, 1, 33, 12, 20, 3, 47]
GREEDY = SamplingParams(temperature=0, max_tokens=24)
OTHER_KINDS = ["gemma2", "gemma3", "mixtral", "deepseek-v3", "cohere2", "llama4"]  # of attention, or of MLP


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(3, VOCAB_SIZE, (length,), generator=generator).tolist() for length in LENGTHS]


@cache
def expected(model) -> list[tuple[int, ...]]:
    return [tuple(model.greedy(prompt, GREEDY.max_tokens)) for prompt in prompts()]


def requests(sampling: SamplingParams = GREEDY) -> list[Request]:
    return [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts()]


@pytest.mark.parametrize("name", MODELS)
def test_every_family_in_a_ragged_batch_with_late_arrivals(name, tiny_model, make_engine):
    model = tiny_model(name)
    first, second, third = requests()[:3], requests()[3:5], requests()[5:]
    outputs = run_all(make_engine(model.folder), {0: first, 4: second, 9: third})
    assert [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)


@pytest.mark.parametrize("name", ["llama", "qwen3", *OTHER_KINDS])
def test_alone(name, tiny_model, make_engine):
    model = tiny_model(name)
    for request, tokens in zip(requests(), expected(model), strict=True):
        output = run_all(make_engine(model.folder), {0: [request]})[0]
        assert output.token_ids == tokens
        assert output.finish_reason == ("length" if len(tokens) == GREEDY.max_tokens else "stop")


@pytest.mark.parametrize("name", ["llama", "mistral-sliding", "qwen2-half-sliding", *OTHER_KINDS])
@pytest.mark.parametrize("max_batch_tokens", [3, 7])
def test_tiny_chunks(name, max_batch_tokens, tiny_model, make_engine):
    model = tiny_model(name)
    engine = make_engine(model.folder, max_batch_tokens=max_batch_tokens, max_sequences=3)
    outputs = run_all(engine, {0: requests()})
    assert [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)


@pytest.mark.parametrize("name", ["llama", "mistral-sliding", *OTHER_KINDS])
def test_preemption_recomputes_and_changes_nothing(name, tiny_model, make_engine):
    model = tiny_model(name)
    engine = make_engine(model.folder, num_blocks=18, max_model_len=72)  # 72 tokens; the requests need 288 in all
    outputs = run_all(engine, {0: requests()[:4], 3: requests()[4:]})
    assert engine.scheduler.num_preemptions > 0
    assert [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)


def test_a_seed_means_the_same_tokens_in_any_batch(tiny_model, make_engine):
    folder = tiny_model("llama").folder
    sampling = SamplingParams(temperature=0.8, top_p=0.9, seed=7, max_tokens=16)
    together = run_all(make_engine(folder), {0: requests(sampling)})
    alone = [run_all(make_engine(folder), {0: [request]})[0] for request in requests(sampling)]
    assert [together[i].token_ids for i in range(len(LENGTHS))] == [output.token_ids for output in alone]


def test_padding_of_the_head_is_never_generated(tiny_model, make_engine):
    """A vocabulary of 40 on a head of 99 rows: hot sampling stays inside."""
    engine = make_engine(tiny_model("llama").folder, vocabulary=tiny_vocabulary(40))
    sampling = SamplingParams(temperature=50.0, seed=1, max_tokens=60, ignore_eos=True)
    output = run_all(engine, {0: [Request(prompt_token_ids=(5, 6), sampling=sampling)]})[0]
    assert len(output.token_ids) == 60 and max(output.token_ids) < 40


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["llama", "mistral-sliding", "qwen2-half-sliding", "qwen3-tied-biased"])
def test_cuda_gives_the_same_tokens(name, tiny_model, make_engine):
    model = tiny_model(name)
    engine = make_engine(model.folder, device="cuda", num_blocks=18, max_model_len=72)
    outputs = run_all(engine, {0: requests()[:4], 3: requests()[4:]})
    assert [outputs[i].token_ids for i in range(len(LENGTHS))] == expected(model)

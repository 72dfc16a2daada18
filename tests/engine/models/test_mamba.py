"""Mamba 2 against transformers, and its pool of states: chunks, batches, preemption, and the last token once more."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from maskwright.engine.errors import InternalError, UnsupportedModel
from maskwright.engine.models.decoder import ForwardBatch
from maskwright.engine.models.mamba import Mamba, load_mamba
from maskwright.engine.models.spec import read_spec, spec_from_config
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from ..conftest import VOCAB_SIZE, run_all, save_tiny_model

MODELS = {
    "plain": {},
    "all-biases-tied": {"use_bias": True, "n_groups": 1, "tie_word_embeddings": True, "residual_in_fp32": False},
    "no-conv-bias": {"use_conv_bias": False, "chunk_size": 64, "conv_kernel": 2, "time_step_limit": (0.01, 0.5)},
}
SIZES = {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8, "initializer_range": 0.4}
GREEDY = SamplingParams(temperature=0, max_tokens=16)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    built = {}

    def get(name):
        if name not in built:
            built[name] = save_tiny_model(tmp_path_factory.mktemp(name), "Mamba2Config", {**SIZES, **MODELS[name]})
        return built[name]

    return get


def load(folder) -> Mamba:
    return load_mamba(folder, read_spec(folder), torch.float32, torch.device("cpu"))


def forward(model: Mamba, pool, chunks: list[tuple[list[int], int, int]]) -> torch.Tensor:
    """Logits of every token of the chunks (token_ids, num_past, slot)."""
    token_ids = [token for tokens, _, _ in chunks for token in tokens]
    plan = model.plan([(past, len(tokens), [slot]) for tokens, past, slot in chunks], pool)
    rows = torch.arange(len(token_ids))
    return model.forward(ForwardBatch(torch.tensor(token_ids), rows, rows, plan), pool)


def random_tokens(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, VOCAB_SIZE, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def expected_logits(model, tokens: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return model.reference(torch.tensor([tokens]), use_cache=False).logits[0]


@pytest.mark.parametrize("name", MODELS)
def test_logits_equal_transformers_in_one_chunk_and_in_many(name, model):
    tokens = random_tokens(41)
    for cuts in [(0, 41), (0, 1, 2, 17, 18, 40, 41)]:
        mamba = load(model(name).folder)
        pool = mamba.allocate_cache(4, 64)
        logits = torch.cat([forward(mamba, pool, [(tokens[i:j], i, 2)]) for i, j in pairwise(cuts)])
        torch.testing.assert_close(logits, expected_logits(model(name), tokens), atol=2e-4, rtol=2e-4)


def test_a_ragged_batch_keeps_sequences_apart_and_slots_are_used_again(model):
    mamba = load(model("plain").folder)
    pool = mamba.allocate_cache(4, 64)
    forward(mamba, pool, [(random_tokens(9, 7), 0, slot) for slot in range(4)])  # what was there before
    sequences = [random_tokens(length, seed) for seed, length in enumerate([3, 22, 17, 1])]
    num_past = [2, 21, 6, 0]
    forward(mamba, pool, [(s[:p], 0, slot) for slot, (s, p) in enumerate(zip(sequences, num_past, strict=True)) if p])
    logits = forward(mamba, pool, [(s[p:], p, i) for i, (s, p) in enumerate(zip(sequences, num_past, strict=True))])
    expected = [expected_logits(model("plain"), s)[p:] for s, p in zip(sequences, num_past, strict=True)]
    torch.testing.assert_close(logits, torch.cat(expected), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("chunk", [1, 5])
def test_the_last_token_may_be_computed_once_more(chunk, model):
    mamba, tokens = load(model("plain").folder), random_tokens(12)
    pool = mamba.allocate_cache(2, 64)
    for start in range(0, 10, chunk):
        once = forward(mamba, pool, [(tokens[start : start + chunk], start, 1)])[-1:]
    for _ in range(3):
        torch.testing.assert_close(forward(mamba, pool, [(tokens[9:10], 9, 1)]), once)
    expected = expected_logits(model("plain"), tokens)[10:]
    torch.testing.assert_close(forward(mamba, pool, [(tokens[10:], 10, 1)]), expected, atol=2e-4, rtol=2e-4)
    with pytest.raises(InternalError, match="no state after 7 tokens in slot 1; it holds those after"):
        forward(mamba, pool, [(tokens[7:], 7, 1)])


@pytest.mark.parametrize("max_batch_tokens", [64, 7])
def test_greedy_tokens_equal_those_of_generate(max_batch_tokens, model, make_engine):
    prompts = [random_tokens(length, seed) for seed, length in enumerate([5, 1, 33, 12, 20])]
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=GREEDY) for prompt in prompts]
    engine = make_engine(
        model("plain").folder, block_size=128, num_blocks=3, max_sequences=3, max_batch_tokens=max_batch_tokens
    )
    outputs = run_all(engine, {0: requests[:4], 3: requests[4:]})
    assert [list(outputs[i].token_ids) for i in range(5)] == [model("plain").greedy(p, 16) for p in prompts]


def test_an_urgent_request_takes_a_slot_and_its_owner_begins_anew(model, make_engine):
    prompts = [random_tokens(length, seed) for seed, length in enumerate([9, 14, 21])]
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=GREEDY, priority=-number) for number, prompt in enumerate(prompts)]
    engine = make_engine(model("plain").folder, block_size=128, num_blocks=2, max_sequences=2, policy="priority")
    outputs = run_all(engine, {0: requests[:2], 1: requests[2:]})
    assert engine.scheduler.num_preemptions > 0
    assert [list(outputs[i].token_ids) for i in range(3)] == [model("plain").greedy(p, 16) for p in prompts]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_dim": 7}, "num_heads x head_dim must be expand x hidden_size"),
        ({"state_size": 0}, '"state_size" must be a positive integer'),
        ({"hidden_act": "gelu"}, 'hidden_act "gelu" is not supported'),
    ],
)
def test_what_config_json_may_not_say(changes, message):
    config = {"architectures": ["Mamba2ForCausalLM"], "vocab_size": 9, "hidden_size": 4096, "num_hidden_layers": 1}
    with pytest.raises(UnsupportedModel, match=message):
        spec_from_config({**config, **changes})

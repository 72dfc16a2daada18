"""Architectures of transformers with layers that keep a state, on our pool of states and our cache."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from maskwright.engine.engine import Engine
from maskwright.engine.errors import InternalError, UnsupportedModel
from maskwright.engine.features import EngineFeatures
from maskwright.engine.limits import Limits
from maskwright.engine.models.decoder import ForwardBatch
from maskwright.engine.models.spec import spec_from_config
from maskwright.engine.models.transformers_families import HYBRID
from maskwright.engine.models.transformers_hybrids import HybridModel
from maskwright.engine.models.transformers_model import TransformersSpec
from maskwright.engine.requests.request import Request
from maskwright.engine.sessions.sessions import Sessions
from maskwright.engine.steps.runner import ModelRunner
from maskwright.sampling import SamplingParams

from ..conftest import TinyModel, check_nothing_leaked, run_all, tiny_vocabulary
from ..fake_constraint import brackets
from .test_transformers_models import SMALL, VOCAB_SIZE, greedy, small_model

STATES: dict[str, Any] = {
    **SMALL,
    **dict.fromkeys(["mamba_n_heads", "mamba_num_heads", "linear_num_value_heads", "linear_num_key_heads"], 8),
    **dict.fromkeys(["mamba_d_head", "mamba_head_dim", "linear_key_head_dim", "linear_value_head_dim"], 16),
    **dict.fromkeys(["mamba_d_state", "ssm_state_size", "state_size", "mamba_chunk_size", "chunk_size", "mamba_dt_rank", "time_step_rank"], 8),
    **dict.fromkeys(["mamba_n_groups", "n_groups", "mamba_expand"], 2),
    "mamba_d_ssm": 128,
}
ALTERNATING = ["linear_attention", "full_attention"] * 2
OWN: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3]},
    "granitemoehybrid": {"layer_types": ALTERNATING},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": {"layer_types": ALTERNATING, "num_key_value_heads": 4, "linear_num_heads": 4, "linear_head_dim": 16, "num_experts_per_token": 2},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm3": {"layer_types": ["conv", "full_attention"] * 2},
    "nemotron_h": {"layer_types": ["linear_attention", "moe", "full_attention", "mlp"]},
    "olmo_hybrid": {"layer_types": ALTERNATING},
    "qwen3_5_moe_text": {"layer_types": ALTERNATING},
    "qwen3_5_text": {"layer_types": ALTERNATING},
    "qwen3_next": {"layer_types": ALTERNATING},
}


def hybrid_reference(model_type: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    full = CONFIG_MAPPING[model_type]()
    known = set(full.to_dict()) | set(getattr(full, "attribute_map", {}))
    chosen = {name: value for name, value in STATES.items() if name in known}
    if getattr(full, "sliding_window", None) is None:
        chosen.pop("sliding_window", None)
    return small_model(CONFIG_MAPPING[model_type](**{**chosen, **OWN.get(model_type, {})}))


def hybrid(model_type: str, reference: Any) -> HybridModel:
    spec = TransformersSpec(
        architecture=type(reference).__name__, model_type=model_type, vocab_size=VOCAB_SIZE, dtype="float32", eos_token_ids=(2,), max_positions=256, is_recurrent=True
    )  # fmt: skip
    return HybridModel(spec, reference)


def hybrid_engine(model: HybridModel, num_blocks: int = 3, **features: Any) -> Engine:
    limits = Limits(block_size=64, num_blocks=num_blocks, max_batch_tokens=7, max_sequences=num_blocks, max_model_len=64)
    runner = ModelRunner(model, model.allocate_cache(num_blocks, 64))
    return Engine(runner, tiny_vocabulary(VOCAB_SIZE), limits, EngineFeatures(**features).for_recurrent())


def random_tokens(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, 150, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def forward(model: HybridModel, cache: Any, chunks: list[tuple[list[int], int, int]]) -> torch.Tensor:
    """Logits of every token of the chunks (token_ids, num_past, slot), those of one token first."""
    token_ids = [token for tokens, _, _ in chunks for token in tokens]
    positions = [past + place for tokens, past, _ in chunks for place in range(len(tokens))]
    plan = model.plan([(past, len(tokens), [slot]) for tokens, past, slot in chunks], cache)
    return model.forward(ForwardBatch(torch.tensor(token_ids), torch.tensor(positions), torch.arange(len(token_ids)), plan), cache)


@pytest.mark.parametrize("model_type", sorted(HYBRID))
def test_logits_equal_those_of_its_own_layers_in_chunks_and_side_by_side(model_type):
    reference = hybrid_reference(model_type)
    sequences = [random_tokens(19, 1), random_tokens(13, 2)]
    with torch.inference_mode():
        expected = [reference(torch.tensor([ids]), use_cache=False).logits[0] for ids in sequences]
    model = hybrid(model_type, reference)
    cache, found, starts = model.allocate_cache(4, 32), [[], []], [0, 0]
    forward(model, cache, [(random_tokens(9, 7), 0, slot) for slot in range(4)])  # what was there before
    for counts in [(9, 5), (6, 6), (1, 1), (1, 1), (2, 0)]:
        now = [(ids[start : start + n], start, slot) for ids, start, n, slot in zip(sequences, starts, counts, (2, 0), strict=True) if n]
        for rows, logits in zip(found, forward(model, cache, now).split(counts), strict=True):
            rows.append(logits)
        starts = [start + n for start, n in zip(starts, counts, strict=True)]
    for rows, logits in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.cat(rows), logits, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("model_type", sorted(HYBRID))
def test_greedy_tokens_alone_and_in_a_batch_with_preemption(model_type):
    """Slots are used again, and an urgent request that comes later takes the place of others."""
    reference = hybrid_reference(model_type)
    prompts = [random_tokens(length, seed) for seed, length in enumerate((10, 1, 23, 5))]
    expected = [greedy(reference, prompt, 8) for prompt in prompts]  # now, while its layers are its own
    sampling = SamplingParams(temperature=0, max_tokens=8)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling, priority=-number) for number, prompt in enumerate(prompts)]
    engine = hybrid_engine(hybrid(model_type, reference), num_blocks=2, policy="priority")
    alone = run_all(engine, {0: requests[:1]})
    together = run_all(engine, {0: requests[:2], 4: requests[2:]})
    assert engine.scheduler.num_preemptions > 0
    found = [alone[0], *(together[i] for i in range(4))]
    assert [list(output.token_ids) for output in found] == [expected[i] for i in (0, 0, 1, 2, 3)]


@pytest.mark.parametrize("model_type", ["granitemoehybrid", "mamba", "qwen3_next"])
def test_a_folder_is_recognised_and_generates_what_generate_does(model_type, tmp_path, make_engine):
    reference = hybrid_reference(model_type)
    reference.save_pretrained(tmp_path)
    tiny = TinyModel(tmp_path, reference)
    prompts = [random_tokens(length, seed) for seed, length in enumerate((17, 2, 33))]
    sampling = SamplingParams(temperature=0, max_tokens=12)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    engine = make_engine(tmp_path, block_size=128, num_blocks=2, max_sequences=2, max_batch_tokens=64, vocabulary=tiny_vocabulary(VOCAB_SIZE))
    outputs = run_all(engine, {0: requests})
    assert [list(outputs[i].token_ids) for i in range(3)] == [tiny.greedy(prompt, 12) for prompt in prompts]


@pytest.mark.parametrize("model_type", ["falcon_h1", "jamba", "lfm2"])
@pytest.mark.parametrize("keeps_cache", [True, False])
def test_a_session_goes_on_in_another_engine(model_type, keeps_cache):
    model, constraint = hybrid(model_type, hybrid_reference(model_type)), brackets(tiny_vocabulary(VOCAB_SIZE))
    constraint.fingerprint = "brackets"
    asked = Request(prompt_token_ids=tuple(random_tokens(9)), sampling=SamplingParams(seed=3, max_tokens=20), constraint=constraint)
    (expected,) = run_all(hybrid_engine(model), {0: [asked]}).values()
    engine, other = hybrid_engine(model), hybrid_engine(model)
    request_id = engine.add_request(asked)
    for _ in range(6):
        engine.step()
    snapshot = Sessions(engine, lambda: "model").snapshot(request_id, keeps_cache=keeps_cache)
    Sessions(other, lambda: "model").resume(snapshot, constraint)
    outputs = [event.output for _ in range(40) for event in other.step() if event.output is not None]
    check_nothing_leaked(other)
    assert [output.token_ids for output in outputs] == [expected.token_ids]


def test_the_last_token_may_be_computed_once_more():
    model, tokens = hybrid("qwen3_next", hybrid_reference("qwen3_next")), random_tokens(12)
    cache = model.allocate_cache(2, 64)
    for start, stop in pairwise((0, 1, 5, 9, 10)):
        once = forward(model, cache, [(tokens[start:stop], start, 1)])[-1:]
    for _ in range(3):
        torch.testing.assert_close(forward(model, cache, [(tokens[9:10], 9, 1)]), once)
    with pytest.raises(InternalError, match="no state after 7 tokens in slot 1"):
        forward(model, cache, [(tokens[7:8], 7, 1)])


def test_what_a_mixer_may_not_ask_for_is_named():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    known = set(CONFIG_MAPPING["bailing_hybrid"]().to_dict())
    config = CONFIG_MAPPING["bailing_hybrid"](**{name: value for name, value in STATES.items() if name in known}, layer_types=ALTERNATING)
    with pytest.raises(UnsupportedModel, match="layer 0 calls its mixer with position_embeddings"):
        hybrid("bailing_hybrid", small_model(config))


def test_a_length_without_limit_is_a_long_one():
    config = {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "vocab_size": 9}
    assert spec_from_config(config).max_positions == 1 << 20 and spec_from_config(config).is_recurrent

"""Architectures that transformers computes on our cache: every verified one, and the reasons of those that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwright.engine.engine import Engine
from maskwright.engine.errors import ModelFolderError, UnsupportedModel, WeightError
from maskwright.engine.limits import Limits
from maskwright.engine.models.decoder import ForwardBatch
from maskwright.engine.models.families import FAMILIES
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import WITH_IMAGES, read_spec, spec_from_config
from maskwright.engine.models.transformers_families import HYBRID, REFUSED, VERIFIED
from maskwright.engine.models.transformers_model import TransformersModel, TransformersSpec
from maskwright.engine.requests.request import Request
from maskwright.engine.steps.runner import ModelRunner
from maskwright.sampling import SamplingParams

from ..conftest import EOS, TinyModel, run_all, tiny_vocabulary

CPU = torch.device("cpu")
VOCAB_SIZE = 160
SMALL: dict[str, Any] = {
    **dict.fromkeys(["hidden_size", "n_embd", "d_model", "dim"], 64),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"], 96),
    **dict.fromkeys(["moe_intermediate_size", "shared_expert_intermediate_size", "q_lora_rank", "kv_lora_rank"], 32),
    **dict.fromkeys(["num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_experts", "num_local_experts"], 4),
    **dict.fromkeys(["num_attention_heads", "n_head", "num_heads", "n_heads", "n_routed_experts", "moe_num_experts"], 4),
    **dict.fromkeys(["head_dim", "global_head_dim", "hidden_size_per_layer_input", "v_head_dim"], 16),
    **dict.fromkeys(["qk_nope_head_dim", "qk_rope_head_dim"], 16),
    **dict.fromkeys(["vocab_size", "vocab_size_per_layer_input"], VOCAB_SIZE),
    **dict.fromkeys(["max_position_embeddings", "n_positions"], 256),
    **dict.fromkeys(["n_group", "topk_group", "n_shared_experts", "first_k_dense_replace", "bos_token_id"], 1),
    **dict.fromkeys(["num_key_value_heads", "num_experts_per_tok", "moe_k", "eos_token_id"], 2),
    **dict.fromkeys(["attention_dropout", "hidden_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"], 0.0),
    "pad_token_id": 0,
    "sliding_window": 8,
    "qk_head_dim": 32,
}  # fmt: skip
LATENT = ("kv_lora_rank", "qk_nope_head_dim")  # keys as many as heads
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
OWN: dict[str, dict[str, Any]] = {  # what some model types call otherwise, or want beside that
    "cohere_compass_text": {"rope_parameters": {"full_attention": ROPE}},
    "dbrx": {"n_heads": 4, "n_layers": 4, "max_seq_len": 256, "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0}, "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2}},
    "gemma3n_text": {"layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 2, "laurel_rank": 8, "altup_num_inputs": 2, "activation_sparsity_pattern": None},
}  # fmt: skip


def small_config(model_type: str, **changes: Any) -> Any:
    """The model type's own defaults, shrunk."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    full = CONFIG_MAPPING[model_type]()
    known = set(full.to_dict()) | set(getattr(full, "attribute_map", {}))
    chosen = {name: value for name, value in SMALL.items() if name in known}
    if getattr(full, "sliding_window", None) is None:
        chosen.pop("sliding_window", None)
    if any(name in known for name in LATENT):
        chosen["num_key_value_heads"] = SMALL["num_attention_heads"]
    kinds = getattr(full, "layer_types", None)
    if kinds:
        chosen["layer_types"] = (list(dict.fromkeys(kinds)) * 4)[:4]
    return CONFIG_MAPPING[model_type](**{**chosen, **OWN.get(model_type, {}), **changes})


def small_model(config: Any) -> Any:
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.12)
    return model


def transformers_model(model: Any) -> TransformersModel:
    spec = TransformersSpec(
        architecture=type(model).__name__, model_type="", vocab_size=VOCAB_SIZE, dtype="float32", eos_token_ids=(2,), max_positions=256
    )
    return TransformersModel(spec, model)


def logits_in_chunks(model: TransformersModel, sequences: list[list[int]]) -> list[torch.Tensor]:
    """Two sequences in one packed batch: a prefill, a continued prefill, decodes."""
    cache, found = model.allocate_cache(32, 4), [[] for _ in sequences]
    tables = [[20, 3, 4, 9, 5], [12, 11, 7, 30, 31]]
    starts = [0, 0]
    for counts in [(9, 5), (6, 6), (1, 1), (1, 1), (2, 0)]:
        spans = [(start, n, table) for start, n, table in zip(starts, counts, tables, strict=True) if n]
        tokens = [t for ids, start, n in zip(sequences, starts, counts, strict=True) for t in ids[start : start + n]]
        positions = [start + i for start, n, _ in spans for i in range(n)]
        batch = ForwardBatch(
            torch.tensor(tokens), torch.tensor(positions), torch.arange(len(tokens)), model.plan(spans, cache)
        )
        for rows, logits in zip(found, model.forward(batch, cache).split(counts), strict=True):
            rows.append(logits)
        starts = [start + n for start, n in zip(starts, counts, strict=True)]
    return [torch.cat(rows) for rows in found]


SLIDING = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2}
WINDOWED: dict[str, dict[str, Any]] = {  # what slides only where its config.json says so
    "ministral3": {"sliding_window": 8},
    "phimoe": {"sliding_window": 8},
    "qwen2_moe": {"use_sliding_window": True, **SLIDING},
    "smollm3": {"use_sliding_window": True, **SLIDING},
}
CASES = [(name, {}) for name in sorted(VERIFIED)] + list(WINDOWED.items())


@pytest.mark.parametrize(("model_type", "changes"), CASES, ids=[name + "-sliding" * bool(c) for name, c in CASES])
def test_logits_equal_those_of_its_own_attention(model_type, changes):
    model = small_model(small_config(model_type, **changes))
    generator = torch.Generator().manual_seed(1)
    sequences = [torch.randint(3, 150, (length,), generator=generator).tolist() for length in (19, 13)]
    with torch.inference_mode():
        expected = [model(torch.tensor([ids]), use_cache=False).logits[0] for ids in sequences]
    for found, logits in zip(logits_in_chunks(transformers_model(model), sequences), expected, strict=True):
        torch.testing.assert_close(found, logits, atol=2e-4, rtol=2e-4)


def greedy(model: Any, prompt: list[int], max_tokens: int) -> list[int]:
    """What the model's own attention makes of it, computed from the first token each time; EOS dropped."""
    tokens = list(prompt)
    with torch.inference_mode():
        while len(tokens) < len(prompt) + max_tokens and tokens[-1] != EOS:
            tokens.append(int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    return [token for token in tokens[len(prompt) :] if token != EOS]


@pytest.mark.parametrize("model_type", sorted(VERIFIED))
def test_greedy_tokens_alone_and_in_a_batch_with_prefix_hits_and_preemption(model_type):
    model = small_model(small_config(model_type))
    generator = torch.Generator().manual_seed(2)
    shared, *ends = (torch.randint(3, 150, (length,), generator=generator).tolist() for length in (9, 1, 2, 3))
    prompts = [shared + end for end in ends]
    expected = [greedy(model, prompt, 6) for prompt in prompts]  # now, while its attention is its own
    sampling = SamplingParams(temperature=0, max_tokens=6)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    ours = transformers_model(model)
    limits = Limits(block_size=4, num_blocks=6, max_batch_tokens=7, max_sequences=3, max_model_len=20)
    engine = Engine(ModelRunner(ours, ours.allocate_cache(6, 4)), tiny_vocabulary(VOCAB_SIZE), limits)
    alone = run_all(engine, {0: requests[:1]})
    together = run_all(engine, {0: requests[1:] + requests[:1]})
    found = [alone[0], *(together[i] for i in range(3))]
    assert [list(output.token_ids) for output in found] == [expected[i] for i in (0, 1, 2, 0)]
    assert engine.statistics.num_cached_tokens >= 16 and engine.statistics.num_preemptions > 0


@pytest.mark.parametrize("model_type", ["gpt2", "gpt_oss", "gemma4_text", "glm4_moe", "granitemoe", "gpt_neox"])
def test_greedy_tokens_equal_those_of_generate_in_a_batch_under_preemption(model_type, tmp_path, make_engine):
    model = small_model(small_config(model_type))
    model.save_pretrained(tmp_path)
    tiny = TinyModel(tmp_path, model)
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, 150, (length,), generator=generator).tolist() for length in (17, 15, 14, 33)]
    sampling = SamplingParams(temperature=0, max_tokens=16)
    requests = [Request(prompt_token_ids=tuple(prompt), sampling=sampling) for prompt in prompts]
    engine = make_engine(tmp_path, num_blocks=13, max_model_len=52, max_batch_tokens=24, vocabulary=tiny_vocabulary(VOCAB_SIZE))
    outputs = run_all(engine, {0: requests[:3], 2: requests[3:]})
    assert engine.scheduler.num_preemptions > 0
    assert [list(outputs[i].token_ids) for i in range(4)] == [tiny.greedy(prompt, 16) for prompt in prompts]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["RwkvForCausalLM"], "model_type": "rwkv"}, "RwkvForCausalLM.* recurrent state past"),
        ({"architectures": ["BloomForCausalLM"], "model_type": "bloom"}, "BloomForCausalLM.*ALiBi"),
        ({"architectures": ["BertLMHeadModel"], "model_type": "bert"}, "BertLMHeadModel.* encoder"),
        ({"architectures": ["Nope"], "model_type": "nope"}, 'architecture "Nope" .model type "nope". .* neither native'),
        ({"model_type": "bloom"}, 'model type "bloom" is not supported: .*ALiBi'),
        ({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": "wide"}, "GPT2LMHeadModel.*n_embd"),
    ],
)
def test_what_is_refused_is_named_with_the_reason(config, message):
    with pytest.raises(UnsupportedModel, match=message):
        spec_from_config(config)


def test_the_tables_do_not_overlap():
    assert not VERIFIED & REFUSED.keys() and not HYBRID & REFUSED.keys() and not HYBRID & VERIFIED


def test_every_decoder_of_transformers_runs_or_is_refused_with_a_reason():
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    if not transformers.__version__.startswith("5.23."):
        pytest.skip("the tables were made with transformers 5.23")
    native = {*FAMILIES, *WITH_IMAGES, "Mamba2ForCausalLM"}
    known = VERIFIED | HYBRID | REFUSED.keys()
    names = {model_type: [name] if isinstance(name, str) else name for model_type, name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()}
    assert not [model_type for model_type, each in names.items() if model_type not in known and not native & set(each)]


def test_a_model_that_attends_otherwise_than_it_should_is_refused_when_loaded(monkeypatch):
    model = small_model(small_config("olmo"))
    for layer in model.model.layers:
        layer.self_attn.layer_idx = 0
    with pytest.raises(UnsupportedModel, match="attends twice in layer 0"):
        transformers_model(model)
    model = small_model(small_config("olmo"))
    model.model.layers[1].self_attn.is_causal = False
    with pytest.raises(UnsupportedModel, match="calls attention with is_causal=False"):
        transformers_model(model)
    model = small_model(small_config("olmo"))
    model.config.num_hidden_layers = 3  # it stops after three, of four that it was made with
    transformers_model(model)
    monkeypatch.setattr(model.model.layers[0], "forward", lambda hidden, **_: hidden)
    with pytest.raises(UnsupportedModel, match="2 of its 3 layers call the attention interface"):
        transformers_model(model)


def test_checkpoints_that_do_not_fit_are_named(tmp_path):
    model = small_model(small_config("olmo"))
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    name = "model.layers.1.mlp.up_proj.weight"
    save_file({**weights, "surprise": torch.zeros(1)}, path, {"format": "pt"})
    with pytest.raises(WeightError, match="holds surprise"):
        load_model(tmp_path, read_spec(tmp_path), torch.float32, CPU, 64)
    del weights[name]
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(WeightError, match=f"lacks {name}"):
        load_model(tmp_path, read_spec(tmp_path), torch.float32, CPU, 64)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelFolderError, match="transformers cannot load it"):
        load_model(tmp_path, read_spec(tmp_path), torch.float32, CPU, 64)
    path.unlink()
    with pytest.raises(ModelFolderError, match=r"no model\.safetensors in this folder"):
        load_model(tmp_path, read_spec(tmp_path), torch.float32, CPU, 64)

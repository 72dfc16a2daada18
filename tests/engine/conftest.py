"""Small random-weight models of every supported family, saved as real model folders and kept for the session."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

VOCAB_SIZE = 99  # not a multiple of 32
EOS = 2

SIZES: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": EOS,
    "initializer_range": 0.6,  # far from uniform logits, so that greedy choices are clear
}
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
LONG_ROPE = {
    "rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 0.5, "original_max_position_embeddings": 128,
    "short_factor": [1.0, 1.1], "long_factor": [1.5, 3.0],
}  # fmt: skip
DEEPSEEK_ROPE = {
    "rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 32,
    "mscale": 0.7, "mscale_all_dim": 1.0,
}  # fmt: skip
LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6,
    "num_key_value_heads": 4, "n_routed_experts": 8, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 3,
    "moe_intermediate_size": 16, "first_k_dense_replace": 1, "n_shared_experts": 2,
}  # fmt: skip
SLIDING, FULL = "sliding_attention", "full_attention"
YARN_ROPE = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 32}

# name -> (transformers' configuration class, what differs from SIZES)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "llama-tied-biased": ("LlamaConfig", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "llama-llama3-rope": ("LlamaConfig", {"rope_parameters": LLAMA3_ROPE}),
    "llama-linear-rope": ("LlamaConfig", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}),
    "llama-yarn-rope": ("LlamaConfig", {"rope_parameters": YARN_ROPE}),
    "llama-dynamic-rope": ("LlamaConfig", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}),
    "llama-wide-heads": ("LlamaConfig", {"head_dim": 16, "num_key_value_heads": 1}),
    "mistral": ("MistralConfig", {"sliding_window": None}),
    "mistral-sliding": ("MistralConfig", {"sliding_window": 7}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen2-half-sliding": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", {"head_dim": 16}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 24}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 6, "layer_types": [SLIDING, FULL, SLIDING]}),
    "phi3": ("Phi3Config", {"pad_token_id": 0, "sliding_window": 9}),
    "phi3-long-rope": ("Phi3Config", {"pad_token_id": 0, "rope_parameters": LONG_ROPE, "original_max_position_embeddings": 128}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4}),
    "qwen3-moe": ("Qwen3MoeConfig", {"num_experts": 6, "moe_intermediate_size": 16, "num_experts_per_tok": 2, "mlp_only_layers": [1], "norm_topk_prob": True, "head_dim": 16}),
    "deepseek-v3": ("DeepseekV3Config", {**LATENT, "rope_parameters": DEEPSEEK_ROPE}),
    "deepseek-v3-plain-query": ("DeepseekV3Config", {**LATENT, "q_lora_rank": None, "rope_interleave": False, "attention_bias": True}),
    "deepseek-v2": ("DeepseekV2Config", {**LATENT, "q_lora_rank": 52, "topk_method": "group_limited_greedy", "routed_scaling_factor": 1.5, "rope_parameters": {**DEEPSEEK_ROPE, "mscale": 1.0}}),
    "deepseek-v2-lite": ("DeepseekV2Config", {**LATENT, "q_lora_rank": None, "topk_method": "greedy", "routed_scaling_factor": 1.0}),
    "gemma": ("GemmaConfig", {"head_dim": 16}),
    "smollm3": ("SmolLM3Config", {"num_hidden_layers": 5, "pad_token_id": 0, "attention_bias": True}),
    "smollm3-sliding": ("SmolLM3Config", {"num_hidden_layers": 5, "pad_token_id": 0, "use_sliding_window": True, "sliding_window": 6}),
    "granite": ("GraniteConfig", {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.1, "logits_scaling": 2.0}),
    "glm4": ("Glm4Config", {"head_dim": 16, "pad_token_id": 0}),
    "qwen2-moe": ("Qwen2MoeConfig", {"num_experts": 6, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24, "num_experts_per_tok": 2, "mlp_only_layers": [1]}),
    "ministral3": ("Ministral3Config", {"head_dim": 8, "rope_parameters": {**YARN_ROPE, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 1.0}}),
    "cohere": ("CohereConfig", {"use_qk_norm": True}),
    "cohere2": ("Cohere2Config", {"num_hidden_layers": 4, "sliding_window": 6, "attention_bias": True}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 9}),
    "llama4": ("Llama4TextConfig", {"intermediate_size_mlp": 40, "num_local_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "interleave_moe_layer_step": 2, "attention_chunk_size": 8, "floor_scale": 8, "head_dim": 8}),
    "olmo2": ("Olmo2Config", {"attention_bias": True}),
    "olmo3": ("Olmo3Config", {"num_hidden_layers": 4, "sliding_window": 6, "rope_parameters": {"full_attention": YARN_ROPE, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}),
    "exaone4": ("Exaone4Config", {"num_hidden_layers": 4, "sliding_window": 6}),
    "exaone4-full": ("Exaone4Config", {"sliding_window": None, "sliding_window_pattern": None, "layer_types": [FULL] * 3, "rope_parameters": LLAMA3_ROPE}),
    "qwen3-tied-biased": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True, "attention_bias": True}),
}  # fmt: skip


@dataclass(frozen=True)
class TinyModel:
    folder: Path
    reference: Any  # transformers' model, float32, in evaluation mode

    def greedy(self, prompt: list[int], max_new_tokens: int) -> list[int]:
        """What transformers' `generate` appends to the prompt, EOS dropped."""
        with torch.inference_mode():
            produced = self.reference.generate(
                torch.tensor([prompt]), max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=0
            )[0, len(prompt) :].tolist()
        return produced[: produced.index(EOS)] if EOS in produced else produced


def save_tiny_model(folder: Path, class_name: str, changes: dict[str, Any], **save_options: Any) -> TinyModel:
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, class_name)(**{**SIZES, **changes})
    reference = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():  # norms and biases start at ones and zeros: make a forgotten one visible
        for parameter in reference.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    reference.save_pretrained(folder, **save_options)
    return TinyModel(folder, reference)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TinyModel]:
    built: dict[str, TinyModel] = {}

    def get(name: str) -> TinyModel:
        if name not in built:
            built[name] = save_tiny_model(tmp_path_factory.mktemp(name), *MODELS[name])
        return built[name]

    return get


@pytest.fixture
def edit_config() -> Callable[..., None]:
    """Change keys of a folder's config.json."""

    def edit(folder: Path, **changes: Any) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


def tiny_vocabulary(size: int = VOCAB_SIZE) -> Any:
    """Printable one-byte tokens from id 3 on, and ids 0 to 2 for padding, BOS and EOS."""
    from maskwright.constraints.vocabulary.vocabulary import Vocabulary

    tokens = [None, None, b"</s>"] + [bytes([32 + i]) for i in range(size - 3)]
    return Vocabulary(tokens, eos_token_ids=[EOS], special_tokens={"<pad>": 0, "<s>": 1})


@pytest.fixture
def make_engine(make_engine_once: Callable[..., Any]) -> Callable[..., Any]:
    return make_engine_once


@pytest.fixture(scope="session")
def make_engine_once() -> Callable[..., Any]:
    """For fixtures that outlive a test: an engine on a model folder, float32; options are those of Limits and EngineFeatures, and the device."""
    from maskwright.engine.drafts.drafter import ForcedDrafts, Lookup
    from maskwright.engine.drafts.forced_text import ForcedText
    from maskwright.engine.engine import Engine
    from maskwright.engine.features import EngineFeatures
    from maskwright.engine.limits import Limits
    from maskwright.engine.models.model import load_model
    from maskwright.engine.models.spec import read_spec
    from maskwright.engine.steps.runner import ModelRunner

    def make(folder: Path, *, vocabulary: Any = None, device: str = "cpu", encode: Any = None, drafter: Any = None, backend: Any = "auto", kv_dtype: Any = None, **options: Any) -> Engine:
        features, options = EngineFeatures.split(options)
        spec, where = read_spec(folder), torch.device(device)
        defaults = {
            "block_size": 4,
            "num_blocks": 256,
            "max_batch_tokens": 64,
            "max_sequences": 16,
            "max_model_len": 128,
        }
        limits = Limits(**{**defaults, **options})
        decoder = load_model(folder, spec, torch.float32, where, limits.max_model_len, backend=backend, kv_dtype=kv_dtype)
        cache = decoder.allocate_cache(limits.num_blocks, limits.block_size)
        runner = ModelRunner(decoder, cache, num_host_blocks=features.num_host_blocks)
        if getattr(spec, "is_recurrent", False):
            features = features.for_recurrent()
        vocabulary = vocabulary or tiny_vocabulary()
        forced_text = ForcedText(vocabulary, encode) if encode else None
        if features.speculation != "off" and drafter is None:
            drafter = {"lookup": Lookup, "forced": lambda: ForcedDrafts(forced_text)}[features.speculation]()
        return Engine(runner, vocabulary, limits, features, forced_text=forced_text, drafter=drafter)

    return make


def run_all(engine: Any, arrivals: dict[int, list[Any]]) -> dict[int, Any]:
    """Run requests that arrive before given steps, in that order; outputs by position of the request."""
    position_of: dict[int, int] = {}
    outputs: dict[int, Any] = {}
    text: dict[int, str] = {}
    step = 0
    while engine.has_work or any(due >= step for due in arrivals):
        for request in arrivals.get(step, []):
            position_of[engine.add_request(request)] = len(position_of)
        for event in engine.step():
            position = position_of[event.request_id]
            text[position] = text.get(position, "") + event.text
            if event.output is not None:
                outputs[position] = event.output
                assert text[position] == event.output.text
        step += 1
    check_nothing_leaked(engine)
    return outputs


def check_nothing_leaked(engine: Any) -> None:
    """When all is done no block has a user, and what is remembered is consistent."""
    assert engine.scheduler.pool.num_free == engine.limits.num_blocks, "a block leaked"
    engine.space.validate()

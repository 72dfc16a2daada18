"""The native families: how the config.json of each becomes a ModelSpec.

A family is two tables: what transformers assumes where its config.json is silent, and what differs from Llama.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...foundation.registry import Registry
from ..errors import UnsupportedModel
from .architecture import DTYPES, ModelSpec, NormSpec
from .family_overrides import (
    cohere,
    cohere2,
    deepseek_v2,
    deepseek_v3,
    exaone4,
    gemma,
    gemma2,
    gemma3,
    glm4,
    granite,
    llama,
    llama4,
    ministral3,
    mistral,
    mixtral,
    olmo2,
    olmo3,
    phi3,
    qwen2_moe,
    qwen3,
    qwen3_moe,
    qwen_windows,
    smollm3,
    starcoder2,
)
from .rope import rope_spec

Config = Mapping[str, Any]
_REQUIRED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
)
_COUNTS = ("num_key_value_heads", "head_dim")  # none and 0: as follows from the others
_MOST, _MOST_LAYERS = 2**24, 2**12  # beyond them, what is reckoned of a model before its weights are read fills the memory
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


@dataclass(frozen=True, slots=True)
class Family:
    """`differences` gives the fields of ModelSpec that are not as in a plain Llama, of a config with defaults filled in."""

    differences: Callable[[Config], dict[str, Any]]
    defaults: Config = field(default_factory=dict)


def spec_of(architecture: str, config: Config) -> ModelSpec:
    """Translate the content of config.json. Raises UnsupportedModel naming the key."""
    family = FAMILIES[architecture]
    config = _Config(architecture, {**family.defaults, **config})
    _check(config)
    num_layers, num_heads = config["num_hidden_layers"], config["num_attention_heads"]
    num_kv_heads = config.get("num_key_value_heads") or num_heads
    if num_heads % num_kv_heads:
        raise UnsupportedModel(f"config.json: {num_heads} attention heads cannot share {num_kv_heads} key-value heads")
    head_dim = config.get("head_dim") or config["hidden_size"] // num_heads
    fields: dict[str, Any] = {
        "architecture": architecture,
        "vocab_size": config["vocab_size"],
        "dtype": dtype_of(config),
        "eos_token_ids": token_ids(config.get("eos_token_id")),
        "hidden_size": config["hidden_size"],
        "intermediate_size": config["intermediate_size"],
        "num_layers": num_layers,
        "num_heads": num_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
        "norm": NormSpec("rms", float(config.get("rms_norm_eps", 1e-6))),
        "activation": _activation(config),
        "rope_of": (0,) * num_layers,
        "windows": (None,) * num_layers,
        "has_tied_embeddings": bool(config.get("tie_word_embeddings")),
        "has_experts": (False,) * num_layers,
    }
    fields |= family.differences(config)
    if "ropes" not in fields:
        fields["ropes"] = (rope_spec(config, fields["head_dim"]),)
    longest = max(rope.max_positions for rope in fields["ropes"])
    return ModelSpec(**fields, max_positions=longest, is_stretchable=all(rope.kind == "dynamic" for rope in fields["ropes"]))


class _Config(dict[str, Any]):
    """A config whose missing keys are named."""

    def __init__(self, architecture: str, content: Config) -> None:
        super().__init__(content)
        self.architecture = architecture

    def __missing__(self, name: str) -> Any:
        raise UnsupportedModel(f'config.json: "{name}" is missing, which {self.architecture} needs')


def _check(config: Config) -> None:
    for name in _REQUIRED:
        if not isinstance(config.get(name), int) or config[name] < 1:
            raise UnsupportedModel(f'config.json: "{name}" must be a positive integer, got {config.get(name)!r}')
    for name in _COUNTS:
        if config.get(name) and (type(config[name]) is not int or config[name] < 1):
            raise UnsupportedModel(f'config.json: "{name}" must be a positive integer, got {config[name]!r:.60}')
    for name in (*_REQUIRED[:-1], *_COUNTS):
        if (config.get(name) or 0) > (_MOST_LAYERS if name == "num_hidden_layers" else _MOST):
            raise UnsupportedModel(f'config.json: "{name}" is {config[name]}, more than any model has')
    epsilon = config.get("rms_norm_eps", 0.0)
    if type(epsilon) not in (int, float) or not 0 <= epsilon < 1:
        raise UnsupportedModel(f'config.json: "rms_norm_eps" must be a number from 0 to 1, got {epsilon!r:.60}')
    if config.get("use_bidirectional_attention"):
        raise UnsupportedModel("config.json: use_bidirectional_attention is for encoders, which generate nothing")


def _activation(config: Config) -> str:
    """The name that `kernels.moe.ACTIVATIONS` has for it."""
    name = config.get("hidden_activation") or config.get("hidden_act") or "silu"
    if name not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise UnsupportedModel(f'config.json: hidden_act "{name}" is not supported; supported: {known}')
    return _ACTIVATIONS[name]


def dtype_of(config: Config) -> str:
    name = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    if name not in DTYPES:
        raise UnsupportedModel(f'config.json: dtype "{name}" is not supported; supported: {", ".join(DTYPES)}')
    return name


def token_ids(value: Any, where: str = "config.json") -> tuple[int, ...]:
    """An id, a list of ids or nothing, as Hugging Face files write them, in one shape. Raises UnsupportedModel for others."""
    found = () if value is None else tuple(value) if isinstance(value, list) else (value,)
    if not all(type(each) is int and each >= 0 for each in found):
        raise UnsupportedModel(f'{where}: "eos_token_id" is a token id, a list of them or null, not {value!r:.60}')
    return found


_BUILT_IN: Mapping[str, Family] = {
    "LlamaForCausalLM": Family(llama),
    "MistralForCausalLM": Family(mistral, {"sliding_window": 4096, "num_key_value_heads": 8}),
    "Ministral3ForCausalLM": Family(
        ministral3,
        {
            "num_key_value_heads": 8,
            "head_dim": 128,
            "rms_norm_eps": 1e-5,
            "max_position_embeddings": 262_144,
        },
    ),
    "SmolLM3ForCausalLM": Family(
        smollm3,
        {
            "num_key_value_heads": 4,
            "no_rope_layer_interval": 4,
            "rope_theta": 2e6,
            "tie_word_embeddings": True,
        },
    ),
    "GraniteForCausalLM": Family(
        granite,
        dict.fromkeys(("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"), 1.0)
        | {"rms_norm_eps": 1e-6},
    ),
    "Glm4ForCausalLM": Family(
        glm4,
        {
            "num_key_value_heads": 2,
            "head_dim": 128,
            "rms_norm_eps": 1.5625e-07,
            "attention_bias": True,
            "eos_token_id": [151_329, 151_336, 151_338],
        },
    ),
    "MixtralForCausalLM": Family(
        mixtral,
        {
            "rms_norm_eps": 1e-5,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "rope_theta": 1e6,
        },
    ),
    "Qwen2ForCausalLM": Family(
        lambda config: {"has_qkv_bias": True, "windows": qwen_windows(config)}, {"sliding_window": 4096}
    ),
    "Qwen3ForCausalLM": Family(qwen3, {"head_dim": 128, "sliding_window": 4096}),
    "Qwen3MoeForCausalLM": Family(
        qwen3_moe,
        {
            "sliding_window": 4096,
            "decoder_sparse_step": 1,
            "num_key_value_heads": 4,
            "num_local_experts": 128,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 768,
        },
    ),
    "Qwen2MoeForCausalLM": Family(
        qwen2_moe,
        {
            "decoder_sparse_step": 1,
            "num_key_value_heads": 16,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "qkv_bias": True,
        },
    ),
    "GemmaForCausalLM": Family(
        gemma,
        {
            "hidden_act": "gelu_pytorch_tanh",
            "head_dim": 256,
            "num_key_value_heads": 16,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": True,
        },
    ),
    "Gemma2ForCausalLM": Family(
        gemma2,
        {
            "hidden_activation": "gelu_pytorch_tanh",
            "head_dim": 256,
            "num_key_value_heads": 4,
            "rms_norm_eps": 1e-6,
            "query_pre_attn_scalar": 256,
            "sliding_window": 4096,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "tie_word_embeddings": True,
        },
    ),
    "Gemma3ForCausalLM": Family(
        gemma3,
        {
            "hidden_activation": "gelu_pytorch_tanh",
            "head_dim": 256,
            "rms_norm_eps": 1e-6,
            "query_pre_attn_scalar": 256,
            "sliding_window": 4096,
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "max_position_embeddings": 131_072,
            "vocab_size": 262_208,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "tie_word_embeddings": True,
        },
    ),
    "Olmo2ForCausalLM": Family(olmo2, {"rms_norm_eps": 1e-5, "eos_token_id": 50_279}),
    "Olmo3ForCausalLM": Family(
        olmo3, {"rms_norm_eps": 1e-5, "eos_token_id": 50_279, "sliding_window": 4096, "rope_theta": 5e5}
    ),
    "Exaone4ForCausalLM": Family(
        exaone4,
        {
            "rms_norm_eps": 1e-5,
            "eos_token_id": 2,
            "num_key_value_heads": 32,
            "sliding_window": 4096,
            "sliding_window_pattern": 4,
        },
    ),
    "Phi3ForCausalLM": Family(phi3, {"rms_norm_eps": 1e-5}),
    "DeepseekV2ForCausalLM": Family(
        deepseek_v2,
        {"q_lora_rank": 1536, "topk_method": "greedy", "routed_scaling_factor": 1.0, "first_k_dense_replace": 0},
    ),
    "DeepseekV3ForCausalLM": Family(
        deepseek_v3,
        {
            "rope_interleave": True,
            "norm_topk_prob": True,
            "routed_scaling_factor": 2.5,
            "num_nextn_predict_layers": 1,
        },
    ),
    "CohereForCausalLM": Family(
        cohere, {"layer_norm_eps": 1e-5, "logit_scale": 0.0625, "rope_theta": 5e5, "tie_word_embeddings": True}
    ),
    "Cohere2ForCausalLM": Family(
        cohere2,
        {"layer_norm_eps": 1e-5, "logit_scale": 0.0625, "sliding_window": 4096, "tie_word_embeddings": True},
    ),
    "Starcoder2ForCausalLM": Family(
        starcoder2,
        {
            "norm_epsilon": 1e-5,
            "use_bias": True,
            "hidden_act": "gelu_pytorch_tanh",
            "num_key_value_heads": 2,
            "tie_word_embeddings": True,
        },
    ),
    "Llama4ForCausalLM": Family(
        llama4,
        {
            "rms_norm_eps": 1e-5,
            "rope_theta": 5e5,
            "head_dim": 128,
            "num_key_value_heads": 8,
            "num_local_experts": 16,
            "intermediate_size_mlp": 16384,
            "num_experts_per_tok": 1,
            "no_rope_layer_interval": 4,
            "interleave_moe_layer_step": 1,
            "attention_chunk_size": 8192,
            "use_qk_norm": True,
            "attn_temperature_tuning": True,
            "floor_scale": 8192,
            "attn_scale": 0.1,
        },
    ),
}
FAMILIES: Registry[Family] = Registry(
    "model family", _BUILT_IN, needs="a Family", fits=lambda value: isinstance(value, Family)
)

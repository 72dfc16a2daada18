"""The hyper-parameters of a native model as GGUF says them: what `engine/gguf/config.py` reads, the other way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import ConfigError
from ..gguf.reader import Value
from ..models.architecture import ModelSpec
from ..models.rope import RopeSpec, inverse_frequencies

ARCHITECTURES: Mapping[str, str] = {
    "LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "MixtralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3", "Qwen3MoeForCausalLM": "qwen3moe", "Gemma2ForCausalLM": "gemma2", "Gemma3ForCausalLM": "gemma3",
    "Phi3ForCausalLM": "phi3", "Starcoder2ForCausalLM": "starcoder2", "CohereForCausalLM": "command-r",
    "Cohere2ForCausalLM": "cohere2", "DeepseekV2ForCausalLM": "deepseek2", "DeepseekV3ForCausalLM": "deepseek2",
    "GemmaForCausalLM": "gemma", "SmolLM3ForCausalLM": "smollm3", "Glm4ForCausalLM": "glm4", "Qwen2MoeForCausalLM": "qwen2moe",
    "Ministral3ForCausalLM": "mistral3", "Olmo2ForCausalLM": "olmo2", "Olmo3ForCausalLM": "olmo2",
    "Exaone4ForCausalLM": "exaone4",
}  # fmt: skip
WINDOWED = frozenset({"gemma2", "gemma3", "phi3", "starcoder2", "cohere2", "olmo2", "exaone4"})  # those that have a key for windows
_PERIODS = {"gemma3": 6, "cohere2": 4, "olmo2": 4, "exaone4": 4}  # the last of so many layers sees all, where no key says otherwise
_SOFTMAX, _SIGMOID = 1, 2  # of gguf.ExpertGatingFuncType
_OF_FILES = ("architecture", "dtype", "eos_token_ids", "prefix", "ignored", "names", "ropes", "is_rope_interleaved")


def architecture_of(spec: ModelSpec) -> str:
    """Raises ConfigError, naming those that are written."""
    if spec.architecture not in ARCHITECTURES:
        raise ConfigError(f"{spec.architecture} cannot be written as GGUF; what can: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[spec.architecture]


def parameters_of(spec: ModelSpec, longest: int) -> dict[str, Value]:
    """Keys and values, for texts of at most `longest` tokens."""
    arch, rope = architecture_of(spec), spec.ropes[0]
    found: dict[str, Value | None] = {
        "vocab_size": spec.vocab_size,
        "block_count": spec.num_layers,
        "context_length": longest,
        "embedding_length": spec.hidden_size,
        "feed_forward_length": spec.intermediate_size,
        "attention.head_count": spec.num_heads,
        "attention.head_count_kv": spec.num_kv_heads,
        "attention.key_length": spec.head_dim,
        "attention.value_length": spec.head_dim,
        "attention.layer_norm_rms_epsilon": spec.norm.eps if spec.norm.kind == "rms" else None,
        "attention.layer_norm_epsilon": spec.norm.eps if spec.norm.kind == "layer" else None,
        "rope.freq_base": rope.theta,
        "rope.dimension_count": rope.dim,
        "logit_scale": float(spec.logit_scale) if arch in ("command-r", "cohere2") else None,
        "attn_logit_softcapping": spec.scoring.softcap if arch == "gemma2" else None,
        "final_logit_softcapping": spec.logit_softcap,
        "rope.freq_base_swa": spec.ropes[1].theta if len(spec.ropes) > 1 else None,
        **_scaling(rope),
        **_temperature(spec),
        **(_windows(spec, arch) if arch in WINDOWED else {}),
        **_experts(spec),
        **_latent(spec),
    }
    return {f"{arch}.{key}": _short(value) for key, value in found.items() if value is not None}


def _temperature(spec: ModelSpec) -> dict[str, Value | None]:
    """Of Ministral 3."""
    if spec.temperature is None:
        return {}
    return {
        "attention.temperature_scale": float(spec.temperature.scale),
        "rope.scaling.original_context_length": spec.temperature.floor,
        "rope.scaling.yarn_log_multiplier": _number(spec.ropes[0].parameters.get("mscale_all_dim")),
    }


def _short(value: Value) -> Value:
    """Numbers as float32, the only kind that llama.cpp reads."""
    return float(np.float32(value)) if isinstance(value, float) else value


def _scaling(rope: RopeSpec) -> dict[str, Value | None]:
    original = rope.parameters.get("original_max_position_embeddings")
    if rope.kind == "longrope":
        magnitude = inverse_frequencies(rope)[1]
        return {"rope.scaling.original_context_length": rope.original_max_positions, "rope.scaling.attn_factor": float(magnitude)}
    if rope.kind not in ("linear", "yarn"):
        return {}
    spread = {f"rope.scaling.yarn_{name}": _number(rope.parameters.get(name)) for name in ("beta_fast", "beta_slow")}
    return {
        "rope.scaling.type": rope.kind,
        "rope.scaling.factor": float(rope.parameters["factor"]) if "factor" in rope.parameters else 1.0,
        "rope.scaling.original_context_length": original,
        **(spread if rope.kind == "yarn" else {}),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _windows(spec: ModelSpec, arch: str) -> dict[str, Value | None]:
    widths = {window for window in spec.windows if isinstance(window, int)}
    whole = [index for index, window in enumerate(spec.windows) if window is None]
    period = whole[0] + 1 if whole and arch in _PERIODS else None
    return {
        "attention.sliding_window": max(widths, default=None),
        "attention.sliding_window_pattern": None if period == _PERIODS.get(arch) else period,
    }


def _experts(spec: ModelSpec) -> dict[str, Value | None]:
    experts = spec.experts
    if experts is None:
        return {}
    found: dict[str, Value | None] = {
        "expert_count": experts.count,
        "expert_used_count": experts.per_token,
        "expert_feed_forward_length": experts.size,
        "expert_shared_feed_forward_length": experts.shared_size if experts.gates_shared else None,
        "expert_weights_norm": experts.is_normalized if experts.gates_shared else None,
    }
    if spec.latent is None:
        return found
    return {
        **found,
        "expert_shared_count": experts.shared_size // experts.size,
        "expert_weights_scale": float(experts.scale),
        "expert_weights_norm": experts.is_normalized,
        "expert_gating_func": _SIGMOID if experts.scoring == "sigmoid" else _SOFTMAX,
        "expert_group_count": experts.num_groups,
        "expert_group_used_count": experts.groups_per_token,
        "leading_dense_block_count": spec.has_experts.index(True) if any(spec.has_experts) else spec.num_layers,
    }


def _latent(spec: ModelSpec) -> dict[str, Value | None]:
    latent = spec.latent
    if latent is None:
        return {}
    log_factor = spec.ropes[0].parameters.get("mscale_all_dim")
    return {
        "attention.q_lora_rank": latent.query_rank,
        "attention.kv_lora_rank": latent.rank,
        "attention.head_count_kv": 1,
        "attention.key_length": latent.rank + latent.rope_dim,
        "attention.value_length": latent.rank,
        "attention.key_length_mla": latent.nope_dim + latent.rope_dim,
        "attention.value_length_mla": latent.value_dim,
        "rope.dimension_count": latent.rope_dim,
        "rope.scaling.yarn_log_multiplier": None if not log_factor else 0.1 * log_factor,
    }


def rope_factors(spec: ModelSpec) -> dict[str, NDArray[np.float32]]:
    """What rotation is stretched by, a number for each pair of dimensions, as tensors of the file."""
    rope = spec.ropes[0]
    if rope.kind == "llama3":
        plain = 1.0 / rope.theta ** (torch.arange(0, rope.dim, 2, dtype=torch.float32) / rope.dim)
        return {"rope_freqs.weight": (plain / inverse_frequencies(rope)[0]).numpy()}
    if rope.kind == "longrope":
        lists = {name: rope.parameters[f"{name}_factor"] for name in ("long", "short")}
        return {f"rope_factors_{name}.weight": np.array(factors, np.float32) for name, factors in lists.items()}
    return {}


def differences(found: ModelSpec, wanted: ModelSpec) -> list[str]:
    """Names of what a file would make other than it is: `found` is the specification that is read back."""
    names = [field.name for field in fields(ModelSpec) if field.name not in _OF_FILES]
    apart = [name for name in names if not _is_same(getattr(found, name), getattr(wanted, name))]
    turns = len(found.ropes) == len(wanted.ropes) and all(map(_turns_alike, found.ropes, wanted.ropes))
    return apart if turns else [*apart, "ropes"]


def _is_same(found: Any, wanted: Any) -> bool:
    """Up to the rounding of numbers to float32."""
    if isinstance(found, float) and isinstance(wanted, float | int):
        return bool(np.isclose(found, wanted, rtol=1e-6, atol=0))
    if is_dataclass(found) and is_dataclass(wanted) and not isinstance(found, type):
        return all(_is_same(getattr(found, field.name), getattr(wanted, field.name)) for field in fields(found))
    return bool(found == wanted)


def _turns_alike(found: RopeSpec, wanted: RopeSpec) -> bool:
    """Whether positions turn by the same angles, in short texts and in the longest."""
    if found.dim != wanted.dim or found.max_positions != wanted.max_positions:
        return False
    for longest in (1, wanted.max_positions):
        ours, theirs = (inverse_frequencies(replace(rope, longest=longest)) for rope in (found, wanted))
        if not torch.allclose(ours[0], theirs[0], rtol=1e-5, atol=0) or not np.isclose(ours[1], theirs[1], rtol=1e-5):
            return False
    return True

"""The config.json that a GGUF file stands for: its hyper-parameters under the names of transformers.

What llama.cpp holds for granted and transformers does not, or the other way round, is written out here. The keys are those of
`gguf.constants.Keys`, below the name of the architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ..errors import ModelFolderError, UnsupportedModel
from .files import GgufModel
from .reader import Strings
from .special_tokens import end_token_ids

Config = dict[str, Any]


_OF_NO_PRODUCT = frozenset({  # keys that change nothing of what is computed, or are borne out by the shapes of tensors
    "name", "vocab_size", "tensor_data_layout", "use_parallel_residual", "attention.causal", "attention.value_length",
    "attention.value_length_mla", "expert_feed_forward_length", "expert_shared_feed_forward_length", "rope.scaling.finetuned",
    "rope.scaling.original_context_length", "feed_forward_length", "nextn_predict_layers", "pooling_type",
})  # fmt: skip


class Parameters:
    """The hyper-parameters of a file. Raises ModelFolderError naming the key that is missing or of another kind."""

    def __init__(self, model: GgufModel) -> None:
        self.model = model
        self._read: set[str] = set()

    def find(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        return self.model.metadata.get(f"{self.model.architecture}.{name}", default)

    def refuse_unread(self) -> None:
        """Raise UnsupportedModel for a key of the format that nobody has asked for, unless it changes nothing: 0 and 1 do not."""
        prefix = f"{self.model.architecture}."
        given = {key.removeprefix(prefix) for key in self.model.metadata if key.startswith(prefix)}
        for key in sorted(given & _keys_of_the_format()):
            value = self.find(key) if key not in self._read | _OF_NO_PRODUCT else 0
            if isinstance(value, np.ndarray | Strings) or value not in (0, 1, ""):
                self.refuse(f"{key} is {value!r:.60}")

    def integer(self, name: str, default: int | None = None) -> int:
        """A positive integer; a list of one for each layer must have the same throughout."""
        value = self.find(name, default)
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iu" and (value == value[0]).all():
            value = value[0].item()
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            self.refuse(f"{name} differs from layer to layer")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 31:
            self._fail(name, "a positive integer", value)
        return value

    def count(self, name: str, most: int) -> int:
        """A positive integer that the tensors of the file bear out."""
        value = self.integer(name)
        if value > most:
            self._fail(name, f"at most {most}, which the tensors of the file are for", value)
        return value

    @property
    def num_experts(self) -> int:
        shapes = (tensor.shape for name, tensor in self.model.tensors.items() if name.endswith("_exps.weight"))
        return self.count("expert_count", (1, 1, *next(shapes, (1,)))[-3])

    def number(self, name: str, default: float | None = None) -> float:
        value = self.find(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            self._fail(name, "a number", value)
        return float(value)

    def positive(self, name: str, default: float | None = None) -> float:
        value = self.number(name, default)
        return value if value > 0 else self._fail(name, "a positive number", value)

    def integer_if_any(self, name: str) -> int | None:
        """A positive integer; None where it is 0 or absent."""
        value = self.find(name)
        return None if value is None or (isinstance(value, int) and value == 0) else self.integer(name)

    def number_if_any(self, name: str) -> float | None:
        return None if self.find(name) is None else self.number(name)

    def has(self, tensor: str) -> bool:
        return tensor in self.model.tensors

    def refuse(self, what: str) -> Any:
        raise UnsupportedModel(f"{self.model.path}: {self.model.architecture}: {what}, which is not supported")

    def _fail(self, name: str, wanted: str, value: Any) -> NoReturn:
        key, found = f"{self.model.architecture}.{name}", "is missing" if value is None else f"is {value!r:.60}"
        raise ModelFolderError(f'{self.model.path}: "{key}" {found}; it must be {wanted}')


def config_of(model: GgufModel) -> Config:
    """What config.json would say. Raises UnsupportedModel for an architecture that is not read, naming those that are."""
    of_family = ARCHITECTURES.get(model.architecture)
    if of_family is None:
        raise UnsupportedModel(
            f'{model.path}: GGUF architecture "{model.architecture}" is not supported; supported: {", ".join(ARCHITECTURES)}'
        )
    parameters = Parameters(model)
    found = {**_common(parameters), **of_family(parameters)}
    parameters.refuse_unread()
    return found


@lru_cache(maxsize=1)
def _keys_of_the_format() -> frozenset[str]:
    """All keys below the name of an architecture that the library knows. Others mean nothing to anybody."""
    from gguf.constants import Keys

    groups = [vars(group) for group in vars(Keys).values() if isinstance(group, type)]
    names = (name for group in groups for name in group.values() if isinstance(name, str))
    return frozenset(name.removeprefix("{arch}.") for name in names if name.startswith("{arch}."))


def _common(parameters: Parameters) -> Config:
    heads, hidden = parameters.integer("attention.head_count"), parameters.integer("embedding_length")
    head_dim = _head_dim(parameters)
    if parameters.find("attention.causal", True) is not True:
        parameters.refuse("attention.causal is false: it is an encoder")
    return {
        "vocab_size": _vocab_size(parameters),
        "hidden_size": hidden,
        "intermediate_size": parameters.integer(
            "feed_forward_length", hidden
        ),  # may be absent where all layers have experts
        "num_hidden_layers": parameters.count("block_count", len(parameters.model.tensors)),
        "num_attention_heads": heads,
        "num_key_value_heads": parameters.integer("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": parameters.integer("context_length"),
        "rms_norm_eps": parameters.number("attention.layer_norm_rms_epsilon", 1e-6),
        "rope_theta": parameters.number("rope.freq_base", 10_000.0),
        "rope_scaling": _rope_scaling(parameters),
        "partial_rotary_factor": min(parameters.integer("rope.dimension_count", head_dim), head_dim) / head_dim,
        "tie_word_embeddings": not parameters.has("output.weight"),
        "eos_token_id": end_token_ids(parameters.model),
        "dtype": "float16"
        if {tensor.type for tensor in parameters.model.tensors.values()} <= {"F16", "F32"}
        else "bfloat16",
    }


def _head_dim(parameters: Parameters) -> int:
    wide, heads = parameters.integer("embedding_length"), parameters.integer("attention.head_count")
    return parameters.integer("attention.key_length", max(wide // heads, 1))


def _vocab_size(parameters: Parameters) -> int:
    table = parameters.model.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise ModelFolderError(f"{parameters.model.path}: no matrix token_embd.weight; is it a whole model?")
    return table.shape[0]


# ---- rotation


def _rope_scaling(parameters: Parameters) -> Config | None:
    """The stretch of positions: a factor for each pair of dimensions, in tensors, or a method that is named."""
    factor = parameters.number("rope.scaling.factor", parameters.number("rope.scale_linear", 1.0)) or 1.0
    kind, magnitude = parameters.find("rope.scaling.type", "linear"), parameters.number_if_any("rope.scaling.attn_factor")
    original = {"original_max_position_embeddings": parameters.integer_if_any("rope.scaling.original_context_length")}
    if parameters.has("rope_freqs.weight"):  # what llama3's method comes to
        if factor != 1.0 and kind != "none":
            parameters.refuse(f'rope.scaling.type is "{kind}" with a factor of {factor}, beside rope_freqs.weight')
        factors = _factors(parameters, "rope_freqs.weight")
        return {"rope_type": "longrope", "short_factor": factors, "long_factor": factors, "attention_factor": magnitude or 1.0}
    if parameters.has("rope_factors_long.weight"):
        short, long = (_factors(parameters, f"rope_factors_{name}.weight") for name in ("short", "long"))
        return {
            "rope_type": "longrope",
            "short_factor": short,
            "long_factor": long,
            "attention_factor": magnitude,
            **original,
        }
    if magnitude not in (None, 1.0):
        parameters.refuse(f'rope.scaling.attn_factor is {magnitude} where rope.scaling.type is "{kind}"')
    if kind == "yarn":
        spread = {name: parameters.number_if_any(f"rope.scaling.yarn_{name}") for name in ("beta_fast", "beta_slow")}
        return {"rope_type": "yarn", "factor": factor, **original, **spread, **_yarn_magnitude(parameters)}
    if kind not in ("none", "linear"):
        parameters.refuse(f'rope.scaling.type is "{kind}"')
    return {"rope_type": "linear", "factor": factor} if kind == "linear" and factor != 1.0 else None


def _yarn_magnitude(parameters: Parameters) -> Config:
    """What YaRN multiplies queries and keys by: two numbers, of which files say the second, and the first is 1."""
    log_factor = parameters.number("rope.scaling.yarn_log_multiplier", 0.0)
    return {"mscale": 1.0, "mscale_all_dim": log_factor} if log_factor else {}


def _factors(parameters: Parameters, name: str) -> list[float]:
    tensor = parameters.model.tensors.get(name)
    if tensor is None or tensor.type != "F32" or len(tensor.shape) != 1:
        raise ModelFolderError(f"{parameters.model.path}: {name} is not a list of float32")
    found: list[float] = tensor.data.numpy().view(np.float32).tolist()
    return found


# ---- what differs, architecture by architecture


def _llama(parameters: Parameters) -> Config:
    """Llama, Mistral, SmolLM and others that are the same; with experts it is Mixtral."""
    if parameters.integer_if_any("expert_count") is not None:
        return {
            "architectures": ["MixtralForCausalLM"],
            "num_local_experts": parameters.num_experts,
            "num_experts_per_tok": parameters.integer("expert_used_count"),
            "sliding_window": parameters.integer_if_any("attention.sliding_window"),
        }
    window = parameters.integer_if_any("attention.sliding_window")  # of the first Mistral, where a file says so
    if window is not None:
        return {"architectures": ["MistralForCausalLM"], "sliding_window": window}
    return {"architectures": ["LlamaForCausalLM"]}


def _mistral3(parameters: Parameters) -> Config:
    """Ministral 3 and Devstral 2 where queries grow with their position; else Llama."""
    beta = parameters.number("attention.temperature_scale", 0.0)
    if not beta:
        return _llama(parameters)
    if parameters.integer_if_any("expert_count") is not None:
        parameters.refuse("attention.temperature_scale of a model with experts")
    length = parameters.integer("rope.scaling.original_context_length", parameters.integer("context_length"))
    scaling = {**(_rope_scaling(parameters) or {}), "llama_4_scaling_beta": beta, "original_max_position_embeddings": length}
    return {"architectures": ["Ministral3ForCausalLM"], "rope_scaling": scaling, "sliding_window": None}


def _smollm3(parameters: Parameters) -> Config:
    return {"architectures": ["SmolLM3ForCausalLM"]}


def _granite(parameters: Parameters) -> Config:
    if parameters.find("rope.scaling.finetuned", True) is not True:
        parameters.refuse("rope.scaling.finetuned is false: positions are not encoded")
    scale = parameters.number("attention.scale", 0.0)
    return {
        "architectures": ["GraniteForCausalLM"],
        "embedding_multiplier": parameters.number("embedding_scale", 0.0) or 1.0,
        "residual_multiplier": parameters.positive("residual_scale", 1.0),
        "attention_multiplier": scale or _head_dim(parameters) ** -0.5,
        "logits_scaling": parameters.positive("logit_scale"),
    }


def _glm4(parameters: Parameters) -> Config:
    return {"architectures": ["Glm4ForCausalLM"]}


def _llama4(parameters: Parameters) -> Config:
    """Chunks, temperature and which layers turn are those of Scout and Maverick, which no key says."""
    count, experts = parameters.integer("block_count"), parameters.num_experts
    if parameters.find("attention.sliding_window") == 0:
        parameters.refuse("attention.sliding_window is 0: attention without chunks")
    return {
        "architectures": ["Llama4ForCausalLM"],
        "intermediate_size": parameters.integer("expert_feed_forward_length"),
        "intermediate_size_mlp": parameters.integer("feed_forward_length"),
        "num_local_experts": experts,
        "num_experts_per_tok": parameters.integer("expert_used_count"),
        "interleave_moe_layer_step": parameters.integer("interleave_moe_layer_step"),
        "no_rope_layers": [int(kind != "full_attention") for kind in _layer_types(parameters, 4)],
        "moe_layers": None,
        "layer_types": None,
        "num_hidden_layers": count,
        "use_qk_norm": experts != 128,
    }


def _qwen2_moe(parameters: Parameters) -> Config:
    return {
        "architectures": ["Qwen2MoeForCausalLM"],
        "num_experts": parameters.num_experts,
        "num_experts_per_tok": parameters.integer("expert_used_count"),
        "moe_intermediate_size": parameters.integer("expert_feed_forward_length"),
        "shared_expert_intermediate_size": parameters.integer("expert_shared_feed_forward_length"),
        "norm_topk_prob": bool(parameters.find("expert_weights_norm", False)),
    }


def _qwen2(parameters: Parameters) -> Config:
    return {"architectures": ["Qwen2ForCausalLM"]}


def _qwen3(parameters: Parameters) -> Config:
    return {"architectures": ["Qwen3ForCausalLM"]}


def _qwen3_moe(parameters: Parameters) -> Config:
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_experts": parameters.num_experts,
        "num_experts_per_tok": parameters.integer("expert_used_count"),
        "moe_intermediate_size": parameters.integer("expert_feed_forward_length"),
        "norm_topk_prob": True,
    }


def _layer_types(parameters: Parameters, period: int) -> list[str]:
    """What each layer sees: the last of every `period` layers everything, the others a window, unless the file says otherwise."""
    given, count = parameters.find("attention.sliding_window_pattern", period), parameters.integer("block_count")
    if isinstance(given, np.ndarray) and given.dtype.kind in "iub":
        if len(given) < count:
            parameters.refuse(f"attention.sliding_window_pattern is of {len(given)} layers, and there are {count}")
        slides = given[:count].astype(bool).tolist()
    else:
        period = parameters.integer("attention.sliding_window_pattern", period)
        slides = [(index + 1) % period != 0 for index in range(count)]
    return ["sliding_attention" if is_sliding else "full_attention" for is_sliding in slides]


def _gemma(parameters: Parameters) -> Config:
    return {"architectures": ["GemmaForCausalLM"]}


def _gemma2(parameters: Parameters) -> Config:
    return {
        "architectures": ["Gemma2ForCausalLM"],
        "sliding_window": parameters.integer("attention.sliding_window", 4096),
        "layer_types": _layer_types(parameters, 2),
        "attn_logit_softcapping": parameters.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": parameters.number("final_logit_softcapping", 30.0),
        "query_pre_attn_scalar": _query_scalar(parameters, 46),
    }


def _gemma3(parameters: Parameters) -> Config:
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "sliding_window": parameters.integer_if_any("attention.sliding_window"),
        "layer_types": _layer_types(parameters, 6),
        "rope_local_base_freq": parameters.number("rope.freq_base_swa", 10_000.0),
        "attn_logit_softcapping": None,
        "final_logit_softcapping": parameters.number_if_any("final_logit_softcapping"),
        "query_pre_attn_scalar": _query_scalar(parameters, 62),
    }


def _query_scalar(parameters: Parameters, layers_of_27b: int) -> float:
    """What queries are divided by the root of, which no key says: the width of a head, but not in the model of 27 billions."""
    if parameters.integer("block_count") == layers_of_27b:
        return parameters.integer("embedding_length") / parameters.integer("attention.head_count")
    return parameters.integer("attention.key_length")


def _phi3(parameters: Parameters) -> Config:
    window = parameters.integer_if_any("attention.sliding_window")
    return {"architectures": ["Phi3ForCausalLM"], "sliding_window": window}


def _olmo2(parameters: Parameters) -> Config:
    """OLMo 2; with a window, OLMo 3."""
    window = parameters.integer_if_any("attention.sliding_window")
    if window is None:
        return {"architectures": ["Olmo2ForCausalLM"]}
    base = parameters.number("rope.freq_base", 10_000.0)
    turned = {
        "full_attention": {**(_rope_scaling(parameters) or {}), "rope_theta": base},
        "sliding_attention": {"rope_theta": parameters.number("rope.freq_base_swa", base)},
    }
    return {
        "architectures": ["Olmo3ForCausalLM"],
        "sliding_window": window,
        "layer_types": _layer_types(parameters, 4),
        "rope_parameters": turned,
    }


def _exaone4(parameters: Parameters) -> Config:
    """Which layers slide is known of the model of 64 layers, where no key says it."""
    window = parameters.integer_if_any("attention.sliding_window")
    slides = window is not None or parameters.integer("block_count") == 64
    return {
        "architectures": ["Exaone4ForCausalLM"],
        "sliding_window": (window or 4096) if slides else None,
        "layer_types": _layer_types(parameters, 4) if slides else None,
    }


def _starcoder2(parameters: Parameters) -> Config:
    return {
        "architectures": ["Starcoder2ForCausalLM"],
        "norm_epsilon": parameters.number("attention.layer_norm_epsilon", 1e-5),
        "sliding_window": parameters.integer_if_any("attention.sliding_window"),
        "use_bias": parameters.has("blk.0.ffn_down.bias"),
        "hidden_act": "gelu_pytorch_tanh",
    }


def _command_r(parameters: Parameters) -> Config:
    return {
        "architectures": ["CohereForCausalLM"],
        "layer_norm_eps": parameters.number("attention.layer_norm_epsilon", 1e-5),
        "logit_scale": parameters.number("logit_scale"),
        "use_qk_norm": parameters.has("blk.0.attn_q_norm.weight"),
    }


def _cohere2(parameters: Parameters) -> Config:
    return {
        **_command_r(parameters),
        "architectures": ["Cohere2ForCausalLM"],
        "sliding_window": parameters.integer("attention.sliding_window"),
        "layer_types": _layer_types(parameters, 4),
    }


_SOFTMAX, _SIGMOID = 1, 2  # of gguf.ExpertGatingFuncType


def _deepseek2(parameters: Parameters) -> Config:
    """DeepSeek-V3 and its like; V2 where experts are chosen by softmax, as they are where no key says how."""
    gate = parameters.find("expert_gating_func") or _SOFTMAX
    if gate not in (_SOFTMAX, _SIGMOID):
        parameters.refuse(f"expert_gating_func is {gate}")
    rope_dim = parameters.integer("rope.dimension_count")
    key_length = parameters.integer("attention.key_length_mla", parameters.integer("attention.key_length"))
    value_length = parameters.integer("attention.value_length_mla", parameters.integer("attention.value_length"))
    scaling = _rope_scaling(parameters)
    if scaling is not None and scaling.get("mscale_all_dim"):  # of this architecture it is a tenth
        scaling |= dict.fromkeys(("mscale", "mscale_all_dim"), 10 * scaling["mscale_all_dim"])
    groups = parameters.integer("expert_group_count", 1)
    return {
        **(_V3 if gate == _SIGMOID else {**_V2, "topk_method": "greedy" if groups == 1 else "group_limited_greedy"}),
        "q_lora_rank": parameters.integer_if_any("attention.q_lora_rank"),
        "kv_lora_rank": parameters.integer("attention.kv_lora_rank"),
        "qk_rope_head_dim": rope_dim,
        "qk_nope_head_dim": key_length - rope_dim,
        "v_head_dim": value_length,
        "num_key_value_heads": parameters.integer("attention.head_count"),
        "head_dim": rope_dim,
        "partial_rotary_factor": 1.0,
        "rope_scaling": scaling,
        "n_routed_experts": parameters.num_experts,
        "num_experts_per_tok": parameters.integer("expert_used_count"),
        "moe_intermediate_size": parameters.integer("expert_feed_forward_length"),
        "n_shared_experts": parameters.integer("expert_shared_count"),
        "norm_topk_prob": bool(parameters.find("expert_weights_norm", False)),
        "routed_scaling_factor": parameters.number("expert_weights_scale", 1.0),
        "n_group": groups,
        "topk_group": parameters.integer("expert_group_used_count", 1),
        "first_k_dense_replace": parameters.integer_if_any("leading_dense_block_count") or 0,
    }


_V2: Config = {"architectures": ["DeepseekV2ForCausalLM"]}
_V3: Config = {"architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 0, "rope_interleave": True}


ARCHITECTURES: Mapping[str, Callable[[Parameters], Config]] = {
    "llama": _llama,
    "mistral3": _mistral3,
    "llama4": _llama4,
    "smollm3": _smollm3,
    "granite": _granite,
    "glm4": _glm4,
    "qwen2": _qwen2,
    "qwen2moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3_moe,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "phi3": _phi3,
    "olmo2": _olmo2,
    "exaone4": _exaone4,
    "starcoder2": _starcoder2,
    "command-r": _command_r,
    "cohere2": _cohere2,
    "deepseek2": _deepseek2,
}

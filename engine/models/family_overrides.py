"""What differs from a plain Llama in each native family: fields of ModelSpec, from a config.json with defaults filled in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..attention.methods import Scoring
from ..attention.paged import Chunks, Window
from ..errors import UnsupportedModel
from .architecture import ExpertSpec, LatentSpec, Names, NormSpec, TemperatureSpec
from .rope import rope_spec, yarn_magnitude

Config = Mapping[str, Any]


# ---- how far back each layer sees


def _windows(config: Config, kinds: list[str] | None = None) -> tuple[Window, ...]:
    """The window of each layer, from `layer_types`, or from `kinds` where older keys imply them.

    Raises UnsupportedModel naming the kind of layer that is not known.
    """
    meaning: dict[str, Window] = {"full_attention": None, "sliding_attention": config.get("sliding_window")}
    if config.get("attention_chunk_size"):
        meaning["chunked_attention"] = Chunks(config["attention_chunk_size"])
    found = config.get("layer_types") or kinds or []
    for kind in found:
        if kind not in meaning:
            raise UnsupportedModel(f'config.json: layer type "{kind}" is not supported; supported: {", ".join(meaning)}')
    return tuple(meaning[kind] for kind in found[: config["num_hidden_layers"]])


def _every(config: Config, period: int, rare: str = "full_attention", common: str = "sliding_attention") -> list[str]:
    """The kind of each layer, where the last of every `period` layers is `rare` and the others are `common`."""
    return [common if (index + 1) % period else rare for index in range(config["num_hidden_layers"])]


def _same_window(config: Config) -> tuple[Window, ...]:
    return (config.get("sliding_window"),) * config["num_hidden_layers"]


def qwen_windows(config: Config) -> tuple[Window, ...]:
    """Qwen slides only where asked: `layer_types` per layer, or every layer from max_window_layers on."""
    num_layers = config["num_hidden_layers"]
    if not config.get("use_sliding_window"):
        return (None,) * num_layers
    first = config.get("max_window_layers", 28)
    return _windows(config, (["full_attention"] * first + ["sliding_attention"] * num_layers)[:num_layers])


# ---- what differs, family by family


def llama(config: Config) -> dict[str, Any]:
    return {**_attention_biases(config), "has_mlp_bias": bool(config.get("mlp_bias"))}


def _attention_biases(config: Config) -> dict[str, Any]:
    has_bias = bool(config.get("attention_bias"))
    return {"has_qkv_bias": has_bias, "has_output_bias": has_bias}


def mistral(config: Config) -> dict[str, Any]:
    if config.get("layer_types"):
        raise UnsupportedModel('config.json: "layer_types" is not supported for MistralForCausalLM')
    return {"windows": _same_window(config)}


_MINISTRAL_ROPE: Config = {  # where config.json is silent
    "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16_384,
    "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


def ministral3(config: Config) -> dict[str, Any]:
    """Ministral 3: Mistral whose queries grow with the logarithm of their position."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or _MINISTRAL_ROPE
    floor, scale = given.get("original_max_position_embeddings"), given.get("llama_4_scaling_beta")
    if floor is None or scale is None:
        raise UnsupportedModel(
            "config.json: Ministral3ForCausalLM needs llama_4_scaling_beta and original_max_position_embeddings in rope_parameters"
        )
    return {
        **mistral(config),
        "ropes": (rope_spec(config, config["head_dim"], given),),
        "temperature": TemperatureSpec(floor, scale, first=0, is_everywhere=True),
    }


def smollm3(config: Config) -> dict[str, Any]:
    """SmolLM 3: Llama in which every fourth layer knows no positions."""
    num_layers = config["num_hidden_layers"]
    turns = config.get("no_rope_layers") or [
        int((index + 1) % config["no_rope_layer_interval"] != 0) for index in range(num_layers)
    ]
    slides = bool(config.get("use_sliding_window"))
    kinds = ["sliding_attention" if slides and not turn else "full_attention" for turn in turns]
    return {
        **llama(config),
        "rope_of": tuple(0 if turn else None for turn in turns[:num_layers]),
        "windows": _windows(config, kinds) if slides else (None,) * num_layers,
    }


def granite(config: Config) -> dict[str, Any]:
    """Granite 3: Llama with four multipliers. What layers add is scaled by one of them, r.

    A stream that is kept divided by r takes what layers add as it is: norms do not mind, but for their eps, which is divided by
    the square of r, and so is the embedding by r.
    """
    for name in ("residual_multiplier", "logits_scaling"):
        if not isinstance(config[name], int | float) or not 0 < config[name] < math.inf:
            raise UnsupportedModel(f'config.json: "{name}" is {config[name]!r:.40}; it must be a positive number')
    residual = float(config["residual_multiplier"])
    return {
        **llama(config),
        "norm": NormSpec("rms", config["rms_norm_eps"] / residual**2),
        "embedding_scale": config["embedding_multiplier"] / residual,
        "scoring": Scoring(float(config["attention_multiplier"])),
        "logit_scale": 1 / config["logits_scaling"],
    }


def glm4(config: Config) -> dict[str, Any]:
    """GLM-4-0414: norms before and after, one matrix for gate and up, half of each head turned, in pairs."""
    return {
        "block": "sandwich",
        "is_rope_interleaved": True,
        "has_qkv_bias": bool(config["attention_bias"]),
        "ropes": (rope_spec({"partial_rotary_factor": 0.5, **config}, config["head_dim"]),),
        "names": Names(
            gate_up="mlp.gate_up_proj",
            after_attention="post_self_attn_layernorm",
            mlp_norm="post_attention_layernorm",
            after_mlp="post_mlp_layernorm",
        ),
    }


def qwen3(config: Config) -> dict[str, Any]:
    return {**_attention_biases(config), "qk_norm": "head", "windows": qwen_windows(config)}


def qwen3_moe(config: Config) -> dict[str, Any]:
    step, dense = config["decoder_sparse_step"], config.get("mlp_only_layers") or ()
    return {
        **_attention_biases(config),
        "qk_norm": "head",
        "windows": _same_window(config if config.get("use_sliding_window") else {**config, "sliding_window": None}),
        "experts": ExpertSpec(
            config.get("num_experts") or config["num_local_experts"],
            config["num_experts_per_tok"],
            config["moe_intermediate_size"],
            is_normalized=bool(config.get("norm_topk_prob")),
        ),
        "has_experts": tuple(
            index not in dense and (index + 1) % step == 0 for index in range(config["num_hidden_layers"])
        ),
    }


def qwen2_moe(config: Config) -> dict[str, Any]:
    """Qwen 1.5 and 2 with experts: a shared expert beside them, behind a gate of its own."""
    found = qwen3_moe({**config, "use_sliding_window": False})
    if config.get("use_sliding_window"):
        raise UnsupportedModel('config.json: "use_sliding_window" is not supported for Qwen2MoeForCausalLM')
    shared = config["shared_expert_intermediate_size"]
    return {
        **found,
        "qk_norm": None,
        "has_qkv_bias": bool(config["qkv_bias"]),
        "has_output_bias": False,
        "experts": replace(found["experts"], shared_size=shared, gates_shared=True),
        "names": Names(shared="mlp.shared_expert"),
    }


def mixtral(config: Config) -> dict[str, Any]:
    experts = "block_sparse_moe.experts.{}."
    return {
        "windows": _same_window(config),
        "experts": ExpertSpec(
            config["num_local_experts"], config["num_experts_per_tok"], config["intermediate_size"], is_normalized=True
        ),
        "has_experts": (True,) * config["num_hidden_layers"],
        "names": Names(
            router="block_sparse_moe.gate", expert=(f"{experts}w1", f"{experts}w3", f"{experts}w2")
        ),
    }


def gemma(config: Config) -> dict[str, Any]:
    """Gemma, arXiv:2403.08295: Llama with norms of 1 + weight, GELU, and embeddings that are scaled."""
    return {
        **_attention_biases(config),
        "norm": NormSpec("rms", config["rms_norm_eps"], offset=1.0),
        "embedding_scale": config["hidden_size"] ** 0.5,
    }


def gemma2(config: Config) -> dict[str, Any]:
    """Gemma 2, arXiv:2408.00118: every second layer slides, scores and logits have soft caps."""
    return {
        **_attention_biases(config),
        "norm": NormSpec("rms", config["rms_norm_eps"], offset=1.0),
        "block": "sandwich",
        "windows": _windows(config, _every(config, 2)),
        "scoring": Scoring(config["query_pre_attn_scalar"] ** -0.5, config.get("attn_logit_softcapping")),
        "embedding_scale": config["hidden_size"] ** 0.5,
        "logit_softcap": config.get("final_logit_softcapping"),
    }


def gemma3(config: Config) -> dict[str, Any]:
    """Gemma 3, arXiv:2503.19786: five sliding layers to a full one, with rotations of their own."""
    kinds = config.get("layer_types") or _every(config, config.get("sliding_window_pattern") or 6)
    return {**gemma2(config), "qk_norm": "head", **_turned_by_kind(config, kinds, config["rope_local_base_freq"])}


def _turned_by_kind(config: Config, kinds: list[str], sliding_theta: float) -> dict[str, Any]:
    """Layers that see everything and layers that see a window, with rotations of their own; that of the former is stretched."""
    given = config.get("rope_parameters") or {}
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    full = given.get("full_attention") or {**(config.get("rope_scaling") or {}), "rope_theta": config["rope_theta"]}
    sliding = given.get("sliding_attention") or {"rope_theta": sliding_theta}
    return {
        "windows": _windows(config, kinds),
        "ropes": tuple(rope_spec(config, head_dim, parameters) for parameters in (full, sliding)),
        "rope_of": tuple(int(kind == "sliding_attention") for kind in kinds[: config["num_hidden_layers"]]),
    }


def olmo2(config: Config) -> dict[str, Any]:
    """OLMo 2, arXiv:2501.00656: norms behind attention and MLP alone; queries and keys normed over all heads together."""
    return {**_attention_biases(config), "block": "post", "qk_norm": "joint"}


def olmo3(config: Config) -> dict[str, Any]:
    """OLMo 3: OLMo 2 with three sliding layers to a full one, of which the full ones alone are stretched."""
    kinds = config.get("layer_types") or _every(config, 4)
    return {**olmo2(config), **_turned_by_kind(config, kinds, config["rope_theta"])}


def exaone4(config: Config) -> dict[str, Any]:
    """EXAONE 4: norms behind attention and MLP alone; where some layers slide, these alone know positions."""
    pattern, num_layers = config.get("sliding_window_pattern"), config["num_hidden_layers"]
    if config.get("sliding_window") is None:
        return {"block": "post", "qk_norm": "head"}
    if not config.get("layer_types") and (not isinstance(pattern, int) or pattern < 1):
        raise UnsupportedModel('config.json: "sliding_window_pattern" must be a positive integer where there are no "layer_types"')
    windows = _windows(config, _every(config, pattern) if isinstance(pattern, int) and pattern > 0 else None)
    return {
        "block": "post",
        "qk_norm": "head",
        "windows": windows,
        "rope_of": tuple(None if window is None else 0 for window in windows[:num_layers]),
    }


def phi3(config: Config) -> dict[str, Any]:
    return {
        "windows": _same_window(config),
        "names": Names(qkv="self_attn.qkv_proj", gate_up="mlp.gate_up_proj"),
    }


def deepseek_v3(config: Config) -> dict[str, Any]:
    """DeepSeek-V3, arXiv:2412.19437: latent attention; experts chosen by sigmoid, in groups, with a bias for balance."""
    num_layers = config["num_hidden_layers"]
    return {
        **_latent(config),
        "is_rope_interleaved": bool(config["rope_interleave"]),
        "experts": ExpertSpec(
            config["n_routed_experts"],
            config["num_experts_per_tok"],
            config["moe_intermediate_size"],
            shared_size=config["moe_intermediate_size"] * config["n_shared_experts"],
            scoring="sigmoid",
            is_normalized=bool(config["norm_topk_prob"]),
            scale=config["routed_scaling_factor"],
            num_groups=config["n_group"],
            groups_per_token=config["topk_group"],
            has_correction=True,
        ),
        "ignored": tuple(  # layers that predict tokens further ahead, for speculation
            f"model.layers.{num_layers + extra}." for extra in range(config.get("num_nextn_predict_layers") or 0)
        ),
    }


def deepseek_v2(config: Config) -> dict[str, Any]:
    """DeepSeek-V2, arXiv:2405.04434: latent attention; experts chosen by softmax, from groups that are as good as their best."""
    method = config["topk_method"]
    if method not in ("greedy", "group_limited_greedy"):
        raise UnsupportedModel(f'config.json: topk_method "{method}" is not supported; supported: greedy, group_limited_greedy')
    has_groups = method == "group_limited_greedy"
    return {
        **_latent(config),
        "is_rope_interleaved": True,
        "has_mlp_bias": bool(config.get("mlp_bias")),
        "experts": ExpertSpec(
            config["n_routed_experts"],
            config["num_experts_per_tok"],
            config["moe_intermediate_size"],
            shared_size=config["moe_intermediate_size"] * config["n_shared_experts"],
            is_normalized=bool(config.get("norm_topk_prob")),
            scale=config["routed_scaling_factor"],
            num_groups=config["n_group"] if has_groups else 1,
            groups_per_token=config["topk_group"] if has_groups else 1,
            best_of_group=1,
        ),
    }


def _latent(config: Config) -> dict[str, Any]:
    """Multi-head latent attention, and experts in all layers but the first."""
    latent = LatentSpec(
        config["q_lora_rank"],
        config["kv_lora_rank"],
        config["qk_nope_head_dim"],
        config["qk_rope_head_dim"],
        config["v_head_dim"],
    )
    rope = rope_spec(config, latent.rope_dim)
    scale = (latent.nope_dim + latent.rope_dim) ** -0.5
    if rope.kind != "default" and rope.parameters.get("mscale_all_dim"):
        scale *= yarn_magnitude(rope.parameters["factor"], rope.parameters["mscale_all_dim"]) ** 2
    return {
        "num_kv_heads": 1,
        "head_dim": latent.rank + latent.rope_dim,
        "latent": latent,
        "scoring": Scoring(scale),
        "ropes": (rope,),
        "has_qkv_bias": bool(config.get("attention_bias")),
        "has_output_bias": bool(config.get("attention_bias")),
        "has_experts": tuple(index >= config["first_k_dense_replace"] for index in range(config["num_hidden_layers"])),
    }


def cohere(config: Config) -> dict[str, Any]:
    return {
        **_attention_biases(config),
        "norm": NormSpec("layer", config["layer_norm_eps"]),
        "block": "parallel",
        "is_rope_interleaved": True,
        "qk_norm": "heads" if config.get("use_qk_norm") else None,
        "logit_scale": config["logit_scale"],
    }


def cohere2(config: Config) -> dict[str, Any]:
    """Command-R7B: three sliding layers to a full one, and only the sliding ones know positions."""
    windows = _windows(config, _every(config, config.get("sliding_window_pattern") or 4))
    return {
        **cohere(config),
        "windows": windows,
        "rope_of": tuple(None if window is None else 0 for window in windows),
    }


def starcoder2(config: Config) -> dict[str, Any]:
    has_bias = bool(config["use_bias"])
    return {
        "norm": NormSpec("layer", config["norm_epsilon"], has_bias=True),
        "is_gated": False,
        "windows": _same_window(config),
        "has_qkv_bias": has_bias,
        "has_output_bias": has_bias,
        "has_mlp_bias": has_bias,
        "names": Names(up="mlp.c_fc", down="mlp.c_proj"),
    }


def llama4(config: Config) -> dict[str, Any]:
    """Llama 4: chunks of attention with rotation, and every few layers everything without; experts every few layers."""
    num_layers = config["num_hidden_layers"]
    turns = config.get("no_rope_layers") or [
        int((index + 1) % config["no_rope_layer_interval"] != 0) for index in range(num_layers)
    ]
    step = config["interleave_moe_layer_step"]
    expert_layers = config.get("moe_layers") or range(step - 1, num_layers, step)
    return {
        **_attention_biases(config),
        "intermediate_size": config["intermediate_size_mlp"],
        "is_rope_interleaved": True,
        "rope_of": tuple(0 if turn else None for turn in turns[:num_layers]),
        "windows": _windows(config, ["chunked_attention" if turn else "full_attention" for turn in turns]),
        "qk_norm": "after_rope" if config["use_qk_norm"] else None,
        "temperature": TemperatureSpec(config["floor_scale"], config["attn_scale"])
        if config["attn_temperature_tuning"]
        else None,
        "experts": ExpertSpec(
            config["num_local_experts"],
            config["num_experts_per_tok"],
            config["intermediate_size"],
            shared_size=config["intermediate_size"],
            scoring="sigmoid",
            scales_input=True,
        ),
        "has_experts": tuple(index in expert_layers for index in range(num_layers)),
        "names": Names(
            gate="feed_forward.gate_proj",
            up="feed_forward.up_proj",
            down="feed_forward.down_proj",
            router="feed_forward.router",
            stacked_experts="feed_forward.experts",
            shared="feed_forward.shared_expert",
        ),
    }

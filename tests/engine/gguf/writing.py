"""GGUF files of small models, written as llama.cpp's converter writes them, and the same weights as a folder of safetensors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3_moe": "qwen3moe",
    "gemma2": "gemma2", "gemma3_text": "gemma3", "phi3": "phi3", "starcoder2": "starcoder2", "cohere": "command-r",
    "cohere2": "cohere2", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2", "gemma": "gemma", "smollm3": "smollm3",
    "granite": "granite", "glm4": "glm4", "qwen2_moe": "qwen2moe", "ministral3": "mistral3", "llama4_text": "llama4",
    "olmo2": "olmo2", "olmo3": "olmo2", "exaone4": "exaone4",
}  # fmt: skip
TURNED = {"llama", "mistral3", "smollm3", "granite"}  # whose heads are written for interleaved rotation
TOKENS = ["<unk>", "<s>", "</s>", *(f"t{i}" for i in range(96))]
KEEPS_FLOAT32 = re.compile(r"norm|ffn_gate_inp|rope_|exp_probs")  # as llama.cpp's quantiser does

Kind = gguf.GGMLQuantizationType


def write_gguf(path: Path, folder: Path, kind: Kind = Kind.F32, *, overrides: Mapping[str, Kind] | None = None, **keys: Any) -> Path:
    """A GGUF file of the model in `folder`, matrices as `kind` where their rows are whole blocks, `overrides` by patterns in names."""
    config = json.loads((folder / "config.json").read_text())
    arch = ARCHITECTURES[config["model_type"]]
    writer = gguf.GGUFWriter(path, arch, **({"split_max_tensors": keys.pop("split")} if "split" in keys else {}))
    for key, value in {**parameters(config, arch), **tokenizer(config["vocab_size"]), **keys}.items():
        add_key(writer, key, value)
    for name, tensor in tensors(config, arch, load_file(folder / "model.safetensors")):
        wanted = next((other for part, other in (overrides or {}).items() if re.search(part, name)), kind)
        add_tensor(writer, name, tensor, wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_key(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        (writer.add_uint32 if value >= 0 else writer.add_int32)(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


def add_tensor(writer: gguf.GGUFWriter, name: str, tensor: Tensor, kind: Kind) -> None:
    values = tensor.float().numpy()
    block = gguf.GGML_QUANT_SIZES[kind][0]
    if tensor.ndim == 1 or KEEPS_FLOAT32.search(name) or kind == Kind.F32:
        writer.add_tensor(name, np.ascontiguousarray(values))
    elif values.shape[-1] % block:
        writer.add_tensor(name, values.astype(np.float16))
    else:
        writer.add_tensor(name, quantized(values, kind), raw_dtype=kind)


def quantized(values: np.ndarray, kind: Kind) -> np.ndarray:
    """The library's blocks where it can make them, else random ones of moderate size: what they stand for counts, not of what."""
    if kind == Kind.F16:
        return values.astype(np.float16)
    try:
        return gguf.quantize(np.ascontiguousarray(values), kind)
    except NotImplementedError:
        return random_blocks(values.shape, kind)


def random_blocks(shape: tuple[int, ...], kind: Kind) -> np.ndarray:
    block, size = gguf.GGML_QUANT_SIZES[kind]
    generator = np.random.default_rng(abs(hash((shape, kind.value))) % 1000)
    blocks = generator.integers(0, 256, (*shape[:-1], shape[-1] // block, size), dtype=np.uint8)
    for begin in SCALES[kind.name]:  # float16 around 0.01
        blocks[..., begin + 1] = 0x20 | (blocks[..., begin + 1] & 0x83)
    return blocks.reshape(*shape[:-1], -1)


SCALES = {  # where in a block are the float16 of types that the library does not encode
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,),
    "IQ3_S": (0,),
}  # fmt: skip


def parameters(config: dict[str, Any], arch: str) -> dict[str, Any]:
    rope = config.get("rope_parameters") or {}
    sliding, full = rope.get("sliding_attention"), rope.get("full_attention", rope)
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    found: dict[str, Any] = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config.get("intermediate_size_mlp", config["intermediate_size"]),
        "attention.head_count": heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "rope.freq_base": float(full.get("rope_theta", 10_000.0)),
        "rope.dimension_count": int(head_dim * float(full.get("partial_rotary_factor", 1.0))),
        "attention.layer_norm_rms_epsilon": config.get("rms_norm_eps"),
        "attention.layer_norm_epsilon": config.get("layer_norm_eps", config.get("norm_epsilon")),
        "attention.sliding_window": config.get("sliding_window"),
        "logit_scale": config.get("logit_scale", config.get("logits_scaling")),
        "attention.scale": config.get("attention_multiplier"),
        "embedding_scale": config.get("embedding_multiplier"),
        "residual_scale": config.get("residual_multiplier"),
        "attention.temperature_scale": rope.get("llama_4_scaling_beta"),
        "rope.scaling.yarn_log_multiplier": rope.get("mscale_all_dim") if arch == "mistral3" else None,
        "attn_logit_softcapping": config.get("attn_logit_softcapping"),
        "final_logit_softcapping": config.get("final_logit_softcapping"),
        "rope.freq_base_swa": None if sliding is None else float(sliding["rope_theta"]),
        **scaling(full, config["max_position_embeddings"]),
        **experts(config),
        **latent(config),
    }
    return {f"{arch}.{key}": value for key, value in found.items() if value is not None}


def scaling(rope: dict[str, Any], longest: int) -> dict[str, Any]:
    kind, original = rope.get("rope_type", "default"), rope.get("original_max_position_embeddings")
    if kind == "longrope":
        magnitude = float(np.sqrt(1 + np.log(longest / original) / np.log(original)))
        return {"rope.scaling.original_context_length": original, "rope.scaling.attn_factor": magnitude}
    if kind not in ("linear", "yarn"):
        return {}
    return {"rope.scaling.type": kind, "rope.scaling.factor": rope["factor"], "rope.scaling.original_context_length": original}


def experts(config: dict[str, Any]) -> dict[str, Any]:
    count = config.get("num_experts") or config.get("num_local_experts") or config.get("n_routed_experts")
    if not count:
        return {}
    if config["model_type"] == "llama4_text":
        return {
            "expert_count": count,
            "expert_used_count": config["num_experts_per_tok"],
            "expert_feed_forward_length": config["intermediate_size"],
            "interleave_moe_layer_step": config["interleave_moe_layer_step"],
        }
    return {
        "expert_count": count,
        "expert_used_count": config["num_experts_per_tok"],
        "expert_feed_forward_length": config.get("moe_intermediate_size"),
        "expert_shared_feed_forward_length": config.get("shared_expert_intermediate_size"),
        "expert_shared_count": config.get("n_shared_experts"),
        "expert_weights_scale": config.get("routed_scaling_factor"),
        "expert_weights_norm": config.get("norm_topk_prob") if "n_routed_experts" in config else None,
        "expert_gating_func": 2 if config["model_type"] == "deepseek_v3" else None,
        "expert_group_count": config.get("n_group"),
        "expert_group_used_count": config.get("topk_group"),
        "leading_dense_block_count": config.get("first_k_dense_replace"),
    }


def latent(config: dict[str, Any]) -> dict[str, Any]:
    if "kv_lora_rank" not in config:
        return {}
    rank, rope_dim = config["kv_lora_rank"], config["qk_rope_head_dim"]
    factor = (config.get("rope_parameters") or {}).get("mscale_all_dim")
    return {
        "attention.q_lora_rank": config["q_lora_rank"],
        "attention.kv_lora_rank": rank,
        "attention.head_count_kv": 1,
        "attention.key_length": rank + rope_dim,
        "attention.value_length": rank,
        "attention.key_length_mla": config["qk_nope_head_dim"] + rope_dim,
        "attention.value_length_mla": config["v_head_dim"],
        "rope.dimension_count": rope_dim,
        "rope.scaling.yarn_log_multiplier": None if factor is None else 0.1 * factor,
    }


def tokenizer(vocab_size: int) -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": TOKENS[:vocab_size],
        "tokenizer.ggml.scores": [float(-i) for i in range(vocab_size)],
        "tokenizer.ggml.token_type": [2, 3, 3, *[1] * (vocab_size - 3)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def tensors(config: dict[str, Any], arch: str, state: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The checkpoint's tensors as llama.cpp wants them: renamed, heads permuted, norms with their one, experts stacked."""
    number = next(number for number, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    table = gguf.get_tensor_name_map(number, config["num_hidden_layers"])
    rope = config.get("rope_parameters") or {}
    if rope.get("rope_type") == "llama3":
        yield "rope_freqs.weight", llama3_factors(config, rope)
    for length in ("long", "short") if rope.get("rope_type") == "longrope" else ():
        yield f"rope_factors_{length}.weight", torch.tensor(rope[f"{length}_factor"])
    for name, tensor in stacked(state):
        if arch in TURNED and re.search(r"\.[qk]_proj\.", name):
            count = config["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"]
            tensor = interleaved(tensor, count)
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            tensor = tensor + 1
        if arch == "llama4" and ".experts." in name:
            yield from transposed(name, tensor)
            continue
        if name.endswith("kv_b_proj.weight"):
            yield from halves(table, name, tensor, config)
            continue
        base, _, kind = name.replace("_correction_bias", "_correction.bias").rpartition(".")
        yield f"{table.get_name(base)}.{kind}", tensor


def stacked(state: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    pattern = re.compile(r"(.*experts)\.(\d+)(\..*)")
    groups: dict[str, dict[int, Tensor]] = {}
    for name, tensor in state.items():
        found = pattern.fullmatch(name)
        if found is None:
            yield name, tensor
        else:
            groups.setdefault(found[1] + found[3], {})[int(found[2])] = tensor
    for name, members in groups.items():
        yield name, torch.stack([members[index] for index in range(len(members))])


def interleaved(weights: Tensor, num_heads: int) -> Tensor:
    """LlamaModel.permute of llama.cpp's converter."""
    return weights.reshape(num_heads, 2, len(weights) // num_heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def halves(table: Any, name: str, tensor: Tensor, config: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    heads, nope = config["num_attention_heads"], config["qk_nope_head_dim"]
    keys, values = tensor.view(heads, nope + config["v_head_dim"], -1).split([nope, config["v_head_dim"]], dim=1)
    base = name.removesuffix(".weight")
    yield f"{table.get_name(base.replace('kv_b', 'k_b'))}.weight", keys.transpose(1, 2).contiguous()
    yield f"{table.get_name(base.replace('kv_b', 'v_b'))}.weight", values.contiguous()


def transposed(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Llama 4's experts, which a checkpoint stacks as [count, columns, rows], gate and up side by side."""
    layer = name.split(".")[2]
    parts = {"ffn_down": tensor} if name.endswith("down_proj") else dict(zip(("ffn_gate", "ffn_up"), tensor.chunk(2, dim=-1), strict=True))
    for part, matrices in parts.items():
        yield f"blk.{layer}.{part}_exps.weight", matrices.transpose(1, 2).contiguous()


def llama3_factors(config: dict[str, Any], rope: dict[str, Any]) -> Tensor:
    """What LlamaModel.generate_extra_tensors of llama.cpp's converter writes."""
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    waves = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    smooth = (original / waves - low) / (high - low)
    factors = np.where(waves < original / high, 1.0, np.where(waves > original / low, rope["factor"], 1 / ((1 - smooth) / rope["factor"] + smooth)))
    return torch.tensor(factors, dtype=torch.float32)


def as_folder(path: Path, folder: Path, target: Path) -> Path:
    """A copy of `folder` whose weights are what the blocks of the GGUF file stand for."""
    shutil.copytree(folder, target)
    config = json.loads((folder / "config.json").read_text())
    state = load_file(folder / "model.safetensors")
    stored = {tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()) for tensor in gguf.GGUFReader(path).tensors}
    arch = ARCHITECTURES[config["model_type"]]
    for name, tensor in inverse(config, arch, state, stored):
        assert tensor.shape == state[name].shape
        state[name] = tensor.contiguous()
    save_file(state, target / "model.safetensors", metadata={"format": "pt"})
    return target


def inverse(config: dict[str, Any], arch: str, state: dict[str, Tensor], stored: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of a checkpoint, of all that is in blocks: read back by marking each tensor with where its numbers come from."""
    places = {name: torch.arange(tensor.numel(), dtype=torch.float64).view(tensor.shape) for name, tensor in state.items()}
    offsets = dict(zip(places, np.cumsum([0, *(tensor.numel() for tensor in places.values())])[:-1].tolist(), strict=True))
    numbers = torch.cat([tensor.flatten().double() for tensor in state.values()])
    marked = {name: tensor + offsets[name] for name, tensor in places.items()}
    for name, origin in tensors(config, arch, marked):
        if name.startswith("rope_"):
            continue
        is_norm = int(arch.startswith("gemma") and name.endswith("norm.weight"))
        numbers[(origin - is_norm).flatten().round().long()] = (stored[name].double() - is_norm).flatten()
    for name, tensor in state.items():
        begin = offsets[name]
        yield name, numbers[begin : begin + tensor.numel()].view(tensor.shape).float()

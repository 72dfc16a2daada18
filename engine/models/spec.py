"""What config.json says about a decoder-only model, checked and in one vocabulary for all supported families."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import DTYPES
from ..errors import ModelFolderError, UnsupportedModel
from .rope import RopeSpec, rope_spec

_REQUIRED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Shapes and switches of a Llama-like decoder. Heads are `head_dim` wide, whatever hidden_size is."""

    architecture: str  # as named in config.json, for instance "LlamaForCausalLM"
    vocab_size: int  # rows of embedding and head; may exceed the tokenizer's vocabulary
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: RopeSpec
    windows: tuple[int | None, ...]  # per layer: tokens a query sees, itself included; None = all
    has_tied_embeddings: bool
    has_qkv_bias: bool
    has_output_bias: bool  # of the attention's output projection
    has_mlp_bias: bool
    has_qk_norm: bool
    dtype: str  # of the checkpoint, as config.json names it
    eos_token_ids: tuple[int, ...]

    @property
    def max_positions(self) -> int:
        """Longest sequence (prompt and output) the model was made for."""
        return self.rope.max_positions


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from `path`. Raises ModelFolderError naming the file and, for bad JSON, the line."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(f"{path.parent}: no {path.name} in this folder; is it a Hugging Face model?") from None
    except json.JSONDecodeError as error:
        raise ModelFolderError(f"{path}: not valid JSON: {error.msg} at line {error.lineno}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFolderError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_spec(folder: Path) -> ModelSpec:
    """The spec of the model in `folder`. Raises ModelFolderError or UnsupportedModel, naming what is wrong."""
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: no such model folder")
    return spec_from_config(read_json(folder / "config.json"))


def spec_from_config(config: Mapping[str, Any]) -> ModelSpec:
    """Translate the content of config.json. Raises UnsupportedModel naming the key or architecture."""
    architecture = _architecture(config)
    for name in _REQUIRED:
        if not isinstance(config.get(name), int) or config[name] < 1:
            raise UnsupportedModel(f'config.json: "{name}" must be a positive integer, got {config.get(name)!r}')
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown")
        raise UnsupportedModel(
            f'config.json: quantised weights ("{method}") are not supported; use an unquantised copy'
        )
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        raise UnsupportedModel(f'config.json: hidden_act "{config["hidden_act"]}" is not supported; supported: silu')
    return _FAMILIES[architecture](config)


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures") or [f"model_type {config.get('model_type')!r} without architectures"]
    for name in names:
        if name in _FAMILIES:
            return str(name)
    raise UnsupportedModel(
        f'config.json: architecture "{names[0]}" is not supported; supported: {", ".join(sorted(_FAMILIES))}'
    )


def _llama(config: Mapping[str, Any]) -> ModelSpec:
    has_bias = bool(config.get("attention_bias"))
    return _build(config, qkv_bias=has_bias, output_bias=has_bias, mlp_bias=bool(config.get("mlp_bias")))


def _mistral(config: Mapping[str, Any]) -> ModelSpec:
    if config.get("layer_types"):
        raise UnsupportedModel('config.json: "layer_types" is not supported for MistralForCausalLM')
    window = config.get("sliding_window", 4096)
    return _build(config, windows=(window,) * config["num_hidden_layers"])


def _qwen2(config: Mapping[str, Any]) -> ModelSpec:
    return _build(config, qkv_bias=True, windows=_qwen_windows(config))


def _qwen3(config: Mapping[str, Any]) -> ModelSpec:
    has_bias = bool(config.get("attention_bias"))
    return _build(
        {"head_dim": 128, **config},
        qkv_bias=has_bias,
        output_bias=has_bias,
        qk_norm=True,
        windows=_qwen_windows(config),
    )


_FAMILIES: Mapping[str, Callable[[Mapping[str, Any]], ModelSpec]] = {
    "LlamaForCausalLM": _llama,
    "MistralForCausalLM": _mistral,
    "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3,
}


def _qwen_windows(config: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Qwen slides only where asked: `layer_types` per layer, or every layer from max_window_layers on."""
    num_layers = config["num_hidden_layers"]
    if not config.get("use_sliding_window"):
        return (None,) * num_layers
    window = config.get("sliding_window", 4096)
    first = config.get("max_window_layers", 28)
    kinds = config.get("layer_types") or ["full_attention"] * first + ["sliding_attention"] * num_layers
    return tuple(window if kind == "sliding_attention" else None for kind in kinds[:num_layers])


def _build(
    config: Mapping[str, Any],
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    mlp_bias: bool = False,
    qk_norm: bool = False,
    windows: tuple[int | None, ...] | None = None,
) -> ModelSpec:
    num_heads = config["num_attention_heads"]
    num_kv_heads = config.get("num_key_value_heads") or num_heads
    if num_heads % num_kv_heads:
        raise UnsupportedModel(f"config.json: {num_heads} attention heads cannot share {num_kv_heads} key-value heads")
    return ModelSpec(
        architecture=_architecture(config),
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // num_heads,
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope=rope_spec(config),
        windows=windows or (None,) * config["num_hidden_layers"],
        has_tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        has_qkv_bias=qkv_bias,
        has_output_bias=output_bias,
        has_mlp_bias=mlp_bias,
        has_qk_norm=qk_norm,
        dtype=_dtype(config),
        eos_token_ids=token_ids(config.get("eos_token_id")),
    )


def token_ids(value: int | list[int] | None) -> tuple[int, ...]:
    """An id, a list of ids or nothing, as Hugging Face files write them, in one shape."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _dtype(config: Mapping[str, Any]) -> str:
    name = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    if name not in DTYPES:
        raise UnsupportedModel(f'config.json: dtype "{name}" is not supported; supported: {", ".join(DTYPES)}')
    return name

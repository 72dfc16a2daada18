"""From config.json to what the model is: a native family, a state-space model, or one that transformers computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError, UnsupportedModel
from ..gguf.config import config_of
from ..gguf.files import GgufModel, is_gguf, open_gguf
from ..quantization.reading import read_plan
from .architecture import ModelInfo, ModelSpec
from .families import FAMILIES, spec_of
from .files import read_json, refuse_other_formats
from .mamba import mamba_spec
from .transformers_model import TransformersSpec, transformers_spec

PERMUTED = frozenset({"llama", "mistral3", "smollm3", "granite"})
"""GGUF architectures whose queries and keys are stored for interleaved rotation."""


def read_spec(folder: Path) -> ModelInfo:
    """What the model in `folder`, or in a GGUF file, is. Raises ModelFolderError or UnsupportedModel, naming what is wrong."""
    if is_gguf(folder):
        return gguf_spec(open_gguf(folder))
    refuse_other_formats(folder)
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: no such model folder")
    config = read_json(folder / "config.json")
    return spec_from_config(config if config.get("quantization_config") else {**config, **_older_plan(folder)})


_OLDER_FILES = {  # before it was written into config.json
    "quantize_config.json": "gptq", "quant_config.json": "awq", "hf_quant_config.json": "modelopt",
}  # fmt: skip


def _older_plan(folder: Path) -> dict[str, Any]:
    """What older GPTQ, AWQ and ModelOpt checkpoints say in a file of its own, as config.json would."""
    for name, method in _OLDER_FILES.items():
        if (folder / name).is_file():
            return {"quantization_config": {"quant_method": method, **read_json(folder / name)}}
    return {}


def gguf_spec(model: GgufModel) -> ModelSpec:
    """What the model in a GGUF file is."""
    try:
        spec = spec_from_config(config_of(model))
    except UnsupportedModel as error:
        reason = str(error).removeprefix("config.json: ").removeprefix(f"{model.path}: ")
        raise UnsupportedModel(f"{model.path}: {reason}") from None
    assert isinstance(spec, ModelSpec), "config_of names native architectures alone"
    if model.architecture in PERMUTED:
        spec = replace(spec, is_rope_interleaved=True)
    if spec.names.stacked_experts is not None:  # which GGUF stacks as those of all families, matrix by matrix
        spec = replace(spec, names=replace(spec.names, stacked_experts=None))
    return spec if spec.latent is not None else _with_biases(spec, model)


def _with_biases(spec: ModelSpec, model: GgufModel) -> ModelSpec:
    """With the biases of linear layers that are there."""

    def has(*parts: str) -> bool:
        return any(f"blk.0.{part}.bias" in model.tensors for part in parts)

    qkv, output, mlp = has("attn_q", "attn_qkv"), has("attn_output"), has("ffn_up", "ffn_down")
    return replace(spec, has_qkv_bias=qkv, has_output_bias=output, has_mlp_bias=mlp)


WITH_IMAGES: Mapping[str, Mapping[str, str]] = {  # architecture -> model type of its text part -> that part's architecture
    "Gemma3ForConditionalGeneration": {"gemma3_text": "Gemma3ForCausalLM"},
    "Llama4ForConditionalGeneration": {"llama4_text": "Llama4ForCausalLM"},
    "Mistral3ForConditionalGeneration": {"mistral": "MistralForCausalLM", "ministral3": "Ministral3ForCausalLM"},
}

ARCHITECTURES: Mapping[str, str] = {  # model type -> its native architecture, for a config.json that names none
    "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "exaone4": "Exaone4ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForConditionalGeneration",
    "gemma3_text": "Gemma3ForCausalLM",
    "glm4": "Glm4ForCausalLM",
    "granite": "GraniteForCausalLM",
    "llama": "LlamaForCausalLM",
    "llama4": "Llama4ForConditionalGeneration",
    "llama4_text": "Llama4ForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mistral3": "Mistral3ForConditionalGeneration",
    "mixtral": "MixtralForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "olmo3": "Olmo3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
}


def _architectures(config: Mapping[str, Any]) -> list[str]:
    """What "architectures" names; where it is absent, the native architecture of "model_type", if there is one.

    Raises UnsupportedModel where neither says what the model is.
    """
    named, model_type = config.get("architectures"), config.get("model_type")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        example = '"architectures": ["LlamaForCausalLM"]'
        raise UnsupportedModel(f'config.json: "architectures" is a list of names, such as {example}, not {json.dumps(named)}')
    if named:
        return named
    if not isinstance(model_type, str):
        raise UnsupportedModel(
            'config.json: "architectures" is missing, and so is "model_type": nothing says what the model is; copy both from the '
            'original model, such as "architectures": ["LlamaForCausalLM"], "model_type": "llama"'
        )
    return [ARCHITECTURES[model_type]] if model_type in ARCHITECTURES else []


def _text_part(architecture: str, config: Mapping[str, Any]) -> ModelInfo:
    """The spec of the language model within a model that also reads images; the engine gives it text only.

    Raises UnsupportedModel naming the key, or the model type of the text part.
    """
    text = config.get("text_config") or {}
    known = WITH_IMAGES[architecture]
    if text.get("model_type") not in known:
        raise UnsupportedModel(
            f'config.json: {architecture} with a text_config of model type "{text.get("model_type")}" is not supported; '
            f"supported: {', '.join(known)}"
        )
    outer = {name: config[name] for name in ("dtype", "torch_dtype", "eos_token_id", "tie_word_embeddings") if name in config}
    spec = spec_of(known[text["model_type"]], {**text, **outer})
    images = ("vision_tower.", "vision_model.", "multi_modal_projector.")
    return replace(spec, prefix="language_model.", ignored=(*spec.ignored, *images))


def spec_from_config(config: Mapping[str, Any]) -> ModelInfo:
    """Translate the content of config.json. Raises UnsupportedModel naming the key or architecture."""
    quantised = config.get("quantization_config") or (config.get("text_config") or {}).get("quantization_config")
    if not quantised:
        return _plain_spec(config)
    if not isinstance(quantised, dict):
        raise UnsupportedModel('config.json: "quantization_config" must be an object')
    plan, spec = read_plan(quantised), _plain_spec(config)
    is_gpt_oss = isinstance(spec, TransformersSpec) and spec.model_type == "gpt_oss"
    if is_gpt_oss != (plan.method == "mxfp4") or not (is_gpt_oss or isinstance(spec, ModelSpec)):
        raise UnsupportedModel(
            f'config.json: quantised weights ("{plan.method}") of {spec.architecture} are not supported: mxfp4 is for gpt-oss, the '
            "other formats are for models that are computed natively; use an unquantised copy"
        )
    return replace(spec, quantization=plan)


def _plain_spec(config: Mapping[str, Any]) -> ModelInfo:
    architectures = _architectures(config)
    for name in architectures:
        if name in WITH_IMAGES:
            return _text_part(name, config)
        if name in FAMILIES:
            return spec_of(name, config)
        if name == "Mamba2ForCausalLM":
            return mamba_spec(config)
    return transformers_spec(next(iter(architectures), None), config)

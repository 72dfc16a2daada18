"""From config.json to what the model is: a native family, a state-space model, or one that transformers computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError, UnsupportedModel
from .architecture import ModelInfo
from .families import FAMILIES, spec_of
from .files import read_json
from .mamba import mamba_spec
from .transformers_model import transformers_spec


def read_spec(folder: Path) -> ModelInfo:
    """What the model in `folder` is. Raises ModelFolderError or UnsupportedModel, naming what is wrong."""
    if folder.suffix == ".gguf":
        raise UnsupportedModel(f"{folder}: GGUF files are not supported; name a folder with config.json and *.safetensors")
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: no such model folder")
    if (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file():
        raise UnsupportedModel(f"{folder}: LoRA adapters are not supported; merge it into its base model, and name that folder")
    for name in ("quantize_config.json", "quant_config.json"):  # GPTQ and AWQ, before it was written into config.json
        if (folder / name).is_file():
            raise UnsupportedModel(f"{folder}: {name}: quantised weights are not supported; use an unquantised copy")
    return spec_from_config(read_json(folder / "config.json"))


WITH_IMAGES: Mapping[str, Mapping[str, str]] = {  # architecture -> model type of its text part -> that part's architecture
    "Gemma3ForConditionalGeneration": {"gemma3_text": "Gemma3ForCausalLM"},
    "Llama4ForConditionalGeneration": {"llama4_text": "Llama4ForCausalLM"},
    "Mistral3ForConditionalGeneration": {"mistral": "MistralForCausalLM"},
}


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
    if quantised:
        method = quantised.get("quant_method", "unknown")
        raise UnsupportedModel(
            f'config.json: quantised weights ("{method}") are not supported; use an unquantised copy'
        )
    for name in config.get("architectures") or ():
        if name in WITH_IMAGES:
            return _text_part(str(name), config)
        if name in FAMILIES:
            return spec_of(str(name), config)
        if name == "Mamba2ForCausalLM":
            return mamba_spec(config)
    return transformers_spec(config)

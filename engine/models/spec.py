"""From config.json to what the model is: a native family, a state-space model, or one that transformers computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError, UnsupportedModel
from .architecture import ModelInfo
from .families import FAMILIES, spec_of
from .files import read_json
from .mamba import mamba_spec
from .zoo import zoo_spec


def read_spec(folder: Path) -> ModelInfo:
    """What the model in `folder` is. Raises ModelFolderError or UnsupportedModel, naming what is wrong."""
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: no such model folder")
    return spec_from_config(read_json(folder / "config.json"))


def spec_from_config(config: Mapping[str, Any]) -> ModelInfo:
    """Translate the content of config.json. Raises UnsupportedModel naming the key or architecture."""
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown")
        raise UnsupportedModel(
            f'config.json: quantised weights ("{method}") are not supported; use an unquantised copy'
        )
    for name in config.get("architectures") or ():
        if name in FAMILIES:
            return spec_of(str(name), config)
        if name == "Mamba2ForCausalLM":
            return mamba_spec(config)
    return zoo_spec(config)

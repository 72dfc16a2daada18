"""From config.json to what the model is: a native family, a state-space model, or one that transformers computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError, UnsupportedModel
from .architecture import ModelInfo
from .families import FAMILIES, spec_of


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
    names = config.get("architectures") or [f"model_type {config.get('model_type')!r} without architectures"]
    for name in names:
        if name in FAMILIES:
            return spec_of(str(name), config)
    raise UnsupportedModel(
        f'config.json: architecture "{names[0]}" is not supported; supported: {", ".join(sorted(FAMILIES))}'
    )


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

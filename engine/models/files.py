"""The files of a model folder in Hugging Face's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError, UnsupportedModel

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from `path`. Raises ModelFolderError naming the file and, for bad JSON, the line."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_hook=_number)
    except FileNotFoundError:
        raise ModelFolderError(f"{path.parent}: no {path.name} in this folder; is it a Hugging Face model?") from None
    except json.JSONDecodeError as error:
        raise ModelFolderError(f"{path}: not valid JSON: {error.msg} at line {error.lineno}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFolderError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def _number(members: dict[str, Any]) -> Any:
    """`members`, or the number they stand for: transformers writes infinity as {"__float__": "Infinity"}."""
    return float(members["__float__"]) if members.keys() == {"__float__"} else members


def shard_paths(folder: Path) -> list[Path]:
    """The safetensors files of a model folder. Raises ModelFolderError when one is missing, naming it."""
    index = folder / INDEX_FILE
    if index.exists():
        names = read_json(index).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise ModelFolderError(f'{index}: no "weight_map" in it')
        if not all(isinstance(name, str) for name in names.values()):
            raise ModelFolderError(f'{index}: "weight_map" gives the file of each tensor by its name')
        paths = [folder / name for name in sorted(set(names.values()))]
    else:
        paths = [folder / SINGLE_FILE]
    for path in paths:
        if not path.is_file():
            raise ModelFolderError(f"{folder}: no {path.name} in this folder{_other_formats(folder)}")
    return paths


def refuse_other_formats(path: Path) -> None:
    """Raises UnsupportedModel, naming the file, where `path` is a model in a format that is not read."""
    if not (path / "config.json").is_file() and (path / "adapter_config.json").is_file():
        advice = 'name its base model, and give this folder as adapters={"name": folder}'
        raise UnsupportedModel(f"{path}: this is a LoRA adapter and no model; {advice}")


def _other_formats(folder: Path) -> str:
    others = sorted(path.name for pattern in ("*.bin", "*.pth") for path in folder.glob(pattern))
    return f"; it holds {others[0]}, but only safetensors and GGUF weights are read" if others else ""

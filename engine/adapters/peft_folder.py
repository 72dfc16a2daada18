"""A folder that peft's `save_pretrained` wrote: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import AdapterError
from .adapter import Adapter
from .modules import Modules
from .parts import Half, Halves, joined
from .peft_config import PeftConfig, read_config

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
FLOATS = {torch.float32, torch.float16, torch.bfloat16}
_NAME = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<half>[AB])(?:\.default)?\.weight")
_OTHERS = {  # parts of names of tensors that are not low-rank matrices
    "lora_embedding_": "adapters of the embedding are not supported",
    "lora_magnitude_vector": "DoRA is not supported; merge it into the model",
    "modules_to_save": "whole modules beside the low-rank ones are not supported; merge it into the model",
    ".base_layer.": "a matrix of the base model beside the low-rank ones; save it with save_embedding_layers=False",
    "token_adapter": "single rows of the embedding are not adapted",
    ".bias": "trained biases are not supported; merge it into the model",
}


def read_peft_folder(folder: Path, modules: Modules, max_rank: int) -> Adapter:
    """The adapter in `folder`, for the model whose `modules` these are. Raises AdapterError, naming file and tensor."""
    config = read_config(folder / CONFIG)
    path = folder / WEIGHTS
    if not path.is_file():
        others = ", ".join(sorted(each.name for each in folder.glob("adapter_model.*")))
        raise AdapterError(f"{folder}: no {WEIGHTS} in this folder{f'; {others} is not read, it may run code' if others else ''}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return _read(path, file, config, modules, max_rank)
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, AdapterError):
            raise
        raise AdapterError(f"{path}: not a readable safetensors file: {error}") from None


def _read(path: Path, file: Any, config: PeftConfig, modules: Modules, max_rank: int) -> Adapter:
    halves = Halves(path, modules, max_rank)
    names = sorted(file.keys())
    for name in names:
        found = _NAME.fullmatch(name)
        if found is None:
            reason = next((why for part, why in _OTHERS.items() if part in name), "it is no matrix of a LoRA adapter")
            raise AdapterError(f"{path}: tensor {name}: {reason}")
        ours = _our_name(found["module"], modules)
        if not config.names(found["module"]):
            raise AdapterError(f"{path}: tensor {name}: target_modules does not name its module")
        halves.add(Half(name, ours, found["half"] == "A", tuple(file.get_slice(name).get_shape()), found["module"]))
    _check_complete(path, config, modules, halves.modules)

    def scale(module: str, rank: int) -> float:
        config.check_rank(module, rank)
        return config.scale(module, rank)

    return Adapter(path.parent, joined(halves, lambda half: _tensor(path, file, half.tensor), scale))


def _our_name(module: str, modules: Modules) -> str:
    """The module as a checkpoint of the language model alone has it: within a model that reads images it has another name."""
    if module in modules.of_name or module in modules.refused:
        return module
    for theirs, ours in (("model.language_model.", "model."), ("language_model.", ""), ("model.", "")):
        if module.startswith(theirs) and (name := ours + module.removeprefix(theirs)) in modules.of_name:
            return name
    return module


def _check_complete(path: Path, config: PeftConfig, modules: Modules, found: Iterable[str]) -> None:
    """Raises AdapterError where a listed module has tensors in the adapter for some layers, and none for others, unasked."""
    if config.targets is None or config.is_partial:
        return
    missing = sorted(name for name in modules.of_name.keys() - set(found) if config.names(name))
    if missing:
        raise AdapterError(f"{path}: it lacks the matrices of {missing[0]}, which target_modules names")


def _tensor(path: Path, file: Any, name: str) -> Tensor:
    tensor: Tensor = file.get_tensor(name)
    if tensor.dtype not in FLOATS:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise AdapterError(f"{path}: tensor {name} is of type {kind}; float32, float16 and bfloat16 are read")
    return tensor.clone()

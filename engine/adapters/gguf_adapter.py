"""A LoRA adapter as a GGUF file, as llama.cpp's convert_lora_to_gguf.py writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from ..errors import AdapterError, ModelFolderError, UnsupportedModel
from ..gguf.dequantization import dequantized
from ..gguf.files import GgufModel
from ..gguf.names import Names
from ..gguf.reader import GgufFile, read_gguf
from ..models.architecture import ModelInfo, ModelSpec
from ..models.spec import PERMUTED
from .adapter import Adapter
from .modules import Modules, modules_of
from .parts import Half, Halves, joined

_NAME = re.compile(r"(?P<matrix>.+)\.weight\.lora_(?P<half>[ab])")


def read_gguf_adapter(path: Path, spec: ModelInfo, max_rank: int) -> Adapter:
    """The adapter at `path`, for the model that `spec` describes. Raises AdapterError, naming file and tensor or key."""
    if not isinstance(spec, ModelSpec):
        raise AdapterError(f"{path}: GGUF adapters are for native decoders; {spec.architecture} takes adapters of peft")
    try:
        file = read_gguf(path)
    except (ModelFolderError, UnsupportedModel) as error:
        raise AdapterError(str(error)) from None
    alpha = _alpha(file)
    architecture = str(file.metadata.get("general.architecture"))
    modules = modules_of(spec, is_turned=architecture in PERMUTED)
    ours = _names(file, spec, modules)
    halves = Halves(path, modules, max_rank)
    for stored in file.tensors.values():
        found = _NAME.fullmatch(stored.name)
        if found is None:
            raise AdapterError(f"{path}: tensor {stored.name}: it is no matrix of a LoRA adapter")
        module = ours.get(found["matrix"], found["matrix"])
        halves.add(Half(stored.name, module, found["half"] == "a", stored.shape))

    def read(half: Half) -> Tensor:
        try:
            return dequantized(file.tensors[half.tensor]).clone()
        except NotImplementedError:
            kind = file.tensors[half.tensor].type
            raise AdapterError(f"{path}: tensor {half.tensor} is of type {kind}, which cannot be decoded") from None

    return Adapter(path, joined(halves, read, lambda _, rank: alpha / rank if alpha else 1.0))


def _alpha(file: GgufFile) -> float:
    """The scale times the rank; 0 means a scale of 1, as in llama.cpp."""
    kind = file.metadata.get("general.type"), file.metadata.get("adapter.type")
    if kind != ("adapter", "lora"):
        found = f"{kind[0]!r:.40} and {kind[1]!r:.40}"
        raise AdapterError(f'{file.path}: general.type and adapter.type are {found}, not "adapter" and "lora"')
    if "adapter.alora.invocation_tokens" in file.metadata:
        raise AdapterError(f"{file.path}: adapter.alora.invocation_tokens: aLoRA is not supported; train a plain LoRA")
    alpha = file.metadata.get("adapter.lora.alpha")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise AdapterError(f'{file.path}: "adapter.lora.alpha" is a number, not {alpha!r:.40}')
    return float(alpha)


def _names(file: GgufFile, spec: ModelSpec, modules: Modules) -> Mapping[str, str]:
    """GGUF's name of each matrix -> the module of the checkpoint."""
    try:
        names = Names(GgufModel(file.path, file.metadata, file.tensors), spec.num_layers)
    except StopIteration:
        architecture = file.metadata.get("general.architecture")
        raise AdapterError(f'{file.path}: "general.architecture" is {architecture!r:.40}, which is not known') from None
    known = [*modules.of_name, *modules.refused]
    return {names.place(f"{module}.weight").tensor.removesuffix(".weight"): module for module in known}

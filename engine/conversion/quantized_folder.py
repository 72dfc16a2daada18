"""A model folder written anew with the matrices of its layers in fewer bits, by the names of compressed-tensors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...kernels.quantized.codes import CODE_TYPES
from ..errors import ConfigError
from ..models.architecture import ModelSpec
from ..models.checkpoint_weights import is_inner
from ..models.files import SINGLE_FILE, read_json
from ..models.layout import sources_of
from ..models.spec import read_spec
from ..models.weights import Checkpoint, check_checkpoint, open_checkpoint
from ..quantization.online import GROUP_SIZE, ONLINE_KINDS, OnlineKind, can_quantize, quantized, scale_dtype
from .safetensors_file import Entry, write_safetensors

FOLDER_KINDS: Mapping[str, OnlineKind] = {kind.upper(): kind for kind in ONLINE_KINDS}
_WEIGHTS = (".safetensors", ".bin", ".pth", ".pt", ".gguf", ".safetensors.index.json")
Progress = Callable[[int, int], None]  # (tensors written, of so many)


def write_quantized_folder(source: Path, target: Path, kind: str, progress: Progress | None = None) -> None:
    """Write the model in `source` with the matrices of its layers as "INT4", "INT8" or "FP8", tensor by tensor.

    Embedding, head, routers and matrices whose rows are no whole groups stay as they are. Raises ConfigError for another kind, a
    target that is there, or a model that is quantised or not computed natively, and what reading it raises.
    """
    if kind not in FOLDER_KINDS:
        advice = f"choose one of {', '.join(FOLDER_KINDS)}, or name a target that ends with .gguf"
        raise ConfigError(f'"{kind}" cannot be written into a folder; {advice}')
    spec = read_spec(source)
    if not isinstance(spec, ModelSpec) or spec.quantization is not None:
        reason = "is quantised already" if spec.quantization is not None else "is not computed natively"
        raise ConfigError(f"{source}: {spec.architecture} {reason}, and cannot be quantised")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target}: there is something already; name a new folder")
    with open_checkpoint(source) as checkpoint:
        plan = _plan(checkpoint, spec, FOLDER_KINDS[kind])
        try:
            target.mkdir(parents=True, exist_ok=True)
            _copy_others(source, target)
            entries = [entry for task in plan for entry in task.entries()]
            write_safetensors(target / SINGLE_FILE, entries, _written(checkpoint, plan, progress))
            _write_config(source, target, FOLDER_KINDS[kind], [task.name for task in plan if task.is_plain_matrix])
        except OSError as error:
            raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True)
class Task:
    """One tensor of the source, and what becomes of it."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    kind: OnlineKind | None  # None: it stays as it is

    @property
    def is_plain_matrix(self) -> bool:
        """Whether a reader of the configuration could take it for a matrix that is quantised."""
        return self.kind is None and len(self.shape) == 2 and self.name.endswith(".weight")

    def entries(self) -> list[Entry]:
        if self.kind is None:
            return [(self.name, self.dtype, self.shape)]
        rows, columns = self.shape
        if self.kind == "fp8":
            return [(self.name, torch.float8_e4m3fn, self.shape), (f"{self.name}_scale", torch.float32, (rows, 1))]
        bits, groups = (4, columns // GROUP_SIZE) if self.kind == "int4" else (8, 1)
        return [
            (f"{self.name}_packed", torch.int32, (rows, -(-columns * bits // 32))),
            (f"{self.name}_scale", scale_dtype(self.dtype), (rows, groups)),
            (f"{self.name}_shape", torch.int64, (2,)),
        ]

    def tensors(self, tensor: Tensor) -> list[Tensor]:
        if self.kind is None:
            return [tensor]
        made = quantized(self.kind, tensor)
        if self.kind == "fp8":
            return [made.data.view(torch.float8_e4m3fn), made.scales]
        data = made.data
        if data.shape[1] % 4:
            data = torch.nn.functional.pad(data, (0, -data.shape[1] % 4), value=CODE_TYPES["uint8"].middle)
        return [data.contiguous().view(torch.int32), made.scales, torch.tensor(self.shape)]


def _plan(checkpoint: Checkpoint, spec: ModelSpec, kind: OnlineKind) -> list[Task]:
    sources = sources_of(spec)
    expected = {spec.prefix + name: (shape,) for source in sources.values() for name, shape in source.parts}
    check_checkpoint(checkpoint, spec, expected)
    inner = {spec.prefix + name for ours, source in sources.items() if is_inner(ours, source) for name, _ in source.parts}
    tasks = []
    for name in sorted(checkpoint.names):
        shape, dtype = checkpoint.shape(name), checkpoint.tensor(name).dtype
        becomes = kind if name in inner and len(shape) == 2 and can_quantize(kind, shape[1]) else None
        tasks.append(Task(name, shape, dtype, becomes))
    return tasks


def _written(checkpoint: Checkpoint, plan: list[Task], progress: Progress | None) -> Iterator[Tensor]:
    for done, task in enumerate(plan, 1):
        yield from task.tensors(checkpoint.tensor(task.name))
        if progress is not None:
            progress(done, len(plan))


def _copy_others(source: Path, target: Path) -> None:
    """Tokenizer, template, recommendations, licence: all files but weights."""
    for path in source.iterdir():
        if path.is_file() and not path.name.endswith(_WEIGHTS):
            shutil.copyfile(path, target / path.name)


def _write_config(source: Path, target: Path, kind: OnlineKind, plain: list[str]) -> None:
    bits, type_name = 4 if kind == "int4" else 8, "float" if kind == "fp8" else "int"
    weights: dict[str, Any] = {"num_bits": bits, "type": type_name, "symmetric": True}
    weights |= {"strategy": "group", "group_size": GROUP_SIZE} if kind == "int4" else {"strategy": "channel"}
    form = "float-quantized" if kind == "fp8" else "pack-quantized"
    plan = {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None, "format": form}},
        "ignore": sorted({"lm_head", *(name.removesuffix(".weight") for name in plain)}),
    }
    content = {**read_json(source / "config.json"), "quantization_config": plan}
    (target / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

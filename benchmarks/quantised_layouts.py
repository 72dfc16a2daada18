"""A model folder in layouts that other tools write, rounded to the nearest: what they cost is measured, not how well they round.

GPTQ and AWQ calibrate, and lose less than what is written here; bytes and times are theirs. W8A8 is that of compressed-tensors,
with a scale for each row of weights and for each token.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from maskwright.engine.models.architecture import ModelSpec
from maskwright.engine.models.checkpoint_weights import is_inner
from maskwright.engine.models.layout import sources_of
from maskwright.engine.models.spec import read_spec
from maskwright.engine.models.weights import open_checkpoint

GROUP = 64  # columns with a scale; divides the widths of small models
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # of the rows of a word
_W8A8 = {
    "quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"], "format": "int-quantized",
            "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True},
        }
    },
}  # fmt: skip


def gptq(weight: Tensor) -> dict[str, Tensor]:
    """Version 1: zero points are stored less one."""
    codes, zeros, scales = _grouped(weight)
    zeros = (zeros - 1) % 16
    words = {"qweight": _words(codes.T.unflatten(0, (-1, 8)), 1), "qzeros": _words(zeros.T.unflatten(1, (-1, 8)), 2)}
    return {**words, "scales": scales.T}


def awq(weight: Tensor) -> dict[str, Tensor]:
    """The layout gemm."""
    codes, zeros, scales = _grouped(weight)
    ordered = (each.T.unflatten(1, (-1, 8))[:, :, list(_AWQ_ORDER)] for each in (codes, zeros))
    return {**dict(zip(("qweight", "qzeros"), (_words(each, 2) for each in ordered), strict=True)), "scales": scales.T}


def w8a8(weight: Tensor) -> dict[str, Tensor]:
    scales = (weight.abs().amax(1, keepdim=True) / 127).clamp_min(1e-8)
    return {"weight": (weight / scales).round().clamp(-127, 127).to(torch.int8), "weight_scale": scales.bfloat16()}


def _grouped(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(codes [rows, columns], zero points and scales [rows, groups]) of 4 bits."""
    groups = weight.unflatten(1, (-1, GROUP))
    low, high = groups.amin(2).clamp_max(0), groups.amax(2).clamp_min(0)
    scales = ((high - low) / 15).clamp_min(1e-4).half()
    zeros = (-low / scales.float()).round().clamp(0, 15)
    codes = (groups / scales.float()[:, :, None] + zeros[:, :, None]).round().clamp(0, 15)
    return codes.flatten(1).long(), zeros.long(), scales


def _words(eights: Tensor, axis: int) -> Tensor:
    """Eight codes along an axis in one word, the first in the lowest bits."""
    shape = [1] * eights.ndim
    shape[axis] = 8
    words = (eights << (4 * torch.arange(8)).view(shape)).sum(axis)
    return (words - ((words >> 31) << 32)).int()


LAYOUTS: Mapping[str, tuple[Callable[[Tensor], dict[str, Tensor]], Mapping[str, Any]]] = {
    "GPTQ": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": False, "desc_act": False}),
    "AWQ": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}),
    "W8A8": (w8a8, _W8A8),
}


def write_layout(source: Path, target: Path, kind: str) -> None:
    """Write the model in `source` with the matrices of its layers in one of LAYOUTS."""
    layout, config = LAYOUTS[kind]
    spec = read_spec(source)
    assert isinstance(spec, ModelSpec), "of models that are computed natively"
    inner = {spec.prefix + name for ours, made in sources_of(spec).items() if is_inner(ours, made) for name, _ in made.parts}
    target.mkdir()
    for path in source.iterdir():
        if path.suffix in (".json", ".jinja", ".model") and "safetensors" not in path.name:
            shutil.copyfile(path, target / path.name)
    tensors: dict[str, Tensor] = {}
    with open_checkpoint(source) as checkpoint:
        for name in checkpoint.names:
            tensor = checkpoint.tensor(name)
            if name not in inner or tensor.ndim != 2:
                tensors[name] = tensor.clone()
                continue
            module = name.removesuffix(".weight")
            tensors |= {f"{module}.{part}": made.contiguous() for part, made in layout(tensor.float()).items()}
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    content = {**json.loads((source / "config.json").read_text(encoding="utf-8")), "quantization_config": config}
    (target / "config.json").write_text(json.dumps(content), encoding="utf-8")

"""The tensors of a native model as GGUF has them: renamed, queries and keys turned, norms with their one, experts stacked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..gguf.files import GgufModel
from ..gguf.names import Names
from ..gguf.writer import Planned, encoded, kind_of
from ..models.architecture import LatentSpec, ModelSpec
from ..models.layout import Shape, sources_of
from ..models.spec import PERMUTED
from ..models.weights import Checkpoint
from .gguf_parameters import architecture_of, rope_factors

_TURNED = re.compile(r"self_attn\.([qk])_proj\.")
_SHORT = {"F16": "F16", "BF16": "BF16"}  # what safetensors call them; all else is written as F32


def planned_tensors(checkpoint: Checkpoint, spec: ModelSpec, kind: str) -> list[Planned]:
    """All tensors of the file, with most matrices as `kind`."""
    arch = architecture_of(spec)
    tensors = _Tensors(checkpoint, spec, arch)
    plan = [
        Planned(name, "F32", factors.shape, partial(encoded, factors, "F32")) for name, factors in rope_factors(spec).items()
    ]
    for stored, parts in _grouped(spec, arch).items():
        if spec.latent is not None and stored.endswith("attn_kv_b.weight"):
            plan += tensors.halves(stored, parts[0][1], spec.latent, kind)
        else:
            plan.append(tensors.planned(stored, [name for _, name, _ in parts], parts[0][2], parts[0][0] is not None, kind))
    return plan


def _grouped(spec: ModelSpec, arch: str) -> Mapping[str, list[tuple[int | None, str, Shape]]]:
    """The parts (number of an expert, the checkpoint's name, shape) of each tensor of the file."""
    names = Names(GgufModel(Path(), {"general.architecture": arch}, {}), spec.num_layers)
    parts = {name: shape for source in sources_of(spec).values() for name, shape in source.parts}
    grouped: dict[str, list[tuple[int | None, str, Shape]]] = defaultdict(list)
    for name, shape in parts.items():
        place = names.place(name)
        grouped[place.tensor].append((place.index, spec.prefix + name, shape))
    return grouped


class _Tensors:
    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, arch: str) -> None:
        self.checkpoint, self.spec, self.is_turned = checkpoint, spec, arch in PERMUTED

    def planned(self, stored: str, names: list[str], shape: Shape, is_stack: bool, kind: str) -> Planned:
        whole = (len(names), *shape) if is_stack else shape
        wanted = self._kind(stored, names[0], whole, kind)
        return Planned(stored, wanted, whole, lambda: np.concatenate([self._encoded(name, wanted) for name in names]).reshape(-1))

    def halves(self, stored: str, name: str, latent: LatentSpec, kind: str) -> Iterator[Planned]:
        """Each head's keys, transposed, and values, which a checkpoint has in one matrix."""
        heads = self.spec.num_heads
        shapes = {"k_b": (heads, latent.rank, latent.nope_dim), "v_b": (heads, latent.value_dim, latent.rank)}
        for half, shape in shapes.items():
            renamed = stored.replace("kv_b", half)
            wanted = self._kind(renamed, name, shape, kind)
            yield Planned(renamed, wanted, shape, partial(self._half, name, latent, half == "k_b", wanted))

    def _half(self, name: str, latent: LatentSpec, is_keys: bool, kind: str) -> NDArray[np.uint8]:
        both = self._numbers(name).unflatten(0, (self.spec.num_heads, -1))
        keys, values = both.split((latent.nope_dim, latent.value_dim), dim=1)
        return encoded((keys.transpose(1, 2) if is_keys else values).contiguous().numpy(), kind)

    def _kind(self, stored: str, name: str, shape: Shape, kind: str) -> str:
        """Vectors, norms and routers are float32, as llama.cpp has them."""
        unquantized = "F32" if len(shape) < 2 else _SHORT.get(self.checkpoint.dtype(name), "F32")
        found = kind_of(stored, shape, kind, "")
        if found:
            return found
        return "F32" if kind_of(stored, (*shape[:-1], 256), kind, "") == "" else unquantized

    def _encoded(self, name: str, kind: str) -> NDArray[np.uint8]:
        return encoded(self._numbers(name).numpy(), kind)

    def _numbers(self, name: str) -> Tensor:
        """float32, as the file means it."""
        numbers = self.checkpoint.tensor(name).float()
        turned = _TURNED.search(name)
        if self.is_turned and turned is not None:
            num_heads = self.spec.num_heads if turned[1] == "q" else self.spec.num_kv_heads
            return _interleaved(numbers, num_heads, self.spec.ropes[0].dim)
        return numbers + self.spec.norm.offset if self.spec.norm.offset and name.endswith("norm.weight") else numbers


def _interleaved(rows: Tensor, num_heads: int, dim: int) -> Tensor:
    """rows [num_heads * head_dim, ...], the first `dim` of a head put so that 2 i turns with 2 i + 1, not i with i + dim / 2."""
    heads = rows.unflatten(0, (num_heads, -1))
    order = torch.arange(heads.shape[1])
    order[:dim] = torch.arange(dim).view(2, -1).T.flatten()
    return heads.index_select(1, order).flatten(0, 1)

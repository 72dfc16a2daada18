"""The names that tensors have in a checkpoint of transformers, as GGUF files call them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .files import GgufModel

_EXPERT = re.compile(r"\.experts\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor of a checkpoint is: a whole tensor of the file, or one of the matrices that it stacks."""

    tensor: str
    index: int | None = None


class Names:
    """The library's table for one architecture, read the other way."""

    def __init__(self, model: GgufModel, num_layers: int) -> None:
        from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

        arch = next(arch for arch, name in MODEL_ARCH_NAMES.items() if name == model.architecture)
        self._table = get_tensor_name_map(arch, num_layers)

    def place(self, name: str) -> Place:
        """Where "model.layers.3.mlp.experts.7.up_proj.weight" and its like are, if they are there."""
        name = name.replace(".e_score_correction_bias", ".e_score_correction.bias")
        base, _, kind = name.rpartition(".")
        expert = _EXPERT.search(base)
        base = _EXPERT.sub(".experts.", base)
        stored = self._table.get_name(base) or base
        return Place(f"{stored}.{kind}", None if expert is None else int(expert[1]))

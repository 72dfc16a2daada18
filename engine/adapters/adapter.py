"""An adapter as a value: what it adds to which matrices, whoever wrote it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from .modules import Place


@dataclass(frozen=True, slots=True)
class LowRank:
    """What is added to one matrix: scale * up @ down. Rows of `up` are in the order of our matrices, see `modules.Place`."""

    down: Tensor  # A [rank, in_features]
    up: Tensor  # B [out_features, rank]
    scale: float

    @property
    def rank(self) -> int:
        return len(self.down)


@dataclass(frozen=True, slots=True)
class Adapter:
    """All that one adapter adds, by the place of the matrix it adds to."""

    path: Path
    parts: Mapping[Place, LowRank]
    fingerprint: str = field(init=False)  # of what is added: two files that add the same have the same

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", _fingerprint(self.parts))

    @property
    def rank(self) -> int:
        """The highest of any matrix."""
        return max((part.rank for part in self.parts.values()), default=0)

    @property
    def num_parameters(self) -> int:
        return sum(part.down.numel() + part.up.numel() for part in self.parts.values())


def _fingerprint(parts: Mapping[Place, LowRank]) -> str:
    """SHA-256 (hex) of every place, scale and number."""
    digest = hashlib.sha256()
    for place in sorted(parts):
        part = parts[place]
        for tensor in (part.down, part.up):
            digest.update(json.dumps([place.linear, place.slice, part.scale, str(tensor.dtype), list(tensor.shape)]).encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()

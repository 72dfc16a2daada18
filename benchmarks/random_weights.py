"""Weights for a model of any native family that nobody has trained: time and memory do not depend on what they are."""

from __future__ import annotations

import torch
from torch import Tensor

from maskwright.engine.models.architecture import ModelSpec
from maskwright.engine.models.layout import Source, sources_of


def random_weights(spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """Every tensor that `spec` calls for; deviations of 0.02 keep the numbers of deep models finite."""
    return {name: _random(source, dtype, device) for name, source in sources_of(spec).items()}


def _random(source: Source, dtype: torch.dtype, device: torch.device) -> Tensor:
    parts = [torch.randn(shape, device=device, dtype=source.dtype or dtype) * 0.02 for _, shape in source.parts]
    joined = parts[0] if len(parts) == 1 else torch.cat(parts)
    return joined if source.finish is None else source.finish(joined)

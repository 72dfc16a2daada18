"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864) and the scalings that config.json may ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import UnsupportedModel

SUPPORTED = ("default", "linear", "dynamic", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """The rotation as config.json describes it. `parameters` holds the numbers of the scaling `kind`."""

    kind: str
    theta: float
    max_position_embeddings: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def original_max_positions(self) -> int:
        return int(self.parameters.get("original_max_position_embeddings") or self.max_position_embeddings)

    @property
    def max_positions(self) -> int:
        """Longest sequence the rotation was meant for; dynamic scaling only ever acts beyond it."""
        if self.kind != "yarn":
            return self.max_position_embeddings
        factor = self.parameters.get("factor") or 1.0
        return max(self.max_position_embeddings, int(self.original_max_positions * factor))


def rope_spec(config: Mapping[str, Any], default_theta: float = 10_000.0) -> RopeSpec:
    """Read both spellings: `rope_parameters` and the older `rope_theta` with `rope_scaling`.

    Raises UnsupportedModel naming the rope type, or the parameter that a scaling needs and does not get.
    """
    parameters = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    kind = parameters.pop("rope_type", None) or parameters.pop("type", None) or "default"
    parameters.pop("type", None)
    theta = parameters.pop("rope_theta", None) or config.get("rope_theta") or default_theta
    if kind not in SUPPORTED:
        raise UnsupportedModel(f'config.json: rope type "{kind}" is not supported; supported: {", ".join(SUPPORTED)}')
    if float(parameters.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0) != 1.0:
        raise UnsupportedModel("config.json: partial_rotary_factor other than 1.0 is not supported")
    if config.get("original_max_position_embeddings"):
        parameters["original_max_position_embeddings"] = config["original_max_position_embeddings"]
    _require(kind, parameters)
    return RopeSpec(kind, float(theta), int(config["max_position_embeddings"]), parameters)


def inverse_frequencies(rope: RopeSpec, head_dim: int) -> tuple[Tensor, float]:
    """(float32 [head_dim / 2] radians per position, factor on cosine and sine)."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    frequencies = 1.0 / rope.theta**exponents
    if rope.kind == "linear":
        return frequencies / rope.parameters["factor"], 1.0
    if rope.kind == "llama3":
        return _llama3(frequencies, rope), 1.0
    if rope.kind == "yarn":
        return _yarn(frequencies, rope, head_dim), _yarn_attention_factor(rope)
    return frequencies, 1.0  # default, and dynamic within max_positions


def _require(kind: str, parameters: Mapping[str, Any]) -> None:
    needed = {"linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor")}
    for name in needed.get(kind, ()):
        if parameters.get(name) is None:
            raise UnsupportedModel(f'config.json: rope type "{kind}" needs the parameter "{name}"')


def _llama3(frequencies: Tensor, rope: RopeSpec) -> Tensor:
    """Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between blended."""
    factor, low, high = (rope.parameters[name] for name in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = rope.original_max_positions * frequencies / (2 * math.pi)  # full turns within the original context
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - keep) * frequencies / factor + keep * frequencies


def _yarn(frequencies: Tensor, rope: RopeSpec, head_dim: int) -> Tensor:
    """YaRN (Peng et al. 2023, arXiv:2309.00071): interpolate slow dimensions, keep fast ones, ramp between."""
    low, high = _yarn_ramp(rope, head_dim)
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0.0, 1.0)
    return ramp * frequencies / _yarn_factor(rope) + (1 - ramp) * frequencies


def _yarn_ramp(rope: RopeSpec, head_dim: int) -> tuple[float, float]:
    def dimension_with(turns: float) -> float:
        return head_dim * math.log(rope.original_max_positions / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low = dimension_with(rope.parameters.get("beta_fast") or 32)
    high = dimension_with(rope.parameters.get("beta_slow") or 1)
    if rope.parameters.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    return low, high if high != low else high + 0.001


def _yarn_factor(rope: RopeSpec) -> float:
    return float(rope.parameters.get("factor") or rope.max_position_embeddings / rope.original_max_positions)


def _yarn_attention_factor(rope: RopeSpec) -> float:
    def magnitude(scale: float) -> float:
        factor = _yarn_factor(rope)
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    given, mscale, mscale_all = (rope.parameters.get(name) for name in ("attention_factor", "mscale", "mscale_all_dim"))
    if given is not None:
        return float(given)
    return magnitude(mscale) / magnitude(mscale_all) if mscale and mscale_all else magnitude(1.0)

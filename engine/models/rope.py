"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864) and the scalings that config.json may ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import UnsupportedModel

SUPPORTED = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
_SPELLINGS = {"su": "longrope"}  # of older files
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """The rotation as config.json describes it. `parameters` holds the numbers of the scaling `kind`."""

    kind: str
    theta: float
    dim: int  # of a head's dimensions, how many turn: the first ones
    max_position_embeddings: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    longest: int | None = None  # the longest sequence that will be computed; None = max_positions

    @property
    def original_max_positions(self) -> int:
        return int(self.parameters.get("original_max_position_embeddings") or self.max_position_embeddings)

    @property
    def max_positions(self) -> int:
        """The longest sequence, in tokens, that the rotation is meant for. Dynamic scaling acts where `longest` exceeds it."""
        if self.kind != "yarn":
            return self.max_position_embeddings
        factor = self.parameters.get("factor") or 1.0
        return max(self.max_position_embeddings, int(self.original_max_positions * factor))


def rope_spec(config: Mapping[str, Any], head_dim: int, given: Mapping[str, Any] | None = None) -> RopeSpec:
    """Read both spellings: `rope_parameters` (or `given`, for one of several kinds of layers) and the older `rope_theta`
    with `rope_scaling`.

    Raises UnsupportedModel naming the rope type, the parameter that a scaling needs and does not get, an odd number of
    dimensions, or a number that is out of range.
    """
    told = given or config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(told, Mapping):
        raise UnsupportedModel(f"config.json: how positions turn is an object (rope_parameters, rope_scaling), not {told!r:.60}")
    parameters = dict(told)
    kind = parameters.pop("rope_type", None) or parameters.pop("type", None) or "default"
    kind = _SPELLINGS.get(kind, kind)
    parameters.pop("type", None)
    theta = parameters.pop("rope_theta", None) or config.get("rope_theta") or 10_000.0
    if kind not in SUPPORTED:
        raise UnsupportedModel(f'config.json: rope type "{kind}" is not supported; supported: {", ".join(SUPPORTED)}')
    if config.get("original_max_position_embeddings"):
        parameters["original_max_position_embeddings"] = config["original_max_position_embeddings"]
    _check_numbers({**parameters, "rope_theta": theta})
    for name in _NEEDED.get(kind, ()):
        if parameters.get(name) is None:
            raise UnsupportedModel(f'config.json: rope type "{kind}" needs the parameter "{name}"')
    share = float(parameters.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0)
    dim = int(head_dim * share + 1e-4)  # a share such as 30 / 44 is not exact
    if dim < 2 or dim % 2:
        raise UnsupportedModel(f"config.json: {dim} dimensions of a head turn; they do so in pairs: an even number from 2 on")
    if dim > head_dim:
        raise UnsupportedModel(f"config.json: {dim} dimensions of a head turn, which has {head_dim}")
    return RopeSpec(kind, float(theta), dim, int(config["max_position_embeddings"]), parameters)


_POSITIVE = ("factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow", "original_max_position_embeddings")


def _check_numbers(parameters: Mapping[str, Any]) -> None:
    """Raise UnsupportedModel for a number that nothing turns by."""
    found = [(name, parameters[name], 0.0) for name in _POSITIVE if parameters.get(name) is not None]
    found += [(name, value, 0.0) for name in ("short_factor", "long_factor") for value in _listed(name, parameters.get(name))]
    for name, value, least in (*found, ("rope_theta", parameters["rope_theta"], 1.0)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not least < value < math.inf:
            raise UnsupportedModel(f'config.json: rope parameter "{name}" is {value!r:.40}; it must be a number above {least:g}')


def _listed(name: str, value: Any) -> list[Any]:
    if value is None or isinstance(value, list | tuple):
        return list(value or ())
    raise UnsupportedModel(f'config.json: rope parameter "{name}" is {value!r:.40}; it must be a list of numbers')


def inverse_frequencies(rope: RopeSpec) -> tuple[Tensor, float]:
    """(frequencies, float32 [rope.dim / 2], in radians per position; the factor that multiplies cosine and sine).

    Raises UnsupportedModel for a longrope that has not one number for each pair of dimensions.
    """
    exponents = torch.arange(0, rope.dim, 2, dtype=torch.float32) / rope.dim
    frequencies = 1.0 / rope.theta**exponents
    if rope.kind == "linear":
        return frequencies / rope.parameters["factor"], 1.0
    if rope.kind == "llama3":
        return _llama3(frequencies, rope), 1.0
    if rope.kind == "yarn":
        return _yarn(frequencies, rope, rope.dim), _yarn_attention_factor(rope)
    if rope.kind == "longrope":
        return _longrope(exponents, rope), _longrope_attention_factor(rope)
    if rope.kind == "dynamic":
        return _dynamic(exponents, rope), 1.0
    return frequencies, 1.0


class AngleTable:
    """Cosine and sine of a rope's angles at all positions up to the farthest that was asked for, on a CPU, in float32."""

    STEP = 1024  # positions that are computed at a time at least

    def __init__(self, frequencies: Tensor, factor: float) -> None:
        """frequencies float32 [half], factor: of both, as `inverse_frequencies` gives them."""
        self._frequencies, self._factor = frequencies, factor
        self._cosine = self._sine = frequencies.new_empty((0, 1, len(frequencies)))

    def up_to(self, num_positions: int) -> tuple[Tensor, Tensor]:
        """(cosine, sine), [at least num_positions, 1, half]."""
        known = self._cosine.shape[0]
        if num_positions > known:
            end = max(-(-num_positions // self.STEP) * self.STEP, 2 * known)
            angles = torch.arange(known, end)[:, None, None].float() * self._frequencies
            self._cosine = torch.cat((self._cosine, angles.cos() * self._factor))
            self._sine = torch.cat((self._sine, angles.sin() * self._factor))
        return self._cosine, self._sine


def yarn_magnitude(factor: float, scale: float = 1.0) -> float:
    """YaRN's (arXiv:2309.00071) factor on queries and keys at `factor` times the original length: 0.1 * scale * ln(factor) + 1."""
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


def _dynamic(exponents: Tensor, rope: RopeSpec) -> Tensor:
    """NTK-aware scaling: the base grows as the longest sequence exceeds the original length; up to that length it stays.

    Keys stay in the cache, so that one engine uses one base. transformers raises the base whenever a sequence grows, and keys that
    it has cached keep the rotation they had.
    """
    length, original = rope.longest or 0, rope.max_position_embeddings
    factor = float(rope.parameters["factor"])
    stretch = factor * max(length, original) / original - (factor - 1)
    return 1.0 / (rope.theta * stretch ** (rope.dim / max(rope.dim - 2, 1))) ** exponents


def _longrope(exponents: Tensor, rope: RopeSpec) -> Tensor:
    """LongRoPE (Ding et al. 2024, arXiv:2402.13753): a stretch per dimension, one set for short and one for long texts.

    Keys stay in the cache, so that one engine uses one set: the long one where sequences may outgrow the original
    length. transformers changes the set when a sequence does, and computes it again from its first token.
    """
    longest = rope.max_positions if rope.longest is None else rope.longest
    name = "long_factor" if longest > rope.original_max_positions else "short_factor"
    stretch = torch.tensor(rope.parameters[name], dtype=torch.float32)
    if len(stretch) != len(exponents):
        raise UnsupportedModel(f'config.json: rope "{name}" has {len(stretch)} numbers, {len(exponents)} are needed')
    return 1.0 / (stretch * rope.theta**exponents)


def _longrope_attention_factor(rope: RopeSpec) -> float:
    if rope.parameters.get("attention_factor") is not None:
        return float(rope.parameters["attention_factor"])
    factor = rope.parameters.get("factor") or rope.max_position_embeddings / rope.original_max_positions
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(rope.original_max_positions))


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
    given, mscale, mscale_all = (rope.parameters.get(name) for name in ("attention_factor", "mscale", "mscale_all_dim"))
    if given is not None:
        return float(given)
    factor = _yarn_factor(rope)
    return yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all) if mscale and mscale_all else yarn_magnitude(factor)

"""Programs in plain PyTorch, one row after another: the truth for `gpu/programs.py`.

Every stage either keeps an interval of scores, or changes how scores become weights, and that in a way that keeps their order. So
what a program makes of a row is a handful of numbers, a `Shape`: which distances below the best score are kept, and the polynomial
that says how heavy a token of some distance is. Sums are of float64, and of one row alone: no batch can change them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .programs import Code, Programs
from .uniform import uniform

XTC_STREAM = 0x2545F4914F6CDD1D  # apart from the random numbers that tokens are drawn with
FARTHEST = 1e10  # distances are cut here, so that no power of them is infinite
DEEPEST = 1e37  # so that differences of depths are numbers
NOT_A_LOGIT = 1e38  # so far below the best is only what was -inf
HIGHEST = float(np.finfo(np.float32).max)
ESTIMATED_FROM = 100  # most probable tokens, from which mirostat 1 estimates how fast probabilities fall
LEAST_TEMPERATURE = 1e-38
NEARLY_ONE = 1e-3  # so near to 1, an exponent is taken as 1


@dataclass(frozen=True, slots=True)
class Shape:
    """What is made of a row so far. Distances are those of scores from the best one; `near` is that of a token that is kept.

    A token of the distance d is kept if near <= d <= far, and weighs exp(-depth) with depth = c1 x + c2 x^2 + c3 x^3, x = d - base.
    """

    near: float = 0.0
    far: float = HIGHEST
    base: float = 0.0
    c1: float = 1.0
    c2: float = 0.0
    c3: float = 0.0

    def depths(self, distances: Tensor) -> Tensor:
        """float32, as each operation rounds."""
        x = (distances - _single(self.base)).clamp(0, FARTHEST)
        return (((x * _single(self.c3) + _single(self.c2)) * x + _single(self.c1)) * x).clamp(max=DEEPEST)

    def nearer(self, near: float) -> Shape:
        """Without the tokens before that distance. Where weights are exponential, only differences of distances matter."""
        return replace(self, near=near, base=self.base if self.c2 or self.c3 else near)


class Kept(NamedTuple):
    """The tokens that are kept of a row: [kept] each."""

    distances: Tensor  # float32
    depths: Tensor  # float64, below the most probable one that is kept, so 0 for that
    weights: Tensor  # float64, exp of the negative depth


def shaped_weights(lag: Tensor, programs: Programs, seed: Tensor, position: Tensor) -> Iterator[tuple[int, Tensor]]:
    """(row, float32 [V] weights of its tokens in [0, 1]) of each row that has a program. lag: [rows, V] score less the best score.

    Of a row in which nothing is allowed nothing has a weight.
    """
    coins = uniform(seed ^ XTC_STREAM, position).tolist()
    for row, (codes, values) in enumerate(zip(programs.codes.tolist(), programs.values.tolist(), strict=True)):
        if codes[0] == Code.END:
            continue
        distances = -lag[row]
        shape = Shape()
        if bool((distances == 0).any()):
            for code, numbers in zip(codes, values, strict=True):
                if code != Code.END:
                    shape = APPLY[Code(code)](distances, shape, numbers, coins[row])
        yield row, _weights(distances, shape)


def _weights(distances: Tensor, shape: Shape) -> Tensor:
    nearest = shape.depths(torch.tensor([shape.near], device=distances.device))
    depths = (shape.depths(distances) - nearest).clamp(0, 60)
    return torch.where(_is_kept(distances, shape), torch.exp(-depths), 0)


def _is_kept(distances: Tensor, shape: Shape) -> Tensor:
    return (distances >= _single(shape.near)) & (distances <= _single(shape.far))


def _kept(distances: Tensor, shape: Shape) -> Kept:
    kept = distances[_is_kept(distances, shape)]
    depths = shape.depths(kept).double()
    depths -= depths.min()
    return Kept(kept, depths, torch.exp(-depths))


def _single(value: float) -> float:
    """As float32 holds it."""
    return float(np.float32(min(max(value, -HIGHEST), HIGHEST)))


# ---- stages that change weights


def _temperature(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """With a range: dynamic temperature by entropy, as llama.cpp's `llama_sampler_temp_ext` has it."""
    temperature, spread, exponent = values
    if spread > 0:
        kept = _kept(distances, shape)
        least, most = max(0.0, temperature - spread), temperature + spread
        if len(kept.distances) > 1:
            relative = min(max(_entropy(kept) / math.log(len(kept.distances)), 0.0), 1.0)
            temperature = least + (most - least) * relative**exponent
    divisor = max(temperature, LEAST_TEMPERATURE)
    return replace(shape, c1=shape.c1 / divisor, c2=shape.c2 / divisor, c3=shape.c3 / divisor)


def _smoothing(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Quadratic sampling (kalomaze), as text-generation-webui's `QuadraticSamplingLogitsWarper` has it."""
    factor, curve = values[:2]
    square, cube = (3 - curve) / 2 * factor, (curve - 1) / 2 * factor
    return replace(shape, base=shape.near, c1=0.0, c2=square * shape.c1**2, c3=cube * shape.c1**3)


# ---- stages that keep an interval


def _top_n_sigma(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Tang et al., "Top-n-sigma" (2024): within n standard deviations of the best logit. Logits of -inf have no part in it."""
    kept = _kept(distances, shape)
    counted = kept.depths[kept.distances < NOT_A_LOGIT]
    return _within(kept, shape, values[0] * float(counted.std(correction=0)))


def _top_k(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    kept, count = _kept(distances, shape), int(values[0])
    if count >= len(kept.distances):
        return shape
    return replace(shape, far=float(torch.topk(kept.distances, count, largest=False).values[-1]))


def _top_p(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020)."""
    kept = _kept(distances, shape)
    order = torch.argsort(kept.distances)
    return replace(shape, far=float(kept.distances[order[_place_of(kept.weights[order], values[0])]]))


def _typical_p(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Meister et al., "Locally Typical Sampling" (2023): by how far a token's surprise is from the expected one."""
    kept = _kept(distances, shape)
    mean = float((kept.weights * kept.depths).sum() / kept.weights.sum())  # expected surprise, less the best token's
    deviations = (kept.depths - mean).abs()
    order = torch.argsort(deviations)
    chosen = kept.distances[deviations <= deviations[order[_place_of(kept.weights[order], values[0])]]]
    return replace(shape.nearer(float(chosen.min())), far=float(chosen.max()))


def _top_a(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """KoboldAI's top-a: a token's probability is at least top_a times the square of the best one's."""
    kept = _kept(distances, shape)
    return _within(kept, shape, math.log(float(kept.weights.sum()) / values[0]))


def _min_p(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Nguyen et al., "Turning Up the Heat: Min-p Sampling" (2024)."""
    return _within(_kept(distances, shape), shape, -math.log(values[0]))


def _xtc(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Exclude Top Choices (p-e-w), as llama.cpp's `llama_sampler_xtc_apply` has it: of several the least probable one stays."""
    probability, threshold = values[:2]
    if coin >= probability:
        return shape
    kept = _kept(distances, shape)
    top = kept.distances[kept.weights >= threshold * kept.weights.sum()]
    return shape.nearer(float(top.max())) if len(top) else shape


def _mirostat_1(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """Basu et al., "Mirostat" (2021), as llama.cpp's `llama_sampler_mirostat_apply` has it: k by an estimate of Zipf's exponent."""
    kept = _kept(distances, shape)
    count = min(ESTIMATED_FROM, len(kept.distances))
    depths = torch.sort(torch.topk(kept.depths, count, largest=False).values).values
    ranks = torch.arange(1, count, dtype=torch.float64, device=depths.device)
    steps = torch.log((ranks + 1) / ranks)
    if count == 1:
        return shape
    exponent = float((steps * depths.diff()).sum() / (steps * steps).sum())
    return _top_k(distances, shape, [mirostat_count(exponent, values[0], len(distances))], coin)


def mirostat_count(exponent: float, aim: float, vocab_size: int) -> int:
    """How many tokens have about the surprise that is aimed at, in bits, under a Zipf distribution of that exponent."""
    excess = exponent - 1
    ratio = 1 / math.log(max(vocab_size, 2))  # the limit
    if abs(excess) > NEARLY_ONE:
        ratio = excess / (1 - max(vocab_size, 2) ** -excess)
    power = (aim + math.log2(ratio)) / max(exponent, NEARLY_ONE)
    return int(2 ** min(max(power, 0.0), 24.0))


def _mirostat_2(distances: Tensor, shape: Shape, values: list[float], coin: float) -> Shape:
    """The same authors' second algorithm: tokens of at most so much surprise, in bits."""
    kept = _kept(distances, shape)
    return _within(kept, shape, values[0] * math.log(2) - math.log(float(kept.weights.sum())))


def _within(kept: Kept, shape: Shape, limit: float) -> Shape:
    """Keep what is at most so deep; the most probable token in any case."""
    return replace(shape, far=float(kept.distances[kept.depths <= max(limit, 0.0)].max()))


def _place_of(weights: Tensor, share: float) -> int:
    """The first place up to which weights in this order sum to that share of all of them."""
    sums = weights.cumsum(0)
    return min(int((sums < share * sums[-1]).sum()), len(sums) - 1)


def _entropy(kept: Kept) -> float:
    total = kept.weights.sum()
    return float(torch.log(total) + (kept.weights * kept.depths).sum() / total)


Apply = Callable[[Tensor, Shape, list[float], float], Shape]
APPLY: Mapping[Code, Apply] = MappingProxyType(
    {
        Code.TEMPERATURE: _temperature,
        Code.SMOOTHING: _smoothing,
        Code.TOP_N_SIGMA: _top_n_sigma,
        Code.TOP_K: _top_k,
        Code.TOP_P: _top_p,
        Code.TYPICAL_P: _typical_p,
        Code.TOP_A: _top_a,
        Code.MIN_P: _min_p,
        Code.XTC: _xtc,
        Code.MIROSTAT_1: _mirostat_1,
        Code.MIROSTAT_2: _mirostat_2,
    }
)

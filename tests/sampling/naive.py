"""The sampler one row at a time in plain Python and fp64: the docstring of `maskwright.kernels.sampler`, executed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LOWEST, HIGHEST = -3.4028234663852886e38, 3.4028234663852886e38
WORD = (1 << 64) - 1


@dataclass
class Row:
    logits: list[float]
    masked_in: set[int]
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    position: int = 0
    bias: dict[int, float] = field(default_factory=dict)
    history: dict[int, float] = field(default_factory=dict)


@dataclass
class Result:
    token: int | None
    logprobs: list[float]
    kept_mass: float
    bans_overridden: bool


def sample_row(row: Row, nudge: float = 0.0, top_p_nudge: float = 0.0, min_p_nudge: float = 0.0) -> Result:
    model = [finite(x) for x in row.logits]
    total = log_sum_exp(model)
    allowed, overridden = without_bans(row)
    score = penalised(model, row)
    token = None
    if allowed:
        best = max(score[t] for t in allowed)
        if row.temperature == 0:
            token = min(t for t in allowed if score[t] == best)
        else:
            weights = kept_weights(score, best, allowed, row, top_p_nudge, min_p_nudge)
            token = inverse_cdf(weights, min(max(uniform(row.seed, row.position) + nudge, 0.0), 1.0))
    kept = log_sum_exp([model[t] for t in row.masked_in]) if row.masked_in else -math.inf
    return Result(token, [x - total for x in model], math.exp(kept - total), overridden)


def finite(x: float) -> float:
    return LOWEST if math.isnan(x) else min(max(x, LOWEST), HIGHEST)


def log_sum_exp(values: list[float]) -> float:
    best = max(values)
    return best + math.log(math.fsum(math.exp(x - best) for x in values))


def without_bans(row: Row) -> tuple[set[int], bool]:
    left = {t for t in row.masked_in if row.bias.get(t) != -math.inf}
    overridden = bool(row.masked_in) and not left
    return (row.masked_in if overridden else left), overridden


def penalised(model: list[float], row: Row) -> list[float]:
    score = list(model)
    for t, value in row.bias.items():
        if value != -math.inf:
            score[t] = finite(score[t] + value)
    for t, count in row.history.items():
        factor = row.repetition_penalty
        score[t] = score[t] / factor if score[t] > 0 else score[t] * factor
        score[t] = finite(score[t] - row.frequency_penalty * count - row.presence_penalty * (count > 0))
    return score


def kept_weights(
    score: list[float], best: float, allowed: set[int], row: Row, top_p_nudge: float = 0.0, min_p_nudge: float = 0.0
) -> dict[int, float]:
    """Weights of the tokens that survive the filters, the best token's being 1."""
    lag = {t: score[t] - best for t in sorted(allowed)}
    weight = {t: math.exp(x / row.temperature) for t, x in lag.items()}
    kept = list(lag)
    if 0 < row.top_k < len(kept):
        threshold = sorted(lag.values(), reverse=True)[row.top_k - 1]
        kept = [t for t in kept if lag[t] >= threshold]
    if row.top_p < 1:
        wanted = (row.top_p + top_p_nudge) * math.fsum(weight[t] for t in kept)
        kept = [t for t in kept if math.fsum(weight[o] for o in kept if lag[o] > lag[t]) < wanted]
    return {t: weight[t] for t in kept if weight[t] >= row.min_p * (1 + min_p_nudge)}


def inverse_cdf(weights: dict[int, float], u: float) -> int:
    target, running = u * math.fsum(weights.values()), 0.0
    for t, weight in weights.items():
        running += weight
        if running > target:
            return t
    return max(t for t, weight in weights.items() if weight > 0)


def uniform(seed: int, position: int) -> float:
    gamma = 0x9E3779B97F4A7C15
    return (mix64(mix64((seed + gamma) & WORD) + (position + 1) * gamma) >> 11) * 2.0**-53


def mix64(bits: int) -> int:
    bits &= WORD
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & WORD
    return bits ^ (bits >> 31)


def unmix64(bits: int) -> int:
    """The inverse of mix64, for tests that want a particular random number."""
    bits = unshift(bits, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
    bits = unshift(bits, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
    return unshift(bits, 30)


def unshift(bits: int, count: int) -> int:
    """x such that x ^ (x >> count) == bits."""
    x = bits
    for _ in range(64 // count):
        x = bits ^ (x >> count)
    return x


def seed_for(bits: int, position: int = 0) -> int:
    """The seed whose random bits at this position are `bits`."""
    gamma = 0x9E3779B97F4A7C15
    return (unmix64((unmix64(bits) - (position + 1) * gamma) & WORD) - gamma) & WORD

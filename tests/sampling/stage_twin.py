"""The stages of programs as their authors define them: over sorted lists of probabilities, in plain Python and float64.

Where llama.cpp is named, it is `src/llama-sampling.cpp` of that project; transformers is `generation/logits_process.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Logits = dict[int, float]  # of the tokens that are left


def softmax(logits: Logits) -> dict[int, float]:
    best = max(logits.values())
    weights = {token: math.exp(logit - best) for token, logit in logits.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def by_probability(logits: Logits) -> list[int]:
    return sorted(logits, key=lambda token: -logits[token])


def temperature(logits: Logits, temperature: float, dynatemp_range: float = 0.0, dynatemp_exponent: float = 1.0) -> Logits:
    """llama.cpp, `llama_sampler_temp_ext_apply`."""
    if dynatemp_range > 0 and len(logits) > 1:
        least, most = max(0.0, temperature - dynatemp_range), temperature + dynatemp_range
        entropy = -math.fsum(p * math.log(p) for p in softmax(logits).values() if p > 0)
        temperature = least + (most - least) * (entropy / math.log(len(logits))) ** dynatemp_exponent
    return {token: logit / temperature for token, logit in logits.items()}


def smoothing(logits: Logits, smoothing_factor: float, smoothing_curve: float = 1.0) -> Logits:
    """text-generation-webui, `QuadraticSamplingLogitsWarper`."""
    best = max(logits.values())
    k, s = (3 - smoothing_curve) / 2, (smoothing_curve - 1) / 2
    differences = {token: logit - best for token, logit in logits.items()}
    return {token: -(k * smoothing_factor * d**2) + s * smoothing_factor * d**3 + best for token, d in differences.items()}


def top_n_sigma(logits: Logits, top_n_sigma: float) -> Logits:
    """llama.cpp, `llama_sampler_top_n_sigma_apply`."""
    mean = math.fsum(logits.values()) / len(logits)
    sigma = math.sqrt(math.fsum((logit - mean) ** 2 for logit in logits.values()) / len(logits))
    return {token: logit for token, logit in logits.items() if logit >= max(logits.values()) - top_n_sigma * sigma}


def top_k(logits: Logits, top_k: int) -> Logits:
    return {token: logits[token] for token in by_probability(logits)[:top_k]}


def top_p(logits: Logits, top_p: float) -> Logits:
    """transformers, `TopPLogitsWarper`: the most probable tokens up to the one with which they hold top_p."""
    kept, held, probabilities = {}, 0.0, softmax(logits)
    for token in by_probability(logits):
        if held >= top_p:
            break
        kept[token] = logits[token]
        held += probabilities[token]
    return kept


def typical_p(logits: Logits, typical_p: float) -> Logits:
    """transformers, `TypicalLogitsWarper`."""
    probabilities = softmax(logits)
    entropy = -math.fsum(p * math.log(p) for p in probabilities.values())
    kept, held = {}, 0.0
    for token in sorted(logits, key=lambda token: abs(-math.log(probabilities[token]) - entropy)):
        if held >= typical_p:
            break
        kept[token] = logits[token]
        held += probabilities[token]
    return kept


def top_a(logits: Logits, top_a: float) -> Logits:
    """KoboldAI, `TopALogitsWarper`."""
    probabilities = softmax(logits)
    least = top_a * max(probabilities.values()) ** 2
    return {token: logit for token, logit in logits.items() if probabilities[token] >= least}


def min_p(logits: Logits, min_p: float) -> Logits:
    probabilities = softmax(logits)
    return {token: logit for token, logit in logits.items() if probabilities[token] >= min_p * max(probabilities.values())}


def xtc(logits: Logits, xtc_threshold: float) -> Logits:
    """llama.cpp, `llama_sampler_xtc_apply`, when its coin has fallen."""
    probabilities, order = softmax(logits), by_probability(logits)
    last = max((place for place, token in enumerate(order) if probabilities[token] >= xtc_threshold), default=0)
    return {token: logits[token] for token in order[last:]}


def mirostat_1(logits: Logits, mu: float, vocab_size: int) -> Logits:
    """llama.cpp, `llama_sampler_mirostat_apply`, with its m = 100."""
    if len(logits) == 1:
        return logits
    probabilities, order = softmax(logits), by_probability(logits)
    pairs = range(min(100 - 1, len(order) - 1))
    steps = [math.log((i + 2) / (i + 1)) for i in pairs]
    falls = [math.log(probabilities[order[i]] / probabilities[order[i + 1]]) for i in pairs]
    s = math.fsum(t * b for t, b in zip(steps, falls, strict=True)) / math.fsum(t * t for t in steps)
    k = math.exp(min(math.log((s - 1) * 2**mu / (1 - vocab_size ** (1 - s))) / s, 30))  # a power that may be very large
    return top_k(logits, max(int(k), 1))


def mirostat_2(logits: Logits, mu: float) -> Logits:
    """llama.cpp, `llama_sampler_mirostat_v2_apply`."""
    probabilities = softmax(logits)
    kept = {token: logits[token] for token in by_probability(logits) if -math.log2(probabilities[token]) <= mu}
    return kept or top_k(logits, 1)


TWINS: Mapping[str, Callable[..., Logits]] = {
    "temperature": temperature, "smoothing": smoothing, "top_n_sigma": top_n_sigma, "top_k": top_k, "top_p": top_p,
    "typical_p": typical_p, "top_a": top_a, "min_p": min_p, "xtc": xtc,
}  # fmt: skip
OPTIONS = {
    "temperature": ("temperature", "dynatemp_range", "dynatemp_exponent"),
    "smoothing": ("smoothing_factor", "smoothing_curve"),
    "xtc": ("xtc_threshold",),
}


def probabilities(logits: Logits, order: tuple[str, ...], options: Mapping[str, float], vocab_size: int) -> dict[int, float]:
    """What is drawn from after the stages in this order. XTC's coin has fallen."""
    for name in order:
        if name == "mirostat":
            mu = 2 * options["mirostat_tau"]
            logits = mirostat_1(logits, mu, vocab_size) if options["mirostat"] == 1 else mirostat_2(logits, mu)
        else:
            logits = TWINS[name](logits, *(options[each] for each in OPTIONS.get(name, (name,)) if each in options))
    return softmax(logits)


# ---- DRY and n-grams


def dry(
    tokens: list[int], *, multiplier: float, base: float, allowed: int, last_n: int, is_breaker: Callable[[int], bool]
) -> dict[int, float]:
    """llama.cpp, `llama_sampler_dry_apply`, with breakers of one token: every place is compared with the end, token by token."""
    seen = tokens if last_n < 0 else tokens[len(tokens) - min(last_n, len(tokens)) :]
    if len(seen) <= allowed:
        return {}
    most = next((back for back, token in enumerate(reversed(seen)) if is_breaker(token)), len(seen))
    longest: dict[int, int] = {}
    for place in range(len(seen) - 1):
        length = 0
        while length <= place and seen[place - length] == seen[len(seen) - 1 - length]:
            length += 1
        length = min(length, most)
        if length >= allowed:
            longest[seen[place + 1]] = max(length, longest.get(seen[place + 1], 0))
    return {token: multiplier * base ** (n - allowed) for token, n in longest.items() if not is_breaker(token)}


def repeated_ngrams(tokens: list[int], size: int) -> set[int]:
    """transformers, `NoRepeatNGramLogitsProcessor`."""
    grams = [tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)]
    end = tuple(tokens[len(tokens) - size + 1 :])
    return {gram[-1] for gram in grams if gram[:-1] == end}

"""The sampler in plain PyTorch: the implementation where there is no kernel, and the truth where there is one.

Probabilities are summed as integers. A weight exp(score - best) in [0, 1] becomes floor(weight * 2**b), with b as large
as lets a whole row sum without overflow (45 for 131,072 tokens), so sums are exact: neither their order, nor the batch,
nor the number of threads can change a token. Prefix sums cannot decrease, and a token of weight 0 can never be drawn.
What is lost is less than 2**-b of the best token's probability per token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .interface import (
    NO_TOKEN,
    UNCONSTRAINED,
    Sampled,
    SamplerRows,
    Stages,
    TokenValues,
    check_arrays,
    slice_rows,
)
from .parameters import FILTERS, ParameterArrays
from .shaping import shaped_weights
from .uniform import uniform

NEVER = float("-inf")  # the score of a token that may not be drawn; no other token has it
LOWEST = torch.finfo(torch.float32).min
HIGHEST = torch.finfo(torch.float32).max
NEGLIGIBLE = -60.0  # exp of this is 0 in every fixed point used here
BLOCK_ELEMENTS = 1 << 19  # logits handled together on a CPU: intermediates stay near the caches
SUM_CHUNK = 1024  # tokens whose weights are summed before those of a row; the sums are exact, so no draw depends on it
FEW = 1024  # top-p looks at this many of the most probable tokens before it sorts a whole row


def sample(
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None = None,
    mask_index: Tensor | None = None,
    *,
    vocab_size: int,
    num_top_logprobs: int = 0,
    is_told: bool = True,
) -> Sampled:
    """Draws one token per row. The package docstring says exactly what each stage does.

    logits: [rows, head_width] fp32, bf16 or fp16, any strides, head_width >= vocab_size; not changed.
    mask_rows: [pool, ceil(vocab_size / 32)] int32 or uint32, bit t % 32 of word t // 32 = token t allowed.
    mask_index: [rows] int, row of the pool, UNCONSTRAINED or MISSING. Both None: all rows are unconstrained.
    is_told: whether anything is said of the model; else logprob and kept_mass are NaN.
    """
    check_arrays(logits, rows, mask_rows, mask_index, vocab_size)
    if logits.device.type != "cpu" or logits.shape[0] * vocab_size <= BLOCK_ELEMENTS:
        return sample_block(logits, rows, mask_rows, mask_index, vocab_size, num_top_logprobs, is_told)
    step = max(1, BLOCK_ELEMENTS // vocab_size)
    blocks = [slice(start, start + step) for start in range(0, logits.shape[0], step)]
    parts = [
        sample_block(logits[b], slice_rows(rows, b), mask_rows, index_of(mask_index, b), vocab_size, num_top_logprobs, is_told)
        for b in blocks
    ]
    return Sampled(*map(torch.cat, zip(*parts, strict=True)))


def index_of(mask_index: Tensor | None, block: slice) -> Tensor | None:
    return None if mask_index is None else mask_index[block]


def sample_block(
    logits: Tensor,
    rows: SamplerRows,
    mask_rows: Tensor | None,
    mask_index: Tensor | None,
    vocab_size: int,
    num_top_logprobs: int,
    is_told: bool = True,
) -> Sampled:
    model = finite(logits[:, :vocab_size])
    masked_in = unpack_masks(mask_rows, mask_index, vocab_size)
    allowed, bans_overridden = without_bans(masked_in, rows.bias, model)
    score = penalised(biased(model, rows.bias), rows)
    token, share = draw(score, allowed, rows)
    of_model = told(model, token, masked_in, num_top_logprobs) if is_told else untold(model, masked_in)
    return Sampled(token=token, bans_overridden=bans_overridden, share=share, **of_model)


def describe(
    logits: Tensor, token: Tensor, mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int, num_top_logprobs: int
) -> dict[str, Tensor]:
    """The fields of `Sampled` that are about the model, of tokens that were drawn otherwise. Arguments are those of `sample`."""
    model = finite(logits[:, :vocab_size])
    return told(model, token, unpack_masks(mask_rows, mask_index, vocab_size), num_top_logprobs)


def told(model: Tensor, token: Tensor, masked_in: Tensor | None, num_top_logprobs: int) -> dict[str, Tensor]:
    """What is said of the model: its log-probabilities, and what of them the mask keeps."""
    log_total = log_sum_exp(model)
    top_token, top_logprob = top_logprobs(model, log_total, num_top_logprobs)
    return {
        "logprob": token_logprob(model, log_total, token),
        "kept_mass": kept_mass(model, log_total, masked_in),
        "num_allowed": num_allowed(masked_in, model),
        "top_token": top_token,
        "top_logprob": top_logprob,
    }


def untold(model: Tensor, masked_in: Tensor | None) -> dict[str, Tensor]:
    """`told` of nothing but masks."""
    count = model.shape[0]
    return {
        "logprob": model.new_full((count,), float("nan")),
        "kept_mass": model.new_full((count,), float("nan"), dtype=torch.float64),
        "num_allowed": num_allowed(masked_in, model),
        "top_token": model.new_empty((count, 0), dtype=torch.int64),
        "top_logprob": model.new_empty((count, 0)),
    }


# ---- masks, bans and bias


def finite(logits: Tensor) -> Tensor:
    """[rows, V] fp32, contiguous, without NaN and infinities: from here on -inf means "may not be drawn" alone."""
    return torch.nan_to_num(logits.float(), nan=LOWEST, posinf=HIGHEST, neginf=LOWEST).contiguous()


def unpack_masks(mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int) -> Tensor | None:
    """[rows, V] bool, or None when no row is constrained."""
    if mask_rows is None or mask_index is None:
        return None
    words = mask_rows.view(torch.int32)[mask_index.clamp(min=0).long()]  # [rows, words]
    shifts = torch.arange(32, dtype=torch.int32, device=words.device)
    bits = ((words[:, :, None] >> shifts) & 1).bool().flatten(1)[:, :vocab_size]
    return torch.where(mask_index[:, None] >= 0, bits, mask_index[:, None] == UNCONSTRAINED)


def without_bans(masked_in: Tensor | None, bias: TokenValues | None, model: Tensor) -> tuple[Tensor | None, Tensor]:
    """[rows, V] bool, the tokens that may be drawn (None = all); [rows] bool, whether bans left none and were ignored."""
    num_rows = model.shape[0]
    none_overridden = torch.zeros(num_rows, dtype=torch.bool, device=model.device)
    if bias is None:
        return masked_in, none_overridden
    banned = torch.zeros_like(model, dtype=torch.bool)
    banned[row_of_entries(bias), bias.token_ids] = bias.values == NEVER
    before = torch.ones_like(banned) if masked_in is None else masked_in
    after = before & ~banned
    overridden = before.any(-1) & ~after.any(-1)
    return torch.where(overridden[:, None], before, after), overridden


def biased(model: Tensor, bias: TokenValues | None) -> Tensor:
    """[rows, V] fp32 scores with finite biases added; a copy if there are any."""
    if bias is None:
        return model
    score = model.clone()
    score[row_of_entries(bias), bias.token_ids] += bias.values.masked_fill(bias.values == NEVER, 0)
    return score.clamp_(LOWEST, HIGHEST)


def row_of_entries(values: TokenValues) -> Tensor:
    """[entries] int64, the row that each entry belongs to."""
    lengths, device = values.offsets.diff(), values.offsets.device
    return torch.arange(len(lengths), device=device).repeat_interleave(lengths, output_size=len(values.values))


def penalised(score: Tensor, rows: SamplerRows) -> Tensor:
    """[rows, V] fp32 scores after repetition, frequency and presence penalties; a copy if there are any."""
    if rows.history is None:
        return score
    row, token_ids, counts = row_of_entries(rows.history), rows.history.token_ids, rows.history.values
    parameters = rows.parameters
    repetition = parameters.repetition_penalty[row]
    seen = score[row, token_ids]
    seen = torch.where(seen > 0, seen / repetition, seen * repetition)
    seen = seen - parameters.frequency_penalty[row] * counts - parameters.presence_penalty[row] * (counts > 0)
    score = score.clone()
    score[row, token_ids] = seen.clamp(LOWEST, HIGHEST)
    return score


# ---- temperature, filters, draw


def find_stages(rows: SamplerRows) -> Stages:
    """The stages that some row needs. Waits for the device."""
    parameters = rows.parameters
    return Stages(
        any_draw=bool((parameters.temperature > 0).any()),
        filters=frozenset(name for name, off in FILTERS.items() if bool((getattr(parameters, name) != off).any())),
        max_top_k=int(parameters.top_k.max()) if len(parameters.top_k) else 0,
        wants_share=rows.programs is not None,
    )


def draw(score: Tensor, allowed: Tensor | None, rows: SamplerRows) -> tuple[Tensor, Tensor]:
    """[rows] int64 token ids, NO_TOKEN where nothing is allowed; [rows, 0 or 1] float32, the probabilities of these draws."""
    if allowed is not None:
        score = torch.where(allowed, score, NEVER)
    token = score.argmax(-1)  # the first of equals
    best = score.gather(-1, token[:, None])
    nothing_allowed = best[:, 0] == NEVER
    stages = rows.stages or find_stages(rows)
    share = score.new_full((len(score), int(stages.wants_share)), float("nan"))
    if stages.any_draw:
        drawn = rows.parameters.temperature > 0
        weights = drawing_weights(score - best.clamp(min=LOWEST), rows, stages)
        token = torch.where(drawn, inverse_cdf(weights, uniform(rows.seed, rows.position)), token)
        if stages.wants_share:
            share = (weights.gather(-1, token[:, None]).double() / weights.sum(-1, keepdim=True)).float()
    return token.masked_fill(nothing_allowed, NO_TOKEN), share


def drawing_weights(lag: Tensor, rows: SamplerRows, stages: Stages) -> Tensor:
    """[rows, V] int64 weights, as all stages leave them; those of greedy rows mean nothing. lag: [rows, V] score less the best."""
    temperature = rows.parameters.temperature
    temperature = temperature.masked_fill(temperature <= 0, 1)[:, None]
    weights = filtered_weights(lag, temperature, rows.parameters, stages)
    if rows.programs is not None:
        for row, shaped in shaped_weights(lag, rows.programs, rows.seed, rows.position):
            weights[row] = fixed_point(shaped[None])[0]
    return weights


def filtered_weights(lag: Tensor, temperature: Tensor, parameters: ParameterArrays, stages: Stages) -> Tensor:
    """[rows, V] int64 weights of the tokens that survive the filters, in the order of the table.

    lag: [rows, V] score less the best score, so 0 for the best; temperature: [rows, 1].
    """
    weights = exponential(lag / temperature)
    if "top_k" in stages.filters:
        weights = torch.where(lag >= top_k_threshold(lag, parameters.top_k, stages.max_top_k), weights, 0)
    if "top_p" in stages.filters:
        weights = torch.where(lag >= top_p_threshold(lag, fixed_point(weights), parameters.top_p), weights, 0)
    if "min_p" in stages.filters:
        weights = torch.where(weights >= parameters.min_p[:, None], weights, 0)
    return fixed_point(weights)


def top_k_threshold(lag: Tensor, top_k: Tensor, max_top_k: int) -> Tensor:
    """[rows, 1] the top_k-th largest of each row; -inf where top_k is off or the row is shorter."""
    vocab_size = lag.shape[-1]
    largest = torch.topk(lag, min(max_top_k, vocab_size)).values
    off = (top_k == 0) | (top_k >= vocab_size)
    last = (top_k.long() - 1).clamp(0, largest.shape[-1] - 1)
    return largest.gather(-1, last[:, None]).masked_fill(off[:, None], NEVER)


def top_p_threshold(lag: Tensor, weights: Tensor, top_p: Tensor) -> Tensor:
    """[rows, 1] the lag of the last token needed to hold top_p of the weight; -inf where top_p is off."""
    threshold = lag.new_full((len(lag), 1), NEVER)
    wanted = weights.sum(-1).double() * top_p.double()
    remaining = (top_p < 1).nonzero()[:, 0]
    for width in (FEW, lag.shape[-1]):
        if not len(remaining):
            break
        largest, order = torch.topk(lag[remaining], min(width, lag.shape[-1]))
        held = weights[remaining].gather(-1, order).cumsum(-1)
        enough = held.double() >= wanted[remaining, None]
        first = enough.int().argmax(-1, keepdim=True)
        found = enough[:, -1]
        threshold[remaining[found]] = largest.gather(-1, first)[found]
        remaining = remaining[~found]
    return threshold


def inverse_cdf(weights: Tensor, uniform: Tensor) -> Tensor:
    """[rows] int64, the first token where the running sum of weights exceeds uniform * total, found by chunks.

    weights: [rows, V] int64, at least one positive per row; uniform: [rows] fp64 in [0, 1).
    """
    chunks = chunked(weights)  # [rows, chunks, SUM_CHUNK]
    chunk_sums = chunks.sum(-1).cumsum(-1)  # [rows, chunks] inclusive
    total = chunk_sums[:, -1]
    target = torch.minimum((uniform * total).long(), total - 1)  # the product may round up to the total
    chunk = (chunk_sums <= target[:, None]).sum(-1, keepdim=True).clamp(max=chunks.shape[1] - 1)
    before = torch.where(chunk > 0, chunk_sums.gather(-1, (chunk - 1).clamp(min=0)), 0)
    inside = chunks.gather(1, chunk[:, :, None].expand(-1, 1, SUM_CHUNK))[:, 0].cumsum(-1)  # [rows, SUM_CHUNK] inclusive
    offset = (inside <= target[:, None] - before).sum(-1)
    return chunk[:, 0] * SUM_CHUNK + offset.clamp(max=SUM_CHUNK - 1)


def chunked(weights: Tensor) -> Tensor:
    """[rows, ceil(V / SUM_CHUNK), SUM_CHUNK], padded with 0."""
    padding = -weights.shape[-1] % SUM_CHUNK
    return torch.nn.functional.pad(weights, (0, padding)).unflatten(-1, (-1, SUM_CHUNK))


def exponential(scaled: Tensor) -> Tensor:
    """fp32 weights of scores <= 0. Clamped because exp is many times slower where its result is denormal or 0.

    Not exp2: torch rounds it differently in the last elements of an array, so a weight would depend on the batch.
    """
    return torch.exp(scaled.clamp(min=NEGLIGIBLE))


def fixed_point(weights: Tensor) -> Tensor:
    """int64 floor(weight * 2**b) of fp32 weights [rows, V] in [0, 1]; the product is exact."""
    return (weights * 2.0 ** fraction_bits(weights.shape[-1])).long()


def fraction_bits(vocab_size: int) -> int:
    """b such that vocab_size * 2**b < 2**63."""
    return 62 - vocab_size.bit_length()


# ---- what the model thought


def log_sum_exp(model: Tensor) -> Tensor:
    """[rows] fp64 log of the sum of exp(model), -inf for a row of -inf; independent of summation order."""
    best = model.amax(-1, keepdim=True).clamp(min=LOWEST)
    total = fixed_point(exponential(model - best)).sum(-1)
    return best[:, 0].double() + torch.log(total.double() * 2.0 ** -fraction_bits(model.shape[-1]))


def token_logprob(model: Tensor, log_total: Tensor, token: Tensor) -> Tensor:
    chosen = model.gather(-1, token.clamp(min=0)[:, None])[:, 0]
    return (chosen - log_total).float().masked_fill(token == NO_TOKEN, float("nan"))


def kept_mass(model: Tensor, log_total: Tensor, masked_in: Tensor | None) -> Tensor:
    if masked_in is None:
        return torch.ones_like(log_total)
    return torch.exp(log_sum_exp(torch.where(masked_in, model, NEVER)) - log_total)


def num_allowed(masked_in: Tensor | None, model: Tensor) -> Tensor:
    if masked_in is None:
        return torch.full((len(model),), model.shape[-1], device=model.device)
    return masked_in.sum(-1)


def top_logprobs(model: Tensor, log_total: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """[rows, count] token ids and log-probabilities of the most probable tokens, the lower id first on ties."""
    if count == 0:
        return model.new_empty((len(model), 0), dtype=torch.int64), model.new_empty((len(model), 0))
    token = torch.topk(rank_keys(model), min(count, model.shape[-1])).indices
    return token, (model.gather(-1, token) - log_total[:, None]).float()


def rank_keys(model: Tensor) -> Tensor:
    """[rows, V] int64, distinct: ordered by logit, then by falling id."""
    bits = (model + 0.0).view(torch.int32).long()  # -0.0 becomes 0.0
    ascending = torch.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))  # IEEE 754 orders by magnitude under a sign
    return (ascending << 32) - torch.arange(model.shape[-1], device=model.device)

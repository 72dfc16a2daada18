"""Rejection sampling of drafts that were drawn: the output has the distribution of plain decoding, not its very tokens.

A draft x, drawn from q, is accepted with probability min(1, p(x) / q(x)); otherwise the token is drawn from what p has more than q
(Leviathan, Kalman, Matias, ICML 2023; Chen et al., 2023). More drafts are accepted than where draft and check share a random number
(`draft_model.py`): the share is the overlap of p and q, the most that is possible.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.sampler.interface import SamplerRows
from ...kernels.sampler.reference import (
    LOWEST,
    NEVER,
    biased,
    drawing_weights,
    find_stages,
    finite,
    penalised,
    unpack_masks,
    without_bans,
)
from ...kernels.sampler.uniform import uniform
from ...sampling import SequenceSampling
from ..scheduling.proposal import Proposal

ACCEPT_STREAM, RESIDUAL_STREAM = 0x5851F42D4C957F2D, 0x14057B7EF767814F  # apart from the numbers that plain draws use


def probabilities(
    logits: Tensor, rows: SamplerRows, mask_rows: Tensor | None, mask_index: Tensor | None, vocab_size: int
) -> Tensor:
    """[rows, V] float64: what the sampler draws from. Greedy rows have one token."""
    model = finite(logits[:, :vocab_size])
    allowed, _ = without_bans(unpack_masks(mask_rows, mask_index, vocab_size), rows.bias, model)
    score = penalised(biased(model, rows.bias), rows)
    if allowed is not None:
        score = torch.where(allowed, score, NEVER)
    best, token = score.max(-1, keepdim=True)
    greedy = torch.zeros_like(score, dtype=torch.float64).scatter_(-1, token, 1.0)
    drawn = rows.parameters.temperature > 0
    weights = drawing_weights(score - best.clamp(min=LOWEST), rows, rows.stages or find_stages(rows)).double()
    return torch.where(drawn[:, None], weights / weights.sum(-1, keepdim=True), greedy)


def decide(target: Tensor, proposals: Sequence[Proposal], samplings: Sequence[SequenceSampling]) -> list[int]:
    """The tokens that come out where `proposals` were made: target [rows, V] is what plain decoding would draw from."""
    draft = torch.tensor([proposal.token_id for proposal in proposals], device=target.device)[:, None]
    proposed = torch.stack([proposal.probabilities for proposal in proposals])
    accepted = _uniform(samplings, ACCEPT_STREAM, target.device) * proposed.gather(1, draft) < target.gather(1, draft)
    residual = (target - proposed).clamp(min=0).cumsum(-1)
    aim = _uniform(samplings, RESIDUAL_STREAM, target.device) * residual[:, -1:]
    other = torch.searchsorted(residual, aim, right=True).clamp(max=target.shape[1] - 1)
    has_residual = residual[:, -1:] > 0  # else p = q, up to rounding
    decided: list[int] = torch.where(accepted | ~has_residual, draft, other)[:, 0].tolist()
    return decided


def _uniform(samplings: Sequence[SequenceSampling], stream: int, device: torch.device) -> Tensor:
    """[rows, 1] float64, of each sequence's seed and place."""
    seeds = [_signed(sampling.seed ^ stream) for sampling in samplings]
    places = [sampling.draw_index for sampling in samplings]
    return uniform(torch.tensor(seeds), torch.tensor(places)).to(device)[:, None]


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >= 1 << 63 else bits

"""Log-probabilities as a user reads them."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels.sampler.interface import Sampled


class TokenLogprob(NamedTuple):
    token_id: int
    logprob: float


class StepLogprobs(NamedTuple):
    """One generated token. Log-probabilities are the model's own, before mask, bias, penalties and temperature."""

    token_id: int
    logprob: float
    top: tuple[TokenLogprob, ...]  # the model's most probable tokens, allowed or not
    kept_mass: float  # probability the model gave to the tokens the constraint allowed


def step_logprobs(sampled: Sampled, row: int, num_top: int) -> StepLogprobs:
    """What was asked for about the token drawn in `row`; `num_top` is the request's own wish, not the batch's."""
    top = zip(sampled.top_token[row, :num_top].tolist(), sampled.top_logprob[row, :num_top].tolist(), strict=True)
    return StepLogprobs(
        token_id=int(sampled.token[row]),
        logprob=float(sampled.logprob[row]),
        top=tuple(TokenLogprob(token_id, logprob) for token_id, logprob in top),
        kept_mass=float(sampled.kept_mass[row]),
    )

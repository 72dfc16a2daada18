"""Log-probabilities as a user reads them."""

from __future__ import annotations

from typing import NamedTuple


class TokenLogprob(NamedTuple):
    """The log-probability is the model's own: before mask, bias, penalties and temperature."""

    token_id: int
    logprob: float

"""Log-probabilities as a user reads them."""

from __future__ import annotations

from typing import NamedTuple


class TokenLogprob(NamedTuple):
    """A token and its log-probability by the model itself: before mask, bias, penalties and temperature."""

    token_id: int
    logprob: float

"""A draft token together with the distribution that it was drawn from, which rejection sampling asks for (`rejection.py`)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Proposal(NamedTuple):
    """A token drawn from `probabilities` [V] float64, which may be end-of-text."""

    token_id: int
    probabilities: Tensor

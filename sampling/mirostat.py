"""What mirostat knows of a sequence: how surprising its next token may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .params import SamplingParams

TINY = 1e-30  # a probability that is said to be 0


@dataclass(slots=True)
class Mirostat:
    """Basu et al., "Mirostat" (ICLR 2021), algorithms 1 and 2, as llama.cpp has them."""

    tau: float
    eta: float
    mu: float  # bits; begins at twice tau

    @classmethod
    def of(cls, params: SamplingParams) -> Mirostat | None:
        """None where it is off."""
        if not params.has_program or not any(step.code.name.startswith("MIROSTAT") for step in params.steps):
            return None
        return cls(params.mirostat_tau, params.mirostat_eta, 2 * params.mirostat_tau)

    def learn(self, share: float) -> None:
        """A token was drawn with this probability. Tokens that were not drawn, because there was no choice, teach nothing."""
        self.mu -= self.eta * (-math.log2(max(share, TINY)) - self.tau)

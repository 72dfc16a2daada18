"""All that the host reads of the device after a step: the tokens drawn, and the constraint registers of their slots after them."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ...kernels.sampler.interface import Sampled


class Read(NamedTuple):
    """The draws of one step, [rows] and [rows, n], or of several, [steps, rows] and [steps, rows, n], and registers after them."""

    token: Tensor
    logprob: Tensor
    kept_mass: Tensor
    num_allowed: Tensor
    bans_overridden: Tensor
    top_token: Tensor
    top_logprob: Tensor
    share: Tensor
    state: Tensor  # [rows], as the two below
    pending: Tensor
    flags: Tensor

    @property
    def sampled(self) -> Sampled:
        return Sampled(*self[:-3])

    @property
    def registers(self) -> list[tuple[int, int, int]]:
        """(state, pending, flags) of each row."""
        return list(zip(self.state.tolist(), self.pending.tolist(), self.flags.tolist(), strict=True))

    def of_step(self, step: int) -> Sampled:
        """The draws of one step of a visit."""
        return Sampled(*(part[step] for part in self[:-3]))

"""Muon: momentum whose update is made orthogonal, for the matrices of the model (Jordan et al., 2024)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic Newton-Schulz iteration


def orthogonalize(matrices: Tensor, steps: int = 5) -> Tensor:
    """Matrices [..., m, n] with their singular values drawn towards 1, in bfloat16."""
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16()
    is_tall = x.shape[-2] > x.shape[-1]
    x = x.mT if is_tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if is_tall else x


class Muon(Optimizer):
    """`parts` says into how many matrices a fused weight is cut before it is orthogonalised."""

    def __init__(self, params: Iterable[dict[str, Any]], lr: float, momentum: float = 0.95, weight_decay: float = 0.01) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "parts": 1})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            gradients = []
            for parameter in group["params"]:
                average = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                average.lerp_(parameter.grad, 1 - group["momentum"])
                gradients.append(parameter.grad.lerp(average, group["momentum"]))
            rows, columns = gradients[0].shape
            stacked = torch.stack(gradients).view(len(gradients) * group["parts"], rows // group["parts"], columns)
            scale = max(1.0, stacked.shape[-2] / columns) ** 0.5
            updates = orthogonalize(stacked).view(len(gradients), rows, columns)
            for parameter, update in zip(group["params"], updates, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(update.float(), alpha=-group["lr"] * scale)

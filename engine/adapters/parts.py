"""Pairs of matrices out of a file, checked against the modules of a model: shapes and rank before any number is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor

from ..errors import AdapterError
from .adapter import LowRank
from .modules import Module, Modules, Place


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two matrices of a module, as the file has it."""

    tensor: str  # its name in the file
    module: str
    is_down: bool  # A [rank, in_features]; else B [out_features, rank]
    shape: tuple[int, ...]
    named: str = ""  # the module as the file calls it, where that matters


@dataclass(slots=True)
class Halves:
    """What was found in the file at `path`. Raises AdapterError naming the tensor that does not fit."""

    path: Path
    known: Modules
    max_rank: int
    _of: dict[tuple[str, bool], Half] = field(default_factory=dict)

    @property
    def modules(self) -> list[str]:
        return sorted({module for module, _ in self._of})

    def add(self, half: Half) -> None:
        if half.module in self.known.refused:
            self.fail(half, self.known.refused[half.module])
        module = self.known.of_name.get(half.module)
        if module is None:
            self.fail(half, "this model has no such linear layer" + _experts(half.module))
        if (half.module, half.is_down) in self._of:
            self.fail(half, f"it is for the same matrix as {self._of[half.module, half.is_down].tensor}")
        self._check_shape(half, module)
        self._of[half.module, half.is_down] = half

    def pair(self, module: str) -> tuple[Half, Half]:
        """(A, B) of a module that was found, which fit together."""
        down, up = (self._of.get((module, is_down)) for is_down in (True, False))
        if down is None or up is None:
            there = down or up
            assert there is not None, "the module was found"
            self.fail(there, f"the other matrix of {module} is missing")
        if down.shape[0] != up.shape[1]:
            self.fail(up, f"it has rank {up.shape[1]}, and {down.tensor} has {down.shape[0]}")
        return down, up

    def fail(self, half: Half, reason: str) -> NoReturn:
        raise AdapterError(f"{self.path}: tensor {half.tensor}: {reason}")

    def _check_shape(self, half: Half, module: Module) -> None:
        axis, size = (1, module.in_features) if half.is_down else (0, module.out_features)
        if len(half.shape) != 2 or half.shape[axis] != size or not half.shape[1 - axis]:
            wanted = f"[rank, {size}]" if half.is_down else f"[{size}, rank]"
            self.fail(half, f"it has shape {list(half.shape)}, and the model's matrix calls for {wanted}")
        if half.shape[1 - axis] > self.max_rank:
            self.fail(half, f"it has rank {half.shape[1 - axis]}, and max_adapter_rank is {self.max_rank}; raise that")


def joined(halves: Halves, read: Callable[[Half], Tensor], scale: Callable[[str, int], float]) -> dict[Place, LowRank]:
    """What is added at each place; rows of B are put in the order of ours."""
    if not halves.modules:
        raise AdapterError(f"{halves.path}: there are no matrices in it")
    parts: dict[Place, LowRank] = {}
    pairs = [(halves.known.of_name[name], *halves.pair(name)) for name in halves.modules]
    for module, down, up in pairs:
        lowered, raised = (_numbers(halves, half, read) for half in (down, up))
        if module.order is not None:
            raised = raised.index_select(0, module.order)
        parts[module.place] = LowRank(lowered, raised, scale(down.named, len(lowered)))
    return parts


def _numbers(halves: Halves, half: Half, read: Callable[[Half], Tensor]) -> Tensor:
    tensor = read(half)
    if not torch.isfinite(tensor).all():
        halves.fail(half, "some of it are no finite numbers")
    return tensor


def _experts(module: str) -> str:
    return "; adapters of the experts of a mixture are not supported" if "expert" in module or "_exps" in module else ""

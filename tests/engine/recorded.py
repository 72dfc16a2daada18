"""A stand-in for a CUDA graph: the operations of a step are noted once and repeated on the same tensors, without the Python between.

So what holds for a graph holds here: what the host decided while the step was captured stays decided, results lie where they lay, and
asking the device for a number is an error. Where the code would not bear a graph, replays give other tokens, or raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WAITS_FOR_DEVICE = {"aten::_local_scalar_dense", "aten::nonzero", "aten::item", "aten::equal", "aten::lift_fresh", "aten::masked_select"}


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.tape: list[tuple[Any, tuple, dict, Any]] = []
        self.before: dict[int, tuple[Tensor, Tensor]] = {}  # address of a storage that was written -> (all of it, a copy)
        self._made: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.name().split(".")[0] in WAITS_FOR_DEVICE:
            raise RuntimeError(f"{func.name()} waits for the device, or sends it what the host has now: no graph can hold it")
        for argument, value in [*zip(func._schema.arguments, args, strict=False)]:
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, Tensor):
                self._save(value)
        out = func(*args, **kwargs)
        inputs = {address(each) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        self._made |= {address(each) for each in tree_leaves(out) if isinstance(each, Tensor)} - inputs - set(self.before)
        self.tape.append((func, args, kwargs, out))
        return out

    def _save(self, tensor: Tensor) -> None:
        place = address(tensor)
        if place not in self.before and place not in self._made:
            whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
            self.before[place] = whole, whole.clone()


def address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class RecordedStep:
    def __init__(self, tape: list[tuple[Any, tuple, dict, Any]]) -> None:
        self._tape = tape
        self.num_replays = 0

    def replay(self) -> None:
        self.num_replays += 1
        for func, args, kwargs, out in self._tape:
            again = func(*args, **kwargs)
            for there, new in zip(tree_leaves(out), tree_leaves(again), strict=True):
                if isinstance(there, Tensor) and there.data_ptr() != new.data_ptr():
                    there.copy_(new)


class RecordedCapture:
    """Capturing does nothing to what the step writes, as on a GPU."""

    def __init__(self) -> None:
        self.steps: list[RecordedStep] = []

    def __call__(self, step: Callable[[], None]) -> RecordedStep:
        with Recorder() as recorder:
            step()
        for whole, copy in recorder.before.values():
            whole.copy_(copy)
        self.steps.append(RecordedStep(recorder.tape))
        return self.steps[-1]

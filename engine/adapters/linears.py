"""Linear layers with adapters: each wraps one of another kind, whatever that is, and adds to what it gives."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels.lora import add_lora
from ..models.linear import Embedding, GroupedMlp, Linear, Linears, PerHeadLinear
from .modules import Modules
from .slots import Adapted, AdapterSlots


@dataclass(frozen=True, slots=True)
class AdaptedLinear:
    """A `Linear`: that of `base`, and for each row what the adapter adds that it wants."""

    base: Linear
    own: Adapted
    slots: AdapterSlots
    is_head: bool

    def __call__(self, x: Tensor) -> Tensor:
        y = self.base(x)
        rows = self.slots.rows.logits if self.is_head else self.slots.rows.tokens
        return y if rows is None or self.own.stack is None else add_lora(y, x, self.own.stack, rows)


class AdaptedLinears:
    """Makes the linear layers of `base`, with adapters where a module of the checkpoint is a matrix of its own.

    The embedding, per-head products and experts are those of `base`: adapters that name them are refused when they are read.
    """

    def __init__(self, base: Linears, slots: AdapterSlots, modules: Modules, head: str) -> None:
        self._base, self._slots, self._modules, self._head = base, slots, modules, head

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding:
        return self._base.embedding(name, uses_triton=uses_triton)

    def linear(self, name: str) -> Linear:
        base, widths = self._base.linear(name), self._modules.widths.get(name)
        if widths is None:
            return base
        own = Adapted(self._modules.in_features[name], widths)
        self._slots.add_layer(name, own, is_head=name == self._head)
        return AdaptedLinear(base, own, self._slots, name == self._head)

    def per_head(self, name: str) -> PerHeadLinear:
        return self._base.per_head(name)

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        return self._base.grouped_mlp(name, activation, scales_input=scales_input, uses_triton=uses_triton)

"""A rank's share of a model: what of the files it reads, what of an adapter it adds, how its layers meet those of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..adapters.adapter import Adapter, LowRank
from ..adapters.linears import AdaptedLinears
from ..adapters.modules import Modules, modules_of
from ..adapters.slots import AdapterSlots
from ..models.architecture import ModelInfo, ModelSpec
from ..models.layout import Portion
from ..models.linear import Linears
from ..models.mamba import MambaSpec
from ..models.transformers_model import TransformersSpec
from ..sharding.cuts import Cut
from ..sharding.peers import Peers
from ..sharding.ranks import Rank
from .linears import SharedLinears
from .modules import check_dealing, deal_out
from .plan import ParallelPlan, plan_of


def check_sharing(spec: ModelInfo, size: int) -> None:
    """That a model can be shared by `size` ranks. Raises ConfigError or UnsupportedModel as `plan_of` and `check_dealing` do."""
    if isinstance(spec, TransformersSpec):
        check_dealing(spec, size)
    else:
        plan_of(spec, Rank(0, size))


def share_of(spec: ModelInfo, peers: Peers, slots: AdapterSlots | None = None) -> ModelShare | ModuleShare:
    """What the rank of `peers` holds of the model of `spec`, which `check_sharing` has found good."""
    return ModuleShare(peers) if isinstance(spec, TransformersSpec) else ModelShare(spec, peers, slots)


class ModuleShare:
    """What a rank holds of a model that transformers computes."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def deal_out(self, model: Any) -> None:
        """Leave in a model that is read whole what this rank holds."""
        deal_out(model, self._peers)


class ModelShare:
    """What the rank of `peers` holds of the native model of `spec`. Raises ConfigError as `plan_of` does."""

    def __init__(self, spec: ModelInfo, peers: Peers, slots: AdapterSlots | None = None) -> None:
        self.plan: ParallelPlan = plan_of(spec, peers.rank)
        self._spec, self._peers, self._slots = spec, peers, slots

    @property
    def portion(self) -> Portion:
        """What of the model is read."""
        plan = self.plan
        mean_squares: Callable[[Tensor], Tensor] | None = None
        if isinstance(self._spec, MambaSpec) and self._spec.num_groups < plan.rank.size:
            mean_squares = self._mean_squares
        if isinstance(self._spec, ModelSpec) and self._spec.qk_norm == "joint":
            mean_squares = self._mean_squares_of_heads
        return Portion(plan.own, plan.sources, mean_squares)

    def linears(self, own: Linears) -> Linears:
        """The model's linear layers, of those that this rank holds; with adapters where there are slots for them."""
        if self._slots is not None:
            own = AdaptedLinears(own, self._slots, self._modules(), self.plan.head)
        return SharedLinears(own, self.plan, self._peers)

    def adapter(self, whole: Adapter) -> Adapter:
        """What an adapter adds to what this rank holds: rows of matrices have their `up`, columns their `down`."""
        parts = {}
        for place, part in whole.parts.items():
            cut = self._cut(place.linear, place.slice)
            if cut is not None and cut.axis == 0:
                part = LowRank(part.down, cut.tensor(part.up), part.scale)
            elif cut is not None:
                part = LowRank(cut.tensor(part.down), part.up, part.scale)
            parts[place] = part
        return Adapter(whole.path, parts)

    def _modules(self) -> Modules:
        """Modules with the widths that this rank holds."""
        whole = modules_of(self._spec)
        widths = {name: tuple(self._held(name, number)[0] for number in range(len(old))) for name, old in whole.widths.items()}
        return replace(whole, widths=widths, in_features={name: self._held(name, 0)[1] for name in widths})

    def _held(self, linear: str, number: int) -> tuple[int, ...]:
        shape, cut = self.plan.sources[f"{linear}.weight"].parts[number][1], self._cut(linear, number)
        return shape if cut is None else cut.shape(shape)

    def _cut(self, linear: str, number: int) -> Cut | None:
        cuts = self.plan.sources[f"{linear}.weight"].cuts
        return None if cuts is None else cuts[number]

    def _mean_squares_of_heads(self, sums: Tensor) -> Tensor:
        """Of all queries and all keys, [num_tokens, 2], from the sums of squares of this rank's."""
        spec, size = self._spec, self.plan.rank.size
        assert isinstance(spec, ModelSpec), "other models have no heads that are normed together"
        copies = max(1, size // spec.num_kv_heads)  # so many ranks have the same head of keys
        queries, keys = self._peers.sum(sums).unbind(1)
        return torch.stack((queries / (spec.num_heads * spec.head_dim), keys / (copies * spec.num_kv_heads * spec.head_dim)), dim=1)

    def _mean_squares(self, gated: Tensor) -> Tensor:
        """Of groups of heads that several ranks share: each adds the squares of its heads to those of its group."""
        spec, groups = self._spec, self.plan.shares["groups"]
        assert isinstance(spec, MambaSpec), "other models have no such groups"
        sums = torch.zeros((len(gated), groups.count), dtype=gated.dtype, device=gated.device)
        sums[:, groups.first : groups.stop] = gated.square().sum(dim=-1)
        own = self._peers.sum(sums)[:, groups.first : groups.stop, None]
        return own / (spec.inner_size // spec.num_groups)

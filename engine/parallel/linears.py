"""Linear layers of which each rank holds a share: a model uses them as any others, and where ranks meet is here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..models.linear import Embedding, GroupedMlp, Linear, Linears, PerHeadLinear
from ..sharding.peers import Peers
from ..sharding.ranks import Rank, Share
from .plan import Columns, ParallelPlan


@dataclass(frozen=True, slots=True)
class SummedLinear:
    """A `Linear` of which each rank holds columns: their products are added."""

    own: Linear
    peers: Peers

    def __call__(self, x: Tensor) -> Tensor:
        return self.peers.sum(self.own(x))


@dataclass(frozen=True, slots=True)
class GatheredLinear:
    """A `Linear` of which each rank holds rows, as many as its entry of `widths`: rank 0 has all products, others their own."""

    own: Linear
    peers: Peers
    widths: Sequence[int]

    def __call__(self, x: Tensor) -> Tensor:
        return self.peers.columns(self.own(x), self.widths)


@dataclass(frozen=True, slots=True)
class SharedEmbedding:
    """An `Embedding` of which each rank holds the rows of some tokens."""

    own: Embedding
    peers: Peers
    share: Share

    @property
    def device(self) -> torch.device:
        return self.own.device

    @property
    def dtype(self) -> torch.dtype:
        return self.own.dtype

    def __call__(self, token_ids: Tensor, scale: float) -> Tensor:
        token_ids = token_ids.clamp_min(0)
        is_own = (token_ids >= self.share.first) & (token_ids < self.share.stop)
        rows = self.own(torch.where(is_own, token_ids - self.share.first, 0), scale)
        return self.peers.sum(rows * is_own[:, None].to(rows.dtype))


@dataclass(frozen=True, slots=True)
class SharedExperts:
    """A `GroupedMlp` of which each rank holds some experts, and computes for them the tokens that chose them.

    How many these are is asked of the device.
    """

    own: GroupedMlp
    peers: Peers
    share: Share

    def __call__(self, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        tokens, choices = torch.nonzero((chosen >= self.share.first) & (chosen < self.share.stop), as_tuple=True)
        output = torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)
        if len(tokens):
            expert, weight = chosen[tokens, choices] - self.share.first, weights[tokens, choices]
            output.index_add_(0, tokens, self.own(hidden[tokens], expert[:, None], weight[:, None]).float())
        return self.peers.sum(output.to(hidden.dtype))


class SharedLinears:
    """Makes linear layers of a model of those of a rank's share, which `own` makes."""

    def __init__(self, own: Linears, plan: ParallelPlan, peers: Peers) -> None:
        self._own, self._plan, self._peers = own, plan, peers

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding:
        return SharedEmbedding(self._own.embedding(name, uses_triton=uses_triton), self._peers, self._plan.shares["vocabulary"])

    def linear(self, name: str) -> Linear:
        own = self._own.linear(name)
        if name == self._plan.head:
            size, count = self._plan.rank.size, self._plan.spec.vocab_size
            return GatheredLinear(own, self._peers, [len(Rank(number, size).share(count)) for number in range(size)])
        return SummedLinear(own, self._peers) if isinstance(self._plan.rule(name), Columns) else own

    def per_head(self, name: str) -> PerHeadLinear:
        return self._own.per_head(name)

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        own = self._own.grouped_mlp(name, activation, scales_input=scales_input, uses_triton=uses_triton)
        return SharedExperts(own, self._peers, self._plan.shares["experts"])

"""The runner of a model that several ranks compute: what it does, it has the others do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..adapters.adapter import Adapter
from ..adapters.slots import AdapterSlots
from ..attention.methods import Attend, fused
from ..attention.paged import Span
from ..config import EngineConfig
from ..kv_cache.prefix_cache import Restored, Transfer
from ..models.architecture import DTYPES, ModelInfo
from ..models.decoder import ForwardBatch
from ..models.model import Model
from ..sharding.peers import Peers
from ..sharding.ranks import Rank
from ..steps.runner import ModelRunner, Packing
from .messages import FreeAdapter, LoadAdapter, Move, Step
from .shares import ModelShare
from .team import Team


@dataclass(frozen=True, slots=True)
class SharedBatch(ForwardBatch):
    """A step's input, and the same as the host knows it, of which other ranks make theirs."""

    packing: Packing | None = None


class ParallelRunner(ModelRunner):
    """Rank 0's part of a model. Its cache is a part too, so nothing can be taken out of it for elsewhere."""

    keeps_whole_cache = False

    def __init__(
        self,
        team: Team,
        decoder: Model,
        cache: Any,
        attend: Attend = fused,
        num_host_blocks: int = 0,
        adapters: AdapterSlots | None = None,
    ) -> None:
        super().__init__(decoder, cache, attend, num_host_blocks, adapters)
        self._team = team

    def move_blocks(self, transfers: list[Transfer | Restored]) -> None:
        plain = [transfer for transfer in transfers if not isinstance(transfer, Restored)]
        assert len(plain) == len(transfers), "sessions bring nothing where `keeps_whole_cache` is false"
        with self._team.together():
            self._team.tell(Move(plain))
            super().move_blocks(transfers)

    def prepared(self, packing: Packing) -> SharedBatch:
        batch = self.batch(packing)
        spans: list[Span] = [(past, new, list(table)) for past, new, table in packing.spans]  # tables change until it is computed
        told = packing._replace(token_ids=[], spans=spans)
        return SharedBatch(batch.token_ids, batch.positions, batch.logit_rows, batch.attention, batch.adapters, packing=told)

    def compute(self, batch: ForwardBatch) -> Tensor:
        assert isinstance(batch, SharedBatch) and batch.packing is not None, "`prepared` made it"
        with self._team.together():
            self._team.tell(Step(batch.packing, len(batch.token_ids)))
            self._team.peers.of_first(batch.token_ids)
            return super().compute(batch)

    @property
    def can_decode(self) -> bool:
        return False

    def close(self) -> None:
        self._team.close()


class SharedSlots(AdapterSlots):
    """Slots of adapters, of which each rank holds what adds to its share."""

    def __init__(self, team: Team, spec: ModelInfo, config: EngineConfig) -> None:
        super().__init__(config.max_adapters, DTYPES[config.dtype], torch.device(config.device), config.kernels)
        self._team, self._spec = team, spec

    def load(self, adapter: Adapter) -> int:
        slot = super().load(self._share(adapter, self._team.peers.rank))
        with self._team.together():
            self._team.tell(lambda rank: LoadAdapter(self._share(adapter, rank)))
            self._team.answers()
        return slot

    def free(self, slot: int) -> None:
        super().free(slot)
        self._team.tell(FreeAdapter(slot))

    def _share(self, adapter: Adapter, rank: Rank) -> Adapter:
        return ModelShare(self._spec, Peers(rank)).adapter(adapter)

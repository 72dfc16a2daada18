"""Ranks as threads of one process: what ranks compute, quickly and without processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
import torch.distributed

from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.parallel.shares import ModelShare
from maskwright.engine.sharding.peers import Peers
from maskwright.engine.sharding.ranks import Rank

T = TypeVar("T")
CPU = torch.device("cpu")


def on_all_ranks(size: int, work: Callable[[Peers], T]) -> list[T]:
    """What `work` gives on each of `size` ranks, which are connected."""
    store = torch.distributed.HashStore()

    def run(number: int) -> T:
        peers = Peers(Rank(number, size))
        peers.join(store, CPU)
        return work(peers)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))


def load_share(folder: Any, peers: Peers, spec: Any = None, slots: Any = None, **options: Any) -> Any:
    """A rank's share of the model in a folder, in float32."""
    spec = spec or read_spec(folder)
    share = ModelShare(spec, peers, slots)
    return load_model(folder, spec, torch.float32, CPU, 128, adapt=share.linears, portion=share.portion, **options)

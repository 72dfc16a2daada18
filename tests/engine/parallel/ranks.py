"""Ranks as threads of one process: what ranks compute, quickly and without processes."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed

from maskwright.engine.adapters.registry import AdapterRegistry
from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.drafts.drafter import Lookup
from maskwright.engine.engine import Engine
from maskwright.engine.features import EngineFeatures
from maskwright.engine.follower import FollowingRank
from maskwright.engine.limits import Limits
from maskwright.engine.loader import model_of, slots_of
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.parallel.messages import Begin, Failed, Start
from maskwright.engine.parallel.runner import ParallelRunner
from maskwright.engine.parallel.shares import ModelShare, share_of
from maskwright.engine.sharding.peers import Peers
from maskwright.engine.sharding.ranks import Rank

from ..conftest import tiny_vocabulary

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


def load_share(folder: Path, peers: Peers, spec: Any = None, slots: Any = None, **options: Any) -> Any:
    """A rank's share of the model in a folder, in float32."""
    spec = spec or read_spec(folder)
    share = ModelShare(spec, peers, slots)
    return load_model(folder, spec, torch.float32, CPU, 128, adapt=share.linears, portion=share.portion, **options)


class ThreadTeam:
    """What `Team` is to an engine, with ranks that are threads."""

    lost = None

    def __init__(self, config: EngineConfig, spec: Any, meeting: Path) -> None:
        self.peers, self._meeting = Peers(Rank(0, config.tensor_parallel)), meeting
        self._ranks = [Rank(number, config.tensor_parallel) for number in range(1, config.tensor_parallel)]
        self._orders: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in self._ranks]
        self._answers: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in self._ranks]
        pairs = zip(self._orders, self._answers, strict=True)
        self._threads = [threading.Thread(target=self._follow, args=pair, daemon=True) for pair in pairs]
        for thread in self._threads:
            thread.start()
        self.tell(lambda rank: Start(rank, config, spec))
        self.answers()

    @staticmethod
    def _follow(orders: queue.SimpleQueue[Any], answers: queue.SimpleQueue[Any]) -> None:
        class Link:
            @staticmethod
            def send_bytes(data: bytes) -> None:
                answers.put(pickle.loads(data))

        link: Any = Link
        try:
            start = orders.get()
            rank = FollowingRank(start, link, Peers(start.rank))
            while (order := orders.get()) is not None:
                rank.do(pickle.loads(pickle.dumps(order)))
        except Exception as error:
            answers.put(Failed(error))

    def tell(self, order: Any) -> None:
        for rank, orders in zip(self._ranks, self._orders, strict=True):
            orders.put(order(rank) if callable(order) else order)

    def answers(self) -> list[Any]:
        found = [answers.get(timeout=60) for answers in self._answers]
        for answer in found:
            if isinstance(answer, Failed):
                raise answer.error
        return found

    def begin(self, num_blocks: int, num_host_blocks: int) -> None:
        self.tell(Begin(num_blocks, num_host_blocks, self._meeting))
        self.answers()
        self.peers.connect(self._meeting, CPU, 60.0)
        self.answers()

    @contextmanager
    def together(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        for orders in self._orders:
            orders.put(None)
        for thread in self._threads:
            thread.join(60)


def shared_engine(folder: Path, size: int, meeting: Path, **options: Any) -> Engine:
    """An engine on a model folder as `make_engine` makes one, computed by several ranks."""
    features, options = EngineFeatures.split(options)
    limits = Limits(**{"block_size": 4, "num_blocks": 256, "max_batch_tokens": 64, "max_sequences": 16, "max_model_len": 128, **options})
    spec = read_spec(folder)
    asked = EngineConfig(
        model=folder, device="cpu", dtype="float32", block_size=limits.block_size, max_model_len=limits.max_model_len,
        tensor_parallel=size, max_adapters=4,
    )  # fmt: skip
    config = resolve(asked, spec)
    if spec.is_recurrent:
        features = features.for_recurrent()
    team: Any = ThreadTeam(config, spec, meeting)
    slots = slots_of(config, spec, team)
    model = model_of(config, spec, slots, share_of(spec, team.peers, slots))
    team.begin(limits.num_blocks, features.num_host_blocks)
    cache = model.allocate_cache(limits.num_blocks, config.block_size)
    runner = ParallelRunner(team, model, cache, num_host_blocks=features.num_host_blocks, adapters=slots)
    registry = None if slots is None else AdapterRegistry(spec, slots, config.max_adapter_rank)
    drafter = Lookup() if features.speculation == "lookup" else None
    return Engine(runner, tiny_vocabulary(), limits, features, drafter=drafter, adapters=registry)

"""Scheduler and KV space under a heavy trace, without a model: utilisation, fragmentation, tail latency.

    python benchmarks/scheduling.py [--requests 10000] [--rate 0] [--out benchmarks/results/NAME.json]
    python benchmarks/scheduling.py --cluster [--replicas 1000] [--requests 1000000] [--policies prefix random] [--calibration FILE]
    python benchmarks/scheduling.py --calibrate MODEL --out benchmarks/results/NAME.json

The trace: every request begins with one of --schemas system prompts (100 to 1,200 tokens, Zipf), goes on with 20 to 400 tokens of
its own and wants 16 to 400 tokens (both log-uniform). A third of the requests of the heaviest users come again with the whole
conversation and a new turn. --rate requests a second arrive (0: all at once). Time is modelled: a step takes --step-ms, and
--token-us for each token it reads; moving a block to or from host memory takes --block-us. The default is about an 8B model on an
H100. What the scheduler itself takes is measured and reported beside it, not added.

--cluster: routing policies over many replicas, see `cluster_simulation.py`. --calibrate measures steps of a model on this machine,
and --calibration takes what was measured for --step-ms and --token-us.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import cluster_simulation as cluster
import numpy as np
import step_calibration as calibration
from result_files import count, errors_as_messages, result_file, size, there
from rich.console import Console
from rich.table import Table

from maskwright.engine.kv_cache.kv_space import KVSpace
from maskwright.engine.limits import Limits
from maskwright.engine.scheduling.policy import POLICIES, Arrival, FairShares
from maskwright.engine.scheduling.scheduler import Chunk, Scheduler

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {"reuses": False},
    "prefix cache": {},
    "prefix cache, host memory": {"num_host_blocks": 20_000},
    "priority": {"policy": "priority"},
    "fair": {"policy": "fair"},
    "prefix cache, tight": {"num_blocks": 2_000},
    "prefix cache, host memory, tight": {"num_blocks": 2_000, "num_host_blocks": 20_000},
}
CLUSTER_OPTIONS: dict[str, type] = {
    "replicas": int, "ingresses": int, "failures": int, "load": float, "open-bytes": float, "max-batch-tokens": int,
    "report-seconds": float, "boot-seconds": float,
}  # fmt: skip


@dataclass(frozen=True)
class SamplingInput:
    """One request of the trace."""

    arrives: float  # seconds
    prompt: list[int]
    num_outputs: int
    num_shared: int
    priority: int
    user: int


@dataclass(eq=False)
class Simulated:
    """A request on its way."""

    sampling_input: SamplingInput
    rank: tuple[float, ...]
    token_ids: list[int]
    num_pinned: int
    num_computed: int = 0
    num_cached: int | None = None
    block_table: list[int] = field(default_factory=list)
    first_token: float = math.nan
    finished: float = math.nan
    num_needed: int = 0
    num_draftable: int = 0
    cache_key: str | None = None
    reads_all: bool = False

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


def trace(count: int, rate: float, num_schemas: int, seed: int) -> list[SamplingInput]:
    rng = random.Random(seed)
    systems = [[rng.randrange(1 << 17) for _ in range(log_uniform(rng, 100, 1200))] for _ in range(num_schemas)]
    weights = [1 / (rank + 1) for rank in range(num_schemas)]
    sampling_inputs: list[SamplingInput] = []
    arrives = 0.0
    for _ in range(count):
        arrives += rng.expovariate(rate) if rate else 0.0
        user = min(int(rng.paretovariate(0.8)), 50)
        earlier = sampling_inputs[-rng.randint(1, 200)] if len(sampling_inputs) > 200 and rng.random() < 0.3 else None
        begin = earlier.prompt if earlier and len(earlier.prompt) < 2500 else rng.choices(systems, weights)[0]
        own = [rng.randrange(1 << 17) for _ in range(log_uniform(rng, 20, 400))]
        shared = len(begin) if earlier is None else 0
        sampling_inputs.append(
            SamplingInput(arrives, begin + own, log_uniform(rng, 16, 400), shared, rng.choice([0, 1, 1, 2]), user)
        )
    return sampling_inputs


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass
class Clock:
    """Modelled time, in seconds."""

    step_ms: float
    token_us: float
    block_us: float
    now: float = 0.0

    def step(self, num_tokens: int, num_moved: int) -> None:
        self.now += (self.step_ms + (num_tokens * self.token_us + num_moved * self.block_us) / 1e3) / 1e3


class Replay:
    """One configuration over the trace."""

    def __init__(
        self, clock: Clock, *, policy: str = "fcfs", reuses: bool = True, num_host_blocks: int = 0, num_blocks: int = 12_000
    ) -> None:
        self.limits = Limits(
            block_size=16, num_blocks=num_blocks, max_batch_tokens=2048, max_sequences=256, max_model_len=4096
        )
        self.space = KVSpace(self.limits, reuses=reuses, num_host_blocks=num_host_blocks)
        self.scheduler: Scheduler[Simulated] = Scheduler(self.limits, self.space)
        self.clock, self.policy, self.shares = clock, policy, FairShares()
        self.done: list[Simulated] = []
        self.samples: list[tuple[float, float, float]] = []  # of each step: blocks in use, waste in them, budget used
        self.host_seconds: list[float] = []
        self.num_computed = 0

    def run(self, sampling_inputs: list[SamplingInput]) -> None:
        coming = iter(enumerate(sampling_inputs))
        upcoming = next(coming, None)
        while upcoming is not None or self.scheduler.has_work:
            if not self.scheduler.has_work and upcoming is not None:
                self.clock.now = max(self.clock.now, upcoming[1].arrives)
            while upcoming is not None and upcoming[1].arrives <= self.clock.now:
                self._add(*upcoming)
                upcoming = next(coming, None)
            self._step()
        assert self.space.pool.num_free == self.limits.num_blocks, "a block leaked"

    def _add(self, number: int, sampling_input: SamplingInput) -> None:
        cost = len(sampling_input.prompt) + sampling_input.num_outputs
        begins = self.shares.begin(str(sampling_input.user), cost) if self.policy == "fair" else 0.0
        rank = POLICIES[self.policy](Arrival(number, len(self.samples), sampling_input.priority, begins))
        self.scheduler.add(Simulated(sampling_input, rank, list(sampling_input.prompt), sampling_input.num_shared))

    def _step(self) -> None:
        begun = time.perf_counter()
        chunks = self.scheduler.schedule()
        moved = sum(transfer.kind != "copy" for transfer in self.space.take_transfers())
        host = time.perf_counter() - begun
        self.shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        num_tokens = sum(chunk.num_tokens for chunk in chunks)
        self.num_computed += num_tokens
        self.clock.step(num_tokens, moved)
        self._sample(num_tokens)
        begun = time.perf_counter()
        self._advance(chunks)
        self.host_seconds.append(host + time.perf_counter() - begun)

    def _advance(self, chunks: Iterable[Chunk[Simulated]]) -> None:
        for chunk in chunks:
            sequence = chunk.sequence
            completes = chunk.completes
            sequence.num_computed += chunk.num_tokens
            if completes:
                sequence.token_ids.append(-len(self.done) - 1)  # an output of its own
                if math.isnan(sequence.first_token):
                    sequence.first_token = self.clock.now
                if sequence.num_tokens == len(sequence.sampling_input.prompt) + sequence.sampling_input.num_outputs:
                    sequence.finished = self.clock.now
                    self.done.append(sequence)
                    self.scheduler.remove(sequence)

    def _sample(self, num_tokens: int) -> None:
        held = {block for sequence in self.scheduler.running for block in sequence.block_table}
        used = sum(sequence.num_tokens for sequence in self.scheduler.running)
        held_by_each = sum(len(sequence.block_table) for sequence in self.scheduler.running)
        waste = 1 - used / (held_by_each * self.limits.block_size) if held_by_each else 0.0
        self.samples.append((len(held) / self.limits.num_blocks, waste, num_tokens / self.limits.max_batch_tokens))

    def report(self) -> dict[str, Any]:
        samples, statistics = np.array(self.samples), self.space.statistics
        prompts = sum(len(each.sampling_input.prompt) for each in self.done)
        outputs = sum(each.sampling_input.num_outputs for each in self.done)
        return {
            "requests": len(self.done),
            "steps": len(self.samples),
            "seconds (modelled)": round(self.clock.now, 1),
            "output tokens per second": round(outputs / self.clock.now),
            "scheduler us per step": round(float(np.median(self.host_seconds)) * 1e6),
            "prompt tokens": prompts,
            "computed tokens": self.num_computed,
            "hit rate": round(statistics.hit_rate, 3),
            "preemptions": self.scheduler.num_preemptions,
            "evicted": statistics.num_evicted,
            "saved": statistics.num_saved,
            "loaded": statistics.num_loaded,
            "blocks in use": round(float(samples[:, 0].mean()), 3),
            "internal fragmentation": round(float(samples[:, 1].mean()), 4),
            "budget used": round(float(samples[:, 2].mean()), 3),
            "seconds to first token": quantiles([each.first_token - each.sampling_input.arrives for each in self.done]),
            "seconds to end": quantiles([each.finished - each.sampling_input.arrives for each in self.done]),
            "ms per token": quantiles(
                [
                    1e3 * (each.finished - each.first_token) / max(each.sampling_input.num_outputs - 1, 1)
                    for each in self.done
                ]
            ),
            "p99 to first token by priority": {
                str(level): quantiles(
                    [e.first_token - e.sampling_input.arrives for e in self.done if e.sampling_input.priority == level]
                )["p99"]
                for level in (0, 1, 2)
            },
            "median to end, light and heavy users": [
                quantiles(
                    [e.finished - e.sampling_input.arrives for e in self.done if (e.sampling_input.user == 1) == heavy]
                )["p50"]
                for heavy in (False, True)
            ],
        }


def quantiles(values: list[float]) -> dict[str, float]:
    """Of no values: not a number, as in a trace without users of a kind."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(float(np.quantile(values or [math.nan], share)), 3) for name, share in shares.items()}


def results(arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    sampling_inputs = trace(arguments.requests, arguments.rate, arguments.schemas, seed=0)
    for name, options in CONFIGURATIONS.items():
        replay = Replay(Clock(arguments.step_ms, arguments.token_us, arguments.block_us), **options)
        replay.run(sampling_inputs)
        yield name, replay.report()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=count, help="10,000; with --cluster 1,000,000")
    parser.add_argument("--rate", type=size, default=0.0, help="requests a second; 0: all at once")
    parser.add_argument("--schemas", type=count, help="40; with --cluster 2,000")
    parser.add_argument("--step-ms", type=size, default=8.0)
    parser.add_argument("--token-us", type=size, default=20.0)
    parser.add_argument("--block-us", type=size, default=40.0)
    parser.add_argument("--cluster", action="store_true")
    for name, kind in CLUSTER_OPTIONS.items():
        parser.add_argument(f"--{name}", type=kind, help="with --cluster")
    parser.add_argument("--policies", nargs="+", default=list(cluster.POLICIES), choices=list(cluster.POLICIES))
    parser.add_argument("--calibration", type=there, help="what --calibrate has written")
    parser.add_argument("--calibrate", metavar="MODEL")
    parser.add_argument("--out", type=result_file)
    arguments = parser.parse_args()
    if arguments.calibrate is not None:
        written = calibration.measured(arguments.calibrate)
        Console().print_json(data=written)
    else:
        written = (_route if arguments.cluster else _schedule)(arguments)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(written, indent=1) + "\n")


def _route(arguments: argparse.Namespace) -> dict[str, Any]:
    """The policies over a cluster, as a table and as what is written."""
    names = [name.replace("-", "_") for name in ("requests", "schemas", "step-ms", "token-us", *CLUSTER_OPTIONS)]
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    known = {} if arguments.calibration is None else json.loads(arguments.calibration.read_text())
    settings = cluster.Settings(**given | {name: known[name] for name in ("step_ms", "token_us") if name in known})
    title = f"{settings.requests:,} requests to {settings.replicas:,} replicas, load {settings.load}"
    table = Table("policy", *cluster.COLUMNS, title=title)
    kept = {}
    for name, row in cluster.results(settings, arguments.policies):
        kept[name] = row
        table.add_row(name, *cluster.shown(row))
    Console(width=160).print(table)
    source = {"calibration": known} if known else {"step times": "assumed, not measured"}
    return {"settings": asdict(settings), **source, "python": platform.python_version(), "results": kept}


def _schedule(arguments: argparse.Namespace) -> dict[str, Any]:
    """The configurations of one engine, as a table and as what is written."""
    arguments.requests, arguments.schemas = arguments.requests or 10_000, arguments.schemas or 40
    console, kept = Console(width=160), {}
    columns = ("output tokens per second", "hit rate", "preemptions", "blocks in use", "internal fragmentation")
    columns += ("scheduler us per step",)
    table = Table(title=f"{arguments.requests} requests, {platform.python_version()}")
    for column in ("configuration", *columns, "first token p50 / p99 s", "end p99 s"):
        table.add_column(column, justify="right")
    for name, row in results(arguments):
        kept[name] = row
        first, end = row["seconds to first token"], row["seconds to end"]
        table.add_row(name, *(str(row[column]) for column in columns), f"{first['p50']} / {first['p99']}", str(end["p99"]))
    console.print(table)
    settings = {name: getattr(arguments, name) for name in ("requests", "rate", "schemas", "step_ms", "token_us", "block_us")}
    return {"settings": settings, "python": platform.python_version(), "results": kept}


if __name__ == "__main__":
    with errors_as_messages():
        main()

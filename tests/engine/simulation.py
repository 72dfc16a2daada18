"""A model and a cache that are nothing but bookkeeping: what a place holds is a hash of the tokens up to it.

So a block that is shared wrongly, overwritten, lost or moved to the wrong place shows at once, and thousands of traces take seconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from maskwright.engine.kv_cache.kv_space import KVSpace
from maskwright.engine.limits import Limits
from maskwright.engine.scheduling.policy import POLICIES, Arrival
from maskwright.engine.scheduling.scheduler import Chunk, Scheduler


@dataclass(eq=False)
class Simulated:
    """Wants `num_outputs` tokens more; some steps give it more than one (forced text), some drafts are right."""

    rank: tuple[float, ...]
    token_ids: list[int]
    num_outputs: int
    num_reserved: int = 0  # tokens that it needs at least
    num_pinned: int = 0
    cache_key: str | None = None
    reads_all: bool = False
    tokens_per_step: int = 1
    num_computed: int = 0
    num_cached: int | None = None
    block_table: list[int] = field(default_factory=list)
    waited: int = 0  # steps without a chunk

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def num_needed(self) -> int:
        return min(self.num_reserved, self.num_outputs)

    @property
    def num_draftable(self) -> int:
        return self.num_outputs - 1


class SimulatedCache:
    def __init__(self, limits: Limits, num_host_blocks: int) -> None:
        self.block_size = limits.block_size
        self.blocks = [[None] * limits.block_size for _ in range(limits.num_blocks)]
        self.host = [[None] * limits.block_size for _ in range(num_host_blocks)]

    def move(self, transfers) -> None:
        sides = {"copy": (self.blocks, self.blocks), "save": (self.blocks, self.host), "load": (self.host, self.blocks)}
        for kind, source, target in transfers:
            if kind == "wipe":
                self.blocks[target][:] = [None] * self.block_size
                continue
            before, after = sides[kind]
            after[target][:] = before[source]

    def compute(self, chunks: list[Chunk]) -> None:
        """All chunks write, then all read what is before and in them."""
        for chunk in chunks:
            tokens, start = chunk.sequence.token_ids + chunk.drafts, chunk.sequence.num_computed
            for place, value in enumerate(prefix_hashes(tokens[: start + chunk.width])):
                if place >= start:
                    self.blocks[chunk.sequence.block_table[place // self.block_size]][place % self.block_size] = value
        for chunk in chunks:
            tokens = (chunk.sequence.token_ids + chunk.drafts)[: chunk.sequence.num_computed + chunk.width]
            for place, value in enumerate(prefix_hashes(tokens)):
                found = self.blocks[chunk.sequence.block_table[place // self.block_size]][place % self.block_size]
                assert found == value, f"place {place} of {len(tokens)} holds something else"


def prefix_hashes(tokens: list[int]) -> list[int]:
    value, hashes = 0, []
    for token in tokens:
        value = hash((value, token))
        hashes.append(value)
    return hashes


@dataclass
class Settings:
    limits: Limits
    policy: str = "fcfs"
    reuses: bool = True
    num_host_blocks: int = 0
    max_drafts: int = 0
    alphabet: int = 3
    checks: bool = True


class Simulation:
    """A scheduler that runs sequences to their ends over a simulated cache, checking every step."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.random = settings, random.Random(seed)
        self.space = KVSpace(settings.limits, reuses=settings.reuses, num_host_blocks=settings.num_host_blocks)
        self.scheduler: Scheduler[Simulated] = Scheduler(settings.limits, self.space, max_drafts=settings.max_drafts)
        self.cache = SimulatedCache(settings.limits, settings.num_host_blocks)
        self.num_steps, self.num_arrived, self.finished = 0, 0, []

    def arrive(self, prompt: list[int], num_outputs: int, priority: int = 0, share_begins: float = 0.0, **options) -> Simulated:
        rank = POLICIES[self.settings.policy](Arrival(self.num_arrived, self.num_steps, priority, share_begins))
        self.num_arrived += 1
        sequence = Simulated(rank, prompt, num_outputs, **options)
        self.scheduler.add(sequence)
        return sequence

    def fork(self, parent: Simulated) -> Simulated:
        self.num_arrived += 1
        child = Simulated((*parent.rank, self.num_arrived), list(parent.token_ids), parent.num_outputs)
        self.scheduler.add_fork(parent, child)
        return child

    def step(self) -> list[Chunk]:
        chunks = self.scheduler.schedule()
        if self.settings.checks:
            check_plan(self.scheduler, chunks)
        for chunk in chunks:
            chunk.drafts = [self.random.randrange(self.settings.alphabet) for _ in range(chunk.num_draftable)]
        self.cache.move(self.space.take_transfers())
        self.cache.compute(chunks)
        self._advance(chunks)
        if self.settings.checks:
            self.space.validate()
        self.num_steps += 1
        return chunks

    def run(self, limit: int = 5000) -> None:
        begun = self.num_steps
        while self.scheduler.has_work:
            assert self.step() or not self.scheduler.has_work, "stuck"
            assert self.num_steps - begun < limit, "no progress"

    def _advance(self, chunks: list[Chunk]) -> None:
        completing = [chunk for chunk in chunks if chunk.completes]
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        for chunk in completing:
            self._append(chunk)

    def _append(self, chunk: Chunk) -> None:
        sequence = chunk.sequence
        for draft in [*chunk.drafts, None]:
            for number in range(sequence.tokens_per_step):
                token = self.random.randrange(self.settings.alphabet)
                sequence.token_ids.append(token)
                sequence.num_outputs -= 1
                if sequence.num_outputs == 0:
                    self.scheduler.remove(sequence)
                    self.finished.append(sequence)
                    return
                if number or token != draft:
                    return
            sequence.num_computed += 1

    def check_end(self) -> None:
        assert not self.scheduler.has_work
        assert self.space.pool.num_free == self.settings.limits.num_blocks, "a block leaked"
        self.space.validate()


def check_plan(scheduler: Scheduler, chunks: list[Chunk]) -> None:
    """What holds for every step that is planned."""
    limits, pool = scheduler.limits, scheduler.pool
    assert len(scheduler.running) <= limits.max_sequences
    assert sum(chunk.num_tokens + chunk.num_draftable for chunk in chunks) <= limits.max_batch_tokens
    assert len({id(chunk.sequence) for chunk in chunks}) == len(chunks)
    assert [chunk.num_tokens > 1 for chunk in chunks] == sorted(chunk.num_tokens > 1 for chunk in chunks)
    for queue in (scheduler.running, scheduler.waiting):
        assert [sequence.rank for sequence in queue] == sorted(sequence.rank for sequence in queue)
    for chunk in chunks:
        assert chunk.sequence in scheduler.running and chunk.num_tokens >= 1
        end = chunk.sequence.num_computed + chunk.num_tokens
        assert end <= chunk.sequence.num_tokens
        assert len(chunk.sequence.block_table) * limits.block_size >= end + chunk.num_draftable
    users: dict[int, int] = {}
    for sequence in [*scheduler.running, *scheduler.waiting]:
        for block in sequence.block_table:
            users[block] = users.get(block, 0) + 1
    assert users == {block: pool.num_users(block) for block in range(limits.num_blocks) if pool.num_users(block)}
    assert all(not sequence.block_table for sequence in scheduler.waiting)

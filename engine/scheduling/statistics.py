"""Counts of what an engine has done, and of what is in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .scheduler import Chunk, Scheduler


@dataclass(slots=True)
class EngineStatistics:
    """Counts since the engine started, and gauges of what is in use when they are asked for."""

    num_steps: int = 0  # forward passes
    num_failures: int = 0  # sequences that ended because the engine failed, not their constraint or text
    num_failures_on_end: int = 0  # of these, those since a token was drawn last
    num_computed_tokens: int = 0  # that the model has read, drafts included
    num_prompt_tokens: int = 0  # of all requests admitted
    num_cached_tokens: int = 0  # of these, those that were in the cache
    num_drafts: int = 0  # times that a sequence was guessed ahead
    num_drafted_tokens: int = 0  # guessed ahead
    num_accepted_tokens: int = 0  # of these, chosen by the model itself
    num_accepted_at: tuple[int, ...] = ()  # the same by their place among the tokens guessed at once
    num_jumped_tokens: int = 0  # of forced text, taken without asking the model
    num_preemptions: int = 0  # sequences that gave their place up and began anew
    num_running: int = 0  # sequences in the batch
    num_waiting: int = 0  # sequences that wait for a place in it
    num_blocks: int = 0  # of the KV cache
    num_blocks_in_use: int = 0  # by sequences
    num_blocks_known: int = 0  # idle ones whose content is remembered
    num_host_blocks_used: int = 0  # in host memory
    num_evicted: int = 0  # remembered blocks that made room
    num_saved: int = 0  # of these, those that moved to host memory
    num_loaded: int = 0  # blocks that came back from there
    num_copied: int = 0  # blocks copied before they were written
    num_adapters: int = 0  # that are loaded
    adapter_bytes: int = 0  # of their matrices, free slots included
    running_adapters: tuple[str, ...] = ()  # names of those that sequences in the batch run with
    waiting_adapters: tuple[str, ...] = ()  # and those that wait

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that did not have to be computed."""
        return self.num_cached_tokens / self.num_prompt_tokens if self.num_prompt_tokens else 0.0

    @property
    def acceptance_rate(self) -> float:
        """The share of drafts that the model chose itself."""
        return self.num_accepted_tokens / self.num_drafted_tokens if self.num_drafted_tokens else 0.0

    def count_step(self, chunks: Iterable[Chunk[Any]]) -> None:
        """Count a forward pass over these chunks."""
        for chunk in chunks:
            self.num_computed_tokens += chunk.width
        self.num_steps += 1

    def count_drafts(self, verified: Iterable[tuple[int, int]]) -> None:
        """Count guesses that were checked. verified: for each sequence (tokens guessed, how many from the first on were chosen)."""
        for drafted, accepted in verified:
            self.num_drafts += 1
            self.num_drafted_tokens += drafted
            self.num_accepted_tokens += accepted
            before = (*self.num_accepted_at, *[0] * (drafted - len(self.num_accepted_at)))
            self.num_accepted_at = tuple(count + (place < accepted) for place, count in enumerate(before))


def statistics_of(totals: EngineStatistics, scheduler: Scheduler[Any], num_kept_back: int = 0) -> EngineStatistics:
    """`totals` with what the scheduler and its space know. num_kept_back: sequences in quarantine, unknown to the scheduler."""
    space = scheduler.space
    return replace(
        totals,
        num_prompt_tokens=space.statistics.num_prompt_tokens,
        num_cached_tokens=space.statistics.num_cached_tokens,
        num_preemptions=scheduler.num_preemptions,
        num_running=len(scheduler.running),
        num_waiting=len(scheduler.waiting) + num_kept_back,
        num_blocks=space.pool.num_blocks,
        num_blocks_in_use=space.pool.num_blocks - space.pool.num_free,
        num_blocks_known=space.pool.num_idle,
        num_host_blocks_used=space.host.num_used,
        num_evicted=space.statistics.num_evicted,
        num_saved=space.statistics.num_saved,
        num_loaded=space.statistics.num_loaded,
        num_copied=space.statistics.num_copies,
    )

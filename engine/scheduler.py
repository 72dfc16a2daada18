"""Which tokens are computed in the next step: first come, first served, with continuous batching.

A step computes at most `max_batch_tokens` tokens. Sequences that decode come first, one token each, so a long prompt
never stalls a running stream; the rest of the budget goes to prompts, in chunks. Requests join and leave at every step.

Blocks: a sequence gets the blocks of all tokens it has when it is admitted, one more whenever it outgrows them. When
none is left, the sequence that came last gives back all of its blocks, waits, and is computed again later. Since the
first sequence can always take from all others, and a whole sequence fits into the pool, there is always progress.

Invariant: running and then waiting sequences are in the order of their arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from .blocks import BlockPool
from .config import Limits


class Schedulable(Protocol):
    """What the scheduler sees of a sequence."""

    num_computed: int  # tokens whose keys and values are in the cache
    block_table: list[int]

    @property
    def num_tokens(self) -> int: ...  # prompt and output so far; at least one more than num_computed


S = TypeVar("S", bound=Schedulable)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[S]):
    """Tokens num_computed .. num_computed + num_tokens of one sequence, to be computed in this step."""

    sequence: S
    num_tokens: int

    @property
    def completes(self) -> bool:
        """After this chunk the next token of the sequence can be sampled."""
        return self.sequence.num_computed + self.num_tokens == self.sequence.num_tokens


@dataclass(slots=True)
class _Budget:
    """Tokens left in this step."""

    left: int

    def take(self, wanted: int) -> int:
        taken = min(wanted, self.left)
        self.left -= taken
        return taken


@dataclass(slots=True)
class Scheduler(Generic[S]):
    limits: Limits
    pool: BlockPool
    running: list[S] = field(default_factory=list)
    waiting: deque[S] = field(default_factory=deque)
    num_preemptions: int = 0

    @property
    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, sequence: S) -> None:
        self.waiting.append(sequence)

    def remove(self, sequence: S) -> None:
        """Forget a sequence that has finished or was cancelled, wherever it is, and free its blocks."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self._free_blocks(sequence)

    def schedule(self) -> list[Chunk[S]]:
        """The chunks of the next step, decodes first. Allocates the blocks they need; computes nothing."""
        has_preempted = self._grow_running()
        budget = _Budget(self.limits.max_batch_tokens)
        chunks = [*self._decodes(budget), *self._prefills(budget)]
        if not has_preempted:
            chunks += self._admissions(budget)
        return sorted(chunks, key=lambda chunk: chunk.num_tokens > 1)

    def _grow_running(self) -> bool:
        """Give every running sequence the blocks its tokens need, taking from the last; whether any was preempted."""
        before = self.num_preemptions
        for sequence in list(self.running):
            while sequence.block_table and self._num_missing(sequence) > self.pool.num_free:
                self._preempt(self.running[-1])
            if sequence.block_table:  # else it was preempted itself
                sequence.block_table += self.pool.allocate(self._num_missing(sequence))
        return self.num_preemptions > before

    def _decodes(self, budget: _Budget) -> Iterator[Chunk[S]]:
        for sequence in self.running:
            if _num_pending(sequence) == 1 and budget.take(1):
                yield Chunk(sequence, 1)

    def _prefills(self, budget: _Budget) -> Iterator[Chunk[S]]:
        for sequence in self.running:
            if _num_pending(sequence) > 1 and (num_tokens := budget.take(_num_pending(sequence))):
                yield Chunk(sequence, num_tokens)

    def _admissions(self, budget: _Budget) -> Iterator[Chunk[S]]:
        while budget.left and self.waiting and len(self.running) < self.limits.max_sequences:
            if self._num_missing(self.waiting[0]) > self.pool.num_free:
                break  # first come, first served: nobody overtakes
            sequence = self.waiting.popleft()
            sequence.block_table += self.pool.allocate(self._num_missing(sequence))
            self.running.append(sequence)
            yield Chunk(sequence, budget.take(_num_pending(sequence)))

    def _preempt(self, sequence: S) -> None:
        """Back to the head of the queue; its tokens will be computed again."""
        assert sequence is self.running[-1], "only the last may be preempted"
        self.running.pop()
        self._free_blocks(sequence)
        self.waiting.appendleft(sequence)
        self.num_preemptions += 1

    def _free_blocks(self, sequence: S) -> None:
        self.pool.release(sequence.block_table)
        sequence.block_table.clear()
        sequence.num_computed = 0

    def _num_missing(self, sequence: S) -> int:
        needed = -(-sequence.num_tokens // self.limits.block_size)
        return max(needed - len(sequence.block_table), 0)


def _num_pending(sequence: Schedulable) -> int:
    return sequence.num_tokens - sequence.num_computed

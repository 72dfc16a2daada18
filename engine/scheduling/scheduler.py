"""Which tokens are computed in the next step: continuous batching in the order of a policy (`policy.py`).

A step computes at most `max_batch_tokens` tokens. Sequences that decode come first, one token each, so a long prompt
never stalls a running stream; then prompts, in chunks; what is left goes to drafts. Requests join and leave at every step.

Blocks: a sequence gets the blocks of all tokens it has when it is admitted, one more whenever it outgrows them. It is admitted
when they are there, and those of the tokens it needs at least. When none is left, the sequence that ranks last gives its blocks
back, waits, and goes on later with what is still known of it (`kv_space.py`). A waiting sequence takes the place of running
ones that rank after it. Since the first can always take from all others, and a whole sequence fits into the pool, there is
always progress.

Invariant: running and waiting sequences are each in the order of their ranks, and so are both together after `schedule`, but
for those that have no room yet.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..kv_cache.block_pool import BlockPool
from ..kv_cache.kv_space import KVSpace, Occupant
from ..limits import Limits
from ..requests.request import Rank
from .proposal import Proposal

MOST_READ = 256  # tokens a step of prompts behind each of whose tokens the logits are wanted: these take much memory


class Schedulable(Occupant, Protocol):
    """What the scheduler sees of a sequence. Ranks are distinct."""

    rank: Rank

    @property
    def num_needed(self) -> int: ...  # tokens that are still to come at least

    @property
    def num_draftable(self) -> int: ...  # tokens that may be drafted behind those it has


S = TypeVar("S", bound=Schedulable)


@dataclass(slots=True)
class Chunk(Generic[S]):
    """Tokens num_computed .. num_computed + num_tokens of one sequence, to be computed in this step, and drafts behind them."""

    sequence: S
    num_tokens: int
    num_draftable: int = 0  # drafts for which there is room
    drafts: list[int] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)  # how the drafts were drawn, if that matters for their acceptance
    reads_all: bool = False  # the logits behind each of its tokens are wanted

    @property
    def width(self) -> int:
        """Tokens that the model reads."""
        return self.num_tokens + len(self.drafts)

    @property
    def completes(self) -> bool:
        """After this chunk the next token of the sequence can be sampled."""
        return self.sequence.num_computed + self.num_tokens == self.sequence.num_tokens

    @property
    def num_rows(self) -> int:
        """Tokens behind which the logits are wanted, the last ones."""
        if self.reads_all:
            return self.width
        return 1 + len(self.drafts) if self.completes else 0


class Plan(list[Chunk[S]]):
    """The chunks of a step. Other than a list it can be referred to weakly."""


@dataclass(slots=True)
class _Budget:
    """Tokens left in this step."""

    left: int
    left_to_read: int = MOST_READ  # of these, for prompts that are read token by token

    def take(self, wanted: int, reads_all: bool = False) -> int:
        taken = min(wanted, self.left, self.left_to_read) if reads_all else min(wanted, self.left)
        self.left -= taken
        self.left_to_read -= taken if reads_all else 0
        return taken

    def has_room(self, sequence: Schedulable) -> bool:
        """Whether some token of a sequence can be computed."""
        return self.left > 0 and not (sequence.reads_all and not self.left_to_read)


class Scheduler(Generic[S]):
    """Plans steps. max_drafts: the most tokens that are drafted for one sequence in a step.

    keeps_plans: a step that is planned as the one before is the very list that was given then, which its user does not change.
    """

    def __init__(self, limits: Limits, space: KVSpace | None = None, *, max_drafts: int = 0) -> None:
        self.limits, self.max_drafts = limits, max_drafts
        self.space = space or KVSpace(limits)
        self.running: list[S] = []
        self.waiting: list[S] = []
        self.num_preemptions = 0
        self.keeps_plans = False
        self._kept: tuple[list[S], Plan[S]] | None = None  # who ran then, and the plan, in which each of them decodes

    @property
    def pool(self) -> BlockPool:
        return self.space.pool

    @property
    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, sequence: S) -> None:
        insort(self.waiting, sequence, key=_rank)

    def add_fork(self, parent: S, child: S) -> None:
        """The child runs beside its running parent, whose tokens it has and whose blocks it shares."""
        if parent in self.running and len(self.running) < self.limits.max_sequences:
            self.space.fork(parent, child)
            insort(self.running, child, key=_rank)
        else:
            self.add(child)

    def remove(self, sequence: S) -> None:
        """Forget a sequence that has finished or was cancelled, wherever it is, and free its blocks."""
        self._kept = None
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.space.release(sequence)

    def restart_users(self, blocks: set[int]) -> None:
        """Send the sequences back that share one of these blocks, which hold nothing: they go on from where the block begins."""
        size = self.limits.block_size
        for sequence in list(self.running):
            place = next((place for place, block in enumerate(sequence.block_table) if block in blocks), None)
            if place is not None:
                sequence.num_computed = min(sequence.num_computed, place * size)
                self._preempt(sequence)

    def clear(self) -> None:
        """Forget all sequences and all that is known."""
        self._kept = None
        self.running.clear()
        self.waiting.clear()
        self.space.clear()

    def schedule(self) -> Plan[S]:
        """The chunks of the next step, shorter ones first. Allocates the blocks they need; computes nothing."""
        self.space.begin_step()
        if self._kept is not None and self._is_as_before(*self._kept):
            return self._kept[1]
        has_preempted = self._grow_running()
        if not has_preempted:
            self._make_way()
        budget = _Budget(self.limits.max_batch_tokens)
        chunks = Plan([*self._decodes(budget), *self._prefills(budget)])
        if not has_preempted:
            chunks += self._admissions(budget)
        if self.max_drafts:
            self._allow_drafts(chunks, budget)
        chunks.sort(key=lambda chunk: (chunk.num_tokens, chunk.sequence.num_computed))
        self._kept = (list(self.running), chunks) if self.keeps_plans and self._is_all_decodes(chunks) else None
        return chunks

    def _is_all_decodes(self, chunks: list[Chunk[S]]) -> bool:
        """Whether all that run have one new token, and nothing else is planned."""
        is_all = len(chunks) == len(self.running) and not self.waiting and not self.max_drafts
        return is_all and all(chunk.num_tokens == 1 and not chunk.reads_all for chunk in chunks)

    def _is_as_before(self, running: list[S], chunks: list[Chunk[S]]) -> bool:
        """Whether the plan would be the same: nobody came or went, and each has one new token that goes into a block it has written
        to before, and does not fill it."""
        if self.waiting or self.running != running or self.space.has_forks:
            return False
        last = self.limits.block_size - 1
        for chunk in chunks:
            sequence = chunk.sequence
            computed = sequence.num_computed
            if sequence.num_tokens != computed + 1 or not 0 < computed % (last + 1) < last:
                return False
        return True

    def _grow_running(self) -> bool:
        """Give every running sequence the blocks its tokens need, taking from the last; whether any was preempted."""
        before = self.num_preemptions
        growing = [sequence for sequence in self.running if self.space.num_missing(sequence, sequence.num_tokens)]
        for sequence in growing:
            while sequence.block_table and self._num_missing(sequence) > self.pool.num_free:
                self._preempt(self.running[-1])
            if sequence.block_table:  # else it was preempted itself
                self.space.grow(sequence, sequence.num_tokens)
        return self.num_preemptions > before

    def _make_way(self) -> None:
        """Preempt what ranks after the first that waits, if that lets it in."""
        if not self.waiting:
            return
        first = self.waiting[0]
        ahead = [sequence for sequence in self.running if sequence.rank < first.rank]
        behind = self.running[len(ahead) :]
        if not behind or len(ahead) >= self.limits.max_sequences:
            return
        taken_back = sum(self.pool.num_users(block) == 1 for sequence in behind for block in sequence.block_table)
        if self._num_needed(first, ahead) > self.pool.num_free + taken_back:
            return
        while behind and not self._admits(first):
            self._preempt(behind.pop())

    def _decodes(self, budget: _Budget) -> Iterator[Chunk[S]]:
        for sequence in self.running:
            if _num_pending(sequence) == 1 and budget.take(1):
                yield self._planned(sequence, 1)

    def _prefills(self, budget: _Budget) -> Iterator[Chunk[S]]:
        for sequence in self.running:
            if _num_pending(sequence) > 1 and budget.has_room(sequence):
                self.space.skip_known(sequence)
                yield self._planned(sequence, budget.take(_num_pending(sequence), sequence.reads_all))

    def _admissions(self, budget: _Budget) -> Iterator[Chunk[S]]:
        while self.waiting and budget.has_room(self.waiting[0]) and self._admits(self.waiting[0]):
            sequence = self.waiting.pop(0)  # nobody overtakes
            self.space.admit(sequence)
            insort(self.running, sequence, key=_rank)
            yield self._planned(sequence, budget.take(_num_pending(sequence), sequence.reads_all))

    def _allow_drafts(self, chunks: list[Chunk[S]], budget: _Budget) -> None:
        """Room for drafts, as far as blocks are free: nobody is preempted for them."""
        for chunk in chunks:
            sequence = chunk.sequence
            wanted = min(self.max_drafts, sequence.num_draftable, budget.left) if chunk.completes else 0
            if wanted > 0 and self.space.num_missing(sequence, sequence.num_tokens + wanted) <= self.pool.num_free:
                self.space.grow(sequence, sequence.num_tokens + wanted)
                chunk.num_draftable = budget.take(wanted)

    def _planned(self, sequence: S, num_tokens: int) -> Chunk[S]:
        self.space.plan(sequence, sequence.num_computed + num_tokens)
        return Chunk(sequence, num_tokens, reads_all=sequence.reads_all)

    def _admits(self, sequence: S) -> bool:
        has_place = len(self.running) < self.limits.max_sequences
        return has_place and self._num_needed(sequence, self.running) <= self.pool.num_free

    def _num_needed(self, sequence: S, running: Iterable[S]) -> int:
        """Blocks that a waiting sequence needs at least, and those running with it before they can finish."""
        space = self.space
        reserved = sum(space.num_missing(other, other.num_tokens + other.num_needed) for other in running if other.num_needed)
        return space.num_needed(sequence, sequence.num_needed) + reserved

    def _preempt(self, sequence: S) -> None:
        """Send a running sequence back to the queue; what is not known any more when its turn comes is computed again."""
        self.running.remove(sequence)
        self.space.release(sequence)
        insort(self.waiting, sequence, key=_rank)
        self.num_preemptions += 1

    def _num_missing(self, sequence: S) -> int:
        return self.space.num_missing(sequence, sequence.num_tokens)


def _rank(sequence: Schedulable) -> Rank:
    return sequence.rank


def _num_pending(sequence: Schedulable) -> int:
    return sequence.num_tokens - sequence.num_computed

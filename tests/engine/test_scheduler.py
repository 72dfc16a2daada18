"""Scheduler and block pool over random traces with a simulated model: order, limits, progress, and no block lost."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engine.blocks import BlockPool
from maskwright.engine.config import Limits
from maskwright.engine.scheduler import Chunk, Scheduler


@dataclass(eq=False)
class Simulated:
    """A sequence that wants `num_outputs` tokens; some steps of the model give it more than one (forced text)."""

    arrival: int
    num_tokens: int
    num_outputs: int
    tokens_per_step: int = 1
    num_computed: int = 0
    block_table: list[int] = field(default_factory=list)


@st.composite
def limits(draw) -> Limits:
    block_size, num_blocks = draw(st.integers(1, 5)), draw(st.integers(4, 20))
    max_sequences = draw(st.integers(1, 6))
    return Limits(
        block_size=block_size,
        num_blocks=num_blocks,
        max_sequences=max_sequences,
        max_batch_tokens=max_sequences + draw(st.integers(0, 9)),
        max_model_len=block_size * num_blocks,
    )


Arrival = tuple[int, int, int, int, int]  # step, prompt, outputs, tokens per step, step of cancellation (0 = never)
arrivals = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(1, 14), st.integers(1, 10), st.integers(1, 3), st.sampled_from([0, 0, 0, 3, 9])
    ),
    min_size=1,
    max_size=12,
)


def check_invariants(scheduler: Scheduler, chunks: list[Chunk]) -> None:
    limits, pool = scheduler.limits, scheduler.pool
    everyone = [*scheduler.running, *scheduler.waiting]
    assert [s.arrival for s in everyone] == sorted(s.arrival for s in everyone)
    assert len(scheduler.running) <= limits.max_sequences
    assert sum(chunk.num_tokens for chunk in chunks) <= limits.max_batch_tokens
    assert len({id(chunk.sequence) for chunk in chunks}) == len(chunks)
    assert [chunk.num_tokens > 1 for chunk in chunks] == sorted(chunk.num_tokens > 1 for chunk in chunks)
    for chunk in chunks:
        assert chunk.sequence in scheduler.running and chunk.num_tokens >= 1
        end = chunk.sequence.num_computed + chunk.num_tokens
        assert end <= chunk.sequence.num_tokens
        assert len(chunk.sequence.block_table) * limits.block_size >= end
    held = [block for s in everyone for block in s.block_table]
    assert len(held) == len(set(held)) == limits.num_blocks - pool.num_free
    assert all(not s.block_table for s in scheduler.waiting)
    pool.validate()


@given(limits(), arrivals)
def test_every_request_finishes_and_every_block_comes_back(limits: Limits, trace: list[Arrival]):
    scheduler: Scheduler[Simulated] = Scheduler(limits, BlockPool(limits.num_blocks))
    ordered = sorted(enumerate(trace), key=lambda item: item[1][0])
    cancellations = {}
    pending = []
    for arrival, (_, (step, prompt, outputs, per_step, cancelled)) in enumerate(ordered):
        prompt = min(prompt, limits.max_model_len - 1)
        sequence = Simulated(arrival, prompt, min(outputs, limits.max_model_len - prompt), per_step)
        pending.append((step, sequence))
        if cancelled:
            cancellations[arrival] = step + cancelled
    step = 0
    while pending or scheduler.has_work:
        while pending and pending[0][0] <= step:
            scheduler.add(pending.pop(0)[1])
        for sequence in [*scheduler.running, *scheduler.waiting]:
            if cancellations.get(sequence.arrival, step + 1) <= step:
                scheduler.remove(sequence)
        chunks = scheduler.schedule()
        check_invariants(scheduler, chunks)
        assert chunks or not scheduler.has_work, "stuck"
        for chunk in chunks:
            completes, sequence = chunk.completes, chunk.sequence
            sequence.num_computed += chunk.num_tokens
            if completes:
                new = min(sequence.tokens_per_step, sequence.num_outputs)
                sequence.num_tokens += new
                sequence.num_outputs -= new
                if sequence.num_outputs == 0:
                    scheduler.remove(sequence)
        step += 1
        assert step < 3000, "no progress"
    assert scheduler.pool.num_free == limits.num_blocks


def test_decodes_go_first_and_a_long_prompt_takes_the_rest():
    limits = Limits(block_size=4, num_blocks=64, max_batch_tokens=10, max_sequences=4, max_model_len=128)
    scheduler: Scheduler[Simulated] = Scheduler(limits, BlockPool(64))
    short, long = Simulated(0, 3, 9), Simulated(1, 40, 9)
    scheduler.add(short)
    assert [(c.sequence, c.num_tokens, c.completes) for c in scheduler.schedule()] == [(short, 3, True)]
    short.num_computed, short.num_tokens = 3, 4
    scheduler.add(long)
    assert [(c.sequence, c.num_tokens, c.completes) for c in scheduler.schedule()] == [
        (short, 1, True),
        (long, 9, False),
    ]


def test_the_last_to_come_is_preempted_and_comes_back_first():
    limits = Limits(block_size=2, num_blocks=4, max_batch_tokens=8, max_sequences=4, max_model_len=8)
    scheduler: Scheduler[Simulated] = Scheduler(limits, BlockPool(4))
    first, second, third = (Simulated(arrival, 4, 4) for arrival in range(3))
    for sequence in (first, second, third):
        scheduler.add(sequence)
    scheduler.schedule()
    assert scheduler.running == [first, second]
    for sequence in (first, second):
        sequence.num_computed, sequence.num_tokens = 4, 5
    assert [chunk.sequence for chunk in scheduler.schedule()] == [first]
    assert list(scheduler.waiting) == [second, third] and second.num_computed == 0 and scheduler.num_preemptions == 1


def test_a_shared_block_is_freed_by_its_last_user():
    pool = BlockPool(3)
    blocks = pool.allocate(2)
    pool.share(blocks[:1])
    pool.release(blocks)
    assert (pool.num_free, pool.num_users(blocks[0]), pool.num_users(blocks[1])) == (2, 1, 0)
    pool.release(blocks[:1])
    assert pool.num_free == 3
    pool.validate()


@pytest.mark.parametrize("misuse", [lambda p: p.allocate(3), lambda p: p.release([0]), lambda p: p.share([0])])
def test_misuse_of_the_pool_is_caught(misuse):
    with pytest.raises(AssertionError):
        misuse(BlockPool(2))

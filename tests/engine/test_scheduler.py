"""Scheduler and KV space over random traces with a simulated model: order, limits, progress, no block lost or shared wrongly."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engine.kv_cache.block_pool import BlockPool
from maskwright.engine.kv_cache.kv_space import KVSpace
from maskwright.engine.limits import Limits
from maskwright.engine.scheduling.policy import PATIENCE, Arrival, FairShares, fcfs, priority
from maskwright.engine.scheduling.scheduler import Scheduler

from .simulation import Settings, Simulated, Simulation


def random_settings(rng: random.Random) -> Settings:
    block_size, num_blocks, max_sequences = rng.randint(1, 5), rng.randint(4, 20), rng.randint(1, 6)
    limits = Limits(
        block_size=block_size,
        num_blocks=num_blocks,
        max_sequences=max_sequences,
        max_batch_tokens=max_sequences + rng.randint(0, 9),
        max_model_len=block_size * num_blocks,
    )
    reuses = rng.random() < 0.85
    return Settings(
        limits,
        policy=rng.choice(["fcfs", "priority"]),
        reuses=reuses,
        num_host_blocks=rng.choice([0, 0, 1, 3, 12]) if reuses else 0,
        max_drafts=rng.choice([0, 0, 3]),
        alphabet=rng.randint(1, 3),
    )


def random_trace(seed: int) -> Simulation:
    """Arrivals, cancellations, forks and failing steps, at random."""
    rng = random.Random(seed)
    simulation = Simulation(random_settings(rng), seed)
    limits, alphabet = simulation.settings.limits, simulation.settings.alphabet
    prefixes = [[rng.randrange(alphabet) for _ in range(rng.randint(1, 14))] for _ in range(2)]
    for _ in range(rng.randint(3, 25)):
        if rng.random() < 0.4:
            prompt = (rng.choice(prefixes) + [rng.randrange(alphabet) for _ in range(rng.randint(0, 6))])[: limits.max_model_len - 1]
            outputs = min(rng.randint(1, 10), limits.max_model_len - len(prompt))
            simulation.arrive(
                prompt,
                outputs,
                priority=rng.randint(-1, 2),
                num_reserved=rng.choice([0, 0, outputs]),
                num_pinned=rng.choice([0, len(prompt) // 2]),
                tokens_per_step=rng.randint(1, 3),
            )
        alive = [*simulation.scheduler.running, *simulation.scheduler.waiting]
        if alive and rng.random() < 0.1:
            simulation.scheduler.remove(rng.choice(alive))
        elif alive and rng.random() < 0.15:
            simulation.fork(rng.choice(alive))
        if rng.random() < 0.03:
            fail(simulation)
        simulation.step()
    return simulation


def fail(simulation: Simulation) -> None:
    """A step is planned, but never computed: its sequences end."""
    doomed = [chunk.sequence for chunk in simulation.scheduler.schedule()]
    simulation.cache.move(simulation.space.take_transfers())
    for sequence in doomed:
        lost = simulation.space.disown(sequence, sequence.num_computed)
        simulation.scheduler.remove(sequence)
        simulation.scheduler.restart_users(lost)


@pytest.mark.parametrize("part", range(8))
def test_thousands_of_random_traces(part: int):
    for seed in range(part * 300, (part + 1) * 300):
        simulation = random_trace(seed)
        simulation.run()
        simulation.check_end()


@given(st.integers(0, 2**32))
def test_random_traces(seed: int):
    simulation = random_trace(seed)
    simulation.run()
    simulation.check_end()


def limits(**changes: int) -> Limits:
    return Limits(
        **{"block_size": 4, "num_blocks": 64, "max_batch_tokens": 64, "max_sequences": 16, "max_model_len": 128, **changes}
    )


# ---- what is shared


def test_equal_prompts_of_one_step_are_computed_once():
    simulation = Simulation(Settings(limits()), 0)
    sequences = [simulation.arrive([1] * 10 + [2] * 3, 5) for _ in range(4)]
    chunks = simulation.step()
    assert sorted(chunk.num_tokens for chunk in chunks) == [1, 1, 1, 13]  # 12 tokens fill blocks
    assert [sequence.num_cached for sequence in sequences] == [0, 12, 12, 12]
    assert simulation.space.pool.num_blocks - simulation.space.pool.num_free == 3 + 4
    simulation.run()
    simulation.check_end()


def test_of_the_block_in_which_a_prefix_ends_a_copy_is_made():
    simulation = Simulation(Settings(limits(), alphabet=1), 0)
    simulation.arrive([1, 2, 3, 4, 5, 6, 7], 1)
    simulation.run()
    second = simulation.arrive([1, 2, 3, 4, 5, 6, 9, 9], 1)
    (chunk,) = simulation.step()
    assert (second.num_cached, chunk.num_tokens, simulation.space.statistics.num_copies) == (6, 2, 1)
    third = simulation.arrive([1, 2, 3, 4, 5, 6, 7], 1)  # all but the last token, whose logits are wanted
    simulation.run()
    assert third.num_cached == 6
    simulation.check_end()


def test_a_long_prompt_that_others_compute_is_passed_over():
    simulation = Simulation(Settings(limits(max_batch_tokens=16)), 0)
    first, second = (simulation.arrive(list(range(40)), 2) for _ in range(2))
    widths = [{id(chunk.sequence): chunk.num_tokens for chunk in simulation.step()} for _ in range(3)]
    assert [step.get(id(first)) for step in widths] == [16, 16, 8]
    assert [step.get(id(second)) for step in widths] == [None, None, 4]
    simulation.run()
    simulation.check_end()


def test_conversations_go_on_where_they_ended():
    simulation = Simulation(Settings(limits()), 0)
    first = simulation.arrive([1] * 9, 8)
    simulation.run()
    second = simulation.arrive([*first.token_ids, 2, 2, 2], 3)
    simulation.run()
    assert second.num_cached == 16  # the last token was never computed


def test_forks_share_all_blocks_and_copy_what_they_write():
    simulation = Simulation(Settings(limits()), 0)
    parent = simulation.arrive([1] * 6, 9)
    simulation.step()
    children = [simulation.fork(parent) for _ in range(3)]
    assert all(child.block_table == parent.block_table and child.num_computed == 6 for child in children)
    simulation.step()
    assert simulation.space.statistics.num_copies == 3  # the last of four may write in place
    simulation.run()
    simulation.check_end()


def test_the_least_recently_used_leaf_goes_first_and_pinned_blocks_last():
    simulation = Simulation(Settings(limits(num_blocks=8, max_model_len=32)), 0)
    for first_token, pinned in ((1, 8), (2, 0), (3, 0)):
        simulation.arrive([first_token] * 8, 1, num_pinned=pinned)
        simulation.run()
    simulation.arrive([4] * 12, 1)  # takes the end of [2] * 8, which was used last before [3] * 8
    simulation.run()
    assert [simulation.arrive([token] * 9, 1) and cached_after_run(simulation) for token in (1, 3, 2)] == [8, 8, 0]


def cached_after_run(simulation: Simulation) -> int | None:
    sequence = simulation.scheduler.waiting[0]
    simulation.run()
    return sequence.num_cached


def test_what_is_evicted_comes_back_from_host_memory():
    def computed(num_host_blocks: int) -> int:
        simulation = Simulation(Settings(limits(num_blocks=8, max_model_len=32), num_host_blocks=num_host_blocks), 0)
        total = 0
        for token in (1, 2, 3, 1, 2, 3):
            simulation.arrive([token] * 24, 1)
            while simulation.scheduler.has_work:
                total += sum(chunk.num_tokens for chunk in simulation.step())
        simulation.check_end()
        return total

    assert computed(0) == 144 and computed(20) <= 72 + 3 * 4


def test_nothing_is_remembered_when_switched_off():
    simulation = Simulation(Settings(limits(), reuses=False), 0)
    sequences = [simulation.arrive([1] * 12, 3) for _ in range(3)]
    simulation.run()
    assert all(sequence.num_cached == 0 for sequence in sequences) and simulation.space.pool.num_idle == 0


# ---- who goes first


def test_decodes_go_first_and_a_long_prompt_takes_the_rest():
    simulation = Simulation(Settings(limits(max_batch_tokens=10, max_sequences=4)), 0)
    short = simulation.arrive([0] * 3, 9)
    assert [(c.sequence, c.num_tokens) for c in simulation.step()] == [(short, 3)]
    long = simulation.arrive([1] * 40, 9)
    assert [(c.sequence, c.num_tokens) for c in simulation.step()] == [(short, 1), (long, 9)]


def test_the_last_to_come_is_preempted_and_comes_back_first():
    simulation = Simulation(Settings(limits(block_size=2, num_blocks=4, max_batch_tokens=8, max_model_len=8), reuses=False), 0)
    first, second, third = (simulation.arrive([token] * 4, 4) for token in range(3))
    simulation.step()
    assert simulation.scheduler.running == [first, second]
    assert [chunk.sequence for chunk in simulation.step()] == [first]
    assert simulation.scheduler.waiting == [second, third] and simulation.scheduler.num_preemptions == 1


def test_a_sequence_waits_for_the_room_it_needs_at_least():
    simulation = Simulation(Settings(limits(num_blocks=8, max_model_len=32)), 0)
    first = simulation.arrive([0] * 12, 9, num_reserved=9)
    second = simulation.arrive([1] * 8, 9, num_reserved=9)
    simulation.step()
    assert simulation.scheduler.running == [first] and simulation.scheduler.waiting == [second]
    simulation.run()
    assert simulation.scheduler.num_preemptions == 0


def test_an_urgent_request_takes_the_place_of_others():
    simulation = Simulation(Settings(limits(num_blocks=8, max_model_len=32), policy="priority"), 0)
    patient = [simulation.arrive([token] * 14, 4, priority=1) for token in range(2)]
    simulation.step()
    urgent = simulation.arrive([2] * 14, 4, priority=0)
    simulation.step()
    assert simulation.scheduler.running == [urgent, patient[0]] and simulation.scheduler.waiting == [patient[1]]
    simulation.run()
    simulation.check_end()


def test_who_has_waited_long_is_not_passed_by_the_urgent():
    waiting = priority(Arrival(0, step=0, priority=1))
    assert priority(Arrival(1, step=PATIENCE - 1, priority=0)) < waiting < priority(Arrival(2, step=PATIENCE, priority=0))
    assert fcfs(Arrival(0, 0, priority=5)) < fcfs(Arrival(1, 0, priority=0))


def test_nobody_starves_beside_a_stream_of_urgent_requests():
    simulation = Simulation(Settings(limits(max_sequences=2, max_batch_tokens=4, num_blocks=10, max_model_len=40), policy="priority"), 0)
    patient = simulation.arrive([0] * 20, 5, priority=1)
    while patient not in simulation.finished:
        simulation.arrive([1] * 8, 4, priority=0)
        simulation.step()
        assert simulation.num_steps < 4 * PATIENCE


def test_users_share_by_tokens():
    shares = FairShares()
    greedy = [shares.begin("greedy", 100) for _ in range(5)]
    assert greedy == [0, 100, 200, 300, 400]
    shares.serve([0])
    assert shares.begin("modest", 10) == 0 and shares.begin("modest", 10) == 10
    shares.serve([200])
    assert shares.begin("late", 10) == 200
    shares.serve([])
    assert shares.begin("greedy", 10) == shares.begin("modest", 10)


@pytest.mark.parametrize("policy", ["fcfs", "priority", "fair"])
@pytest.mark.parametrize("seed", range(40))
def test_nobody_starves_beside_an_endless_stream(policy: str, seed: int):
    """A heavy user keeps asking, with urgent requests; each request of the others is served before a bounded number of newcomers."""
    rng, shares = random.Random(seed), FairShares()
    settings = Settings(limits(max_sequences=2, max_batch_tokens=8, num_blocks=12, max_model_len=48), policy=policy)
    simulation, modest = Simulation(settings, seed), []
    for step in range(3 * PATIENCE):
        if step == 5 or (step < 30 and rng.random() < 0.1):
            length, outputs = rng.randint(1, 20), rng.randint(1, 8)
            begins = shares.begin("modest", length + outputs)
            modest.append(simulation.arrive([0] * length, outputs, priority=1, share_begins=begins))
        if len(simulation.scheduler.waiting) < 6:
            begins = shares.begin("heavy", 16)
            simulation.arrive([rng.randrange(3) for _ in range(8)], 8, priority=0, share_begins=begins)
        chunks = simulation.step()
        shares.serve(chunk.sequence.rank[0] for chunk in chunks)
        waited = sum(each not in simulation.finished for each in modest)
        if not waited and step >= 30:
            break
    assert all(each in simulation.finished for each in modest)
    bound = {"fcfs": 80, "priority": PATIENCE + 80, "fair": 80}[policy]
    assert simulation.num_steps < 30 + bound


# ---- the pool


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


def test_a_scheduler_without_work_plans_nothing():
    scheduler: Scheduler[Simulated] = Scheduler(limits(), KVSpace(limits()))
    assert scheduler.schedule() == [] and not scheduler.has_work

"""The loops with host and device side by side: every token is that of the plain loop, whatever is mixed in a batch."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.base.errors import ConstraintLimit
from maskwright.engine.device.device_queue import InlineQueue, ThreadQueue
from maskwright.engine.device_constraints import automata
from maskwright.engine.device_constraints.state_tables import Capacity
from maskwright.engine.errors import ConfigError
from maskwright.engine.features import EngineFeatures
from maskwright.engine.loops.device_masks import Known
from maskwright.engine.requests.request import Request
from maskwright.engine.steps import runner
from maskwright.sampling import SamplingParams

from .conftest import EOS, check_nothing_leaked, run_all, tiny_vocabulary
from .fake_constraint import Failing, brackets, choice

VOCABULARY = tiny_vocabulary()
CONSTRAINTS = [
    None,
    brackets(VOCABULARY),
    brackets(VOCABULARY, cost=3),
    choice(VOCABULARY, b"alpha", b"alphabet", b"beta: a long tail that is forced"),
]
SAMPLINGS = [
    {"temperature": 0.0},
    {"temperature": 0.8, "top_p": 0.9, "logprobs": 2},
    {"temperature": 2.0, "top_k": 20, "min_p": 0.01},
    {"temperature": 1.5, "repetition_penalty": 1.2, "frequency_penalty": 0.3, "presence_penalty": 0.1},
    {"temperature": 1.0, "logit_bias": {40: 5.0}, "banned_token_ids": (41, 42)},
]
LOOPS = [
    {"overlap": True},
    {"automaton": "device"},
    {"automaton": "device", "overlap": True},
    {"automaton": "device", "steps_per_visit": 4},
    {"automaton": "device", "overlap": True, "steps_per_visit": 3},
]


def encode(text: str) -> list[int]:
    return [ord(character) - 29 for character in text]


def request(kind: int, sampling: int, seed: int, *, length: int = 5, max_tokens: int = 20, jumps: bool = False) -> Request:
    """A request of a kind of its own; free ones have stop strings, some constrained ones a stop token."""
    constraint = CONSTRAINTS[kind % len(CONSTRAINTS)]
    options = dict(SAMPLINGS[sampling % len(SAMPLINGS)])
    if constraint is None:
        options |= {"stop": ("e", "4x"), "min_tokens": seed % 3, "ignore_eos": seed % 5 == 0}
    elif seed % 4 == 0:
        options |= {"stop_token_ids": (1,)}
    params = SamplingParams(seed=seed, max_tokens=max_tokens, jump_forward=jumps and constraint is not None, **options)
    prompt = tuple(3 + (seed % 2 * 31 + place * 7) % 90 for place in range(length))
    return Request(prompt_token_ids=prompt, sampling=params, constraint=constraint)


def summary(output) -> tuple:
    return output.token_ids, output.text, output.finish_reason, output.closed_by_budget, output.bans_overridden, output.error


def summaries(outputs: dict) -> list[tuple]:
    return [summary(output) for _, output in sorted(outputs.items())]


def all_kinds() -> dict[int, list[Request]]:
    numbers = [(kind, sampling) for kind in range(len(CONSTRAINTS)) for sampling in range(len(SAMPLINGS))]
    requests = [request(*each, seed, length=3 + seed, jumps=seed % 2 == 1) for seed, each in enumerate(numbers)]
    return {0: requests[:8], 3: requests[8:12], 4: requests[12:]}


@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.parametrize("tight", [{}, {"num_blocks": 20, "max_model_len": 76, "max_batch_tokens": 9, "max_sequences": 5, "num_host_blocks": 9}])
def test_every_kind_of_row_beside_every_other(loop, tight, tiny_model, make_engine, caplog):
    caplog.set_level(logging.INFO)
    folder = tiny_model("llama").folder
    plain = run_all(make_engine(folder, encode=encode), all_kinds())
    engine = make_engine(folder, encode=encode, **loop, **tight)
    outputs = run_all(engine, all_kinds())
    assert summaries(outputs) == summaries(plain)
    assert "on the host" not in caplog.text
    for place, output in outputs.items():
        assert [record.is_only_choice for record in output.records] == [record.is_only_choice for record in plain[place].records]
        assert [len(record.top) for record in output.records] == [len(record.top) for record in plain[place].records]


VISITED = [0, 1, 2, 4]  # samplings that need no host at every step


def long_runs() -> list[Request]:
    """Rows of which a visit takes several tokens."""
    requests = [request(kind, sampling, 5, length=3 + 2 * kind, max_tokens=60) for kind in range(3) for sampling in VISITED]
    return [replace(each, sampling=replace(each.sampling, min_tokens=0, stop_token_ids=())) for each in requests]


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if "steps_per_visit" in loop], ids=str)
@pytest.mark.parametrize("tight", [{}, {"num_blocks": 40, "max_model_len": 76, "max_sequences": 5}])
def test_visits_take_the_same_tokens_and_look_less_often(loop, tight, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    plain, engine = make_engine(folder), make_engine(folder, **loop, **tight)
    visits = counted_visits(engine)
    assert summaries(run_all(engine, {0: long_runs()})) == summaries(run_all(plain, {0: long_runs()}))
    assert len(visits) > 4
    assert max(visits) == loop["steps_per_visit"]


def counted_visits(engine) -> list[int]:
    """How many steps each visit takes, as they are launched."""
    counts, launch = [], engine._pipeline._visits.work

    def work(sequences, start, num_steps, **options):
        counts.append(num_steps)
        return launch(sequences, start, num_steps, **options)

    engine._pipeline._visits.work = work
    return counts


sampling_inputs = st.builds(
    request,
    kind=st.integers(0, 3),
    sampling=st.integers(0, 4),
    seed=st.integers(0, 20),
    length=st.integers(1, 30),
    max_tokens=st.integers(5, 24),
    jumps=st.booleans(),
)
arrivals = st.dictionaries(st.integers(0, 15), st.lists(sampling_inputs, min_size=1, max_size=3), min_size=1, max_size=4)
sizes = st.fixed_dictionaries(
    {
        "num_blocks": st.integers(15, 30),  # of 4 tokens
        "max_sequences": st.integers(1, 6),
        "max_batch_tokens": st.integers(6, 40),
        "skips_forced": st.booleans(),
        "prefix_cache": st.sampled_from([True, True, False]),
        "policy": st.sampled_from(["fcfs", "priority", "fair"]),
    }
)


@settings(max_examples=25)
@given(trace=arrivals, size=sizes, loop=st.sampled_from(LOOPS), data=st.data())
def test_random_traces_with_cancellations_and_forks(trace, size, loop, data, tiny_model, make_engine):
    folder = tiny_model("mistral-sliding").folder

    def alone(asked: Request) -> tuple:
        return summary(run_all(make_engine(folder, encode=encode, prefix_cache=False), {0: [asked]})[0])

    engine = make_engine(folder, encode=encode, max_model_len=4 * size["num_blocks"], **size, **loop)
    asked, outputs, cancelled, step = {}, {}, set(), 0
    while engine.has_work or any(due >= step for due in trace):
        for each in trace.get(step, []):
            asked[engine.add_request(each)] = each
        for event in engine.step():
            if event.output is not None:
                outputs[event.request_id] = event.output
        running = sorted(set(asked) - set(outputs) - cancelled)
        action = data.draw(st.sampled_from(["nothing"] * 8 + ["cancel", "fork"])) if running else "nothing"
        if action == "cancel":
            cancelled.add(victim := data.draw(st.sampled_from(running)))
            engine.cancel(victim)
        elif action == "fork":
            parent = data.draw(st.sampled_from(running))
            try:
                asked[engine.fork(parent)] = asked[parent]
            except Exception as error:  # it has just ended
                assert "waiting or running" in str(error)
        step += 1
    engine.settle()
    check_nothing_leaked(engine)
    assert set(outputs) | cancelled == set(asked)
    for request_id, output in outputs.items():
        assert summary(output) == alone(asked[request_id])


@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.parametrize("method", ["mask", "advance"])
def test_a_failing_constraint_ends_its_own_request_only(method, loop, tiny_model, make_engine, caplog):
    caplog.set_level(logging.CRITICAL)
    folder = tiny_model("llama").folder
    error = ConstraintLimit("too many states", limit="states", value=9)
    endless = SamplingParams(temperature=0.0, max_tokens=20, logit_bias={EOS: -100.0})
    failing = Failing(VOCABULARY, method, error, after=3)
    requests = [Request(prompt_token_ids=(5, 6), sampling=endless, constraint=c) for c in (brackets(VOCABULARY), failing, None, failing)]
    plain = run_all(make_engine(folder), {0: requests})
    outputs = run_all(make_engine(folder, **loop), {0: requests})
    assert summaries(outputs) == summaries(plain)
    assert [output.finish_reason == "constraint_limit" for _, output in sorted(outputs.items())] == [False, True, False, True]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.parametrize("part", ["forward", "draw", "visit"])
def test_what_fails_now_and_then_on_the_device_is_computed_again(part, loop, tiny_model, make_engine, caplog):
    if part == "visit" and "steps_per_visit" not in loop:
        pytest.skip("there are no visits in this loop")
    caplog.set_level(logging.CRITICAL)
    folder = tiny_model("llama").folder
    engine, failures = make_engine(folder, max_sequences=3, **loop), []
    pipeline = engine._pipeline
    owner, name = {"forward": (pipeline, "_forward"), "draw": (pipeline._masks, "sampling"), "visit": (engine.runner, "decode")}[part]
    whole, calls = getattr(owner, name), []

    def boom(*_):
        failures.append(1)
        raise MemoryError("boom")

    def fails_sometimes(*arguments):
        calls.append(1)
        if len(calls) % 7 != 4:
            return whole(*arguments)
        return boom() if part == "visit" else boom  # a visit does it, the others give the device work to do

    setattr(owner, name, fails_sometimes)
    asked = {0: long_runs()[:6], 3: [] if part == "visit" else [request(kind, 0, kind) for kind in range(4)]}
    assert summaries(run_all(engine, asked)) == summaries(run_all(make_engine(folder), asked))
    assert failures


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_what_fails_again_ends_with_an_error_and_the_others_go_on(loop, tiny_model, make_engine, caplog, monkeypatch):
    caplog.set_level(logging.CRITICAL)
    folder = tiny_model("llama").folder
    engine = make_engine(folder, max_sequences=2, prefix_cache=False, **loop)
    whole = runner.packed

    def refuses_a_prompt(chunks):
        if any(chunk.sequence.request.prompt_token_ids[0] == 50 for chunk in chunks):
            raise MemoryError("boom")
        return whole(chunks)

    monkeypatch.setattr(runner, "packed", refuses_a_prompt)
    healthy = [request(kind, 0, kind) for kind in (2, 3)]
    outputs = run_all(engine, {0: [Request(prompt_token_ids=(50, 4)), request(1, 0, 1), *healthy]})
    assert outputs[0].finish_reason == "error" and "boom" in outputs[0].error
    assert summaries(outputs)[2:] == summaries(run_all(make_engine(folder), {0: healthy}))


DEVICE_LOOPS = [loop for loop in LOOPS if "automaton" in loop]


@pytest.mark.parametrize("loop", DEVICE_LOOPS, ids=str)
@pytest.mark.parametrize(
    "capacity",
    [{"rows": 24}, {"exceptions": 256}, {"states": 120}, {"states": 3}, {"exceptions": 8}],
    ids=str,
)
def test_little_room_on_the_device_only_costs_time(capacity, loop, tiny_model, make_engine, monkeypatch):
    """Tables are forgotten again and again, or cannot hold what a batch needs: then masks are made on the host."""
    small = Capacity(states=400, rows=64, partitions=4, ladder=400, exceptions=2048)._replace(**capacity)
    monkeypatch.setattr(automata, "Capacity", lambda: small)
    folder = tiny_model("llama").folder
    asked = {0: long_runs()[4:], 2: all_kinds()[0]}
    plain = run_all(make_engine(folder, encode=encode), asked)
    assert summaries(run_all(make_engine(folder, encode=encode, **loop), asked)) == summaries(plain)


def test_a_slot_knows_as_much_as_the_host_or_not():
    class Follower:
        request_id, token_ids = 7, [1, 2, 3]
        num_tokens = 3

    assert Known(7, 3).covers(Follower) and Known(7, 2, 3).covers(Follower)
    assert not Known(7, 2, 9).covers(Follower)  # another token was drawn than was taken
    assert not Known(7, 1, 2).covers(Follower)  # forced text came on top
    assert not Known(8, 3).covers(Follower)


@pytest.mark.parametrize("queue", [InlineQueue(), ThreadQueue(1)], ids=["inline", "thread"])
def test_work_is_done_in_order_and_errors_come_with_the_result(queue):
    done: list[int] = []
    tickets = [queue.submit(lambda number=number: done.append(number) or number) for number in range(20)]
    failed = queue.submit(lambda: 1 // 0)
    assert [ticket.result() for ticket in tickets] == list(range(20)) == done
    with pytest.raises(ZeroDivisionError):
        failed.result()
    queue.wait()
    assert torch.is_inference(queue.submit(lambda: torch.ones(2) + 1).result())


@pytest.mark.parametrize("other", [{"speculation": "lookup"}, {"speculation": "forced"}])
def test_overlap_and_guesses_ahead_are_not_combined(other):
    with pytest.raises(ConfigError, match="choose one"):
        EngineFeatures(overlap=True, **other)


@pytest.mark.parametrize("speculation", ["lookup", "forced"])
def test_the_devices_automaton_and_guesses_ahead_are_not_combined(speculation):
    with pytest.raises(ConfigError, match="choose one"):
        EngineFeatures(automaton="device", speculation=speculation)


def test_overlap_takes_back_what_a_recurrent_model_cannot():
    with pytest.raises(ConfigError, match="state-space"):
        EngineFeatures(overlap=True).for_recurrent()

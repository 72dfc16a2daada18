"""Whatever fails, for one request or for all at some moment: the guilty end with an error that says why, the others as if alone."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine.drafts.drafter import Lookup
from maskwright.engine.features import EngineFeatures
from maskwright.engine.limits import Limits
from maskwright.engine.loops.isolation import by_halves
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, run_all, save_tiny_model, tiny_vocabulary
from .fake_constraint import brackets, choice
from .simulated_model import NoFaults, simulated_engine

VOCABULARY = tiny_vocabulary()
CONSTRAINTS = {
    "free": None,
    "brackets": brackets(VOCABULARY),
    "choice": choice(VOCABULARY, b"alpha", b"alphabet", b"beta: a long tail that is forced"),
}
MAMBA = {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8, "initializer_range": 0.4}
ERRORS = {"forward": "ModelFailure", "nan": "InvalidLogits", "draw": "SamplerFailure", "plan": "EngineFailure", "text": "RuntimeError"}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)


class Injected(RuntimeError):
    pass


@dataclass(frozen=True)
class SamplingInput:
    """One request, and what goes wrong with it once it has `after` tokens."""

    constraint: str
    prompt_length: int
    max_tokens: int
    seed: int
    fault: str | None
    after: int

    def request(self) -> Request:
        shared = self.prompt_length * 2 // 3
        prompt = [3 + ((self.seed % 2 if place < shared else self.seed) * 31 + place * 7) % 90 for place in range(self.prompt_length)]
        sampling = SamplingParams(temperature=1.0, max_tokens=self.max_tokens, seed=self.seed, frequency_penalty=0.1)
        return Request(prompt_token_ids=tuple(prompt), sampling=sampling, constraint=CONSTRAINTS[self.constraint], priority=self.seed % 3)


@dataclass
class RandomFaults(NoFaults):
    """Those of the guilty, and some that befall anybody, once a step at most so that the next try succeeds."""

    chance: random.Random
    rate: float = 0.0
    doomed: dict[int, SamplingInput] = field(default_factory=dict)  # request id -> its wish
    num_plans_to_fail: int = 2  # MAX_FAILURES of them might be blamed on somebody
    is_spent: bool = False

    def of(self, sequence) -> str | None:
        sampling_input = self.doomed.get(sequence.request_id)
        return sampling_input.fault if sampling_input is not None and len(sequence.records) >= sampling_input.after else None

    def any_of(self, sequences, fault: str) -> None:
        if any(self.of(sequence) == fault for sequence in sequences) or self.befalls():
            raise Injected(fault)

    def befalls(self) -> bool:
        if self.is_spent or self.chance.random() >= self.rate:
            return False
        self.is_spent = True
        return True

    def plan(self, engine) -> None:
        self.is_spent = False
        if any(self.of(each) == "plan" for each in [*engine.scheduler.running, *engine.scheduler.waiting]):
            raise Injected("plan")
        self._fail_plan()

    def move(self) -> None:
        self._fail_plan()

    def _fail_plan(self) -> None:
        if self.num_plans_to_fail and self.befalls():
            self.num_plans_to_fail -= 1
            raise Injected("plan")

    def forward(self, sequences) -> None:
        self.any_of(sequences, "forward")

    def is_invalid(self, sequence, num_others: int) -> bool:
        return self.of(sequence) == "nan" or (num_others > 0 and self.befalls())

    def draw(self, sequences) -> None:
        self.any_of(sequences, "draw")


sampling_inputs = st.builds(
    SamplingInput,
    constraint=st.sampled_from(sorted(CONSTRAINTS)),
    prompt_length=st.integers(1, 30),
    max_tokens=st.integers(5, 24),
    seed=st.integers(0, 20),
    fault=st.sampled_from([None, None, None, *ERRORS]),
    after=st.integers(0, 6),
)
arrivals = st.dictionaries(st.integers(0, 15), st.lists(sampling_inputs, min_size=1, max_size=4), min_size=1, max_size=4)
sizes = st.fixed_dictionaries(
    {
        "num_blocks": st.integers(15, 40),  # of 4 tokens: one request needs up to 14
        "max_sequences": st.integers(1, 8),
        "max_batch_tokens": st.integers(8, 60),
        "prefix_cache": st.sampled_from([True, True, False]),
        "policy": st.sampled_from(["fcfs", "priority", "fair"]),
        "speculation": st.sampled_from(["off", "lookup"]),
        "has_host_memory": st.booleans(),
    }
)


def engine_of(size: dict, faults: NoFaults | None = None, drafter: Lookup | None = None):
    size = dict(size)
    size["num_host_blocks"] = 20 if size.pop("has_host_memory", False) and size["prefix_cache"] else 0
    features, rest = EngineFeatures.split(size)
    limits = Limits(**{"block_size": 4, "max_model_len": 4 * rest["num_blocks"], **rest})
    return simulated_engine(VOCABULARY, limits, features, faults, drafter or (Lookup() if features.max_drafts else None))


ROOMY = {"num_blocks": 64, "max_sequences": 8, "max_batch_tokens": 64, "prefix_cache": False}
_alone: dict[tuple, tuple] = {}


def outcome_alone(sampling_input: SamplingInput) -> tuple:
    key = (sampling_input.constraint, sampling_input.prompt_length, sampling_input.max_tokens, sampling_input.seed)
    if key not in _alone:
        _alone[key] = summary(run_all(engine_of(ROOMY), {0: [sampling_input.request()]})[0])
    return _alone[key]


def summary(output) -> tuple:
    return output.token_ids, output.text, output.finish_reason, output.closed_by_budget


class Broken:
    """A detokenizer, or anything else, that fails whatever is asked of it."""

    def __getattr__(self, name: str):
        raise RuntimeError("injected")


class Trace:
    """Requests that come, some of which go again, while things fail."""

    def __init__(self, size: dict, faults: RandomFaults) -> None:
        self.engine, self.faults = engine_of(size, faults), faults
        self.wish_of: dict[int, SamplingInput] = {}
        self.outputs: dict[int, object] = {}
        self.text: dict[int, str] = {}

    def arrive(self, sampling_input: SamplingInput) -> None:
        request_id = self.engine.add_request(sampling_input.request())
        self.wish_of[request_id], self.text[request_id] = sampling_input, ""
        if sampling_input.fault:
            self.faults.doomed[request_id] = sampling_input

    def step(self) -> None:
        for sequence in [*self.engine.scheduler.running, *self.engine.scheduler.waiting]:
            sampling_input = self.wish_of[sequence.request_id]
            if sampling_input.fault == "text" and len(sequence.records) >= sampling_input.after:  # its text cannot be told from here on
                sequence.detokenizer = Broken()
        for event in self.engine.step():
            self.text[event.request_id] += event.text
            if event.output is not None:
                self.outputs[event.request_id] = event.output

    def check(self) -> None:
        assert self.outputs.keys() == self.wish_of.keys()
        assert self.engine.statistics.num_waiting == self.engine.statistics.num_running == 0
        check_nothing_leaked(self.engine)
        for request_id, output in self.outputs.items():
            sampling_input = self.wish_of[request_id]
            token_ids, text, *rest = outcome_alone(sampling_input)
            if output.finish_reason == "cancelled":
                assert output.token_ids == token_ids[: len(output.token_ids)]
            elif output.finish_reason == "error":
                assert sampling_input.fault is not None and output.error.startswith(ERRORS[sampling_input.fault]), (sampling_input, output.error)
                assert output.token_ids == token_ids[: len(output.token_ids)]
                assert text.startswith(self.text[request_id])
            else:
                assert summary(output) == (token_ids, text, *rest), sampling_input
                assert self.text[request_id] == text


@settings(max_examples=60)
@given(trace=arrivals, size=sizes, seed=st.integers(0, 2**32), rate=st.sampled_from([0.0, 0.1, 0.5]), cancels=st.booleans())
def test_failures_stay_with_the_guilty(trace, size, seed, rate, cancels):
    chance = random.Random(seed)
    run = Trace(size, RandomFaults(chance, rate))
    for step in range(2000):
        for sampling_input in trace.get(step, []):
            run.arrive(sampling_input)
        alive = sorted(run.wish_of.keys() - run.outputs.keys())
        if cancels and alive and chance.random() < 0.05:
            request_id = chance.choice(alive)
            run.outputs[request_id] = run.engine.cancel(request_id)
            run.text[request_id] = run.outputs[request_id].text  # no event follows
        if not run.engine.has_work and step > max(trace):
            break
        run.step()
    run.check()


@pytest.mark.parametrize("fault", sorted(ERRORS))
def test_every_guilty_one_is_found(fault):
    """Nobody is blamed for nothing, and nobody guilty gets away."""
    faults = RandomFaults(random.Random(1))
    run = Trace({**ROOMY, "prefix_cache": True}, faults)
    for number in range(8):
        run.arrive(SamplingInput("free", 20, 12, number, fault if number % 3 == 1 else None, number % 4))
    while run.engine.has_work:
        run.step()
    run.check()
    assert [run.outputs[number].finish_reason == "error" for number in range(8)] == [number % 3 == 1 for number in range(8)]


def test_what_the_guilty_was_to_compute_for_others_is_computed_by_them():
    """Two equal prompts in one step: the second shares the blocks that the first computes, or would have."""
    faults = RandomFaults(random.Random(1))
    run = Trace({**ROOMY, "prefix_cache": True}, faults)
    same = [SamplingInput("free", 30, 8, 5, fault, 0) for fault in ("forward", None, "nan", None)]
    for sampling_input in same:
        run.arrive(sampling_input)
    run.step()
    assert run.engine.scheduler.waiting or run.engine.scheduler.running
    while run.engine.has_work:
        run.step()
    run.check()
    assert [run.outputs[number].finish_reason == "error" for number in range(4)] == [True, False, True, False]


@pytest.mark.parametrize("part", ["plan", "forward", "draw"])
def test_an_engine_that_always_fails_ends_every_request_and_takes_the_next(part):
    faults = NoFaults()
    engine = engine_of({**ROOMY, "prefix_cache": True}, faults)

    def fail(*_):
        raise Injected(part)

    setattr(faults, part, fail)
    sampling_input = SamplingInput("brackets", 10, 12, 3, None, 0)
    outputs = run_all(engine, {0: [sampling_input.request()] * 5, 3: [sampling_input.request()] * 2})
    assert {output.error.split(":")[0] for output in outputs.values()} == {ERRORS[part]}
    assert engine.statistics.num_failures == engine.statistics.num_failures_on_end == 7
    setattr(faults, part, lambda *_: None)
    assert summary(run_all(engine, {0: [sampling_input.request()]})[0]) == outcome_alone(sampling_input)
    assert engine.statistics.num_failures_on_end == 0


def test_out_of_blocks_by_surprise_costs_time_only():
    engine = engine_of({**ROOMY, "prefix_cache": True})
    sampling_input = [SamplingInput("free", 20, 20, number, None, 0) for number in range(6)]
    allocate, calls = engine.space.pool.allocate, []

    def fail_once(count):
        calls.append(count)
        if len(calls) == 5:
            raise MemoryError("no block is left")
        return allocate(count)

    engine.space.pool.allocate = fail_once
    outputs = run_all(engine, {0: [each.request() for each in sampling_input]})
    assert len(calls) == 5  # the pool is another one since
    assert [summary(outputs[number]) for number in range(6)] == [outcome_alone(each) for each in sampling_input]


def test_a_drafter_that_fails_is_done_without():
    class Failing(Lookup):
        def propose(self, chunks):
            raise Injected("draft")

        def follow(self, chunks):
            raise Injected("draft")

    engine = engine_of({**ROOMY, "speculation": "lookup"}, drafter=Failing())
    sampling_input = SamplingInput("free", 20, 20, 2, None, 0)
    assert summary(run_all(engine, {0: [sampling_input.request()]})[0]) == outcome_alone(sampling_input)


def test_a_sequence_with_nan_in_the_cache_harms_nobody(tiny_model, make_engine):
    """Real weights, one token of which is NaN: padded and masked places of others meet its keys and values with a weight of 0."""
    folder, poison = tiny_model("llama").folder, 77
    prompts = [tuple(range(3, 3 + length)) for length in (5, 17, 9, 30, 2)]

    def outputs(num_poisoned: int) -> list:
        engine = make_engine(folder, num_blocks=40, prefix_cache=True)
        embedding = engine.runner.decoder.embedding
        weights = embedding.weight.clone()
        weights[poison] = float("nan")
        engine.runner.decoder.embedding = replace(embedding, weight=weights)
        doomed = [(poison, *range(3, 3 + 6 * number)) for number in range(1, num_poisoned + 1)]
        sampling = SamplingParams(temperature=0.0, max_tokens=12, logit_bias={poison: -100.0})
        requests = [Request(prompt_token_ids=prompt, sampling=sampling) for prompt in (*doomed, *prompts)]
        ended = run_all(engine, {0: requests, 4: requests})
        half = len(requests)
        for place, output in ended.items():
            is_doomed = place % half < num_poisoned
            assert (output.finish_reason == "error") == is_doomed
            assert not is_doomed or output.error.startswith("InvalidLogits")
        return [ended[start + num_poisoned + place].token_ids for start in (0, half) for place in range(len(prompts))]

    assert outputs(3) == outputs(0)


def test_a_model_with_a_state_goes_on_from_the_beginning(tmp_path, make_engine):
    """Its state cannot be written twice: who was in a failed pass is computed once more."""
    engine_of_states = partial(make_engine, save_tiny_model(tmp_path, "Mamba2Config", MAMBA).folder, num_blocks=8, block_size=128, max_batch_tokens=16)
    requests = [Request(prompt_token_ids=tuple(range(3, 3 + length)), sampling=SamplingParams(temperature=0.0, max_tokens=8)) for length in (40, 5, 23)]
    expected = run_all(engine_of_states(), {0: requests})
    engine = engine_of_states()
    forward, calls = engine.runner.forward, []

    def fail_at_times(chunks, columns):
        logits = forward(chunks, columns)  # the states have moved on
        calls.append(1)
        if len(calls) in (2, 3, 9):
            raise Injected("forward")
        return logits

    engine.runner.forward = fail_at_times
    outputs = run_all(engine, {0: requests})
    assert len(calls) > 9 and [outputs[place].token_ids for place in range(3)] == [expected[place].token_ids for place in range(3)]


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
def test_halves_find_the_guilty(guilty: set[int], count: int):
    calls = []

    def run(group: list[int]) -> list[int]:
        calls.append(group)
        if guilty & set(group):
            raise Injected
        return group

    groups = list(by_halves(list(range(count)), run))
    assert [each for group, _ in groups for each in group] == list(range(count))
    assert {group[0] for group, result in groups if isinstance(result, Injected)} == guilty & set(range(count))
    assert all(result == group for group, result in groups if not isinstance(result, Injected))
    assert len(calls) <= 1 + 2 * len(guilty & set(range(count))) * max(1, count.bit_length())

"""The whole engine over random traces: whatever joins, leaves, waits or is preempted, each request's output is its own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, run_all, tiny_vocabulary
from .fake_constraint import brackets, choice

VOCABULARY = tiny_vocabulary()
CONSTRAINTS = {
    "free": None,
    "brackets": brackets(VOCABULARY),
    "costly": brackets(VOCABULARY, cost=3),
    "choice": choice(VOCABULARY, b"alpha", b"alphabet", b"beta: a long tail that is forced"),
}


@dataclass(frozen=True)
class SamplingInput:
    constraint: str
    prompt_length: int
    max_tokens: int
    temperature: float
    seed: int
    stop: bool

    def request(self) -> Request:
        constraint = CONSTRAINTS[self.constraint]
        sampling = SamplingParams(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            repetition_penalty=1.1,
            stop=("e", "4x") if self.stop and constraint is None else (),
        )
        shared = self.prompt_length * 2 // 3  # prompts of one parity begin alike
        numbers = [(self.seed % 2 if place < shared else self.seed) * 31 + place * 7 for place in range(self.prompt_length)]
        prompt = tuple(3 + number % 90 for number in numbers)
        return Request(
            prompt_token_ids=prompt, sampling=sampling, constraint=constraint, priority=self.seed % 3, num_shared_tokens=shared
        )


sampling_inputs = st.builds(
    SamplingInput,
    constraint=st.sampled_from(sorted(CONSTRAINTS)),
    prompt_length=st.integers(1, 30),
    max_tokens=st.integers(5, 24),
    temperature=st.sampled_from([0.0, 0.7, 2.0]),
    seed=st.integers(0, 20),
    stop=st.booleans(),
)
arrivals = st.dictionaries(st.integers(0, 15), st.lists(sampling_inputs, min_size=1, max_size=3), min_size=1, max_size=4)
sizes = st.fixed_dictionaries(
    {
        "num_blocks": st.integers(15, 30),  # of 4 tokens: one request needs up to 14
        "max_sequences": st.integers(1, 6),
        "max_batch_tokens": st.integers(6, 40),
        "skips_forced": st.booleans(),
        "prefix_cache": st.sampled_from([True, True, False]),
        "policy": st.sampled_from(["fcfs", "priority", "fair"]),
        "speculation": st.sampled_from(["off", "lookup"]),
        "num_draft_tokens": st.integers(1, 5),
        "has_host_memory": st.booleans(),
    }
)


@pytest.fixture
def outcome_alone(tiny_model, make_engine):
    known: dict[SamplingInput, tuple] = {}

    def outcome(sampling_input: SamplingInput) -> tuple:
        if sampling_input not in known:
            engine = make_engine(tiny_model("mistral-sliding").folder, prefix_cache=False, skips_forced=False)
            known[sampling_input] = summary(run_all(engine, {0: [sampling_input.request()]})[0])
        return known[sampling_input]

    return outcome


def summary(output) -> tuple:
    return output.token_ids, output.text, output.finish_reason, output.closed_by_budget


def engine_of(size: dict, make_engine, tiny_model):
    options = dict(size)
    options["num_host_blocks"] = 20 if options.pop("has_host_memory") and options["prefix_cache"] else 0
    return make_engine(tiny_model("mistral-sliding").folder, max_model_len=4 * size["num_blocks"], **options)


@settings(max_examples=20)
@given(trace=arrivals, size=sizes)
def test_company_changes_nothing(trace, size, tiny_model, make_engine, outcome_alone):
    engine = engine_of(size, make_engine, tiny_model)
    outputs = run_all(engine, {step: [sampling_input.request() for sampling_input in group] for step, group in trace.items()})
    sampling_inputs = [sampling_input for _, group in sorted(trace.items()) for sampling_input in group]
    assert len(outputs) == len(sampling_inputs)
    for position, sampling_input in enumerate(sampling_inputs):
        assert summary(outputs[position]) == outcome_alone(sampling_input), sampling_input
        constraint = CONSTRAINTS[sampling_input.constraint]
        if constraint is not None:
            assert constraint.min_tokens(outputs[position].text.encode()) == 0


@settings(max_examples=25)
@given(trace=arrivals, size=sizes, data=st.data())
def test_cancelling_leaks_nothing_and_harms_nobody(trace, size, data, tiny_model, make_engine, outcome_alone):
    engine = engine_of(size, make_engine, tiny_model)
    wish_of, outputs = {}, {}
    for step in range(max(trace) + 1):
        for sampling_input in trace.get(step, []):
            wish_of[engine.add_request(sampling_input.request())] = sampling_input
        alive = sorted(set(wish_of) - set(outputs))
        if alive and data.draw(st.booleans(), label="cancel one"):
            request_id = data.draw(st.sampled_from(alive), label="which")
            outputs[request_id] = engine.cancel(request_id)
        outputs |= {event.request_id: event.output for event in engine.step() if event.output}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output}
    assert outputs.keys() == wish_of.keys()
    check_nothing_leaked(engine)
    for request_id, output in outputs.items():
        token_ids, *rest = outcome_alone(wish_of[request_id])
        if output.finish_reason == "cancelled":
            assert output.token_ids == token_ids[: len(output.token_ids)]
        else:
            assert summary(output) == (token_ids, *rest)

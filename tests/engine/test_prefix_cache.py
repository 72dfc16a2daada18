"""Shared prefixes are computed once, and every output stays what it is alone."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from maskwright.engine.errors import ConfigError, RequestError
from maskwright.engine.features import EngineFeatures
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, run_all, tiny_vocabulary
from .fake_constraint import brackets

SYSTEM = tuple(3 + place * 11 % 90 for place in range(30))
FAMILIES = ["llama", "mistral-sliding", "qwen3"]


def request(*tail: int, max_tokens: int = 12, **sampling) -> Request:
    options = {"temperature": 0.0, **sampling}
    return Request(prompt_token_ids=(*SYSTEM, *tail), sampling=SamplingParams(max_tokens=max_tokens, **options), num_shared_tokens=30)


REQUESTS = [request(5, 6), request(5, 6, 7), request(9), request(), request(5, 6, temperature=1.0, seed=3), request(40, 41, 42, 43, 44)]


@pytest.fixture(params=FAMILIES)
def make(request, tiny_model, make_engine) -> Callable:
    return lambda **options: make_engine(tiny_model(request.param).folder, **options)


def tokens(outputs: dict) -> list[tuple[int, ...]]:
    return [outputs[place].token_ids for place in sorted(outputs)]


@pytest.mark.parametrize("arrivals", [{0: REQUESTS}, {0: REQUESTS[:1], 3: REQUESTS[1:3], 30: REQUESTS[3:]}])
def test_tokens_are_those_without_a_cache(make, arrivals):
    with_cache, without = make(), make(prefix_cache=False)
    outputs = run_all(with_cache, arrivals)
    assert tokens(outputs) == tokens(run_all(without, arrivals))
    assert [outputs[place].num_cached_tokens for place in range(4)] == [0, 32, 28, 28] or 30 in arrivals
    assert with_cache.statistics.num_cached_tokens == sum(output.num_cached_tokens for output in outputs.values()) >= 5 * 28
    assert with_cache.statistics.num_computed_tokens <= without.statistics.num_computed_tokens - 5 * 28
    assert without.statistics.num_cached_tokens == 0


def test_tokens_are_the_same_when_blocks_are_evicted_and_brought_back(make):
    arrivals = {step: [request(step, step + 1, max_tokens=20)] for step in range(0, 24, 2)}
    expected = tokens(run_all(make(prefix_cache=False), arrivals))
    tight = {"num_blocks": 22, "max_model_len": 88}
    recomputing, swapping = make(**tight), make(**tight, num_host_blocks=100)
    assert tokens(run_all(recomputing, arrivals)) == tokens(run_all(swapping, arrivals)) == expected
    assert recomputing.statistics.num_preemptions > 0 and recomputing.statistics.num_evicted > 0
    assert swapping.statistics.num_saved > 0 and swapping.statistics.num_loaded > 0
    assert swapping.statistics.num_computed_tokens < recomputing.statistics.num_computed_tokens


def test_the_next_turn_of_a_conversation_computes_only_what_is_new(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder)
    first = run_all(engine, {0: [request(5, logit_bias={2: -100.0})]})[0]
    prompt = (*SYSTEM, 5, *first.token_ids, 7, 8)
    second = run_all(engine, {0: [Request(prompt_token_ids=prompt, sampling=SamplingParams(temperature=0.0))]})[0]
    assert second.num_cached_tokens == len(prompt) - 3  # the last token was drawn, never computed
    assert second.num_prompt_tokens == len(prompt)


def test_a_fork_continues_what_its_parent_has(make):
    plain = run_all(make(), {0: [request(5, temperature=1.0, seed=1, max_tokens=20)]})[0]
    engine = make()
    parent = engine.add_request(request(5, temperature=1.0, seed=1, max_tokens=20))
    for _ in range(4):
        engine.step()
    same, other = engine.fork(parent), engine.fork(parent, seed=99)
    outputs, told = {}, {}
    while engine.has_work:
        for event in engine.step():
            told.setdefault(event.request_id, []).extend(record.token_id for record in event.tokens)
            if event.output is not None:
                outputs[event.request_id] = event.output
    assert outputs[parent].token_ids == outputs[same].token_ids == plain.token_ids
    assert tuple(told[same]) == plain.token_ids
    assert outputs[other].token_ids[:4] == plain.token_ids[:4] and outputs[other].token_ids != plain.token_ids
    assert engine.statistics.num_copied > 0
    check_nothing_leaked(engine)


def test_a_constrained_sequence_can_be_forked(make):
    engine = make()
    constraint = brackets(tiny_vocabulary())
    parent = engine.add_request(Request(prompt_token_ids=SYSTEM, sampling=SamplingParams(seed=1, max_tokens=20), constraint=constraint))
    engine.step()
    children = [engine.fork(parent, seed=seed) for seed in range(3)] if engine.has_work else []
    outputs = [event.output for _ in range(40) for event in engine.step() if event.output]
    assert len(outputs) == 1 + len(children)
    assert all(constraint.min_tokens(output.text.encode()) == 0 for output in outputs)
    check_nothing_leaked(engine)


def test_only_what_runs_can_be_forked(make):
    with pytest.raises(RequestError, match="no request 7 "):
        make().fork(7)


def test_after_a_failed_step_nothing_wrong_is_reused(make, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)
    expected = tokens(run_all(make(prefix_cache=False), {0: REQUESTS}))
    engine = make(max_batch_tokens=32)
    for each in REQUESTS:
        engine.add_request(each)
    engine.step()
    with monkeypatch.context() as patch:
        patch.setattr(engine.runner, "forward", lambda chunks, columns: 1 / 0)
        failed = [event.output for event in engine.step() if event.output]
    assert failed and all(output.finish_reason == "error" for output in failed)
    while engine.has_work:
        engine.step()
    assert tokens(run_all(engine, {0: REQUESTS})) == expected


def test_a_request_is_one_output():
    with pytest.raises(RequestError, match=r"one output, but sampling asks for 3; .*copies"):
        request(n=3)
    copies = SamplingParams(n=3, seed=7).copies()
    assert [copy.n for copy in copies] == [1, 1, 1] and len({copy.seed for copy in copies}) == 3 and copies[0].seed == 7
    assert [copy.seed for copy in SamplingParams(best_of=2).copies()] == [None, None]


def test_a_state_cannot_be_shared_nor_taken_back():
    features = EngineFeatures(num_host_blocks=4, policy="fair").for_recurrent()
    assert (features.prefix_cache, features.num_host_blocks, features.policy) == (False, 0, "fair")
    with pytest.raises(ConfigError, match='speculation="lookup" takes back'):
        EngineFeatures(speculation="lookup").for_recurrent()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"policy": "fastest"}, "policy must be one of fcfs, priority, fair"),
        ({"num_host_blocks": -1}, "num_host_blocks must be an integer of at least 0"),
        ({"num_host_blocks": 5, "prefix_cache": False}, "needs prefix_cache=True"),
        ({"speculation": "draft"}, "draft_model go together"),
        ({"num_draft_tokens": 0}, "num_draft_tokens must be an integer of at least 1"),
        ({"prefix_cache": 1}, "prefix_cache must be True or False"),
    ],
)
def test_features_that_mean_nothing_are_refused(options, named):
    with pytest.raises(ConfigError, match=named):
        EngineFeatures(**options)

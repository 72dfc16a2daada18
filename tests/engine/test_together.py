"""What one feature does in the presence of another: faults in searches and overlapped loops, sessions of overlapped loops."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch

from maskwright.engine.requests.request import Request
from maskwright.engine.search.beams import BeamSearch
from maskwright.engine.search.particles import Particles
from maskwright.engine.sessions.sessions import Sessions
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, run_all, tiny_vocabulary
from .fake_constraint import brackets

OVERLAPS = [{"overlap": True}, {"automaton": "device"}, {"overlap": True, "automaton": "device", "steps_per_visit": 3}]
SEARCHES = [BeamSearch(width=3, num_wanted=2), Particles(count=4)]
BRACKETS = brackets(tiny_vocabulary())
BRACKETS.fingerprint = "brackets"  # by which a session recognises it


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)


def request(first: int, constraint=None, num_tokens: int = 16, temperature: float = 0.9) -> Request:
    sampling = SamplingParams(temperature=temperature, seed=first, max_tokens=num_tokens, ignore_eos=constraint is None)
    return Request(prompt_token_ids=(first, 5, 6, 7, 8), sampling=sampling, constraint=constraint)


def summary(output):
    return output.token_ids, output.text, output.finish_reason


def finish(engine) -> dict:
    outputs = {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    check_nothing_leaked(engine)
    return outputs


@pytest.mark.parametrize("loop", OVERLAPS, ids=str)
@pytest.mark.parametrize("constraint", [None, BRACKETS], ids=["free", "constrained"])
def test_a_session_of_an_overlapped_loop_goes_on_as_if_it_had_not_been_put_aside(constraint, loop, tiny_model, make_engine):
    folder, asked = tiny_model("llama").folder, request(9, constraint)
    (expected,) = run_all(make_engine(folder), {0: [asked]}).values()
    for num_steps in range(1, 22, 4):
        engine = make_engine(folder, **loop)
        other, saved = make_engine(folder, **loop), Sessions(engine, lambda: "model")
        request_id = engine.add_request(asked)
        if all(event.output is None for _ in range(num_steps) for event in engine.step()):
            resumed = Sessions(other, lambda: "model").resume(saved.snapshot(request_id), constraint)
            assert summary(finish(other)[resumed]) == summary(expected)
            assert summary(finish(engine)[request_id]) == summary(expected)


@pytest.mark.parametrize("loop", OVERLAPS, ids=str)
@pytest.mark.parametrize("search", SEARCHES, ids=["beams", "particles"])
def test_searches_and_overlapped_rows_take_turns(search, loop, tiny_model, make_engine):
    """A search that comes and goes while others run ahead: all get what they get in the plain loop."""
    folder = tiny_model("llama").folder
    seed = {"seed": 3} if isinstance(search, Particles) else {}
    searched = Request(prompt_token_ids=(9, 5, 6, 7), sampling=SamplingParams(max_tokens=8, **seed), constraint=BRACKETS)
    asked = [request(first, constraint, num_tokens=30) for first, constraint in ((9, None), (10, BRACKETS), (11, None), (12, BRACKETS))]

    def outcomes(**features) -> list:
        engine = make_engine(folder, **features)
        ids, outputs = [engine.add_request(each) for each in asked[:2]], {}
        for step in range(60):
            if step in (3, 20):
                ids.append(engine.add_search(searched, search))
            elif step in (5, 24):
                ids.append(engine.add_request(asked[2 + step // 20]))
            outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
        outputs |= finish(engine)
        return [(summary(outputs[each]), list(map(summary, outputs[each].alternatives))) for each in ids]

    assert outcomes(**loop) == outcomes()


@pytest.mark.parametrize("loop", OVERLAPS, ids=str)
def test_logits_that_are_not_numbers_end_their_own_request_only(loop, tiny_model, make_engine):
    folder = tiny_model("llama").folder
    asked = [request(first, constraint, temperature=0.0) for first, constraint in ((50, None), (9, None), (10, BRACKETS), (11, None))]
    healthy = [summary(output) for _, output in sorted(run_all(make_engine(folder), {0: asked}).items())][1:]
    engine = make_engine(folder, **loop)
    embedding = engine.runner.decoder.embedding
    weights = embedding.weight.clone()
    weights[50] = float("nan")
    engine.runner.decoder.embedding = replace(embedding, weight=weights)
    outputs = [output for _, output in sorted(run_all(engine, {0: asked[:2], 3: asked[2:]}).items())]
    assert outputs[0].finish_reason == "error" and outputs[0].error.startswith("InvalidLogits")
    assert list(map(summary, outputs[1:])) == healthy
    again = run_all(engine, {0: asked[1:]})
    assert [summary(output) for _, output in sorted(again.items())] == healthy


@pytest.mark.parametrize("part", ["plan", "forward", "nan"])
@pytest.mark.parametrize("search", SEARCHES, ids=["beams", "particles"])
def test_a_search_survives_what_fails_now_and_then(search, part, tiny_model, make_engine, monkeypatch):
    folder = tiny_model("llama").folder
    asked = Request(
        prompt_token_ids=(9, 5, 6, 7),
        sampling=SamplingParams(max_tokens=9, **({"seed": 3} if isinstance(search, Particles) else {})),
        constraint=BRACKETS,
    )
    plain = make_engine(folder)
    plain.add_search(asked, search)
    (expected,) = finish(plain).values()
    engine, calls = make_engine(folder), []
    owner, name = {"plan": (engine.scheduler, "schedule"), "forward": (engine.runner, "forward"), "nan": (engine.runner, "forward")}[part]
    whole = getattr(owner, name)

    def fails_sometimes(*arguments):
        calls.append(1)
        if len(calls) % 6 != 4:
            return whole(*arguments)
        if part != "nan":
            raise MemoryError("boom")
        logits = whole(*arguments)
        return torch.full_like(logits, float("nan")) if len(arguments[0]) > 1 else logits

    monkeypatch.setattr(owner, name, fails_sometimes)
    request_id = engine.add_search(asked, search)
    output = finish(engine)[request_id]
    assert len(calls) > 4
    assert summary(output) == summary(expected)
    assert list(map(summary, output.alternatives)) == list(map(summary, expected.alternatives))


@pytest.mark.parametrize("part", ["plan", "forward", "nan"])
def test_a_search_that_always_fails_ends_alone(part, tiny_model, make_engine, monkeypatch):
    folder, other = tiny_model("llama").folder, request(11)
    (expected,) = run_all(make_engine(folder), {0: [other]}).values()
    engine = make_engine(folder)
    owner, name = {"plan": (engine.scheduler, "schedule"), "forward": (engine.runner, "forward"), "nan": (engine.runner, "forward")}[part]
    whole = getattr(owner, name)

    def fails(*arguments):
        result = whole(*arguments)
        chunks = result if part == "plan" else arguments[0]
        searched = [chunk.sequence.search_group is not None and len(chunk.sequence.records) > 2 for chunk in chunks]
        if part == "nan":
            result = result.masked_fill(torch.tensor(searched)[:, None], float("nan"))
        elif any(searched):
            raise MemoryError("boom")
        return result

    monkeypatch.setattr(owner, name, fails)
    searched = engine.add_search(Request(prompt_token_ids=(9, 5), sampling=SamplingParams(max_tokens=9)), BeamSearch(width=3))
    drawn = engine.add_request(other)
    outputs = finish(engine)
    error = {"plan": "EngineFailure", "forward": "ModelFailure", "nan": "InvalidLogits"}[part]
    assert outputs[searched].finish_reason == "error" and outputs[searched].error.startswith(error)
    assert summary(outputs[drawn]) == summary(expected)

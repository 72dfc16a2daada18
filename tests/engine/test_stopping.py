"""How unconstrained requests end, are streamed and are cancelled."""

from __future__ import annotations

import dataclasses
import logging
from time import perf_counter

import pytest

from maskwright.engine.errors import PromptTooLong, RequestError
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all, tiny_vocabulary
from .fake_constraint import FakeConstraint

PROMPT = (10, 20, 30)
VOCABULARY = tiny_vocabulary()
ENDLESS_TEXT = {0: -100.0, 1: -100.0, EOS: -100.0}


@pytest.fixture
def engine(tiny_model, make_engine):
    return make_engine(tiny_model("llama").folder)


def request(prompt=PROMPT, **sampling) -> Request:
    return Request(
        prompt_token_ids=prompt, sampling=SamplingParams(**{"temperature": 0.0, "max_tokens": 12, **sampling})
    )


def run_one(engine, **sampling):
    return run_all(engine, {0: [request(**sampling)]})[0]


def test_length(engine):
    output = run_one(engine, logit_bias=ENDLESS_TEXT)
    assert (len(output.token_ids), output.finish_reason, output.num_prompt_tokens) == (12, "length", 3)
    assert output.text == "".join(chr(token + 29) for token in output.token_ids)
    assert not output.closed_by_budget and output.logprobs is None and len(output.records) == 12


@pytest.mark.parametrize("ending", [{"logit_bias": {EOS: 1000.0}}, {"logit_bias": {5: 1000.0}, "stop_token_ids": (5,)}])
def test_end_tokens_are_neither_text_nor_output(ending, engine):
    output = run_one(engine, **ending)
    assert (output.token_ids, output.text, output.finish_reason) == ((), "", "stop")


def test_min_tokens_and_ignore_eos_ban_the_end(engine):
    wants_to_stop = {"logit_bias": {EOS: 1000.0}}
    assert len(run_one(engine, min_tokens=4, **wants_to_stop).token_ids) == 4
    assert run_one(engine, ignore_eos=True, **wants_to_stop).finish_reason == "length"


def test_a_stop_string_across_tokens_is_cut_from_the_text_and_never_streamed(engine):
    whole = run_one(engine, logit_bias=ENDLESS_TEXT).text
    stop = whole[5:8]
    output = run_one(engine, logit_bias=ENDLESS_TEXT, stop=(stop,))
    cut = whole.index(stop)
    assert (output.text, output.finish_reason, len(output.token_ids)) == (whole[:cut], "stop", cut + 3)
    kept = run_one(engine, logit_bias=ENDLESS_TEXT, stop=(stop,), include_stop_in_output=True)
    assert kept.text == whole[: cut + 3]


def test_what_was_held_back_for_a_stop_string_appears_at_the_end(engine):
    whole = run_one(engine, logit_bias=ENDLESS_TEXT).text
    output = run_one(engine, logit_bias=ENDLESS_TEXT, stop=(whole[-2:] + "never",))
    assert output.text == whole and output.finish_reason == "length"


def test_events_come_token_by_token(engine):
    request_id = engine.add_request(request(logit_bias=ENDLESS_TEXT))
    events = []
    while engine.has_work:
        events += engine.step()
    assert {event.request_id for event in events} == {request_id}
    assert [len(event.tokens) for event in events] == [1] * 12
    assert [event.is_final for event in events] == [False] * 11 + [True]


def test_cancel_frees_everything_at_once(engine):
    running, waiting = engine.add_request(request()), engine.add_request(request(prompt=tuple(range(3, 80))))
    events = engine.step()
    output = engine.cancel(running)
    assert output.finish_reason == "cancelled" and output.token_ids == tuple(t.token_id for t in events[0].tokens)
    assert engine.cancel(waiting).token_ids == ()
    assert not engine.has_work and engine.step() == []
    assert engine.scheduler.pool.num_free == engine.limits.num_blocks
    with pytest.raises(RequestError, match=f"no request {running} "):
        engine.cancel(running)


def test_cancelling_one_leaves_the_others_as_they_were(engine):
    alone = run_all(engine, {0: [request(prompt=(7, 8, 9))]})[0]
    doomed, kept = engine.add_request(request()), engine.add_request(request(prompt=(7, 8, 9)))
    engine.step()
    engine.cancel(doomed)
    outputs = [event.output for _ in range(20) for event in engine.step() if event.output]
    assert [(o.request_id, o.token_ids) for o in outputs] == [(kept, alone.token_ids)]


def test_logprobs_are_the_models_own(engine):
    output = run_one(engine, logprobs=3, temperature=0.0)
    for record in output.logprobs:
        assert record.top[0].token_id == record.token_id and record.top[0].logprob == record.logprob < 0
        assert (record.kept_mass, record.num_allowed, len(record.top)) == (1.0, VOCABULARY.size, 3)


def test_prompts_that_cannot_run_are_refused(engine):
    with pytest.raises(PromptTooLong, match="128 tokens, but at most 127 fit"):
        engine.add_request(request(prompt=(5,) * 128))
    with pytest.raises(RequestError, match=r"prompt token 1 is 99; .* 0 to 98"):
        engine.add_request(request(prompt=(5, 99)))
    with pytest.raises(RequestError, match="no tokens"):
        request(prompt=())
    with pytest.raises(RequestError, match=r"stop_token_ids .* below the vocabulary size 99, got 100"):
        engine.add_request(request(stop_token_ids=(100,)))
    assert not engine.has_work


def test_a_prompt_of_the_full_length_gets_one_token(engine):
    output = run_all(engine, {0: [request(prompt=(5,) * 127, logit_bias=ENDLESS_TEXT)]})[0]
    assert len(output.token_ids) == 1 and output.finish_reason == "length"


def test_a_forward_pass_that_fails_alone_too_ends_its_request_and_the_engine_lives(engine, monkeypatch, caplog):
    def out_of_memory(batch, cache):
        raise MemoryError("no memory left")

    caplog.set_level(logging.CRITICAL)
    expected = run_one(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine.runner.decoder, "forward", out_of_memory)
        output = run_one(engine)
    assert (output.finish_reason, output.error) == ("error", "ModelFailure: the forward pass raised MemoryError: no memory left")
    assert run_one(engine).token_ids == expected.token_ids


class AfterThree:
    """Ends an output after three tokens."""

    def __init__(self) -> None:
        self.num_left = 3

    def ends_after(self, token_id: int) -> bool:
        self.num_left -= 1
        return self.num_left == 0


@pytest.mark.parametrize("is_constrained", [False, True])
def test_who_asks_may_end_an_output(engine, is_constrained):
    """Even before its constraint is satisfied; a fork goes on counting."""
    constraint = FakeConstraint(VOCABULARY, lambda text: max(8 - len(text), 0)) if is_constrained else None
    asked = dataclasses.replace(request(logit_bias=ENDLESS_TEXT), ending=AfterThree, constraint=constraint)
    whole = run_all(engine, {0: [asked]})[0]
    assert (len(whole.token_ids), whole.finish_reason) == (3, "stop")
    first = engine.add_request(asked)
    while len(engine.sequence(first).records) < 2:
        engine.step()
    second = engine.fork(first)
    ended = {}
    while engine.has_work:
        ended |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    assert ended[first].token_ids == ended[second].token_ids == whole.token_ids


def test_it_is_known_when_a_request_was_first_computed(engine):
    before = perf_counter()
    first = run_one(engine, logit_bias=ENDLESS_TEXT)
    second = run_one(engine, logit_bias=ENDLESS_TEXT)
    assert before <= first.scheduled_at <= second.scheduled_at <= perf_counter()
    waiting = engine.add_request(request())
    assert engine.cancel(waiting).scheduled_at is None


@pytest.mark.parametrize(("longest", "is_cut"), [(12, False), (20, True)])
def test_an_output_that_could_have_gone_on_is_cut(engine, longest, is_cut):
    constraint = FakeConstraint(VOCABULARY, lambda text: max(5 - len(text), 0) if len(text) <= longest else None)
    asked = dataclasses.replace(request(logit_bias=ENDLESS_TEXT), constraint=constraint)
    output = run_all(engine, {0: [asked]})[0]
    assert (len(output.token_ids), output.finish_reason, output.is_cut) == (12, "stop", is_cut)

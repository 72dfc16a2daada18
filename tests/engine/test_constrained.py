"""Constraints in the engine: exact masks, the promise to finish, forced tokens, and failures that stay alone."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from maskwright.constraints.base.errors import ConstraintLimit
from maskwright.engine.errors import BudgetTooSmall, RequestError
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams

from .conftest import EOS, run_all, tiny_vocabulary
from .fake_constraint import Failing, FakeConstraint, brackets, choice

VOCABULARY = tiny_vocabulary()
PROMPT = (10, 20, 30)


@pytest.fixture
def engine(tiny_model, make_engine):
    return make_engine(tiny_model("llama").folder)


def request(constraint=None, prompt=PROMPT, **sampling) -> Request:
    options = {"temperature": 0.0, "max_tokens": 20, **sampling}
    return Request(prompt_token_ids=prompt, sampling=SamplingParams(**options), constraint=constraint)


def allowed_tokens(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def slow_greedy(model, prompt, constraint: FakeConstraint, max_tokens: int) -> list[int]:
    """Mask with the whole budget at every step, take the most probable allowed token, one sequence, no cache."""
    tokens, state = list(prompt), constraint.start()
    for budget in range(max_tokens, 0, -1):
        with torch.inference_mode():
            logits = model.reference(torch.tensor([tokens])).logits[0, -1]
        token = max(allowed_tokens(constraint.mask(state, budget)), key=lambda t: logits[t].item())
        if token == EOS:
            break
        tokens.append(token)
        state = constraint.advance(state, token)
    return tokens[len(prompt) :]


def test_greedy_equals_a_slow_masked_loop_in_a_mixed_batch(tiny_model, make_engine):
    model = tiny_model("llama")
    constraints = [brackets(VOCABULARY), choice(VOCABULARY, b"yes", b"no", b"nobody"), None, brackets(VOCABULARY), None]
    prompts = [(10, 20, 30), (5, 6), (40, 41, 42, 43), (7, 8, 9), (50,)]
    requests = [request(c, p) for c, p in zip(constraints, prompts, strict=True)]
    outputs = run_all(make_engine(model.folder), {0: requests[:3], 2: requests[3:]})
    for place, (constraint, prompt) in enumerate(zip(constraints, prompts, strict=True)):
        expected = slow_greedy(model, prompt, constraint, 20) if constraint else model.greedy(list(prompt), 20)
        assert list(outputs[place].token_ids) == expected, place


@pytest.mark.parametrize("cost", [1, 25])  # 25: one token owes more than the engine looks ahead
@pytest.mark.parametrize("max_tokens", [1, 2, 7, 30, 60])
def test_output_is_complete_whatever_the_budget(cost, max_tokens, engine):
    constraint = brackets(VOCABULARY, cost=cost)
    bias = {VOCABULARY.tokens.index(b"("): 100.0, EOS: -100.0}  # a model that opens whenever it may, and never stops
    outputs = run_all(
        engine,
        {
            0: [
                request(constraint, seed=seed, temperature=1.0, max_tokens=max_tokens, logit_bias=bias)
                for seed in range(3)
            ]
        },
    )
    for output in outputs.values():
        assert constraint.min_tokens(output.text.encode()) == 0
        assert (output.finish_reason, output.closed_by_budget) == ("stop", True)
        assert len(output.token_ids) <= max_tokens


def test_a_budget_that_removes_nothing_is_not_reported(engine):
    output = run_all(engine, {0: [request(choice(VOCABULARY, b"abc", b"abd"), max_tokens=3)]})[0]
    assert output.text in ("abc", "abd") and not output.closed_by_budget


def test_budget_too_small_names_both_numbers(engine):
    with pytest.raises(BudgetTooSmall, match=r"up to 5 tokens.* only 4 ") as raised:
        engine.add_request(request(choice(VOCABULARY, b"abcde"), max_tokens=4))
    assert (raised.value.max_tokens, raised.value.min_tokens) == (4, 5)
    assert not engine.has_work


def test_the_model_length_counts_as_budget(tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder, max_model_len=8)
    output = run_all(engine, {0: [request(brackets(VOCABULARY), max_tokens=100, logit_bias={EOS: -100.0})]})[0]
    assert len(output.token_ids) == 5 and output.finish_reason == "stop"


def test_forced_tokens_are_not_sampled_and_change_nothing(tiny_model, make_engine):
    constraint = choice(VOCABULARY, b"left-hand side", b"right-hand side")
    skipping, plain = (make_engine(tiny_model("llama").folder, skips_forced=skips) for skips in (True, False))
    asked = replace(request(constraint), is_measured=True)
    fast, slow = (run_all(engine, {0: [asked]})[0] for engine in (skipping, plain))
    assert fast.token_ids == slow.token_ids and fast.text == slow.text
    assert [record.is_only_choice for record in fast.records] == [False] + [True] * (len(fast.records) - 1)
    assert [record.logprob is None for record in fast.records] == [record.is_only_choice for record in fast.records]


def test_logprobs_are_given_for_forced_tokens_when_asked(engine):
    output = run_all(engine, {0: [request(choice(VOCABULARY, b"only this"), logprobs=2)]})[0]
    assert output.text == "only this" and output.logprobs is not None
    assert all(record.is_only_choice and record.logprob < 0 and len(record.top) == 2 for record in output.logprobs)
    assert all(0 < record.kept_mass < 1 for record in output.logprobs)


def test_nothing_is_computed_when_only_the_empty_text_is_legal(engine):
    engine.add_request(request(choice(VOCABULARY, b"")))
    engine.runner = None
    (event,) = engine.step()
    assert event.output.token_ids == () and event.output.finish_reason == "stop"
    assert not engine.has_work


@pytest.mark.parametrize("method", ["mask", "advance"])
@pytest.mark.parametrize(
    ("error", "reason"),
    [(ConstraintLimit("too many states", limit="states", value=9), "constraint_limit"), (KeyError("boom"), "error")],
)
def test_a_failing_constraint_ends_its_own_request_only(method, error, reason, tiny_model, make_engine, caplog):
    caplog.set_level(logging.CRITICAL)
    engine = make_engine(tiny_model("llama").folder)
    failing = Failing(VOCABULARY, method, error, after=3)
    endless = {"logit_bias": {EOS: -100.0}}
    requests = [request(brackets(VOCABULARY)), request(failing, **endless), request(), request(failing, **endless)]
    outputs = run_all(engine, {0: requests})
    assert [outputs[i].finish_reason == reason for i in range(4)] == [False, True, False, True]
    assert len(outputs[1].token_ids) == 3 and outputs[1].error
    healthy = run_all(make_engine(tiny_model("llama").folder), {0: [requests[0], requests[2]]})
    assert [outputs[0].token_ids, outputs[2].token_ids] == [healthy[0].token_ids, healthy[1].token_ids]


def test_a_stop_token_ends_a_complete_output_like_end_of_text(engine):
    bias = {1: 100.0, EOS: -100.0}
    constraint = choice(VOCABULARY, b"a", b"abc")
    output = run_all(engine, {0: [request(constraint, stop_token_ids=[1], logit_bias=bias)]})[0]
    assert output.finish_reason == "stop" and output.text == "a"


@pytest.mark.parametrize(
    ("sampling", "named"),
    [({"stop": "x"}, "stop"), ({"ignore_eos": True}, "ignore_eos")],
)
def test_options_that_contradict_a_constraint_are_refused(sampling, named):
    with pytest.raises(RequestError, match=f"{named}=.* contradicts a constraint"):
        request(brackets(VOCABULARY), **sampling)


def test_a_text_token_cannot_be_a_stop_token_of_a_constraint(engine):
    with pytest.raises(RequestError, match="stop token 5 is text"):
        engine.add_request(request(brackets(VOCABULARY), stop_token_ids=[5]))


def test_a_constraint_for_another_vocabulary_is_refused(engine):
    with pytest.raises(RequestError, match="another vocabulary, of 50 tokens, than this model's, of 99"):
        engine.add_request(request(brackets(tiny_vocabulary(50))))


def test_bans_that_leave_nothing_give_way_and_are_recorded(engine):
    banned = [VOCABULARY.tokens.index(b) for b in (b"a", b"b")]
    output = run_all(engine, {0: [request(choice(VOCABULARY, b"a", b"b"), banned_token_ids=banned)]})[0]
    assert output.text in ("a", "b") and output.bans_overridden

"""Where masks leave few tokens a step computes the logits of these alone: the same tokens come out, and nothing is said that was not asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import maskwright
from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.cfg.gbnf import Gbnf
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import EngineConfig, EngineFeatures, Request, load
from maskwright.engine.loops import plain_loop
from maskwright.engine.requests.guide import Guide, MaskViews
from maskwright.engine.requests.mask_tokens import tokens_in
from maskwright.engine.steps.runner import Packing
from maskwright.engine.steps.wanted_columns import SHARE
from maskwright.kernels import cpu
from maskwright.sampling import SamplingParams

from .conftest import run_all

pytestmark = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
FOLDER = Path(maskwright.__file__).parent / "embedded"
RECORD = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["person", "place", "thing"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "is_known": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "maxItems": 3},
        "name": {"type": "string", "maxLength": 8},
    },
    "required": ["kind", "age", "is_known", "tags"],
    "additionalProperties": False,
}
SOURCES = [JsonSchema(RECORD), Regex(r"(yes|no|maybe)(, (yes|no))*\."), Gbnf('root ::= "(" root ")" | [0-9]+'), JsonSchema({"type": "number"})]
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_p": 0.8},
    {"temperature": 1.5, "top_k": 3, "min_p": 0.05},
    {"temperature": 0.9, "repetition_penalty": 1.3, "frequency_penalty": 0.4, "logit_bias": {70: 4.0, 80: -3.0}},
    {"temperature": 1.0, "typical_p": 0.7},
    {"temperature": 1.0, "mirostat": 2},
    {"temperature": 0.8, "banned_token_ids": tuple(range(60, 75)), "canonical": True},
    {"temperature": 1.0, "loop_bound": 2},
]


def config() -> EngineConfig:
    return EngineConfig(model=FOLDER, threads=1, max_sequences=6, max_batch_tokens=64, max_model_len=160, num_kv_blocks=60)


@pytest.fixture(scope="module")
def constraints() -> list[Any]:
    compiler = Compiler(load(config()).tokenizer.vocabulary)
    return [compiler.compile(source) for source in SOURCES]


def requests_of(constraints: list[Any], seed: int, **more: Any) -> list[Request]:
    """Each constraint with each way to sample, some with hardly any room to finish."""
    made = []
    for number, (constraint, options) in enumerate((c, s) for c in constraints for s in SAMPLINGS):
        budget = constraint.min_tokens(constraint.start()) + (2, 9, 60)[number % 3]
        sampling = SamplingParams(**options, seed=seed + number, max_tokens=budget)
        made.append(Request(prompt_token_ids=(*range(70, 76 + number % 3),), sampling=sampling, constraint=constraint, **more))
    return made


class Spy:
    """Notes how many columns each step wants; None: all."""

    def __init__(self, is_used: bool) -> None:
        self._find, self._is_used, self.seen = plain_loop.wanted_columns, is_used, list[int | None]()

    def __call__(self, *arguments: Any) -> Any:
        columns = self._find(*arguments) if self._is_used else None
        self.seen.append(None if columns is None else len(columns))
        return columns


def outputs(requests: list[Request], is_used: bool, monkeypatch: pytest.MonkeyPatch, at_once: int) -> tuple[list[Any], list[int | None]]:
    with monkeypatch.context() as patch:
        patch.setattr(plain_loop, "wanted_columns", spy := Spy(is_used))
        engine = load(config()).engine
        engine._plain._whole_steps = None  # which find columns themselves
        arrivals: dict[int, list[Request]] = {}
        for place, request in enumerate(requests):
            arrivals.setdefault(place // at_once * (9 if at_once == 1 else 3), []).append(request)
        found = run_all(engine, arrivals)
    return [found[place] for place in range(len(requests))], spy.seen


@pytest.mark.parametrize(("seed", "at_once"), [(0, 1), (100, 6), (200, 3)])
def test_tokens_are_those_of_whole_heads(seed: int, at_once: int, constraints: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    requests = requests_of(constraints, seed)
    some, seen = outputs(requests, True, monkeypatch, at_once)
    whole, unused = outputs(requests, False, monkeypatch, at_once)
    for found, expected in zip(some, whole, strict=True):
        assert (found.token_ids, found.finish_reason, found.loops) == (expected.token_ids, expected.finish_reason, expected.loops)
        assert (found.closed_by_budget, found.bans_overridden) == (expected.closed_by_budget, expected.bans_overridden)
        assert [record.num_allowed for record in found.records] == [record.num_allowed for record in expected.records]
    assert sum(count is not None for count in seen) > len(seen) // 5 and not any(unused)


def test_what_is_asked_for_is_told_and_nothing_else(constraints: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = requests_of(constraints[:1], 7)[0]
    asking = Request(prompt_token_ids=plain.prompt_token_ids, sampling=plain.sampling, constraint=plain.constraint, is_measured=True)
    (silent,), seen = outputs([plain], True, monkeypatch, 1)
    (told,), whole = outputs([asking], True, monkeypatch, 1)
    assert silent.token_ids == told.token_ids and any(seen) and not any(whole)
    assert all(record.logprob is None and record.kept_mass is None for record in silent.records) and math.isnan(silent.mean_logprob)
    sampled = [record for record in told.records if not record.is_only_choice]
    assert sampled and all(record.logprob < 0 < record.kept_mass <= 1 for record in sampled) and told.mean_logprob < 0


def test_rows_that_need_all_logits_get_them(constraints: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Free text, log-probabilities, stages of one's own and guesses ahead, alone or beside narrow rows."""
    prompt, narrow = tuple(range(70, 76)), requests_of(constraints[1:2], 3)[:1]
    free = Request(prompt_token_ids=prompt, sampling=SamplingParams(temperature=0, max_tokens=30))
    _, seen = outputs([free, *narrow], True, monkeypatch, 2)
    assert seen[0] is None, "the first step has both"
    asks = SamplingParams(temperature=0, max_tokens=30, logprobs=1)
    own = SamplingParams(temperature=0, max_tokens=30, logits_processors=(lambda token_ids, scores: scores,))
    for sampling in (asks, own):
        request = Request(prompt_token_ids=prompt, sampling=sampling, constraint=constraints[1])
        assert not any(outputs([request], True, monkeypatch, 1)[1])


def test_guesses_ahead_change_no_token(constraints: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    requests = requests_of(constraints[:2], 40)
    plain, _ = outputs(requests, False, monkeypatch, 3)
    guessing = load(config(), EngineFeatures(speculation="lookup")).engine
    found = run_all(guessing, {0: requests})
    assert [found[place].token_ids for place in range(len(requests))] == [output.token_ids for output in plain]


def test_legal_tokens_are_those_of_the_mask_and_of_its_state_alone(constraints: list[Any]) -> None:
    guide = Guide(constraints[0], 100, extra_end_ids=(3,))
    assert guide.legal_tokens(10**6) is None, "no mask yet"
    MaskViews().fill([guide])
    for _ in range(12):
        legal = guide.legal_tokens(10**6)
        assert legal is not None
        bits = np.unpackbits(constraints[0].mask(guide.state).view(np.uint8), bitorder="little")
        assert legal.tolist() == sorted({*np.flatnonzero(bits).tolist(), *([3] if guide.is_accepting else [])})
        assert guide.legal_tokens(len(legal) - 1) is None and guide.address_of_legal(len(legal) - 1) is None
        assert (guide.address_of_legal(10**6) is None) == guide.is_accepting, "a mask has no ends that the constraint does not know"
        text = [token for token in legal.tolist() if token not in guide.end_ids]
        if not text:
            break
        guide.advance(text[len(text) // 2])
        assert guide.legal_tokens(10**6) is None, "the mask is that of the state before"
        MaskViews().fill([guide])


def test_columns_have_the_bits_of_the_whole_head() -> None:
    """At the borders of groups of rows too, for one row and for several."""
    loaded = load(config())
    runner, vocab_size = loaded.engine.runner, loaded.tokenizer.vocabulary.size
    assert runner.picks_columns
    head_width = runner.decoder.head(torch.zeros(1, runner.decoder.spec.hidden_size)).shape[1]
    for count in (1, 3):
        spans = [(0, 2, [number]) for number in range(count)]
        packing = Packing([5, 6] * count, [0, 1] * count, [2 * number + 1 for number in range(count)], [-1] * 2 * count, spans)
        whole = runner.compute(runner.prepared(packing)).clone()
        for columns in ([0], [vocab_size - 1], [1, 2, 15, 16, 17, 500, vocab_size - 2], list(range(3, vocab_size, SHARE)), [head_width - 1]):
            some = runner.compute(replace(runner.prepared(packing), columns=torch.tensor(columns)))
            assert torch.equal(some[:, columns], whole[:, columns])
            assert int((some != 0).sum()) <= count * 16 * len(columns), "others are 0"


@given(words=st.lists(st.sampled_from([0, 0, 0, 1, 1 << 31, 0xFFFFFFFF, 0x80010402]), max_size=120))
def test_the_tokens_of_a_mask_are_its_bits(words: list[int]) -> None:
    mask = np.array(words, np.uint32)
    expected = [32 * place + bit for place, word in enumerate(words) for bit in range(32) if word >> bit & 1]
    assert tokens_in(mask).tolist() == expected and tokens_in(mask).dtype == np.int64

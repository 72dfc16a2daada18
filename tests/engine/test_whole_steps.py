"""A step in one call gives the events, outputs and counts of a step part by part; so does a plan that is used again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import maskwright
from maskwright.constraints import Compiler, JsonSchema
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.engine import Engine, EngineConfig, EngineFeatures, Request, load
from maskwright.engine.steps.whole_steps import WholeSteps
from maskwright.kernels import cpu
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked

pytestmark = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
FOLDER = Path(maskwright.__file__).parent / "embedded"
RECORD = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["person", "place", "thing"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "maxItems": 3},
        "name": {"type": "string", "maxLength": 8},
    },
    "required": ["kind", "tags"],
    "additionalProperties": False,
}
FREE: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1.0, "top_p": 0.9, "banned_token_ids": (70, 71)},
    {"temperature": 0.8, "stop": ("e", "ab")},
    {"temperature": 0.7, "min_tokens": 6, "stop_token_ids": (80, 81)},
    {"temperature": 1.2, "repetition_penalty": 1.2},
    {"temperature": 0, "logprobs": 2},
    {"temperature": 1.0, "mirostat": 2},
    {"temperature": 0, "ignore_eos": True},
]
BOUND: list[dict[str, Any]] = [
    {"temperature": 0}, {"temperature": 1.5}, {"temperature": 1.3, "top_k": 40}, {"temperature": 1.0, "canonical": True},
    {"temperature": 1.0, "loop_bound": 2}, {"temperature": 1.0, "jump_forward": True},
]  # fmt: skip


def config(**more: Any) -> EngineConfig:
    return EngineConfig(model=FOLDER, threads=1, max_sequences=5, max_batch_tokens=48, max_model_len=96, num_kv_blocks=18, **more)


@pytest.fixture(scope="module")
def constraints() -> list[Any]:
    compiler = Compiler(load(config()).tokenizer.vocabulary)
    return [compiler.compile(source) for source in (JsonSchema(RECORD), Regex(r"(yes|no|maybe)(, (yes|no))*\."), JsonSchema({"type": "string"}))]


def requests_of(constraints: list[Any], seed: int) -> list[Request]:
    """Free and constrained, some with hardly any room to finish, so that tokens are refused; some are measured."""
    made = [
        Request(prompt_token_ids=(*range(70, 74 + n % 20),), sampling=SamplingParams(**options, seed=seed + n, max_tokens=30 + n), is_measured=n % 3 == 2)
        for n, options in enumerate(FREE)
    ]
    for number, (constraint, options) in enumerate((c, s) for c in constraints for s in BOUND):
        budget = constraint.min_tokens(constraint.start()) + (1, 4, 40)[number % 3]
        sampling = SamplingParams(**options, seed=seed + number, max_tokens=budget)
        made.append(Request(prompt_token_ids=(*range(70, 76 + number % 3),), sampling=sampling, constraint=constraint))
    return made[seed % 2 :: 2] + made[1 - seed % 2 :: 2]


def apart(engine: Engine) -> Engine:
    """One that computes its steps part by part, and plans each anew."""
    engine._plain._whole_steps, engine.scheduler.keeps_plans = None, False
    return engine


def run(engine: Engine, requests: list[Request], every: int, disturb: Any = None) -> list[list[Any]]:
    """The events of each step; a request comes every so many steps, or two at once."""
    steps, left = [], list(requests)
    while left or engine.has_work:
        if left and len(steps) % every == 0:
            for _ in range(1 if every > 1 else 2):
                if left:
                    engine.add_request(left.pop(0))
        if disturb is not None:
            disturb(engine, len(steps))
        steps.append([(e.request_id, e.tokens, e.text, None if e.output is None else (e.output.finish_reason, e.output.text, e.output.error)) for e in engine.step()])
    check_nothing_leaked(engine)
    return steps


class Spy:
    """Counts what is drawn as a whole."""

    def __init__(self, engine: Engine) -> None:
        whole = engine._plain._whole_steps
        assert whole is not None
        self._draw, self.num_whole, self.num_others, self.num_kept = whole.draw, 0, 0, 0
        self._last: Any = None
        whole.draw = self  # type: ignore[method-assign]

    def __call__(self, chunks: list[Any]) -> Any:
        self.num_kept += chunks is self._last
        self._last, drawn = chunks, self._draw(chunks)
        self.num_whole += drawn is not None
        self.num_others += drawn is None
        return drawn


@pytest.mark.parametrize(("seed", "every"), [(0, 1), (1, 3), (2, 12)])
@pytest.mark.parametrize("features", [{}, {"prefix_cache": False, "skips_forced": False}])
def test_events_and_counts_are_those_of_steps_part_by_part(seed: int, every: int, features: dict[str, Any], constraints: list[Any]) -> None:
    requests = requests_of(constraints, seed)
    whole, parts = load(config(), EngineFeatures(**features)).engine, apart(load(config(), EngineFeatures(**features)).engine)
    spy = Spy(whole)
    assert run(whole, requests, every) == run(parts, requests, every)
    assert whole.statistics == parts.statistics
    assert spy.num_whole > spy.num_others / 4 and spy.num_others and spy.num_kept


def test_numbers_that_are_none_end_their_sequence_alone(constraints: list[Any]) -> None:
    """Keys that are NaN are met by one of three."""
    requests = [Request(prompt_token_ids=(70 + n, 71, 72), sampling=SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)) for n in range(3)]

    def poison(engine: Engine, step: int) -> None:
        if step == 8:
            block = engine.scheduler.running[1].block_table[0]
            engine.runner.cache.keys[0][block, 1] = float("nan")

    found = run(load(config()).engine, requests, 1, poison)
    assert found == run(apart(load(config()).engine), requests, 1, poison)
    ends = [event[3] for step in found for event in step if event[3] is not None]
    assert sorted(end[0] for end in ends) == ["error", "length", "length"] and any("not numbers" in (end[2] or "") for end in ends)


def test_a_call_that_fails_is_made_part_by_part(constraints: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    requests = requests_of(constraints, 4)[:8]
    engine = load(config()).engine
    whole = engine._plain._whole_steps
    assert whole is not None
    draw, calls = whole.draw, []

    def failing(chunks: list[Any]) -> Any:
        calls.append(0)
        drawn = draw(chunks)
        if len(calls) % 3 == 0:
            raise MemoryError("none is left")
        return drawn

    monkeypatch.setattr(whole, "draw", failing)
    assert run(engine, requests, 2) == run(apart(load(config()).engine), requests, 2)
    assert len(calls) > 9 and engine.statistics.num_failures == 0


def test_somebody_else_may_use_the_model_between_two_steps() -> None:
    """A scorer has a cache of its own."""
    request = Request(prompt_token_ids=(70, 71, 72), sampling=SamplingParams(temperature=0, max_tokens=40, ignore_eos=True))
    engine = load(config()).engine
    scorer = engine.scorer(1)
    found = run(engine, [request], 1, lambda engine, step: scorer.logits([[75 + step % 9, 80]]))
    assert found == run(apart(load(config()).engine), [request], 1)


def test_fewer_logits_are_computed_where_masks_leave_few(constraints: list[Any]) -> None:
    engine = load(config()).engine
    whole = engine._plain._whole_steps
    assert whole is not None
    run(engine, [Request(prompt_token_ids=(70, 71), sampling=SamplingParams(temperature=0, max_tokens=60), constraint=constraints[1])], 1)
    assert 0 < int((whole.logits != 0).sum()) <= 16 * whole.logits.shape[1] // 64
    run(engine, [Request(prompt_token_ids=(70, 71), sampling=SamplingParams(temperature=0, max_tokens=6, ignore_eos=True))], 1)
    assert int((whole.logits != 0).sum()) > whole.logits.shape[1] // 2


@pytest.mark.parametrize("change", ["pipeline", "drafts", "float32"])
def test_there_are_none_where_they_would_not_do(change: str) -> None:
    features = {"pipeline": {"overlap": True}, "drafts": {"speculation": "lookup"}, "float32": {}}[change]
    engine = load(config(products="float32") if change == "float32" else config(), EngineFeatures(**features)).engine
    assert engine.scheduler.keeps_plans == (change != "pipeline")
    assert (engine._plain._whole_steps is None) == (change != "pipeline")
    assert change != "float32" or WholeSteps.of(engine.runner, engine.sampler) is None

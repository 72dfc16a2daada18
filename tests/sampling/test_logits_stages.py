"""Stages of one's own over a batch are what they are over each row alone; what they may not touch, they cannot."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.foundation.errors import UsageError
from maskwright.sampling import SamplingParams
from maskwright.sampling.logits_stages import (
    LOGITS_STAGES,
    SKIPPED,
    BatchStages,
    LogitsStage,
    StageRequest,
    failure_text,
    set_up,
    stages_of,
)

V = 12
NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Shift(LogitsStage):
    """Adds to the token behind the last one, in place."""

    amount: float = 3.0

    def apply(self, logits, context):
        last = context.tokens(last=1)[:, 0]
        logits[torch.arange(len(logits)), (last + 1) % V] += self.amount
        return logits


@dataclass(frozen=True)
class Scale(LogitsStage):
    """Times what `setup` gave, which follows from the prompt."""

    def setup(self, request):
        return 1.0 + len(request.prompt_token_ids)

    def apply(self, logits, context):
        return logits * torch.tensor(context.states)[:, None]


@dataclass(frozen=True)
class Vandal(LogitsStage):
    """Writes the worst where the mask bans, and reads what is there before."""

    def apply(self, logits, context):
        assert logits.isfinite().all()
        context.allowed.fill_(True)  # a copy, which changes nothing
        return torch.where(context.allowed, logits, torch.tensor([NAN, INF, -INF])[torch.arange(V) % 3])


@dataclass(frozen=True)
class Picky(LogitsStage):
    """Fails in some way with rows whose last token is `wrong`."""

    wrong: int
    how: str

    def apply(self, logits, context):
        is_wrong = [row.token_ids[-1] == self.wrong for row in context.rows]
        if not any(is_wrong):
            return logits + 1.0
        match self.how:
            case "raises":
                raise RuntimeError("no such token")
            case "shape":
                return logits[:, :-1]
            case "rows":
                return torch.cat([logits, logits])
            case "nothing":
                return None
            case "integers":
                return logits.long()
            case _:
                return torch.where(torch.tensor(is_wrong)[:, None], NAN, logits + 1.0)


POOL = [Shift(), Scale(), Vandal(), Shift(-5.0), Picky(3, "nan"), Picky(4, "raises")]


def request_of(prompt: list[int]) -> StageRequest:
    return StageRequest(tuple(prompt), SamplingParams(), 0, V, frozenset(), (b"x",) * V, False)


def rows_of(texts: list[list[int]], chains: list[list[Any]]) -> list[tuple[Any, list[int], int]]:
    """A prompt of two tokens each; a token more is in the list than counts."""
    return [(set_up(chain, request_of(text[:2])), [*text, 0], len(text)) for text, chain in zip(texts, chains, strict=True)]


def alone(logits: torch.Tensor, allowed: torch.Tensor, row: tuple[Any, list[int], int]) -> tuple[np.ndarray, int]:
    """The obvious way: one row, one stage after the other, one logit after the other."""
    own, tokens, count = row
    model = logits.tolist()
    current, failed = list(model), -1
    for number, (stage, state) in enumerate(own.stages if own else ()):
        last, after = tokens[count - 1], list(current)
        if isinstance(stage, Shift):
            after[(last + 1) % V] = float(np.float32(after[(last + 1) % V]) + np.float32(stage.amount))
        elif isinstance(stage, Scale):
            after = [float(np.float32(value) * np.float32(state)) for value in after]
        elif isinstance(stage, Picky) and last == stage.wrong:
            failed = number if failed < 0 else failed
        elif isinstance(stage, Picky):
            after = [float(np.float32(value) + np.float32(1.0)) for value in after]
        current = [new if ok else old for new, old, ok in zip(after, current, allowed.tolist(), strict=True)]
    return np.array(current, np.float32), failed


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 6))
def test_a_batch_is_its_rows(data: st.DataObject, count: int) -> None:
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 10**6)))
    logits = torch.randn(count, V + 2, generator=generator)
    texts = [data.draw(st.lists(st.integers(0, 5), min_size=2, max_size=6)) for _ in range(count)]
    chains = [data.draw(st.lists(st.sampled_from(POOL), max_size=4)) for _ in range(count)]
    if not any(chains):
        chains[0] = [POOL[0]]
    allowed = torch.rand(count, V, generator=generator) < 0.7
    allowed[:, 0] = True
    rows, before = rows_of(texts, chains), logits.clone()
    staged = BatchStages(rows).apply(logits, allowed, allowed, V)
    assert torch.equal(logits, before)
    assert staged.has_stages.tolist() == [bool(chain) for chain in chains]
    assert not staged.overridden.any()
    for place, row in enumerate(rows):
        expected, failed = alone(logits[place, :V], allowed[place], row)
        assert int(staged.failed[place]) == failed
        assert np.array_equal(staged.logits[place].numpy(), expected)


@pytest.mark.parametrize("how", ["raises", "shape", "rows", "nothing", "integers", "nan"])
def test_a_failure_is_told_of_its_row_alone(how: str) -> None:
    texts, stage = [[1, 2], [1, 3], [1, 4], [1, 3]], Picky(3, how)
    rows = rows_of(texts, [[Shift(0.0), stage]] * 4)
    staged = BatchStages(rows).apply(torch.zeros(4, V), None, None, V)
    assert staged.failed.tolist() == [-1, 1, -1, 1]
    assert staged.logits[0].eq(1).all() and staged.logits[2].eq(1).all() and staged.logits.isfinite().all()
    text = failure_text(rows[1][0], 1)
    assert text.startswith('logits processor "Picky": ')
    assert {"raises": "no such token", "shape": "[1, 11]", "rows": "[2, 12]", "nothing": "NoneType", "integers": "int64", "nan": "NaN"}[how] in text


def test_what_leaves_nothing_is_overridden() -> None:
    class Nothing(LogitsStage):
        def apply(self, logits, context):
            return torch.full_like(logits, -INF)

    class OnlyFirst(LogitsStage):
        def apply(self, logits, context):
            logits[:, 1:] = -INF
            return logits

    logits = torch.randn(3, V)
    drawable = torch.ones(3, V, dtype=torch.bool)
    drawable[1, 0] = False  # a ban of the one token that the stage leaves
    rows = rows_of([[1, 2]] * 3, [[Nothing()], [OnlyFirst()], [OnlyFirst()]])
    staged = BatchStages(rows).apply(logits, None, drawable, V)
    assert staged.overridden.tolist() == [True, True, False]
    assert torch.equal(staged.logits[:2], logits[:2]) and staged.logits[2, 1:].eq(-INF).all()


def test_a_stage_is_called_once_for_all_its_rows() -> None:
    seen = []

    class Counting(LogitsStage):
        def setup(self, request):
            return SKIPPED if request.prompt_token_ids[0] == 9 else request.prompt_token_ids

        def apply(self, logits, context):
            seen.append((context.states, context.tokens().tolist(), context.num_tokens.tolist(), context.num_output_tokens.tolist()))
            return logits

    stage = Counting()
    rows = rows_of([[1, 2], [9, 2], [3, 4, 5]], [[stage]] * 3)
    assert rows[1][0] is None
    BatchStages(rows).apply(torch.zeros(3, V), None, None, V)
    assert seen == [([(1, 2), (3, 4)], [[-1, 1, 2], [3, 4, 5]], [2, 3], [0, 1])]


# ---- what others have


def test_processors_of_transformers_adapt() -> None:
    transformers = pytest.importorskip("transformers")
    processors = [
        transformers.RepetitionPenaltyLogitsProcessor(1.7),
        transformers.NoRepeatNGramLogitsProcessor(2),
        transformers.MinLengthLogitsProcessor(5, eos_token_id=7),
        transformers.SuppressTokensLogitsProcessor([3]),
    ]
    stages = stages_of("logits_processors", transformers.LogitsProcessorList(processors))
    texts, logits = [[1, 2, 1], [4, 5], [6, 1, 6, 1]], torch.randn(3, V)
    staged = BatchStages(rows_of(texts, [list(stages)] * 3)).apply(logits, None, None, V)
    for place, text in enumerate(texts):
        scores = logits[place : place + 1].clone()
        for processor in processors:
            scores = processor(torch.tensor([text]), scores)
        assert torch.equal(staged.logits[place], scores[0])
    with pytest.raises(UsageError, match=r"counts its calls.*guidance"):
        stages_of("logits_processors", [transformers.UnbatchedClassifierFreeGuidanceLogitsProcessor(1.5, model=None)])


def test_functions_of_vllm_adapt() -> None:
    def without_prompt(token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        logits[token_ids] = -INF
        return logits

    def with_prompt(prompt_token_ids, output_token_ids, logits):
        return logits + len(prompt_token_ids) + 10 * len(output_token_ids)

    def of_transformers(input_ids, scores):
        return scores + input_ids.sum(-1, keepdim=True)

    stages = stages_of("logits_processors", [without_prompt, with_prompt, of_transformers, lambda tokens, logits: logits])
    staged = BatchStages(rows_of([[1, 2, 5, 5], [3, 4]], [list(stages)] * 2)).apply(torch.zeros(2, V), None, None, V)
    expected = torch.full((2, V), 22.0 + 13.0)
    expected[0, 5], expected[1] = -INF, 2.0 + 7.0
    assert torch.equal(staged.logits, expected)


def _three_and_more(a, b, c, d): ...


class _OfVllm:
    def update_state(self, batch_update): ...

    def apply(self, logits): ...


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("bigram", "a list of stages"),
        (Shift(), "a list of stages"),
        ([Shift], "Shift is a class"),
        ([3], "has no methods"),
        ([_three_and_more], "takes \\(a, b, c, d\\)"),
        ([_OfVllm()], "update_state"),
        (["no-such-stage"], "unknown logits processor"),
    ],
)
def test_what_is_no_stage_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SamplingParams(logits_processors=given)


def test_names_stand_for_stages_and_stages_can_be_saved() -> None:
    with LOGITS_STAGES.registered("shift", Shift):
        params = SamplingParams(logits_processors=["shift", Shift(2.0)])
        assert params.logits_processors == (Shift(), Shift(2.0))
        assert LOGITS_STAGES.saved_form(params.logits_processors[1]) == ("shift", {"amount": 2.0})
        json.dumps(LOGITS_STAGES.saved_form(Shift()))
        with pytest.raises(UsageError, match=r'"shift" cannot be saved: .*not JSON serializable'):
            LOGITS_STAGES.saved_form(Shift(torch.ones(1)))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Shift is not registered"):
        LOGITS_STAGES.saved_form(Shift())
    for each in (lambda tokens, logits: logits, lambda input_ids, scores: scores):
        (stage,) = stages_of("logits_processors", [each])
        with pytest.raises(UsageError, match='"<lambda>" cannot be saved: it is'):
            LOGITS_STAGES.saved_form(stage)


def test_stages_stay_the_same_objects_when_options_change() -> None:
    params = SamplingParams(logits_processors=[lambda tokens, logits: logits], n=3)
    assert {each.logits_processors for each in params.copies()} == {params.logits_processors}
    assert hash(params) == hash(SamplingParams(n=3))


def test_a_setup_that_raises_is_named() -> None:
    class Choosy(LogitsStage):
        name = "choosy"

        def setup(self, request):
            raise ValueError("not for me")

        def apply(self, logits, context):
            return logits

    with pytest.raises(UsageError, match='logits processor "choosy" refuses it: ValueError: not for me'):
        set_up([Choosy()], request_of([1, 2]))

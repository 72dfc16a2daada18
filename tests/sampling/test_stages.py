"""Stages beyond the plain filters: each as its authors define it, in any order, in the reference and in the kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.kernels.sampler import reference
from maskwright.kernels.sampler.interface import Sampled, SamplerRows
from maskwright.kernels.sampler.programs import BY_NAME, STAGES, Code
from maskwright.kernels.sampler.reference import drawing_weights
from maskwright.kernels.sampler.shaping import mirostat_count
from maskwright.sampling import BatchPacker, SamplingError, SamplingParams, SequenceSampling

from . import stage_twin
from .arrays import pack_masks
from .twin import chi_square

VOCAB_SIZE = 150
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SETTINGS: dict[str, list[dict[str, float]]] = {
    "temperature": [
        {"temperature": 0.6},
        {"temperature": 1.0, "dynatemp_range": 0.7},
        {"temperature": 0.5, "dynatemp_range": 0.9, "dynatemp_exponent": 2.0},
    ],
    "smoothing": [{"smoothing_factor": 0.3}, {"smoothing_factor": 0.2, "smoothing_curve": 2.5}],
    "top_n_sigma": [{"top_n_sigma": 1.0}, {"top_n_sigma": 0.1}],
    "top_k": [{"top_k": 7}, {"top_k": 1}, {"top_k": 1000}],
    "top_p": [{"top_p": 0.8}, {"top_p": 0.01}],
    "typical_p": [{"typical_p": 0.5}, {"typical_p": 0.05}, {"typical_p": 0.95}],
    "top_a": [{"top_a": 0.3}, {"top_a": 1.0}],
    "min_p": [{"min_p": 0.2}, {"min_p": 1.0}],
    "xtc": [{"xtc_probability": 1.0, "xtc_threshold": 0.05}, {"xtc_probability": 1.0, "xtc_threshold": 0.4}],
    "mirostat": [{"mirostat": version, "mirostat_tau": tau} for version, tau in ((2, 1.5), (2, 0.0), (1, 1.0), (1, 2.0))],
}
EACH = [(name, options) for name, choices in SETTINGS.items() for options in choices]


def asked(names: tuple[str, ...], options: dict[str, Any], **more: Any) -> SamplingParams:
    return SamplingParams(stages=names, **options, **more)


def rows_of(params: list[SamplingParams], *, share: bool = False) -> SamplerRows:
    """The rows of fresh sequences, as programs also where plain rows would do."""
    rows = BatchPacker(DEVICE).pack([SequenceSampling(each, vocab_size=VOCAB_SIZE) for each in params])
    assert rows.stages is not None
    return rows._replace(stages=rows.stages._replace(wants_share=True)) if share else rows


def logits_of(seed: int, count: int, scale: float = 2.5) -> torch.Tensor:
    return torch.randn(count, VOCAB_SIZE, generator=torch.Generator().manual_seed(seed)) * scale


def drawn_from(logits: torch.Tensor, params: SamplingParams) -> list[dict[int, float]]:
    """Token -> probability of each row, as the reference draws."""
    rows = rows_of([params] * len(logits))
    assert rows.stages is not None
    weights = drawing_weights(logits - logits.amax(-1, keepdim=True), rows, rows.stages)
    shares = weights.double() / weights.sum(-1, keepdim=True)
    return [{token: share for token, share in enumerate(row) if share > 0} for row in shares.tolist()]


def check_against_twin(logits: torch.Tensor, names: tuple[str, ...], options: dict[str, Any]) -> None:
    for found, row in zip(drawn_from(logits, asked(names, options)), logits.tolist(), strict=True):
        expected = stage_twin.probabilities(dict(enumerate(row)), names, options, VOCAB_SIZE)
        kept = {token: share for token, share in expected.items() if share > 1e-12}
        assert found.keys() >= kept.keys() and found.keys() <= expected.keys()
        assert [found[token] for token in kept] == pytest.approx(list(kept.values()), rel=2e-5, abs=1e-9)


# ---- against the definitions


def test_every_stage_has_a_twin() -> None:
    assert list(SETTINGS) == list(BY_NAME) and {*stage_twin.TWINS, "mirostat"} == set(BY_NAME)


@pytest.mark.parametrize(("name", "options"), EACH)
def test_a_stage_is_what_its_authors_define(name: str, options: dict[str, Any]) -> None:
    check_against_twin(logits_of(3, 4), (name,), options)
    check_against_twin(logits_of(4, 2, scale=0.4), (name,), options)


@given(st.permutations(list(SETTINGS)), st.integers(1, 6), st.data())
@settings(max_examples=60)
def test_stages_run_in_the_order_that_is_asked_for(order: list[str], count: int, data: st.DataObject) -> None:
    names = tuple(order[:count])
    options: dict[str, Any] = {}
    for name in names:
        options |= data.draw(st.sampled_from(SETTINGS[name]))
    check_against_twin(logits_of(data.draw(st.integers(0, 1000)), 2), names, options)


def test_the_order_matters_and_the_default_one_is_documented() -> None:
    logits = logits_of(1, 1)
    options = {"temperature": 3.0, "top_p": 0.7, "typical_p": 0.9}
    first, last = (drawn_from(logits, asked(names, options)) for names in (("temperature", "top_p"), ("top_p", "temperature")))
    assert first[0].keys() > last[0].keys()
    default = tuple(stage.name for stage in STAGES)
    assert default == (
        "temperature", "smoothing", "top_n_sigma", "top_k", "top_p", "typical_p", "top_a", "min_p", "xtc", "mirostat",
    )  # fmt: skip
    assert drawn_from(logits, SamplingParams(**options)) == drawn_from(logits, asked(default, options))  # type: ignore[arg-type]


def test_plain_stages_are_the_same_with_and_without_a_program() -> None:
    """Rows without a program are drawn by other code: top-n-sigma of a thousand deviations makes one of them."""
    logits, options = logits_of(2, 5), {"temperature": 0.7, "top_k": 30, "top_p": 0.9, "min_p": 0.05}
    plain, program = SamplingParams(**options), SamplingParams(**options, top_n_sigma=1000.0)  # type: ignore[arg-type]
    assert program.has_program and not plain.has_program
    for one, other in zip(drawn_from(logits, plain), drawn_from(logits, program), strict=True):
        assert one.keys() == other.keys() and list(one.values()) == pytest.approx(list(other.values()), rel=1e-5)


def test_a_stage_that_is_not_named_is_off() -> None:
    logits = logits_of(5, 2)
    assert drawn_from(logits, asked(("top_k",), {"top_k": 9, "top_p": 0.1, "temperature": 5.0})) == drawn_from(
        logits, SamplingParams(top_k=9)
    )
    assert not asked(("temperature", "top_k"), {"top_k": 9}).has_program


@pytest.mark.parametrize("stages", [("top_z",), ("top_k", "top_k"), "top_k", (3,), None])
def test_stages_that_are_none_are_refused(stages: Any) -> None:
    with pytest.raises(SamplingError, match="stages must be some of temperature, smoothing"):
        SamplingParams(stages=stages)


def test_greedy_rows_have_no_program() -> None:
    greedy = SamplingParams(temperature=0.0, xtc_probability=1.0, typical_p=0.1, mirostat=2)
    rows = rows_of([greedy])
    assert rows.programs is None and rows.stages is not None and not rows.stages.any_draw
    assert int(reference.sample(logits_of(1, 1), rows, vocab_size=VOCAB_SIZE).token) == int(logits_of(1, 1).argmax())


# ---- distributions


def frequencies(params: SamplingParams, logits: torch.Tensor, count: int, masked_in: set[int] | None = None) -> list[int]:
    """How often each token is drawn, with seeds from 0."""
    sequences = [SequenceSampling(params, vocab_size=VOCAB_SIZE, seed=seed) for seed in range(count)]
    masks = (None, None) if masked_in is None else (pack_masks([masked_in], VOCAB_SIZE), torch.zeros(count, dtype=torch.int64))
    sampled = reference.sample(logits.expand(count, -1), BatchPacker().pack(sequences), *masks, vocab_size=VOCAB_SIZE)
    return torch.bincount(sampled.token, minlength=VOCAB_SIZE).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"typical_p": 0.6}, {"top_a": 0.2, "temperature": 1.4}, {"smoothing_factor": 0.4, "top_k": 8}, {"top_n_sigma": 1.0},
        {"mirostat": 2, "mirostat_tau": 1.5},
    ],
)
def test_tokens_come_as_often_as_they_should(options: dict[str, Any]) -> None:
    names = tuple(name for name in BY_NAME if any(each in options for each in (*stage_twin.OPTIONS.get(name, ()), name)))
    logits, count = logits_of(8, 1), 4000
    expected = stage_twin.probabilities(dict(enumerate(logits[0].tolist())), names, options, VOCAB_SIZE)
    counts = frequencies(SamplingParams(**options), logits, count)
    likely = {token: count * share for token, share in expected.items() if count * share >= 5}
    assert chi_square([counts[token] for token in likely], list(likely.values())) < 2 * len(likely) + 25
    assert all(not n for token, n in enumerate(counts) if token not in expected)


def test_xtc_excludes_as_often_as_it_is_asked_to() -> None:
    logits = torch.full((1, VOCAB_SIZE), -20.0)
    logits[0, :3] = torch.tensor([0.5, 0.3, 0.2]).log()
    count, probability = 4000, 0.4
    counts = frequencies(SamplingParams(xtc_probability=probability, xtc_threshold=0.25), logits, count)
    kept = 1 - probability
    shares = [kept * 0.5, kept * 0.3 + probability * 0.6, kept * 0.2 + probability * 0.4]  # 0.3 and 0.2 are left, or all
    assert chi_square(counts[:3], [count * share for share in shares]) < 18  # 2 degrees of freedom: once in 10,000


# ---- masks, bans and ends


@pytest.mark.parametrize(("name", "options"), EACH)
def test_a_filter_never_leaves_nothing_and_never_leaves_the_mask(name: str, options: dict[str, Any]) -> None:
    masked_in = {3, 40, 41, 99}
    counts = frequencies(asked((name,), options), logits_of(6, 1), 12, masked_in)
    assert sum(counts[token] for token in masked_in) == 12
    forced = frequencies(asked((name,), options), logits_of(6, 1), 3, {77})
    assert forced[77] == 3


@pytest.mark.parametrize("value", [0.0, -3e38, 3e38, math.nan, -math.inf, math.inf])
@pytest.mark.parametrize(("name", "options"), EACH)
def test_any_logits_give_a_token(name: str, options: dict[str, Any], value: float) -> None:
    logits = torch.full((2, VOCAB_SIZE), value)
    logits[1, 5:9] = 2.0
    assert (reference.sample(logits, rows_of([asked((name,), options)] * 2), vocab_size=VOCAB_SIZE).token >= 0).all()


def test_ties_stay_or_go_together() -> None:
    logits = torch.zeros(1, VOCAB_SIZE)
    logits[0, :4] = 3.0
    for name, options in EACH:
        (found,) = drawn_from(logits, asked((name,), options))
        assert len(found) in (4, VOCAB_SIZE - 4, VOCAB_SIZE), name


def test_mirostat_counts_are_continuous_around_an_exponent_of_one() -> None:
    counts = [mirostat_count(1 + excess, 8.0, 50_000) for excess in (-2e-3, -5e-4, 0.0, 5e-4, 2e-3)]
    assert counts == sorted(counts, reverse=True) and counts[0] - counts[-1] <= 2
    assert mirostat_count(0.0, 8.0, 100) == 1 << 24 and mirostat_count(50.0, 1.0, 100) == 1


# ---- a row does not know the others


def everything(seed: int) -> list[SamplingParams]:
    """One row of each kind: plain, greedy, each stage, and all of them."""
    mixed = {name: choices[0] for name, choices in SETTINGS.items()}
    together: dict[str, Any] = {name: value for options in mixed.values() for name, value in options.items()}
    rows = [{}, {"temperature": 0.0, "top_k": 3}, {"top_k": 5, "top_p": 0.9}, together, *(options for _, options in EACH)]
    orders = itertools.cycle([(), tuple(BY_NAME), tuple(reversed(BY_NAME))])
    return [SamplingParams(**options, stages=next(orders), seed=seed + row) for row, options in enumerate(rows)]


def parts(rows: SamplerRows, row: int) -> SamplerRows:
    from maskwright.kernels.sampler.interface import slice_rows

    return slice_rows(rows, slice(row, row + 1))


def test_a_row_is_the_same_bit_by_bit_in_any_batch() -> None:
    params = everything(0)
    logits, rows = logits_of(9, len(params)), rows_of(params, share=True)
    together = reference.sample(logits, rows, vocab_size=VOCAB_SIZE)
    for row in range(len(params)):
        alone = reference.sample(logits[row : row + 1], parts(rows, row), vocab_size=VOCAB_SIZE)
        assert alone.token == together.token[row] and torch.equal(alone.share[0], together.share[row])


def test_blocks_of_a_large_batch_have_their_own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    params = everything(50)
    logits, rows = logits_of(10, len(params)), rows_of(params, share=True)
    whole = reference.sample(logits, rows, vocab_size=VOCAB_SIZE)
    monkeypatch.setattr(reference, "BLOCK_ELEMENTS", 3 * VOCAB_SIZE)
    assert all(map(torch.equal, reference.sample(logits, rows, vocab_size=VOCAB_SIZE), whole))


# ---- the kernel


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("triton")
    from maskwright.kernels.sampler.gpu import launch

    monkeypatch.setattr(launch, "STATISTICS_CHUNK", 64)
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that was not written holds NaN
    yield launch.sample
    torch.use_deterministic_algorithms(False)


def same_draws(found: Sampled, expected: Sampled, rows: SamplerRows) -> None:
    assert found.token.tolist() == expected.token.tolist()
    assert rows.programs is not None
    has_program = rows.programs.codes[:, 0] != Code.END
    torch.testing.assert_close(found.share[has_program], expected.share[has_program], rtol=1e-4, atol=1e-7)
    assert found.share[~has_program].isnan().all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", [0, 100])
def test_the_kernel_draws_what_the_reference_draws(kernels: Any, seed: int) -> None:
    """A batch in which every row has other stages, some are constrained, and some have biases."""
    params = [*everything(seed), SamplingParams(logit_bias={7: 4.0, 9: -3.0}, banned_token_ids=(3,), typical_p=0.7, seed=seed)]
    logits, rows = logits_of(seed, len(params)).to(DEVICE), rows_of(params, share=True)
    pool = pack_masks([range(0, VOCAB_SIZE, 2), [17]], VOCAB_SIZE).to(DEVICE)
    index = torch.tensor([(-1, 0, -1, 1, 0)[row % 5] for row in range(len(params))], device=DEVICE)
    found, expected = (s(logits, rows, pool, index, vocab_size=VOCAB_SIZE) for s in (kernels, reference.sample))
    same_draws(found, expected, rows)
    assert torch.equal(found.num_allowed, expected.num_allowed)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")
@given(st.permutations(list(SETTINGS)), st.integers(2, 5), st.integers(0, 1000), st.data())
@settings(max_examples=6)
def test_the_kernel_runs_stages_in_any_order(order: list[str], count: int, seed: int, data: st.DataObject) -> None:
    pytest.importorskip("triton")
    from maskwright.kernels.sampler.gpu import launch

    options: dict[str, Any] = {}
    for name in order[:count]:
        options |= data.draw(st.sampled_from(SETTINGS[name]))
    params = [asked(tuple(order[:count]), options, seed=seed + row) for row in range(3)]
    logits, rows = logits_of(seed, 3).to(DEVICE), rows_of(params, share=True)
    found, expected = (s(logits, rows, vocab_size=VOCAB_SIZE) for s in (launch.sample, reference.sample))
    assert found.token.tolist() == expected.token.tolist()


def test_a_batch_without_programs_launches_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    from maskwright.kernels.sampler.gpu import launch

    monkeypatch.setattr(launch, "run_programs", lambda arrays: pytest.fail("no row has a program"))
    rows = rows_of([SamplingParams(top_k=5), SamplingParams(temperature=0.0, xtc_probability=0.5)])
    assert rows.programs is None
    assert launch.sample(logits_of(1, 2).to(DEVICE), rows, vocab_size=VOCAB_SIZE).share.shape == (2, 0)


# ---- options


def test_the_numbers_are_checked() -> None:
    wrong: list[dict[str, Any]] = [
        {"typical_p": 0}, {"top_a": 1.5}, {"xtc_probability": -0.1}, {"xtc_threshold": 2}, {"mirostat": 3}, {"mirostat_eta": 2},
        {"dynatemp_range": -1}, {"smoothing_curve": 5}, {"top_n_sigma": math.nan}, {"dry_base": 0.5}, {"no_repeat_ngram_size": -1},
        {"repeat_last_n": -2}, {"dry_sequence_breakers": ("",)}, {"bad_words_ids": ((),)}, {"allowed_token_ids": (-1,)},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(SamplingError, match=next(iter(options))):
            SamplingParams(**options)


def test_a_number_that_means_off_makes_no_program() -> None:
    off = SamplingParams(top_n_sigma=-1.0, typical_p=1.0, dynatemp_exponent=2.0, smoothing_curve=2.0, mirostat_tau=3.0)
    assert not off.has_program and rows_of([off]).programs is None
    assert np.array_equal(rows_of([off]).parameters.top_k, [0])

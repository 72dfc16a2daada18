"""A filter is complete: whatever the table of parameters lists is drawn by, checked, and can be asked for from everywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from maskwright import SamplingParams
from maskwright.cli.options import given_options, option_parameters
from maskwright.kernels import sampler
from maskwright.kernels.sampler import reference
from maskwright.kernels.sampler.backend import Sample
from maskwright.kernels.sampler.interface import SamplerRows, Stages
from maskwright.kernels.sampler.parameters import FILTERS, filled
from maskwright.planning import recommended_sampling
from maskwright.sampling import BatchPacker, SequenceSampling
from maskwright.sampling.options import Option
from maskwright.sampling.params import OPTIONS

from . import naive

VOCAB_SIZE, NUM_ROWS = 40, 6
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FILTER_OPTIONS = [option for option in OPTIONS if option.name in FILTERS]


def values_of(option: Option) -> Iterator[float]:
    """Values that switch a filter on: some of its range, the nearest to the default last."""
    assert option.bounds is not None
    bounds, off = option.bounds, FILTERS[option.name]
    if option.kind is int:
        yield from (off + 1, off + 2, off + 5)
        return
    low = next(each for each in (bounds.above, bounds.least, 0.0) if isinstance(each, int | float))
    high = bounds.most if isinstance(bounds.most, int | float) else low + 4
    yield from sorted((low + (high - low) * part / 8 for part in range(1, 8)), key=lambda value: -abs(value - off))


def drawn(sample: Sample, name: str, value: float) -> list[int]:
    """The tokens of rows that differ in their seeds alone, with one filter on: one token is likely, the others together are likelier."""
    logits = torch.full((NUM_ROWS, VOCAB_SIZE), -2.5)
    logits[:, 17] = 0.0
    rows = SamplerRows(
        parameters=filled(NUM_ROWS, DEVICE, **{name: value}),
        seed=torch.arange(NUM_ROWS, device=DEVICE),
        position=torch.zeros(NUM_ROWS, dtype=torch.int64, device=DEVICE),
    )
    tokens: list[int] = sample(logits.to(DEVICE), rows, vocab_size=VOCAB_SIZE).token.tolist()
    return tokens


def telling_value(option: Option) -> float:
    """A value that changes what the reference draws."""
    off = FILTERS[option.name]
    plain = drawn(reference.sample, option.name, off)
    telling = [value for value in values_of(option) if drawn(reference.sample, option.name, value) != plain]
    assert telling, f"{option.name} changes nothing in the reference"
    return telling[0]


def test_there_are_filters() -> None:
    assert {"top_k", "top_p", "min_p"} <= FILTERS.keys() == {option.name for option in FILTER_OPTIONS}


@pytest.mark.parametrize("option", FILTER_OPTIONS, ids=lambda option: option.name)
def test_the_reference_and_the_kernels_apply_it_alike(option: Option) -> None:
    pytest.importorskip("triton")
    from maskwright.kernels.sampler.gpu import sample

    value = telling_value(option)
    assert drawn(sample, option.name, value) == drawn(reference.sample, option.name, value)
    assert drawn(sample, option.name, value) != drawn(sample, option.name, FILTERS[option.name])


@pytest.mark.parametrize("option", FILTER_OPTIONS, ids=lambda option: option.name)
def test_a_batch_says_that_it_is_used(option: Option) -> None:
    value = telling_value(option)
    asking = [SamplingParams(**{option.name: value}), SamplingParams(temperature=0.0, **{option.name: value}), SamplingParams()]
    rows = [BatchPacker().pack([SequenceSampling(params, vocab_size=VOCAB_SIZE)]) for params in asking]
    assert [each.stages.filters if each.stages else None for each in rows] == [{option.name}, set(), set()]
    assert getattr(rows[0].parameters, option.name).tolist() == [pytest.approx(value)]
    assert reference.find_stages(rows[0]).filters == {option.name} and reference.find_stages(rows[2]) == Stages()


@pytest.mark.parametrize("option", FILTER_OPTIONS, ids=lambda option: option.name)
def test_it_is_specified_and_the_twin_knows_it(option: Option) -> None:
    assert option.name in str(sampler.__doc__)
    assert option.name in {field.name for field in dataclasses.fields(naive.Row)}


@pytest.mark.parametrize("option", FILTER_OPTIONS, ids=lambda option: option.name)
def test_the_command_line_and_models_can_ask_for_it(option: Option) -> None:
    value = telling_value(option)
    (parameter,) = [each for each in option_parameters(SamplingParams, "Sampling") if each.name == option.name]
    assert parameter.annotation.__metadata__[0].help
    assert given_options(SamplingParams, {option.name: value}) == {option.name: value}
    assert getattr(recommended_sampling({"do_sample": True, option.name: value}), option.name) == value


@pytest.mark.parametrize("option", FILTER_OPTIONS, ids=lambda option: option.name)
def test_clients_can_ask_for_it(option: Option) -> None:
    pytest.importorskip("fastapi")
    from pydantic import ValidationError

    from maskwright.server.anthropic_messages import MessageBody
    from maskwright.server.chat import ChatBody
    from maskwright.server.completions import CompletionBody
    from maskwright.server.responses import ResponseBody
    from maskwright.server.sampling_options import sampling_of
    from maskwright.server.settings import ServerSettings

    def asked(**given: Any) -> SamplingParams:
        body = CompletionBody(prompt="x", **given)
        return sampling_of(body, defaults=SamplingParams(), settings=ServerSettings(), model_len=100)

    value = telling_value(option)
    assert getattr(asked(**{option.name: value}), option.name) == value
    assert getattr(asked(), option.name) == FILTERS[option.name]
    for body in (ChatBody, ResponseBody, MessageBody):
        assert body.model_fields[option.name].description or body is MessageBody
    with pytest.raises(ValidationError, match=option.name):
        asked(**{option.name: "much"})

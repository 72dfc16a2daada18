"""Checks of the values of sampling options. A check gives the value as sampling keeps it, or raises `SamplingError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real

from ..foundation.errors import MaskwrightError
from ..kernels.sampler.parameters import Range
from ..kernels.sampler.programs import BY_NAME

LARGEST = 3.4e38


class SamplingError(MaskwrightError, ValueError):
    """A sampling option has a value that means nothing: which option, which value, what is allowed."""

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option = option
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.option} must be {self.allowed}, got {self.value!r}"


def checked_number(option: str, value: object, allowed: str) -> float:
    """A number that float32, in which sampling computes, can hold. NaN fails the comparison."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SamplingError(option, value, allowed)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        raise SamplingError(option, value, allowed) from None
    if not abs(number) <= LARGEST:
        raise SamplingError(option, value, allowed)
    return number


def checked_integer(option: str, value: object, allowed: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SamplingError(option, value, allowed)
    return int(value)


def checked_flag(option: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SamplingError(option, value, "True or False")
    return value


def is_inside(value: float, bounds: Range, others: object) -> bool:
    """others: whose attributes are the bounds that are names."""
    least, most = (getattr(others, each) if isinstance(each, str) else each for each in (bounds.least, bounds.most))
    return (
        (least is None or value >= least)
        and (most is None or value <= most)
        and (bounds.above is None or value > bounds.above)
        and (bounds.below is None or value < bounds.below)
    )


def checked_bias(option: str, bias: object) -> dict[int | str, float]:
    if not isinstance(bias, Mapping):
        raise SamplingError(option, bias, "a mapping from token id, or text, to number")
    keys = [key if isinstance(key, str) and key else checked_token_ids(option, (key,))[0] for key in bias]
    values = [checked_number(f"{option}[{key}]", value, "a finite number") for key, value in bias.items()]
    return dict(zip(keys, values, strict=True))


def checked_stages(option: str, stages: object) -> tuple[str, ...]:
    allowed = f"some of {', '.join(BY_NAME)}, each at most once"
    if isinstance(stages, str | bytes) or not isinstance(stages, Iterable):
        raise SamplingError(option, stages, allowed)
    checked = tuple(stages)
    for stage in checked:
        if not isinstance(stage, str) or stage not in BY_NAME or checked.count(stage) > 1:
            raise SamplingError(option, stage, allowed)
    return checked


def checked_token_sequences(option: str, sequences: object) -> tuple[tuple[int, ...], ...]:
    allowed = "sequences of token ids, none empty"
    if isinstance(sequences, str | bytes) or not isinstance(sequences, Iterable):
        raise SamplingError(option, sequences, allowed)
    checked = tuple(checked_token_ids(option, sequence) for sequence in sequences)
    if not all(checked):
        raise SamplingError(option, (), allowed)
    return checked


def checked_token_ids(option: str, token_ids: object) -> tuple[int, ...]:
    allowed = "token ids (integers >= 0)"
    if isinstance(token_ids, str | bytes) or not isinstance(token_ids, Iterable):
        raise SamplingError(option, token_ids, allowed)
    checked = tuple(token_ids)
    for token_id in checked:
        if isinstance(token_id, bool) or not isinstance(token_id, Integral) or token_id < 0:
            raise SamplingError(option, token_id, allowed)
    return tuple(int(token_id) for token_id in checked)


def checked_strings(option: str, strings: object) -> tuple[str, ...]:
    allowed = "a non-empty string or several of them"
    if isinstance(strings, bytes) or not isinstance(strings, Iterable):
        raise SamplingError(option, strings, allowed)
    checked = (strings,) if isinstance(strings, str) else tuple(strings)
    for string in checked:
        if not isinstance(string, str) or not string:
            raise SamplingError(option, string, allowed)
    return checked

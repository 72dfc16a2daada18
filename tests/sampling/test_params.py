from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

from maskwright.errors import UsageError
from maskwright.sampling import SamplingError, SamplingParams

REFUSED: list[tuple[str, Any]] = [
    *(("temperature", value) for value in (-0.1, math.nan, math.inf, 1e39, 10**400, "1", None, True)),
    *(("top_k", value) for value in (-1, 1.5, True, "5", 2**31)),
    *(("top_p", value) for value in (0, -0.5, 1.01, math.nan, "0.9")),
    *(("min_p", value) for value in (-0.01, 1.01, math.nan)),
    *(("repetition_penalty", value) for value in (0, 1e-39, -1, math.inf, math.nan)),
    *((name, value) for name in ("presence_penalty", "frequency_penalty") for value in (math.nan, -math.inf, "x")),
    *(("logit_bias", value) for value in ({-1: 1.0}, {"": 1.0}, {1.5: 1.0}, {1: math.inf}, {1: None}, [1, 2], "1")),
    *((name, value) for name in ("banned_token_ids", "stop_token_ids") for value in ((-1,), (1.0,), "12", 3, (True,))),
    *(("seed", value) for value in (-1, 2**64, 1.0, "1", True)),
    *(("max_tokens", value) for value in (0, -1, None, 2.0)),
    *(("min_tokens", value) for value in (-1, 257, None)),
    *(("stop", value) for value in ("", ("a", ""), (1,), b"x", 5, None)),
    *((name, value) for name in ("ignore_eos", "include_stop_in_output") for value in (1, None, "yes")),
    *(("logprobs", value) for value in (-1, 21, True, 1.0)),
]


@pytest.mark.parametrize(("option", "value"), REFUSED)
def test_a_meaningless_value_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(SamplingError) as caught:
        SamplingParams(**{option: value})
    assert caught.value.option.startswith(option)
    assert option in str(caught.value) and "must be" in str(caught.value) and "got" in str(caught.value)
    assert isinstance(caught.value, ValueError)


ACCEPTED: list[tuple[str, Any, Any]] = [
    ("temperature", 0, 0.0),
    ("temperature", np.float32(0.5), 0.5),
    ("top_k", np.int64(5), 5),
    ("top_p", 1, 1.0),
    ("min_p", 1, 1.0),
    ("presence_penalty", -2, -2.0),
    ("logit_bias", {np.int32(5): 3}, {5: 3.0}),
    ("banned_token_ids", [3, 1], (3, 1)),
    ("stop_token_ids", range(3), (0, 1, 2)),
    ("seed", 2**64 - 1, 2**64 - 1),
    ("stop", "END", ("END",)),
    ("stop", ["a", "b"], ("a", "b")),
    ("logprobs", 0, 0),
]


@pytest.mark.parametrize(("option", "value", "kept"), ACCEPTED)
def test_a_value_is_kept_in_plain_python_types(option: str, value: Any, kept: Any) -> None:
    stored = getattr(SamplingParams(**{option: value}), option)
    assert stored == kept and type(stored) is type(kept)


def test_unknown_options_are_errors() -> None:
    with pytest.raises(UsageError, match=r'unknown sampling option "topk"; did you mean top_k'):
        SamplingParams(topk=5)  # type: ignore[call-arg]


def test_params_are_frozen_values() -> None:
    bias = {1: 2.0}
    params = SamplingParams(logit_bias=bias, stop="x", seed=3)
    bias[1] = 9.0
    assert params.logit_bias == {1: 2.0}
    assert params == pickle.loads(pickle.dumps(params)) == dataclasses.replace(params)
    assert hash(params) == hash(dataclasses.replace(params))
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.seed = 4  # type: ignore[misc]


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(SamplingError("top_p", 2, "a number in (0, 1]")))
    assert str(error) == "top_p must be a number in (0, 1], got 2"


def test_replace_checks_again() -> None:
    with pytest.raises(SamplingError, match="min_tokens"):
        dataclasses.replace(SamplingParams(min_tokens=10), max_tokens=5)

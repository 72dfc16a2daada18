"""Answers that say the same."""

from __future__ import annotations

from typing import Any

import pytest


def assert_alike(one: Any, other: Any) -> None:
    """Equal but for the last digits of numbers: a prompt found in the cache goes through the model in other shapes."""
    assert type(one) is type(other)
    if isinstance(one, dict | list):
        assert len(one) == len(other) and (isinstance(one, list) or list(one) == list(other))
        for key in one if isinstance(one, dict) else range(len(one)):
            assert_alike(one[key], other[key])
    else:
        assert one == (pytest.approx(other, abs=1e-4) if isinstance(one, float) else other)

"""Random cases of which the first are tried each time, and the others with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_each_time(cases: Iterable[Any], count: int) -> list[Any]:
    """Parameters: all cases in their order, those behind the first `count` marked as slow."""
    return [case if place < count else pytest.param(case, marks=pytest.mark.slow) for place, case in enumerate(cases)]

"""What client libraries leave open is thrown away while their warnings are still passed over."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def thrown_away() -> Iterator[None]:
    yield
    gc.collect()

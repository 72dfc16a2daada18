"""Instructor, in each of its ways to ask for an object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ..serving import Served
from .installed import QUIET, client_library
from .people import ADA, MESSAGES, MODEL, Person

instructor = client_library("instructor")
pytestmark = QUIET


@pytest.mark.parametrize("mode", ["JSON_SCHEMA", "TOOLS", "TOOLS_STRICT", "PARALLEL_TOOLS"])
def test_objects(server: Served, mode: str) -> None:
    with server.openai() as client:
        wrapped: Any = instructor.from_openai(client, mode=instructor.Mode[mode])
        asked: Any = Iterable[Person] if mode == "PARALLEL_TOOLS" else Person
        found = wrapped.chat.completions.create(model=MODEL, response_model=asked, messages=MESSAGES, max_retries=0)
        first = next(iter(found)) if mode == "PARALLEL_TOOLS" else found
    assert first.age == ADA.age and first.name in ADA.name


def test_partial_objects(server: Served) -> None:
    with server.openai() as client:
        wrapped: Any = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
        parts = list(wrapped.chat.completions.create_partial(model=MODEL, response_model=Person, messages=MESSAGES))
    assert parts[-1].model_dump() == ADA.model_dump()
    assert len(parts) > 2 and parts[0].age is None

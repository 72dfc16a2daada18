"""Python types mean what Pydantic enforces: no text of a constraint is rejected, unless the constraint notes it."""

from __future__ import annotations

import random
import typing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import core_schema

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.python_types.kinds import KINDS, kinds_page
from maskwright.constraints.front_ends.json_schema.types import adapter
from maskwright.constraints.runtime.constraint import as_token_ids

from .python_types import TYPES

EOS = 256
COMPILER = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[EOS]))
REFUSED = {  # no JSON is ever read as one
    "callable", "callable int", "type", "tuples", "days", "literal enum", "literal enums", "literal bytes", "literal nothing",
    "set of lists", "set of dicts", "set of models", "set of points", "dict literal int", "dict tuple", "dict none",
    "dict literal enum", "color tags",
}  # fmt: skip
TELLING = "0129-:T.,]}\"ab"  # bytes that lead on through dates, numbers and ends


def walk(constraint: Constraint, seed: int, length: int) -> str:
    """A random text: bytes at random, or readable ones, and the shortest way to an end behind `length` of them."""
    rng, state, text = random.Random(seed), constraint.start(), bytearray()
    while True:
        budget = None if len(text) < length else constraint.min_tokens(state) + 1
        tokens = list(as_token_ids(constraint.mask(state, budget)))
        if EOS in tokens and (len(text) >= length or rng.random() < 0.5):
            return text.decode()
        readable = [token for token in tokens if 32 <= token < 127] if seed % 3 else []
        telling = [token for token in readable if chr(token) in TELLING] if seed % 3 == 2 and rng.random() < 0.6 else []
        token = rng.choice(telling or readable or tokens)
        if token == EOS:
            return text.decode()
        text.append(token)
        after = constraint.advance(state, token)
        assert after is not None
        state = after


def compiled(type_: Any) -> Constraint:
    return COMPILER.compile(JsonSchema(type_))


def is_valid(type_: Any, text: str) -> bool:
    try:
        adapter(type_).validate_json(text)
    except ValidationError:
        return False
    return True


def is_noted(constraint: Constraint) -> bool:
    return any("checked afterwards: " in note for note in constraint.notes)


@pytest.mark.parametrize("name", [name for name in TYPES if name not in REFUSED])
def test_what_the_constraint_accepts_is_valid_or_noted(name: str) -> None:
    constraint = compiled(TYPES[name])
    if is_noted(constraint):
        return
    for seed in range(12):
        text = walk(constraint, seed, (0, 10, 30, 60)[seed % 4])
        assert is_valid(TYPES[name], text), text


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_no_json_is_read_as_is_refused(name: str) -> None:
    with pytest.raises(ConstraintError, match=r"no JSON|no key|hashed"):
        JsonSchema(TYPES[name])


def test_every_kind_of_node_has_a_handler() -> None:
    assert KINDS.keys() >= {*typing.get_args(core_schema.CoreSchemaType), *typing.get_args(core_schema.CoreSchemaFieldType)}


def test_page_is_printed_from_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "python-types.md"
    if not page.exists():
        pytest.skip("the tests do not run from a checkout")
    assert page.read_text("utf-8") == kinds_page()

"""Unique items of few values beside upper bounds: what is promised exists, and nothing that exists is refused."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids

TOKENS = [*(bytes([byte]) for byte in range(256)), b'","', b'",', b',"']
COMPILER = Compiler(Vocabulary([*TOKENS, None], eos_token_ids=[len(TOKENS)]))
VALUES = [1, 2, 3, "a", None]
MOST_ITEMS = 5
Schema = dict[str, Any]


def _array(needs: list[Schema], **more: Any) -> Schema:
    return {"type": "array", "uniqueItems": True, "allOf": needs, **more}


def _among(values: list[Any], low: int = 1, high: int | None = None) -> Schema:
    return {"contains": {"enum": values}, "minContains": low, **({} if high is None else {"maxContains": high})}


EMPTY: dict[str, Schema] = {
    "one of two is too many": _array([_among([2, 3], high=1)], items={"enum": [1, 2, 3]}, minItems=3),
    "the value of both comes once": _array([_among([1, 2], 2), _among([2, 3], 2)], maxItems=2),
    "a fifth of four": _array(
        [_among([1, 2, "a", None], 4, 4), _among([1, 3], 2), {"contains": {"not": {"enum": [4]}}, "minContains": 0, "maxContains": 4}]
    ),
}
POSSIBLE: dict[str, Schema] = {
    "one more than both need": _array([_among([1, 2], 2), _among([2, 3], 2)], maxItems=3),
    "as many as there are": _array([_among([2, 3, "a"], high=1)], items={"enum": [1, 2, 3, "a", None]}, minItems=3),
    "of a place before": _array([_among([1, 2], 2), _among([2, 3], 2)], maxItems=3, prefixItems=[{"type": ["integer", "string"]}]),
    "of a place with more values": _array([_among([1, 2], 2, 3), _among([2, 3], 2)], items={"enum": [1, 2, 3]}, maxItems=4, prefixItems=[True]),
}  # fmt: skip


def _compiled(schema: Schema) -> Constraint | None:
    """None where no array satisfies the schema. Raises ConstraintError for another reason."""
    try:
        return COMPILER.compile(JsonSchema(schema, whitespace="compact"))
    except ConstraintError as error:
        if "satisf" not in str(error):
            raise
        return None


def _walked(constraint: Constraint, rng: random.Random, spare: int) -> Any:
    """The value of a random text of at most so many tokens more than are needed."""
    state, text = constraint.start(), b""
    for left in range(constraint.min_tokens(state) + spare, -1, -1):
        token = rng.choice(list(as_token_ids(constraint.mask(state, left))))
        after = constraint.advance(state, token)
        if after == FINISHED:
            return json.loads(text)
        assert after is not None
        state, text = after, text + TOKENS[token]
    raise AssertionError(text)


def _random(rng: random.Random) -> Schema:
    needs = []
    for _ in range(rng.randint(1, 3)):
        low = rng.choice([0, 1, 2, 2, 3])
        needs.append(_among(rng.sample(VALUES, rng.randint(1, 4)), low, low + rng.randint(0, 1) if rng.random() < 0.4 else None))
    schema = _array(needs, items={"enum": VALUES}, maxItems=rng.randint(2, MOST_ITEMS))
    if rng.random() < 0.5:
        schema["minItems"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        schema["prefixItems"] = [rng.choice([{"type": ["integer", "string"]}, {"enum": VALUES[1:4]}, {}])]
    return schema


@pytest.mark.parametrize("name", EMPTY)
def test_no_end_is_promised_that_does_not_exist(name: str) -> None:
    assert _compiled(EMPTY[name]) is None


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_is_left_is_enough(name: str) -> None:
    constraint = _compiled(POSSIBLE[name])
    assert constraint is not None
    valid = jsonschema.Draft202012Validator(POSSIBLE[name]).is_valid
    assert all(valid(_walked(constraint, random.Random(seed), seed % 3)) for seed in range(6))


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 200))])
def test_random_conditions_against_all_arrays(seed: int) -> None:
    rng = random.Random(f"few {seed}")
    schema = _random(rng)
    arrays = [list(each) for length in range(MOST_ITEMS + 1) for each in itertools.permutations(VALUES, length)]
    validator = jsonschema.Draft202012Validator(schema)
    right = {json.dumps(each): validator.is_valid(each) for each in arrays}
    try:
        constraint = _compiled(schema)
    except ConstraintError as error:
        pytest.skip(f"refused by name: {error}")
    assert (constraint is not None) == any(right.values())
    if constraint is not None:
        for text in rng.sample(sorted(right), 60):
            assert constraint.accepts(text.replace(" ", "")) == right[text]
        assert all(validator.is_valid(_walked(constraint, random.Random(walk), walk)) for walk in range(3))

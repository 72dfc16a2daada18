"""Items and names that must be new cost what those cost that are left, also where white space stands beside them: the least budget
that suffices at the start is enough, whatever is taken first."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b'","', b"ar", b"ef", b'",\n', None], eos_token_ids=[260])
LISTED = {"enum": ["a", "be careful", "dx", "considerable"]}
SCHEMAS: dict[str, Any] = {
    "items": {"type": "array", "items": LISTED, "uniqueItems": True, "minItems": 4},
    "items and null": {"type": "array", "items": {"anyOf": [LISTED, {"type": "null"}]}, "uniqueItems": True, "minItems": 5},
    "objects": {
        "type": "array", "uniqueItems": True, "minItems": 3,
        "items": {"type": "object", "properties": {"k": LISTED}, "required": ["k"], "additionalProperties": False},
    },
    "names": {"type": "object", "propertyNames": LISTED, "additionalProperties": {"type": "null"}, "minProperties": 4},
}  # fmt: skip


@pytest.mark.parametrize("whitespace", ["compact", "flexible", "spaced"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_what_suffices_at_the_start_is_enough(name: str, whitespace: str) -> None:
    constraint = Compiler(VOCABULARY).compile(JsonSchema(SCHEMAS[name], whitespace=whitespace))
    for seed in range(6):
        rng, state, text = random.Random(seed), constraint.start(), b""
        for left in range(constraint.min_tokens(state), -1, -1):
            allowed = list(as_token_ids(constraint.mask(state, left)))
            assert allowed, f"a dead end behind {text!r}"
            token = rng.choice(allowed)
            after = constraint.advance(state, token)
            assert after is not None
            if after == FINISHED:
                break
            state, text = after, text + (VOCABULARY.tokens[token] or b"")
        assert constraint.accepts(text) and len(json.loads(text)) >= 3

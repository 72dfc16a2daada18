"""Tokens with several characters of a name lead to the states to which their bytes lead one after the other."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from maskwright.constraints import Choice, Compiler, JsonSchema, Regex, Vocabulary
from maskwright.constraints.grammar.source import Source

NAMES = ["name", "names", "nam", "number", "na me", "id", "identifier", "i", "x-name", "x-", "naïve", 'na"me', "tag"]
ADDRESS = {"type": "object", "properties": {name: {"type": "integer"} for name in NAMES[:4]}}
SOURCES: list[Source] = [
    JsonSchema({"type": "object", "properties": {name: {"type": "integer"} for name in NAMES}}),
    JsonSchema({"type": "object", "properties": {name: {"type": "integer"} for name in NAMES}, "additionalProperties": False}),
    JsonSchema({"type": "object", "properties": {name: {} for name in NAMES}, "patternProperties": {"^x-": {"type": "null"}}}),
    JsonSchema({"type": "object", "properties": {name: {"type": "integer"} for name in NAMES}}, property_order="any"),
    JsonSchema({"properties": {"id": ADDRESS, "tag": ADDRESS, "name": {"enum": NAMES}}}, whitespace="flexible"),
    JsonSchema({"enum": [*NAMES, 12, None, [1], {"name": 1}]}),
    JsonSchema({"type": "array", "items": {"enum": NAMES}, "uniqueItems": True}),
    JsonSchema({"type": "object", "propertyNames": {"maxLength": 5}, "properties": {"name": {}, "names": {}}}),
    JsonSchema({"type": "object", "properties": {"name": {}, "number": {}}}, escapes="any"),
    Choice(NAMES),
    Regex("(name|names|number|[a-z]{3,9}!)+"),
]


def tokens(rng: random.Random) -> list[bytes]:
    texts = [json.dumps(name, ensure_ascii=False) for name in NAMES] + ['{"', '": 1, "', '":1}', "[", '", "']
    pieces = {text.encode()[i:j] for text in texts for i in range(len(text)) for j in range(i + 2, len(text) + 3)}
    return sorted(rng.sample(sorted(pieces), 120))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("source", SOURCES, ids=map(str, range(len(SOURCES))))
def test_a_token_leads_where_its_bytes_lead(source: Source, seed: int) -> None:
    rng = random.Random(seed)
    longer = tokens(rng)
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), *longer, None], eos_token_ids=[256 + len(longer)])
    constraint = Compiler(vocabulary).compile(source)
    for _ in range(12):
        state: Any = constraint.start()
        for _ in range(10):
            ids = list(range(256, 256 + len(longer)))
            rng.shuffle(ids)
            by_token = [(token, constraint.advance(state, token)) for token in ids]
            for token, after in by_token:
                other: Any = state
                for byte in longer[token - 256]:
                    other = None if other is None else constraint.advance(other, byte)
                assert after == other, (longer[token - 256], state)
            going_on = [after for _, after in by_token if after is not None]
            if not going_on:
                going_on = [after for byte in range(256) if (after := constraint.advance(state, byte)) is not None]
            if not going_on:
                break
            state = rng.choice(going_on)


def test_bytes_read_of_a_text_that_does_not_survive() -> None:
    constraint = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])).compile(
        JsonSchema({"enum": ["green", "grey", "blue"]})
    )
    start = constraint.start()
    for text, survives in ((b'"grey"', True), (b'"grex"', False), (b'"greet', False), (b'"blu', True), (b'"bluebell"', False)):
        assert (constraint.advance_bytes(start, text) is not None) == survives
    masked = constraint.explain(start, ord("x"))
    assert masked

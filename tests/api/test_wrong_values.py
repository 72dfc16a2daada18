"""Wrong values of keywords, from `generate` with the embedded model to its prompt: typed errors, or a text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from maskwright import LLM, MaskwrightError, SamplingParams
from maskwright.constraints.front_ends.json_schema.documents.keyword_table import KEYWORDS
from maskwright.prompts import compact_schema, compact_tools

WRONG: list[Any] = [None, 5, -1, 1.5, True, False, "text", "\ud800", [], [None], [5], ["\ud800"], {}, {"a": None}, {"a": 5}, {"\ud800": []}]
WORDS = [*KEYWORDS, "patern"]
FEW = SamplingParams(max_tokens=40)


@pytest.fixture(scope="module")
def embedded() -> LLM:
    return LLM()


@pytest.mark.parametrize("keyword", WORDS)
def test_any_schema_is_told_in_words(keyword: str) -> None:
    for value in [*WRONG, Decimal("1.5"), (1, 2)]:
        for schema in ({keyword: value}, {"type": "object", "properties": {"a": {"type": "string", keyword: value}}, keyword: value}):
            assert compact_schema(schema).encode()
            assert compact_tools([{"name": "f", "parameters": schema}]).encode()


@pytest.mark.parametrize("keyword", WORDS)
def test_generate_gives_a_text_or_a_typed_error(embedded: LLM, keyword: str) -> None:
    for value in (None, 5, "text", [], {"a": 5}):
        for schema in ({"type": "boolean", keyword: value}, {"type": "object", "properties": {"a": {keyword: value}}, "maxProperties": 0}):
            try:
                (output,) = embedded.generate("Yes?", schema=schema, sampling=FEW)
                assert output.text
            except MaskwrightError:
                assert value is not None or keyword in ("type", "const", "not", "if")


def test_null_is_noted(embedded: LLM) -> None:
    (output,) = embedded.generate("Yes?", schema={"type": "boolean", "required": None, "patern": "a"}, sampling=FEW)
    assert output.constraint.notes == ("#: 'required' is null: read as not there", "#: 'patern' is not a keyword of JSON Schema: ignored; perhaps 'pattern' is meant")


@pytest.mark.parametrize("number", ["1" * 5000, "1e400"])
def test_numbers_beyond_the_limit_are_refused_by_a_typed_error(embedded: LLM, number: str) -> None:
    with pytest.raises(MaskwrightError):
        embedded.generate("Yes?", schema='{"const":' + number + "}", sampling=FEW)

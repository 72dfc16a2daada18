"""Random schemas of all drafts, in families made to break things: what is accepted is what a validator admits."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from random import Random
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    JsonSchema,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.front_ends.json_schema.documents.values import dump_json, scalar_text

from ..json_texts import spellings
from .adversarial_schemas import FAMILIES, Maker

SCHEMAS = 25  # of each family
MAX_ORDERS = 60  # texts of a value with its keys in all orders
VALIDATORS = {"4": "Draft4", "6": "Draft6", "7": "Draft7", "2019-09": "Draft201909", "2020-12": "Draft202012"}
REFUSED = {"uniqueItems", "limit"}  # what may be refused here, and how often at most, of all schemas
MOST_REFUSED = 0.1
COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), b'":', b"},", b'","', None], eos_token_ids=[259]))


@pytest.mark.parametrize("order", ["any", "declared"])
@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_validators(family: str, order: str) -> None:
    refused, pairs = 0, 0
    for number in range(SCHEMAS):
        rng = Random(f"{family} {number}")
        build, drafts = FAMILIES[family]
        make = Maker(rng, rng.choice(drafts))
        schema, values = build(make)
        schema = {"$defs": {"x": make.schema(1), "y": make.schema(1)}, **schema}
        if make.draft == "2019-09" and {"unevaluatedItems", "contains"} <= _keywords(schema):
            continue  # validators let `contains` evaluate items, as it does since 2020-12 only
        source = JsonSchema(dump_json(schema), draft=make.draft, property_order=order, formats="assert" if family == "formats" else "annotate")
        try:
            accepts = COMPILER.compile(source).accepts
        except (UnsupportedKeyword, ConstraintLimit) as error:
            assert ("limit" if isinstance(error, ConstraintLimit) else error.keyword) in REFUSED, str(error)
            refused += 1
            continue
        except ConstraintError as error:
            assert "satisfies" in error.reason or "itself" in error.reason, str(error)
            if "itself" in error.reason:
                continue
            accepts = _nothing
        is_valid = _validator(schema, make.draft, family == "formats")
        listed = _listed(schema)
        for value in [*values, *listed, *(make.value(3) for _ in range(10)), *([each] for each in listed), *({"a": each} for each in listed)]:
            expected = is_valid(value)
            if expected is None or (order == "declared" and _orders(value) > MAX_ORDERS):
                continue
            texts = spellings(value) if order == "declared" else itertools.islice(spellings(value), 2)
            verdicts = [accepts(text.encode()) for text in texts]
            got = any(verdicts) if order == "declared" else all(verdicts)
            assert got == expected, (number, make.draft, dump_json(schema), dump_json(value), expected)
            pairs += 1
    assert pairs > 10 * SCHEMAS and refused <= MOST_REFUSED * SCHEMAS + 2


def _nothing(text: bytes) -> bool:
    return False


def _validator(schema: Any, draft: str, assert_formats: bool) -> Any:
    """What jsonschema-rs says of a value; None where jsonschema disagrees, which it does about unevaluated properties."""
    plain = json.loads(dump_json(schema))
    fast = getattr(jsonschema_rs, f"{VALIDATORS[draft]}Validator")(plain, validate_formats=assert_formats)
    slow = getattr(jsonschema, f"{VALIDATORS[draft]}Validator")(plain)

    has_second_opinion = "unevaluatedProperties" in _keywords(schema)

    def is_valid(value: Any) -> bool | None:
        number = _plain(value)
        verdict: bool = fast.is_valid(number)
        return None if has_second_opinion and slow.is_valid(number) != verdict else verdict

    return is_valid


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return json.loads(scalar_text(value)) if isinstance(value, Decimal) else value


def _orders(value: Any) -> int:
    if isinstance(value, dict):
        return math.factorial(len(value)) * math.prod(map(_orders, value.values()))
    return math.prod(map(_orders, value)) if isinstance(value, list) else 1


def _keywords(schema: Any) -> set[str]:
    """All names of members anywhere in a schema."""
    if isinstance(schema, dict):
        return set(schema).union(*map(_keywords, schema.values()))
    return set().union(*map(_keywords, schema)) if isinstance(schema, list) else set()


def _listed(schema: Any) -> list[Any]:
    """Values that stand in a schema."""
    if isinstance(schema, list):
        return [value for part in schema for value in _listed(part)]
    if not isinstance(schema, dict):
        return []
    own = [*(schema["enum"] if isinstance(schema.get("enum"), list) else []), *([schema["const"]] if "const" in schema else [])]
    return own + [value for key, part in schema.items() if key not in ("enum", "const") for value in _listed(part)]

"""A schema without a value: the error names keywords that exclude each other, and none that is not needed for that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import ConstraintError, JsonSchema
from maskwright.constraints.front_ends.json_schema import json_schema
from maskwright.constraints.front_ends.json_schema.clashes import clash
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Limits

EITHER = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
BOTH = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"], **EITHER}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (BOTH, '"required" and "oneOf" exclude each other'),
        ({"allOf": [{"required": ["a", "b"]}, EITHER]}, '"allOf/0/required" and "allOf/1/oneOf" exclude each other'),
        (
            {"type": "object", "properties": {"x": BOTH, "y": {}}, "required": ["y", "x"]},
            '"type", "properties/x/required", "properties/x/oneOf" and "required" exclude each other',
        ),
        ({"title": "none", "type": "integer", "minimum": 5, "maximum": 4}, '"type", "minimum" and "maximum" exclude each other'),
        ({"const": 5, "type": "string"}, '"const" and "type" exclude each other'),
        ({"type": "object", "not": {}}, '"not" leaves none'),
        (
            {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
            'every value of # would contain another one; "type", "properties/n/$ref" and "required" exclude each other',
        ),
        ({"properties": {"a/b": False}, "required": ["a/b"], "type": "object"}, '"properties/a~1b", "required" and "type" exclude'),
        (False, "no value satisfies the schema"),
    ],
)
def test_what_excludes_each_other_is_named(schema: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match="no value satisfies the schema") as raised:
        JsonSchema(schema).lower(Grammar(), Limits())
    assert message in str(raised.value)


NAMES = "abcdefgh"


@given(st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=3), st.sets(st.sampled_from(NAMES)))
@settings(deadline=None)
def test_what_is_named_is_just_what_is_needed(clashes: list[set[str]], background: set[str]) -> None:
    """Stand-ins for keywords: a schema has no value where all of one of some sets are there."""
    keywords = dict(zip(NAMES, ("type", "required", "oneOf", "minimum", "maximum", "enum", "const", "pattern"), strict=True))
    bad = [{keywords[name] for name in each} for each in clashes]
    schema = {keywords[name]: 1 for name in sorted(background.union(*clashes))}
    words = clash(schema, lambda tried: any(each <= tried.keys() for each in bad))
    assert words is not None
    named = {word for word in keywords.values() if f'"{word}"' in words}
    assert named in bad and not any(other < named for other in bad)


def test_nothing_is_named_that_was_not_found() -> None:
    schema = {"allOf": [{"minimum": bound} for bound in range(9)]}
    assert clash(schema, lambda tried: tried == schema) is None, "nine keywords are no explanation"
    assert clash(schema, lambda tried: True) is None, "what cannot be left out leaves no value"


def test_explaining_takes_no_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "EXPLAINING_SECONDS", -1.0)
    with pytest.raises(ConstraintError, match="no value satisfies the schema") as raised:
        JsonSchema(BOTH).lower(Grammar(), Limits())
    assert "exclude each other" not in str(raised.value)


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ({"type": "string", "pattern": "^[ab]$"}, 2),
        ({"type": "string", "minLength": 1, "pattern": "^[a-c]?$"}, 3),
        ({"type": "string", "x-maskwright-number": {"minimum": 1, "maximum": 3, "multipleOf": 1}}, 3),
        ({"type": "number", "minimum": 1, "maximum": 1}, 1),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25}, 4),
        ({"type": "object", "maxProperties": 0}, 1),
        ({"anyOf": [{"type": "object", "maxProperties": 0}, {"type": "null"}]}, 2),
        ({"type": "array", "items": {"type": "string", "pattern": "^[ab]$"}, "maxItems": 1}, 3),
    ],
)
def test_more_different_items_than_there_are_is_a_clash(items: dict[str, Any], count: int) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": items, "minItems": count}
    JsonSchema(schema).lower(Grammar(), Limits())
    with pytest.raises(ConstraintError, match="no value satisfies the schema"):
        JsonSchema({**schema, "minItems": count + 1}).lower(Grammar(), Limits())

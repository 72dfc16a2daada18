"""Alternatives of objects that a member tells apart, in `oneOf`, under `not` and beside others: what is meant, and that it stays small."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from maskwright.constraints import Compiler, Constraint, JsonSchema, Vocabulary
from maskwright.constraints.base.errors import ConstraintError

from ..json_texts import spellings

COMPILER = Compiler(Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], eos_token_ids=[256]), cache_bytes=1 << 20)
TAGS = ["x", "y", "z", 1, None]
NAMES = ["kind", "a", "b", "c"]
parts = st.fixed_dictionaries(
    {"properties": st.fixed_dictionaries(
        {"kind": st.fixed_dictionaries({"enum": st.lists(st.sampled_from(TAGS), min_size=1, max_size=2, unique=True)}) | st.just({})},
        optional={name: st.sampled_from([{"type": "string"}, {"type": "integer"}, {}, {"type": "string", "title": "t"}]) for name in NAMES[1:]},
    )},
    optional={
        "type": st.just("object"), "additionalProperties": st.just(False),
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True), "description": st.sampled_from("ab"),
    },
)  # fmt: skip
branches = st.sampled_from(["oneOf", "anyOf"]).flatmap(
    lambda keyword: st.lists(parts, min_size=2, max_size=5).map(lambda listed: {keyword: listed})
)
schemas = st.one_of(
    branches, branches.map(lambda x: {"not": x}), st.tuples(branches, parts).map(lambda x: {"allOf": [x[0], {"not": x[1]}]}),
    st.tuples(branches, branches).map(lambda x: {"oneOf": list(x)}),
)  # fmt: skip
OBJECTS = [
    {name: value for name, value in zip(NAMES, values, strict=True) if value != ()}
    for values in itertools.product(["x", "y", 1, "?", ()], ["s", 2, ()], ["s", 2, ()], ["s", ()])
]


def compiled(schema: Any) -> Constraint:
    return COMPILER.compile(JsonSchema(schema, property_order="any"))


def accepts(constraint: Constraint, value: Any) -> bool:
    """Whether all texts of a value are accepted; that, or none."""
    accepted = {constraint.accepts(text.encode()) for text in itertools.islice(spellings(value), 6)}
    assert len(accepted) == 1, value
    return accepted.pop()


@settings(max_examples=20)
@given(schema=schemas)
def test_alternatives_with_a_tag_mean_what_a_validator_says(schema: Any) -> None:
    try:
        texts = compiled(schema)
    except ConstraintError as error:
        assert "satisfies" in error.reason
        assume(False)
    validator = Draft202012Validator(schema)
    for value in [*OBJECTS, 1, "x", []]:
        assert accepts(texts, value) == validator.is_valid(value), value


def field(tag: str, own: list[str], required: list[str]) -> dict[str, Any]:
    """One of many kinds of fields: what they share is much, and which kind it is need not be said."""
    shared = {name: {"type": "string", "description": f"of {tag}"} for name in ("label", "help", "placeholder", "visible", "valid")}
    properties = {"kind": {"enum": [tag]}, **shared, **{name: {"type": "integer"} for name in own}}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


FIELDS = [field(f"kind{i}", [f"own{i}", f"own{i + 1}"], ["label"]) for i in range(12)]


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"oneOf": FIELDS}, [{"kind": "kind3", "label": ""}, {"label": "", "own3": 1, "own4": 1}, {"label": "", "own0": 1}],
         [{"label": ""}, {"label": "", "own3": 1}, {"kind": "kind3", "label": "", "own6": 1}, {"kind": "kind3"}]),
        ({"not": {"anyOf": FIELDS}}, [{"label": "", "own6": 1, "own8": 1}, 1, {}, {"label": 1}, {"kind": "?", "label": ""}],
         [{"kind": "kind3", "label": ""}, {"label": ""}]),
        ({"not": {"oneOf": FIELDS}}, [{"label": ""}, {"label": "", "own3": 1}, 1, {"kind": "kind3"}], [{"kind": "kind3", "label": ""}]),
    ],
)  # fmt: skip
def test_many_alternatives_whose_tag_is_optional(schema: Any, accepted: list[Any], rejected: list[Any]) -> None:
    texts = compiled(schema)
    validator = Draft202012Validator(schema)
    for value, is_valid in [*((value, True) for value in accepted), *((value, False) for value in rejected)]:
        assert validator.is_valid(value) == is_valid
        assert accepts(texts, value) == is_valid, value


def test_schemas_of_the_same_text_that_lead_elsewhere_are_different() -> None:
    def listed(name: str, kind: str) -> dict[str, Any]:
        return {"$id": name, "$ref": "list", "$defs": {"item": {"$dynamicAnchor": "item", "type": kind}}}

    schema = {
        "$id": "http://x.y/top", "allOf": [{"$ref": "ints"}, {"not": {"$ref": "texts"}}],
        "$defs": {
            "ints": listed("ints", "integer"), "texts": listed("texts", "string"),
            "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"item": {"$dynamicAnchor": "item"}}},
        },
    }  # fmt: skip
    texts = compiled(schema)
    for value, is_valid in (([1], True), ([1, 2], True), ([], False), (["a"], False), (1, False)):
        assert accepts(texts, value) == is_valid, value

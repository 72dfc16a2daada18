"""Each keyword in the table has all that belongs to one: it is read, lowered, negated and decided, in the drafts that have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from jsonschema_specifications import REGISTRY

from maskwright.constraints import ConstraintError, JsonSchema, UnsupportedKeyword
from maskwright.constraints.front_ends.json_schema.algebra import claims
from maskwright.constraints.front_ends.json_schema.algebra.negation import VIOLATIONS
from maskwright.constraints.front_ends.json_schema.documents.drafts import DRAFTS, NAMES
from maskwright.constraints.front_ends.json_schema.documents.keyword_table import (
    ANNOTATIONS,
    KEYWORDS,
    Assertion,
    Form,
    Role,
    asserting,
)
from maskwright.constraints.front_ends.json_schema.documents.near_words import meant_by
from maskwright.constraints.front_ends.json_schema.documents.policy import Policy
from maskwright.constraints.front_ends.json_schema.documents.values import plain_value
from maskwright.constraints.front_ends.json_schema.lowering.lowering import Lowering
from maskwright.constraints.front_ends.json_schema.strings.strings import LANGUAGES
from maskwright.constraints.front_ends.json_schema.strings.text import JsonText
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.source import Limits

from ..json_texts import accepts_value, matcher

OTHERS: dict[str, Any] = {"": None, "number": 7, "string": "other", "array": ["other"], "object": {"other": "other"}}  # by type
META = "https://example.com/meta"


@dataclass
class Sample:
    """A schema with the keyword, values that satisfy it, and values that only the keyword rejects."""

    schema: dict[str, Any]
    valid: list[Any]
    invalid: list[Any]
    is_negated: bool = True  # whether the texts of its violations are enforced


INTEGER, STRING = {"type": "integer"}, {"type": "string"}
SAMPLES = {
    "type": Sample({"type": ["integer", "null"]}, [1, None], ["1", 1.5, [], {}]),
    "enum": Sample({"enum": [1, "a", [1], {"a": 1}]}, [1, "a", [1], {"a": 1}], [2, "b", [], [2], {}, {"a": 2}]),
    "const": Sample({"const": [1, {"a": 2}]}, [[1, {"a": 2}]], [1, [1], [1, {}], [1, {"a": 3}]]),
    "minimum": Sample({"minimum": 2}, [2, 2.5], [1, 1.5]),
    "maximum": Sample({"maximum": 2}, [2, 1.5], [3, 2.5]),
    "exclusiveMinimum": Sample({"exclusiveMinimum": 2}, [3, 2.5], [2, 1]),
    "exclusiveMaximum": Sample({"exclusiveMaximum": 2}, [1, 1.5], [2, 3]),
    "multipleOf": Sample({"multipleOf": 3}, [0, 3, -6], [1, 3.5]),
    "minLength": Sample({"minLength": 2}, ["ab", "abc"], ["", "a"]),
    "maxLength": Sample({"maxLength": 2}, ["", "ab"], ["abc"]),
    "pattern": Sample({"pattern": "^a+$"}, ["a", "aa"], ["", "ab"]),
    "format": Sample({"format": "date"}, ["2024-02-29"], ["", "2024-02-30"]),
    "x-maskwright-rustPattern": Sample({"x-maskwright-rustPattern": r"\A(?P<y>\d)[\w--x]*\z"}, ["1", "\u0661a"], ["", "1x"]),
    "x-maskwright-pythonPattern": Sample({"x-maskwright-pythonPattern": r"\A(?P<y>\d)\Z"}, ["1", "\u0661"], ["", "1\n"]),
    "x-maskwright-number": Sample({"x-maskwright-number": {"minimum": 2, "multipleOf": 0.5}}, ["2", "2.5"], ["1", "02", "2.25", "a"]),
    "x-maskwright-utf8Length": Sample({"x-maskwright-utf8Length": {"minimum": 2, "maximum": 3}}, ["ab", "é", "€"], ["", "a", "éé"]),
    "items": Sample({"items": INTEGER}, [[], [1, 2]], [["a"], [1, "a"]]),
    "prefixItems": Sample({"prefixItems": [INTEGER]}, [[], [1, "a"]], [["a"]]),
    "additionalItems": Sample({"items": [STRING], "additionalItems": INTEGER}, [["a"], ["a", 1]], [["a", "b"]]),
    "minItems": Sample({"minItems": 2}, [[1, 1], [1, 2, 3]], [[], [1]]),
    "maxItems": Sample({"maxItems": 1}, [[], [1]], [[1, 2]]),
    "uniqueItems": Sample({"uniqueItems": True}, [[], [1, "1"]], [[1, 1]], is_negated=False),
    "contains": Sample({"contains": INTEGER}, [[1], ["a", 1]], [[], ["a"]]),
    "properties": Sample({"properties": {"a": INTEGER}}, [{}, {"a": 1}, {"b": "x"}], [{"a": "x"}]),
    "required": Sample({"required": ["a"]}, [{"a": 1}, {"a": 1, "b": 2}], [{}, {"b": 1}]),
    "additionalProperties": Sample({"additionalProperties": INTEGER}, [{}, {"a": 1}], [{"a": "x"}]),
    "patternProperties": Sample({"patternProperties": {"^a": INTEGER}}, [{}, {"ab": 1}, {"b": "x"}], [{"ab": "x"}]),
    "propertyNames": Sample({"propertyNames": {"maxLength": 1}}, [{}, {"a": 1}], [{"ab": 1}]),
    "minProperties": Sample({"minProperties": 1}, [{"a": 1}], [{}]),
    "maxProperties": Sample({"maxProperties": 1}, [{}, {"a": 1}], [{"a": 1, "b": 2}]),
    "$ref": Sample({"$ref": "#/$defs/a", "$defs": {"a": INTEGER}}, [1], ["a"]),
    "$dynamicRef": Sample({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", **INTEGER}}}, [1], ["a"]),
    "$recursiveRef": Sample(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$id": META, "items": {"$recursiveRef": "#"}, "maxItems": 1}}}, [[], [[]]], [[[[], []]]]
    ),
    "allOf": Sample({"allOf": [INTEGER, {"minimum": 2}]}, [2], [1, "a"]),
    "anyOf": Sample({"anyOf": [INTEGER, {"maxLength": 1}]}, [1, "a", None], ["ab"]),
    "oneOf": Sample({"oneOf": [{"type": "number"}, {"minimum": 2}]}, [1, "a"], [3]),
    "not": Sample({"not": INTEGER}, ["a", 1.5], [1]),
    "if": Sample({"if": INTEGER, "then": {"minimum": 2}}, [2, "a"], [1]),
    "dependencies": Sample({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}, [{}, {"a": 1, "b": 1}, {"c": 1}], [{"a": 1}, {"b": 1, "c": 1}]),
    "dependentRequired": Sample({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    "dependentSchemas": Sample({"dependentSchemas": {"a": {"maxProperties": 1}}}, [{}, {"a": 1}], [{"a": 1, "b": 1}]),
    "unevaluatedItems": Sample({"prefixItems": [True], "unevaluatedItems": False}, [[], [1]], [[1, 2]]),
    "unevaluatedProperties": Sample({"properties": {"a": True}, "unevaluatedProperties": False}, [{}, {"a": 1}], [{"b": 1}]),
    "then": Sample({"if": INTEGER, "then": {"minimum": 2}}, [2, "a"], [1]),
    "else": Sample({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, [1, "a", {"a": 1}, {"b": 1}], [{}, {"c": 1}]),
    "minContains": Sample({"contains": INTEGER, "minContains": 2}, [[1, 2]], [[1], [1, "a"]]),
    "maxContains": Sample({"contains": INTEGER, "maxContains": 1}, [[1], [1, "a"]], [[1, 2]]),
}  # fmt: skip
WRONG = [5, 1.5, -1, True, False, "text", [], [5], ["text", 5], {}, {"a": 5}, {"a": ["b", 5]}]
"""JSON values, each of which is malformed for some keywords, by what the form says. null is understood wherever it is plain."""
FITTING: dict[Form, list[Any]] = {
    Form.COUNT: [5],
    Form.NUMBER: [5, 1.5, -1],
    Form.BOUND: [5, 1.5, -1, True, False],
    Form.STEP: [5, 1.5],
    Form.TEXT: ["text"],
    Form.FLAG: [True, False],
    Form.VALUES: [[], [5], ["text", 5]],
    Form.NAMES: [[], False],
    Form.TYPES: [[]],
    Form.SCHEMA: [True, False, {}, {"a": 5}, {"a": ["b", 5]}],
    Form.SCHEMA_OR_LIST: [True, False, [], {}, {"a": 5}, {"a": ["b", 5]}],
    Form.LIST: [[]],
    Form.FILLED_LIST: [],
    Form.MAP: [{}],
    Form.LISTS_OF_NAMES: [{}],
    Form.DEPENDENCIES: [{}],
    Form.OBJECT: [{}, {"a": 5}, {"a": ["b", 5]}],
    Form.LIMITS: [{}],
}
ENFORCED = [name for name in KEYWORDS if name not in ANNOTATIONS]
ASSERTING = [name for name in KEYWORDS if KEYWORDS[name].asserts is not None]


def draft_of(keyword: str) -> str:
    """The newest draft that has a keyword."""
    return NAMES[DRAFTS.index(KEYWORDS[keyword].until or DRAFTS[-1])]


def lowered(schema: Any, draft: str) -> tuple[Lowering, claims.Conj]:
    limits, grammar = Limits(), Grammar()
    text = JsonText(grammar, "compact", limits)
    lowering = Lowering(grammar, limits, Policy(grammar, tells_all=False), text, assert_formats=True, is_ordered=True)
    return lowering, lowering._branches.conj([JsonSchema(schema, draft=draft).root(limits)])


def test_every_enforced_keyword_has_a_sample() -> None:
    assert SAMPLES.keys() == set(ENFORCED)


def test_every_assertion_has_its_violations_and_every_language_its_lowering() -> None:
    assert VIOLATIONS.keys() == set(Assertion)
    assert {KEYWORDS[name].asserts for name in ASSERTING} == set(Assertion)
    assert [name for name in KEYWORDS if KEYWORDS[name].role is Role.ASSERTION] == ASSERTING
    assert LANGUAGES.keys() == set(asserting(Assertion.LANGUAGE))


@pytest.mark.parametrize("keyword", ENFORCED)
def test_the_keyword_is_read_and_lowered(keyword: str) -> None:
    sample = SAMPLES[keyword]
    reference = matcher(sample.schema, draft=draft_of(keyword), property_order="any")
    assert [value for value in sample.valid + sample.invalid if accepts_value(reference, value)] == sample.valid


@pytest.mark.parametrize("keyword", ENFORCED)
def test_its_negation_is_lowered(keyword: str) -> None:
    sample = SAMPLES[keyword]
    schema = {"$defs": sample.schema.get("$defs", {}), "type": ["number", "string", "array", "object"], "not": sample.schema}
    if not sample.is_negated:
        with pytest.raises(UnsupportedKeyword) as caught:
            matcher(schema)
        assert caught.value.keyword == keyword
        return
    reference = matcher(schema, draft=draft_of(keyword), property_order="any")
    values = [value for value in sample.valid + sample.invalid if value is not None]
    assert [value for value in values if accepts_value(reference, value)] == sample.invalid


@pytest.mark.parametrize("keyword", ENFORCED)
def test_given_values_are_decided(keyword: str) -> None:
    sample = SAMPLES[keyword]
    lowering, conj = lowered(sample.schema, draft_of(keyword))
    valid, invalid = map(plain_value, (sample.valid, sample.invalid))
    assert [value for value in valid + invalid if lowering._membership.in_conj(conj, value)] == valid
    assert [value for value in valid + invalid if lowering._membership.in_conj(claims.negated(conj), value)] == invalid


@pytest.mark.parametrize("keyword", ASSERTING)
def test_it_says_nothing_of_other_types(keyword: str) -> None:
    concerns = KEYWORDS[keyword].concerns
    others = [value for kind, value in OTHERS.items() if concerns and kind != concerns]
    reference = matcher(SAMPLES[keyword].schema)
    assert all(accepts_value(reference, value) for value in others)


@pytest.mark.parametrize("keyword", ENFORCED)
def test_older_and_newer_drafts_mean_nothing_by_it(keyword: str) -> None:
    entry, sample = KEYWORDS[keyword], SAMPLES[keyword]
    for draft, name in zip(DRAFTS, NAMES, strict=True):
        if not entry.since <= draft <= (entry.until or DRAFTS[-1]):
            reference = matcher(sample.schema, draft=name, property_order="any")
            assert all(accepts_value(reference, value) for value in sample.invalid), name


@pytest.mark.parametrize("keyword", [name for name in ENFORCED if KEYWORDS[name].vocabulary])
def test_it_means_nothing_without_its_vocabulary(keyword: str) -> None:
    names = ("applicator", "unevaluated", "validation", "format-annotation")
    kept = [name for name in names if not name.startswith(str(KEYWORDS[keyword].vocabulary))]
    vocabularies = {f"https://json-schema.org/draft/2020-12/vocab/{name}": True for name in kept}
    meta_schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$vocabulary": vocabularies}
    reference = matcher({"$schema": META, **SAMPLES[keyword].schema}, resources={META: meta_schema}, property_order="any")
    assert all(accepts_value(reference, value) for value in SAMPLES[keyword].invalid)


FORMED = [name for name, entry in KEYWORDS.items() if entry.form is not Form.ANYTHING]
PLACES: dict[str, Callable[[Any], Any]] = {
    "#": lambda schema: schema,
    "#/properties/a": lambda schema: {"properties": {"a": schema}},
    "#/anyOf/0": lambda schema: {"anyOf": [schema, True]},
    "#/not": lambda schema: {"not": schema},
    "#/if": lambda schema: {"if": schema},
    "#/items": lambda schema: {"type": "string", "items": schema},  # which no value meets
    "#/$defs/a": lambda schema: {"$ref": "#/$defs/a", "$defs": {"a": schema}},
}


def compiled(schema: Any, draft: str) -> Grammar:
    grammar = Grammar()
    JsonSchema(schema, draft=draft).lower(grammar, Limits())
    return grammar


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("keyword", FORMED)
def test_a_value_of_another_form_is_refused_by_name(keyword: str, place: str) -> None:
    for value in WRONG:
        if value in FITTING[KEYWORDS[keyword].form] or (keyword in ANNOTATIONS and isinstance(value, dict)):
            continue
        with pytest.raises(ConstraintError) as caught:
            compiled(PLACES[place]({keyword: value}), draft_of(keyword))
        path = str(caught.value.path)
        assert (path, caught.value.keyword) == (place, keyword) or path.startswith(f"{place}/{keyword}/"), value


@pytest.mark.parametrize("place", [place for place in PLACES if place not in ("#/not", "#/if")])
@pytest.mark.parametrize("keyword", [name for name in FORMED if name != "type"])
def test_null_says_that_a_keyword_is_not_there_and_is_noted(keyword: str, place: str) -> None:
    grammar = compiled(PLACES[place]({keyword: None}), draft_of(keyword))
    assert f"{place}: {keyword!r} is null: read as not there" in grammar.notes
    assert not compiled(PLACES[place]({}), draft_of(keyword)).notes


@pytest.mark.parametrize("keyword", [name for name in ENFORCED if name in FORMED and name != "type"])
def test_a_keyword_that_is_null_claims_nothing(keyword: str) -> None:
    sample = SAMPLES[keyword]
    nothing = matcher({**sample.schema, keyword: None}, draft=draft_of(keyword), property_order="any")
    absent = matcher({name: value for name, value in sample.schema.items() if name != keyword}, draft=draft_of(keyword), property_order="any")
    for value in [*OTHERS.values(), *sample.valid, *sample.invalid]:
        assert accepts_value(nothing, value) == accepts_value(absent, value), value


def test_null_is_no_type_and_neither_is_an_empty_list() -> None:
    with pytest.raises(ConstraintError, match="there is no type None"):
        compiled({"type": None}, "7")
    with pytest.raises(ConstraintError, match="a list of at least one is expected"):
        compiled({"properties": {"a": {"type": []}}}, "7")


@pytest.mark.parametrize(
    ("keyword", "value", "step"), [("properties", {"a": None}, "a"), ("anyOf", [True, 3], "1"), ("prefixItems", ["x"], "0"), ("dependentSchemas", {"a": 1}, "a")]
)  # fmt: skip
def test_what_is_no_schema_in_a_keyword_is_refused_with_its_place_and_the_keyword(keyword: str, value: Any, step: str) -> None:
    with pytest.raises(ConstraintError, match="a schema is an object or a boolean") as caught:
        compiled({keyword: value}, "2020-12")
    assert (caught.value.path, caught.value.keyword) == (f"#/{keyword}/{step}", keyword)


@pytest.mark.parametrize(
    ("draft", "keyword", "value", "remark"),
    [
        ("4", "required", True, "says nothing"), ("2020-12", "required", False, "says nothing"),
        ("7", "exclusiveMinimum", True, "as in draft 4"), ("4", "exclusiveMaximum", 5, "as in later drafts"),
        ("2020-12", "items", [True], "in earlier drafts"), ("7", "dependencies", {"a": "b"}, "a list of one name"),
        ("2020-12", "enum", [], "is empty: no value satisfies it"), ("2020-12", "prefixItems", [], "is empty: says nothing"),
        ("2020-12", "$defs", {"b": {}, "c": 3}, "has no schema under 'c': ignored"), ("7", "definitions", {"b": None}, "under 'b'"),
    ],
)  # fmt: skip
def test_habits_of_other_drafts_are_understood_and_noted(draft: str, keyword: str, value: Any, remark: str) -> None:
    (note,) = compiled({"properties": {"a": {keyword: value}}}, draft).notes
    assert note.startswith(f"#/properties/a: {keyword!r} ")
    assert remark in note


def test_a_member_that_calls_itself_required_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConstraintError, match="the name in the required of the object around it") as caught:
        compiled({"type": "object", "properties": {"a": {"type": "string", "required": True}}}, "2020-12")
    assert (caught.value.path, caught.value.keyword) == ("#/properties/a", "required")


def test_a_word_that_is_no_keyword_is_noted_once_with_its_first_place() -> None:
    notes = compiled({"properties": {"a": {"patern": "b"}, "b": {"patern": "c"}}, "x-order": 1}, "2020-12").notes
    assert notes == [
        "#: 'x-order' is not a keyword of JSON Schema: ignored",
        "#/properties/a: 'patern' is not a keyword of JSON Schema: ignored, here and elsewhere (1 more); perhaps 'pattern' is meant",
    ]


@pytest.mark.parametrize(("keyword", "value", "held"), [("title", 3, "a string"), ("readOnly", "true", "true or false"), ("examples", {}, "a list"), ("contentSchema", 3, "a schema"), ("id", 3, "a string")])
def test_a_description_of_another_type_is_noted_once_with_its_first_place(keyword: str, value: Any, held: str) -> None:
    notes = compiled({"properties": {"a": {keyword: value}, "b": {keyword: value}}}, "2020-12").notes
    assert notes == [f"#/properties/a: {keyword!r} is not {held}: ignored, here and elsewhere (1 more)"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("typ", "'type'"), ("propertes", "'properties'"), ("reqiured", "'required'"), ("additionalproperties", "'additionalProperties'"),
        ("maxlength", "'maxLength'"), ("enums", "'enum'"), ("minimun", "'minimum'"), ("$def", "'$defs'"), ("ref", "'$ref'"),
        ("nullable", '"null" among the types'), ("x-order", None), ("name", None), ("mode", None), ("i", None), ("", None), ("note", None), ("values", None),
    ],
)  # fmt: skip
def test_what_a_word_that_is_no_keyword_may_be_meant_to_be(word: str, meant: str | None) -> None:
    assert meant_by(word) == meant


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "int"}, "there is no type 'int'; instead: 'integer'"), ({"type": "String"}, "there is no type 'String'; instead: 'string'"),
        ({"type": ["dict", "null"]}, "there is no type 'dict'; instead: 'object'"), ({"type": "date"}, "there is no type 'date'; instead: one of null, "),
        ({"items": "str"}, "not 'str'"), ({"properties": {"a": "number"}}, """not 'number'; instead: {"type": "number"}"""), ({"items": [5]}, "not 5"),
    ],
)  # fmt: skip
def test_a_type_of_another_language_is_refused_with_what_to_write(schema: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match=re.escape(message)):
        compiled(schema, "2020-12")


def test_keywords_of_openapi_that_describe_are_annotations() -> None:
    said = {"discriminator": {"propertyName": "a"}, "example": 1, "xml": {"name": "a"}, "externalDocs": {"url": "b"}}
    assert not compiled({"type": "object", **said}, "2020-12").notes


@pytest.mark.parametrize("keyword", sorted(ANNOTATIONS))
def test_annotations_say_nothing_of_values(keyword: str) -> None:
    value: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "contentSchema": False, "$recursiveAnchor": True}
    reference = matcher({keyword: value.get(keyword, {} if keyword in ("$defs", "definitions", "$vocabulary") else "x")})
    assert all(accepts_value(reference, other) for other in OTHERS.values())


CLOSED_BRANCHES = {
    "oneOf": [{"properties": {name: INTEGER for name in "abcdef" if name != left}, "additionalProperties": False} for left in "abcdef"]
}


def test_every_sort_of_literal_is_met_by_a_sample() -> None:
    met = set()
    schemas = [(sample.schema, draft_of(keyword)) for keyword, sample in SAMPLES.items()]
    for schema, draft in [*schemas, (CLOSED_BRANCHES, draft_of("oneOf"))]:
        lowering, conj = lowered(schema, draft)
        terms = lowering._branches.pending_terms(conj) + lowering._branches.pending_terms(claims.negated(conj))
        met |= {type(literal) for term in terms for literal in term}
    assert met == set(get_args(claims.Literal))


def test_the_table_has_the_drafts_and_vocabularies_of_the_meta_schemas() -> None:
    def properties(address: str) -> set[str]:
        return set(REGISTRY[address].contents["properties"])

    by_vocabulary = {
        draft: {
            address.rpartition("/")[2].removesuffix("-annotation").removesuffix("-assertion"): properties(address)
            for address in REGISTRY if f"draft/{name}/meta/" in address
        }
        for draft, name in ((2019, "2019-09"), (2020, "2020-12"))
    }  # fmt: skip
    of_draft = {draft: properties(f"http://json-schema.org/draft-0{draft}/schema") | {"$ref"} for draft in (4, 6, 7)}
    of_draft |= {draft: set[str]().union(*found.values()) for draft, found in by_vocabulary.items()}
    of_meta_schemas = set[str]().union(*of_draft.values())
    assert of_meta_schemas <= KEYWORDS.keys()
    for keyword in of_meta_schemas.intersection(ENFORCED):
        entry = KEYWORDS[keyword]
        assert entry.since == min(draft for draft, keywords in of_draft.items() if keyword in keywords), keyword
        for draft in (2020, 2019):
            found = [name for name, keywords in by_vocabulary[draft].items() if keyword in keywords]
            if found:
                assert entry.vocabulary == (None if found == ["core"] else found[0]), keyword
                break

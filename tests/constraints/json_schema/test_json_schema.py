"""JSON Schema, keyword by keyword: texts that are accepted and rejected, and refusals by name."""

from __future__ import annotations

import cProfile
import json
from decimal import Decimal
from typing import Any

import pytest

from maskwright.constraints import Compiler, Vocabulary
from maskwright.constraints.base.errors import ConstraintError, ConstraintLimit, GrammarSyntaxError, UnsupportedKeyword
from maskwright.constraints.front_ends.json_schema.json_schema import JsonSchema
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits

from ..json_texts import accepts_value, matcher

CLOSED = {"additionalProperties": False}
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}

CASES: list[tuple[Any, list[str], list[str]]] = [
    # types
    ({"type": "null"}, ["null"], ["nul", "0", '"null"']),
    ({"type": "boolean"}, ["true", "false"], ["1", "True"]),
    ({"type": "integer"}, ["0", "-1", "12345678901234567890"], ["-0", "01", "1.0", "1.5", "1e2", "+1"]),
    ({"type": "number"}, ["0", "-1.5", "1e-07", "0.0001"], ["1.0", "1.50", "1e5", "0.00001", ".5", "NaN"]),
    ({"type": "string"}, ['""', '"a"', '"é😀"', '"\\n\\"\\\\\\u0001"', '"\x7f"'], ['"', '"\n"', '"\\u0041"', '"\\/"', "a"]),
    ({"type": "array"}, ["[]", "[1,[],{}]"], ["[1,]", "[ ]", "{}"]),
    ({"type": "object"}, ["{}", '{"a":{"a":1}}'], ['{"a":1,"a":2}', '{"a"}', "{,}", "{ }"]),
    ({"type": ["integer", "null"]}, ["1", "null"], ["1.5", '"x"']),
    ({}, ["1", '"a"', "null", '[{"a":[true]}]'], ["", "x", "[", '{"a":1,"a":1}']),
    (True, ["1", "{}"], [""]),
    # numbers
    ({"type": "integer", "minimum": 3, "maximum": 12}, ["3", "9", "12"], ["2", "13", "-5", "3.5"]),
    ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}, ["4"], ["3", "5"]),
    ({"type": "number", "minimum": Decimal("0.1"), "maximum": 1}, ["0.1", "0.55", "1"], ["0", "0.09", "1.1"]),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, ["1.5", "2"], ["1", "0"]),
    ({"type": "number", "minimum": 1, "exclusiveMinimum": False} | DRAFT_4, ["1"], ["0"]),
    ({"minimum": 5}, ["5", '"a"', "null", "[]"], ["4"]),
    ({"type": "number", "multipleOf": 1}, ["2", "-3"], ["2.5"]),
    ({"type": "number", "multipleOf": 0.01, "minimum": 0}, ["2", "0.25", "0.1"], ["0.125", "-1", "1e-05"]),
    ({"type": "integer", "multipleOf": 0.5}, ["2"], ["0.5"]),
    # strings
    ({"type": "string", "minLength": 1, "maxLength": 2}, ['"a"', '"é😀"', '"\\n\\n"'], ['""', '"abc"']),
    ({"maxLength": 1}, ['"a"', "12"], ['"ab"']),
    ({"type": "string", "maxLength": 2.0}, ['"ab"'], ['"abc"']),
    ({"type": "string", "pattern": "b"}, ['"b"', '"abc"', '"\\nb"'], ['""', '"ac"']),
    ({"type": "string", "pattern": "^a+$"}, ['"a"', '"aaa"'], ['""', '"ab"', '"a\\n"']),
    ({"type": "string", "pattern": "^\"\\\\$"}, ['"\\"\\\\"'], ['"\\""']),
    ({"type": "string", "pattern": "^a", "maxLength": 2}, ['"a"', '"ab"'], ['"abc"', '"b"']),
    ({"type": "string", "pattern": "^a{2,3}$", "minLength": 1, "maxLength": 9}, ['"aa"'], ['"a"', '"aaaa"']),
    ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"x"']),
    ({"format": "date"}, ['"2024-02-29"', "7"], ['"x"']),
    # enum and const
    ({"enum": ["a", 1, None, True, [1, {"b": 2}], 2.0]}, ['"a"', "1", "null", "true", '[1,{"b":2}]', "2"], ['"b"', "2.0", "false"]),
    ({"const": 1.0}, ["1"], ["1.0", "true"]),
    ({"const": {"a": 1, "b": [2]}}, ['{"a":1,"b":[2]}', '{"b":[2],"a":1}'], ['{"a":1}', '{"a":1,"b":[2],"c":3}', "{}"]),
    ({"const": {"a": 1, "b": 2}, "properties": {"b": {}, "a": {}}}, ['{"b":2,"a":1}'], ['{"a":1,"b":2}']),
    ({"enum": [1, "a", "bb", None], "type": "string", "minLength": 2}, ['"bb"'], ['"a"', "1", "null"]),
    ({"enum": ["ab", "cd"], "pattern": "^a"}, ['"ab"'], ['"cd"']),
    ({"enum": [1, 5, 1.5], "type": "integer", "minimum": 2}, ["5"], ["1", "1.5"]),
    ({"enum": [[1], [1, 2], ["x"]], "items": {"type": "integer"}, "minItems": 2}, ["[1,2]"], ["[1]", '["x"]']),
    ({"enum": [1, 2], "const": 2}, ["2"], ["1"]),
    ({"const": "\ud800"}, ['"\\ud800"'], ['"x"']),
    ({"const": 123456789012345678901234567890.5} | DRAFT_7, ["123456789012345680000000000000"], ["123456789012345678901234567890.5"]),
    ('{"const": 123456789012345678901234567890.5}', ["123456789012345678901234567890.5"], ["123456789012345680000000000000"]),
    # objects
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]} | CLOSED,
        ['{"b":""}', '{"a":1,"b":""}'],
        ["{}", '{"a":1}', '{"b":"","a":1}', '{"b":"","c":1}', '{"a":1,"a":1,"b":""}'],
    ),
    (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        ["{}", '{"a":"x"}', '{"a":1,"b":2,"c":3}', '{"aa":1}', '{"":1}'],
        ['{"b":"x"}', '{"b":1,"a":1}', '{"b":1,"b":2}', '{"a":1,"a":1}'],
    ),
    ({"type": "object", "properties": {"é\n": {}}} | CLOSED, ['{"é\\n":1}'], ['{"é":1}']),
    ({"type": "object", "required": ["x", "y"]}, ['{"x":1,"y":2}', '{"y":1,"z":0,"x":2,"w":1}'], ['{"x":1}', '{"x":1,"y":2,"x":3}']),
    ({"type": "object", "properties": {"a": {}}, "required": ["z"]}, ['{"z":1}', '{"a":1,"q":1,"z":2}'], ['{"a":1}', '{"z":1,"a":1}']),
    ({"properties": {"a": {"type": "integer"}}}, ["3", "{}", '{"a":1}', '{"b":"x"}'], ['{"a":"x"}']),
    ({"type": "object", "properties": {"a": False, "b": True}}, ['{"b":1}', '{"c":1}'], ['{"a":1}']),
    ({"type": "object", "properties": {"a": {"type": "object"} | CLOSED}} | CLOSED, ['{"a":{}}', "{}"], ['{"a":{"b":1}}']),
    ({"type": "object", "additionalProperties": False, "minProperties": 0}, ["{}"], ['{"a":1}']),
    ({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}, ['{"a":1}'], ['{"b":1}']),
    # arrays
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}, ["[1]", "[1,2,3]"], ["[]", "[1,2,3,4]", '["a"]']),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, ["[]", "[1]", '[1,"a",null]'], ['["a"]', "[1,2]"]),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, ["[]", "[1]"], ["[1,2]", "[2]"]),
    ({"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}}, ["[]", "[1,2,2]"], ["[1,1]", "[2]"]),
    ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2, "maxItems": 2}, ["[1,2]"], ["[1]", "[1,2,3]"]),
    ({"type": "array", "prefixItems": [{"const": 1}, False]}, ["[]", "[1]"], ["[1,2]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ({"type": "array", "items": {"type": "array", "maxItems": 1}, "minItems": 2}, ["[[],[1]]"], ["[[]]", "[[1,2],[]]"]),
    ({"type": "array", "maxItems": 1, "uniqueItems": True}, ["[]", "[1]"], ["[1,2]"]),
    ({"type": "array", "uniqueItems": True, "prefixItems": [{"type": "string"}], "items": {"const": 1}, "contains": {"const": "a"}},
     ['["a"]', '["a",1]'], ["[]", '["b"]', '["a",1,1]', '["b","a"]']),
    ({"type": "array", "uniqueItems": True, "prefixItems": [{}], "items": {"enum": [1, 2]}, "contains": {"enum": [1, 2]}, "minContains": 2},
     ["[3,1,2]", "[2,1]"], ["[1]", "[3,1]", "[1,1]", "[3,1,2,1]"]),
    ({"anyOf": [{"items": {"type": "integer"}, "uniqueItems": True}, {"items": {"type": "string"}}]}, ["[1,2]", '["a","a"]', "[]"], ["[1,1]", '[1,"a"]']),
    ({"type": "array", "additionalItems": False}, ["[1]"], []),
    # combinations
    ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, ["1", '"a"'], ['"ab"', "null"]),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]} | CLOSED,
     ['{"a":1}', '{"b":1}', '{"a":1,"b":1}'], ["{}"]),
    ({"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 3}]}, ["1", "3"], ["0", "4"]),
    ({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"minimum": 2}}}], "type": "object"},
     ['{"a":2}', "{}"], ['{"a":1}', '{"a":"x"}']),
    ({"allOf": [{"items": {"type": "integer"}}, {"prefixItems": [{"minimum": 2}]}], "type": "array"}, ["[2,1]"], ["[1]", "[2,null]"]),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}], "type": "string"}, ['"ab"', '"acb"'], ['"a"', '"b"']),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"a"'], ["null"]),
    ({"oneOf": [{"minimum": 5, "type": "integer"}, {"maximum": 3, "type": "integer"}]}, ["5", "3"], ["4"]),
    ({"oneOf": [{"type": "object", "properties": {"k": {"const": c}, c: {"type": "integer"}}, "required": ["k", c]} for c in "pq"]},
     ['{"k":"p","p":1}', '{"k":"q","q":1}'], ['{"k":"p","q":1}', '{"p":1}']),
    ({"not": False}, ["1"], []),
    # negation
    ({"not": {"type": "string"}}, ["1", "{}"], ['"a"']),
    ({"not": {"required": ["a", "b"]}}, ["{}", '{"a":1}'], ["1", '{"a":1,"b":1}']),
    ({"not": {"properties": {"a": {"type": "string"}}}}, ['{"a":1}'], ["{}", "1", '{"a":"s"}']),
    ({"type": "object", "not": {"additionalProperties": {"type": "string"}}}, ['{"a":1}', '{"a":"b","c":1}'], ["{}", '{"a":"s"}']),
    ({"not": {"const": {"a": [1]}}}, ['{"a":[2]}', '{"a":[1],"b":1}', "{}", "1"], ['{"a":[1]}']),
    ({"not": {"enum": [1, "a", None, True]}}, ["2", '"b"', "false", "[]"], ["1", '"a"', "null", "true"]),
    ({"type": "string", "not": {"pattern": "^a"}}, ['"b"', '""'], ['"a"', '"ab"']),
    ({"not": {"items": {"type": "integer"}}}, ['["a"]', '[1,"a"]'], ["[]", "[1]", "1"]),
    ({"type": "number", "not": {"type": "integer"}}, ["1.5"], ["1", "null"]),
    ({"not": {"anyOf": [{"type": "string"}, {"minimum": 3}]}}, ["2", "0.5"], ["3", '"a"', "null"]),
    ({"not": {"oneOf": [{"type": "integer"}, {"minimum": 3}]}, "type": "number"}, ["3", "2.5"], ["1", "3.5"]),
    # exactly one
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, ["1", "2.5", '"a"'], ["3", "1.5"]),
    ({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, ['{"a":1}', '{"b":1,"c":1}'], ["{}", '{"a":1,"b":1}']),
    # conditions
    ({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 1}},
     ['{"a":2}', '{"a":1,"b":1}', "{}"], ['{"a":1}', '{"b":1,"c":1}']),
    ({"dependentRequired": {"a": ["b"]}}, ['{"a":1,"b":1}', '{"b":1}', "1"], ['{"a":1}']),
    ({"dependencies": {"a": ["b"], "b": {"minProperties": 3}}}, ["{}", '{"a":1,"b":1,"c":1}'], ['{"a":1}', '{"b":1}', '{"a":1,"b":1}']),
    ({"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}}, ['{"b":"x"}', '{"b":1,"a":1}'], ['{"b":"x","a":1}']),
    # names and numbers of members
    ({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
     ["{}", '{"ab":1,"c":true}'], ['{"ab":true}', '{"c":1}']),
    ({"properties": {"ab": {"minimum": 3}}, "patternProperties": {"a": {"type": "integer"}}}, ['{"ab":3,"ca":1}'], ['{"ab":2}', '{"ab":3.5}']),
    ({"patternProperties": {"a": {"minimum": 1}, "b": {"maximum": 2}}, "minProperties": 1}, ['{"ab":1}', '{"a":5}'], ['{"ab":3}', "{}"]),
    ({"patternProperties": {f"^{c}[0-9]$": {"type": "integer", "minimum": i} for i, c in enumerate("abcdefghijkl")}} | CLOSED,
     ['{"a1":1,"l2":11,"b1":1}', "{}"], ['{"l1":10}', '{"m1":1}', '{"a":1}']),
    ({"propertyNames": {"pattern": "^x"}}, ['{"x":1}', "{}", "3"], ['{"a":1}']),
    ({"propertyNames": {"enum": ["p", "q"]}}, ['{"p":1,"q":2}', '{"q":1}'], ['{"a":1}']),
    ({"propertyNames": {"not": {"enum": ["p"]}}, "minProperties": 1}, ['{"q":1}'], ['{"p":1}', "{}"]),
    ({"minProperties": 1, "maxProperties": 2}, ['{"a":1}', '{"b":1,"a":2}', "3"], ["{}", '{"a":1,"b":1,"c":1}']),
    ({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "type": "object"} | CLOSED, ['{"a":1,"c":1}'], ['{"b":1}', "{}"]),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "not": {"additionalProperties": {"maximum": 3}}},
     ['{"a":4}', '{"a":1,"b":9}'], ["{}", '{"a":1}']),
    ({"prefixItems": [{"patternProperties": {"_L$": False}}, {"patternProperties": {"_L$": False}, "properties": {"HS": False}}]},
     ['[{"Name":1,"HS":1},{"Name":1}]'], ['[{"a_L":1}]', '[{},{"HS":1}]', '[{},{"a_L":1}]']),
    # numbers of items
    ({"contains": {"const": 1}, "maxContains": 1}, ["[1]", "[2,1,3]", "7"], ["[]", "[1,1]", "[2]"]),
    ({"contains": {"type": "integer"}, "minContains": 2, "items": {"type": "number"}}, ["[1,2]", "[1,0.5,2]"], ["[1]", "[0.5,1]", '["a",1,2]']),
    ({"prefixItems": [{"type": "string"}], "contains": {"const": "a"}}, ['["a"]', '["b",1,"a"]', "{}"], ['["b"]', "[]", '[1,"a"]']),
    ({"allOf": [{"contains": {"multipleOf": 2}}, {"contains": {"multipleOf": 5}}], "items": {"type": "integer"}},
     ["[10]", "[2,5]", "[5,3,4]"], ["[2]", "[5]", "[]", "[3]"]),
    # what was not evaluated
    ({"allOf": [{"properties": {"a": {"type": "integer"}}}], "unevaluatedProperties": False}, ['{"a":1}', "{}"], ['{"a":"x"}', '{"b":1}']),
    ({"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": True}}], "unevaluatedProperties": False},
     ['{"a":1}', "{}", '{"a":1,"b":2}'], ['{"a":"x"}', '{"c":1}']),
    ({"prefixItems": [{"type": "integer"}], "contains": {"const": "c"}, "unevaluatedItems": False}, ['[1,"c"]'], ["[1,2]", '["a"]', "[1]"]),
    # multiples
    ({"type": "integer", "multipleOf": 7, "minimum": 1}, ["7", "14", "700"], ["0", "8", "-7"]),
    ({"type": "number", "multipleOf": 2.5}, ["2.5", "5", "-7.5", "0"], ["2", "2.55"]),
    # references
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, ["1"], ['"a"']),
    ({"$ref": "#/definitions/a~1b%25", "definitions": {"a/b%": {"const": 1}}}, ["1"], ["2"]),
    ({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": {"type": "integer"}}}, ["3"], ["2"]),
    ({"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {"type": "integer"}}} | DRAFT_7, ["3", "2"], ['"a"']),
    ({"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#"}}, "required": ["v"]} | CLOSED,
     ['{"v":1}', '{"v":1,"n":{"v":2,"n":{"v":3}}}'], ['{"v":1,"n":{}}']),
    ({"$defs": {"t": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}}, "$ref": "#/$defs/t"},
     ["null", "[]", "[[null],[]]"], ["[1]", "[[]"]),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}]}, ["[1,2]"], ['[1,"a"]']),
    # annotations
    ({"type": "integer", "title": "t", "description": "d", "default": "no", "examples": [1], "x-a": {"not": 1}, "readOnly": True}, ["1"], ["null"]),
    ({"const": 1} | DRAFT_4, ["1", "2"], []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "accepted", "rejected"), CASES, ids=lambda x: json.dumps(x, default=str)[:70])
def test_texts_of_a_schema(schema: Any, accepted: list[str], rejected: list[str]) -> None:
    reference = matcher(schema, whitespace="compact")
    for text in accepted:
        assert reference.accepts(text.encode()), text
    for text in rejected:
        assert not reference.accepts(text.encode("utf-8", "surrogatepass")), text


REFUSED: list[tuple[Any, str, str]] = [
    ({"items": {"$ref": "http://example.com/a.json"}}, "#/items", "$ref"),
    ({"pattern": "(a)\\1"}, "#", "pattern"),
    ({"$schema": "http://example.com/own"}, "#", "$schema"),
    ({"properties": {"a/b": {"not": {"uniqueItems": True}}}}, "#/properties/a~1b/not", "uniqueItems"),
    ({"contains": {"type": "array", "uniqueItems": True}, "maxContains": 1}, "#/contains", "uniqueItems"),
]


@pytest.mark.parametrize(("schema", "path", "keyword"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_not_enforced_is_refused_by_name(schema: Any, path: str, keyword: str) -> None:
    with pytest.raises(UnsupportedKeyword) as caught:
        matcher(schema)
    assert (caught.value.path, caught.value.keyword) == (path, keyword)
    assert caught.value.reason and caught.value.instead


MALFORMED: list[tuple[Any, str, str | None]] = [
    ({"properties": {"a": {"type": "float"}}}, "#/properties/a", "type"),
    ({"properties": []}, "#", "properties"),
    ({"required": "a"}, "#", "required"),
    ({"minLength": -1}, "#", "minLength"),
    ({"type": "string", "maxLength": 1.5}, "#", "maxLength"),
    ({"minimum": "1"}, "#", "minimum"),
    ({"enum": 1}, "#", "enum"),
    ({"anyOf": []}, "#", "anyOf"),
    ({"items": 3}, "#", "items"),
    ({"$ref": "#/$defs/none"}, "#", "$ref"),
    ({"$ref": "#"}, "#", "$ref"),
    ({"pattern": "("}, "#", "pattern"),
    ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "#/$defs/b", "$ref"),
    (3, "#", None),
]


@pytest.mark.parametrize(("schema", "path", "keyword"), MALFORMED, ids=lambda x: json.dumps(x)[:50])
def test_malformed_schemas_are_named(schema: Any, path: str, keyword: str | None) -> None:
    with pytest.raises(ConstraintError) as caught:
        matcher(json.dumps(schema))
    assert not isinstance(caught.value, UnsupportedKeyword)
    if keyword != "$ref" or "anyOf" not in str(schema):
        assert (caught.value.keyword, caught.value.path) in ((keyword, path), (keyword, "#/$defs/b/allOf/0"), (keyword, "#/$defs/a"))


@pytest.mark.parametrize(
    "schema",
    [False, {"type": "string", "enum": [1]}, {"type": "integer", "minimum": 2, "maximum": 1}, {"minLength": 3, "maxLength": 2, "type": "string"},
     {"type": "object", "required": ["a"], "properties": {"a": False}}, {"type": "object", "required": ["a"]} | CLOSED,
     {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "array", "minItems": 2, "maxItems": 1}, {"not": {}}],
)  # fmt: skip
def test_a_schema_without_values_is_an_error(schema: Any) -> None:
    with pytest.raises(ConstraintError, match="no value satisfies"):
        matcher(schema)


def test_an_endless_schema_is_an_error() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    with pytest.raises(ConstraintError):
        Compiler(BYTES).compile(JsonSchema(schema))


BYTES = Vocabulary((*(bytes([value]) for value in range(256)), None), (256,))


def test_compiled_schemas_accept_what_the_reference_accepts() -> None:
    compiler = Compiler(BYTES)
    for schema, accepted, rejected in CASES:
        constraint = compiler.compile(JsonSchema(schema, whitespace="compact"))
        for text in accepted:
            assert constraint.accepts(text.encode()), (schema, text)
        for text in rejected:
            assert not constraint.accepts(text.encode("utf-8", "surrogatepass")), (schema, text)


def test_an_intersection_before_a_longer_repetition_of_the_same_characters() -> None:
    email, street = {"type": "string", "minLength": 6, "pattern": "@.*\\."}, {"type": "string", "minLength": 3}
    schema = {"type": "object", "properties": {"email": email, "street": street}, "required": ["email"]} | CLOSED
    assert Compiler(BYTES).compile(JsonSchema(schema)).accepts(b'{"email":"a@bc.d","street":"abc"}')


REPEATED = {"pattern": r"(a)\1"}  # refused
RELAXED: list[tuple[Any, list[str], list[Any]]] = [  # a schema, what goes, and values that have to be admitted
    ({"type": "string", "not": REPEATED}, ["#/not pattern", "# not"], ["", "b"]),
    ({"if": REPEATED, "then": {"type": "integer"}}, ["#/if pattern", "# if"], ["b", 1]),
    ({"oneOf": [REPEATED, {"type": "string"}]}, ["#/oneOf/0 pattern", "# oneOf"], ["b", 1]),
    ({"contains": REPEATED, "maxContains": 1}, ["#/contains pattern", "# maxContains"], [["aa", "b"]]),
    ({"patternProperties": {r"(a)\1": True}, "additionalProperties": False}, ["# patternProperties", "# additionalProperties"], [{"aa": 1}]),
    (
        {"items": {"not": {"not": REPEATED}}},
        ["#/items/not/not pattern", "#/items/not not", "#/items not"], [["aa"], []],
    ),
    (
        {"allOf": [{"if": REPEATED, "else": {"properties": {"a": True}}}], "unevaluatedProperties": False},
        ["#/allOf/0/if pattern", "#/allOf/0 if", "# unevaluatedProperties"], [{"a": 1}],
    ),
    (
        {"not": {"$ref": "#/$defs/a"}, "items": {"$ref": "#/$defs/a"}, "$defs": {"a": REPEATED}},
        ["#/$defs/a pattern", "# not"], ["b", ["aa"]],
    ),
    ({"not": {"uniqueItems": True}}, ["#/not uniqueItems", "# not"], [[1, 1]]),
    (
        {"type": "array", "uniqueItems": True, "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": {"type": "boolean"}, "minItems": 3},
        ["# uniqueItems"], [[True, None, False]],
    ),
    ({"properties": {"a": {"type": "string", "not": {"$ref": "https://example.com/other"}}}}, ["#/properties/a/not $ref", "#/properties/a not"], [{"a": "b"}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "gone", "admitted"), RELAXED, ids=lambda each: json.dumps(each)[:50])
def test_relaxing_only_widens_and_names_what_goes(schema: Any, gone: list[str], admitted: list[Any]) -> None:
    grammar = Grammar()
    reference = Reference(grammar, JsonSchema(schema, on_unsupported="relax").lower(grammar, Limits()))
    assert [entry.split(":")[0] for entry in grammar.residue] == gone
    assert all(accepts_value(reference, value) for value in admitted)


def test_relaxing_drops_keywords_and_says_so() -> None:
    grammar = Grammar()
    schema = {"type": "array", "items": {"type": "string", "pattern": "(a)\\1"}, "prefixItems": [{"$ref": "http://example.com/a.json"}]}
    JsonSchema(schema, on_unsupported="relax").lower(grammar, Limits())
    assert [entry.split(":")[0] for entry in grammar.residue] == ["#/prefixItems/0 $ref", "#/items pattern"]


def test_unknown_formats_and_foreign_keywords_are_noted() -> None:
    grammar = Grammar()
    JsonSchema({"$schema": DRAFT_4["$schema"], "properties": {"a": {"format": "color", "const": 1}}}).lower(grammar, Limits())
    assert any("'color'" in note for note in grammar.notes) and any("'const'" in note for note in grammar.notes)


def test_formats_as_annotations() -> None:
    assert matcher({"type": "string", "format": "date"}, formats="annotation").accepts(b'"x"')


WHITESPACE = [
    ("flexible", ['{"a": [1, 2]}', ' {\n  "a" : [ 1 ,\t2 ]\r\n}', '{"a":[1,2],"b":{ }}', '{"a":[ ]}'], ['{"a":[1,2]} ', " " * 21 + '{"a":[1,2]}']),
    (" ?", ['{ "a": [1, 2] }', '{"a":[1,2]}'], ['{"a":  [1,2]}', ' {"a":[1,2]}']),
    ("compact", ['{"a":[1,2]}'], ['{"a": [1,2]}']),
    ("spaced", ['{"a": [1, 2], "b": {}}'], ['{"a":[1, 2]}', '{"a": [1,2]}', '{ "a": [1, 2]}', '{"a": [1, 2] }', ' {"a": [1, 2]}']),
    ("auto", ['{"a":[1,2]}', '{"a": [1, 2]}', '{\n  "a" : [ 1 ,\t2 ]\r\n}'], [' {"a":[1,2]}', '{"a":[1,2]} ', '{' + " " * 21 + '"a":[1,2]}']),
]


@pytest.mark.parametrize("name", ["pretty", "none", "Compact", "tabs"])
def test_a_word_is_no_white_space(name: str) -> None:
    with pytest.raises(ConstraintError, match=f"{name!r} is not one of its values; instead: 'auto' or 'compact' or"):
        JsonSchema({}, whitespace=name)


@pytest.mark.parametrize(("whitespace", "accepted", "rejected"), WHITESPACE, ids=lambda x: x if isinstance(x, str) else "")
def test_white_space(whitespace: str, accepted: list[str], rejected: list[str]) -> None:
    reference = matcher({"type": "object", "properties": {"a": {"items": {"type": "integer"}}}}, whitespace=whitespace)
    for text in accepted:
        assert reference.accepts(text.encode()), text
    for text in rejected:
        assert not reference.accepts(text.encode()), text


def test_resources_are_documents_for_references() -> None:
    resources = {"http://example.com/a.json": {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}, "type": "array"}}
    schema = {"$id": "http://example.com/root.json", "prefixItems": [{"$ref": "a.json"}, {"$ref": "http://example.com/a.json#/$defs/n"}]}
    reference = matcher(schema, resources=resources)
    assert reference.accepts(b"[[1],2]") and not reference.accepts(b'[["a"],2]') and not reference.accepts(b'[[1],"a"]')


def test_schemas_are_values() -> None:
    schema = {"type": "object", "properties": {"a": {"minimum": 1.5}}}
    assert JsonSchema(schema) == JsonSchema(json.dumps(schema, separators=(",", ":"))) and len({JsonSchema(schema), JsonSchema(dict(schema))}) == 1
    assert JsonSchema(schema) != JsonSchema(schema, whitespace="flexible")


def test_members_of_a_schema_given_as_text_are_those_of_its_value() -> None:
    text = ' {"properties": {"a": {"const": null}, "b": {"type": ["null", "boolean"]}},\n "required": ["a"]} '
    for whitespace in ("auto", "compact", "flexible"):
        grammar = Grammar()
        source = JsonSchema(text, whitespace=whitespace)
        reference = Reference(grammar, source.lower(grammar, Limits()))
        assert source.schema == text and JsonSchema(text) == JsonSchema(text)
        assert reference.accepts(b'{"a":null,"b":true}') and reference.accepts(b'{"a":null,"x":1}')
        assert not reference.accepts(b'{"b":true}') and not reference.accepts(b'{"a":null,"b":"x"}')


@pytest.mark.parametrize("whitespace", ["auto", "compact", "flexible", "[ ]?"])
@pytest.mark.parametrize(("schema", "text"), [({"type": "object"}, b'{"a":[1]}'), ({"type": "array"}, b"[]"), ({"const": "x"}, b'"x"')])
def test_nothing_comes_behind_the_value(whitespace: str, schema: Any, text: bytes) -> None:
    grammar = Grammar()
    reference = Reference(grammar, JsonSchema(schema, whitespace=whitespace).lower(grammar, Limits()))
    assert reference.accepts(text) and not any(reference.accepts(text + space) for space in (b" ", b"\n", b"\t"))
    assert reference.accepts(b" " + text) == (whitespace == "flexible")


def test_broken_json_has_a_place() -> None:
    with pytest.raises(GrammarSyntaxError) as caught:
        JsonSchema('{"type":\n "integer",}')
    assert (caught.value.line, caught.value.column) == (2, 12)


@pytest.mark.parametrize(
    ("schema", "limit"),
    [({"minLength": 10**7, "type": "string"}, "repetition"), ({"contains": {}, "minContains": 10**7}, "repetition"), ({"const": 10**400}, "digits"),
     ({"patternProperties": {f"a{i}": {"pattern": f"x{i}"} for i in range(9)}, "type": "object"}, "name_classes")],
)  # fmt: skip
def test_limits_are_named(schema: Any, limit: str) -> None:
    with pytest.raises(ConstraintLimit) as caught:
        matcher(schema)
    assert caught.value.limit == limit


@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 10**12, Decimal("1e300")])
def test_upper_bounds_beyond_all_texts_bound_nothing(most: Any) -> None:
    bounds = {"maxLength": most, "maxItems": most, "maxProperties": most, "contains": {"type": "null"}, "maxContains": most}
    constraint = Compiler(BYTES).compile(JsonSchema(bounds))
    free = Compiler(BYTES).compile(JsonSchema({"contains": {"type": "null"}}))
    for text in (b'"', b'"ab', b"[", b"[null,", b"[1", b'{"a":', b"1"):
        after, others = constraint.advance_bytes(constraint.start(), text), free.advance_bytes(free.start(), text)
        assert after is not None and others is not None
        assert (constraint.mask(after) == free.mask(others)).all() and constraint.min_tokens(after) == free.min_tokens(others)
    assert constraint.accepts(b'[1,null,"a"]') and not constraint.accepts(b"[1]")


def test_lowering_has_a_limit_on_time() -> None:
    with pytest.raises(ConstraintLimit) as caught:
        JsonSchema({"type": "object"}).lower(Grammar(), Limits(seconds=0))
    assert (caught.value.limit, caught.value.path) == ("seconds", "#")


def test_deep_schemas_are_a_named_limit() -> None:
    for depth in (150, 100_000):
        text = '{"items":' * depth + "{}" + "}" * depth
        if depth == 150:
            matcher(text)
        else:
            with pytest.raises(ConstraintLimit) as caught:
                matcher(text)
            assert caught.value.limit == "nesting"


def wide(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"name{i}": {"type": "string"} for i in range(count)}}


def chained(count: int) -> dict[str, Any]:
    links = {f"d{i}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/d{(i + 1) % count}"}}} for i in range(count)}
    return {"$defs": links, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("shape", [wide, chained])
def test_lowering_is_linear_in_the_schema(shape: Any) -> None:
    def effort(count: int) -> tuple[int, int]:
        """Nodes made and functions called."""
        grammar, profile = Grammar(), cProfile.Profile()
        profile.runcall(JsonSchema(shape(count)).lower, grammar, Limits())
        return len(grammar), sum(entry.callcount for entry in profile.getstats())

    small, large = effort(250), effort(1000)
    assert large[0] < 5 * small[0] and large[1] < 5 * small[1]


def test_members_in_any_order() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}, "c": {}}, "required": ["b", "z"]}
    reference = matcher(schema, property_order="any")
    for text in ['{"b":1,"z":1}', '{"z":1,"a":1,"b":1}', '{"y":0,"c":1,"z":1,"x":0,"b":1}']:
        assert reference.accepts(text.encode()), text
    for text in ['{"b":1}', '{"z":1,"a":"x","b":1}', '{"b":1,"z":1,"b":1}', '{"b":1,"z":1,"y":1,"y":1}', "{}"]:
        assert not reference.accepts(text.encode()), text


def test_many_members_in_any_order_are_not_unrolled() -> None:
    for count, required in ((40, 0), (40, 40), (600, 300)):
        names = [f"name{i}" for i in range(count)]
        grammar = Grammar()
        schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": names[:required]} | CLOSED
        node = JsonSchema(schema, property_order="any").lower(grammar, Limits())
        assert len(grammar) < 200 * count + 2000
        text = "{" + ",".join(f'"{name}":1' for name in reversed(names)) + "}"
        assert Reference(grammar, node).accepts(text.encode())

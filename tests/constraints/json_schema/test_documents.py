"""Addresses, anchors and references: the official suite by a slow evaluator, and what errors say."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import ConstraintError, JsonSchema, UnsupportedKeyword
from maskwright.constraints.front_ends.json_schema.documents.document import Library, Site, escape_token, joined
from maskwright.constraints.front_ends.json_schema.documents.values import dump_json, parse_json

from ..json_texts import accepts_value, matcher
from .schema_values import is_valid, root_of

REMOTES = "http://localhost:1234/"
DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09", "draft2020-12": "2020-12"}
FILES = [
    "ref", "refRemote", "anchor", "dynamicRef", "recursiveRef", "id", "infinite-loop-detection", "unknownKeyword", "vocabulary", "defs",
    "definitions", "unevaluatedProperties", "unevaluatedItems", "optional/id", "optional/anchor", "optional/dynamicRef",
    "optional/unknownKeyword", "optional/refOfUnknownKeyword", "optional/cross-draft",
]  # fmt: skip
NEW = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_suite_by_a_slow_evaluator(draft: str, shared_data: Path) -> None:
    suite = shared_data / "json_schema_test_suite"
    texts = {
        REMOTES + path.relative_to(suite / "remotes").as_posix(): path.read_text()
        for path in sorted((suite / "remotes").rglob("*.json"))
    }
    count = 0
    for path in [suite / "tests" / draft / f"{name}.json" for name in FILES]:
        for group in parse_json(path.read_text()) if path.exists() else []:
            schema = group["schema"]
            is_named = isinstance(schema, dict) and "$schema" in schema
            root = Library(texts, parse_json).root(dump_json(schema), None if is_named else DRAFTS[draft])
            for case in group["tests"]:
                assert is_valid(root, case["data"]) == case["valid"], (
                    path.name,
                    group["description"],
                    case["description"],
                )
                count += 1
    assert count > 60


def target(schema: Any, *tokens: str | int, keyword: str = "$ref", **options: Any) -> Site:
    site = root_of(schema, **options)
    site = site.child(*tokens) if tokens else site
    return site.document.resolve(site, keyword)


def test_one_site_for_each_path() -> None:
    root = root_of({"$defs": {"a": {"type": "null"}}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/%24defs/a"}]})
    first, second = (root.document.resolve(root.child("allOf", i)) for i in range(2))
    assert first is second is root.child("$defs", "a")
    assert root.document.resolve(root_like := root.child("allOf", 0)) is root_like.document.resolve(root_like)


def test_sites_differ_by_scope_only_where_dynamic_anchors_matter() -> None:
    tree = {
        "$id": "tree", "$dynamicAnchor": "node", "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
        "$defs": {"plain": {"$ref": "leaf"}},
    }  # fmt: skip
    strict = {
        "$id": "strict", "$schema": NEW, "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
        "$defs": {"tree": tree, "leaf": {"$id": "leaf", "type": "null"}},
    }  # fmt: skip
    root = root_of(strict)
    inner = root.document.resolve(root)
    assert inner.path == "#/$defs/tree" and inner.document.address == "tree"
    item = inner.child("properties", "children").child("items")
    assert item.document.resolve(item, "$dynamicRef") is root
    alone = root_of(tree)
    item = alone.child("properties", "children").child("items")
    assert item.document.resolve(item, "$dynamicRef") is alone
    leaf = inner.child("$defs", "plain")
    assert leaf.document.resolve(leaf) is root.child("$defs", "leaf")
    assert root_of({"properties": {"a": {"type": "null"}}}).child("properties", "a").scope.first == {}


@pytest.mark.parametrize(
    ("schema", "tokens", "path"),
    [
        ({"definitions": {"a/b~c%": {}}, "$ref": "#/definitions/a~1b~0c%25"}, (), "#/definitions/a~1b~0c%"),
        ({"allOf": [{"type": "null"}, {"$ref": "#/allOf/0"}]}, ("allOf", 1), "#/allOf/0"),
        ({"$ref": "#here", "$defs": {"x": {"$anchor": "here"}}}, (), "#/$defs/x"),
        ({"$ref": "#here", "$defs": {"x": {"$dynamicAnchor": "here"}}}, (), "#/$defs/x"),
        ({"$ref": "b#here", "$defs": {"x": {"$id": "b", "items": {"$anchor": "here"}}}}, (), "#/$defs/x/items"),
        ({"$defs": {"x": {"$id": "b", "$ref": "#/$defs/y", "$defs": {"y": {}}}}}, ("$defs", "x"), "#/$defs/x/$defs/y"),
        ({"$ref": "#/$defs/x/$defs/y", "$defs": {"x": {"$id": "b", "$defs": {"y": {}}}}}, (), "#/$defs/x/$defs/y"),
        ({"$id": "urn:x:y", "$ref": "urn:x:y#/$defs/a", "$defs": {"a": {}}}, (), "#/$defs/a"),
        ({"$id": "own://host/a/b", "$ref": "../c", "$defs": {"a": {"$id": "own://host/c"}}}, (), "#/$defs/a"),
        ({"$ref": "#/no/keyword", "no": {"keyword": {"$id": "inner", "$ref": "#"}}}, (), "#/no/keyword"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#n"}}, "items": {"$ref": "#n"}}, ("items",), "#/definitions/a"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"id": "x#n"}}, "items": {"$ref": "x#n"}}, ("items",), "#/definitions/a"),
        ({"$ref": "http://json-schema.org/draft-07/schema#/definitions/simpleTypes"}, (), "http://json-schema.org/draft-07/schema#/definitions/simpleTypes"),
        ({"$ref": "https://json-schema.org/draft-07/schema"}, (), "https://json-schema.org/draft-07/schema#"),
    ],
)  # fmt: skip
def test_where_references_lead(schema: Any, tokens: tuple[str | int, ...], path: str) -> None:
    assert target(schema, *tokens).path == path


def test_the_draft_is_that_of_the_document_around() -> None:
    old = {
        "$id": "old",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#", "type": "null"}},
    }
    root = root_of(
        {"$schema": NEW, "$ref": "other", "$defs": {"old": old}},
        resources={"other": {"$schema": "http://json-schema.org/draft-04/schema#"}},
    )
    assert root.document.draft == 2020
    assert root.child("$defs", "old").child("properties", "a").document.draft == 7
    assert root.document.resolve(root).document.draft == 4
    assert target({"$ref": "other"}, draft="6", resources={"other": {}}).document.draft == 6


@pytest.mark.parametrize(
    ("schema", "tokens", "message"),
    [
        ({"items": {"$ref": "#/$defs/no"}, "$defs": {}}, ("items",), "at #/items '$ref': '#/$defs/no' leads nowhere: there is no 'no' in #/$defs"),
        ({"allOf": [{"$ref": "#/allOf/01"}]}, ("allOf", 0), "there is no '01' in #/allOf"),
        ({"allOf": [{"$ref": "#/allOf/" + "9" * 5000}]}, ("allOf", 0), "leads nowhere"),
        ({"items": {"$ref": "#no"}}, ("items",), "there is no anchor 'no'"),
        ({"items": {"$ref": "x#no", "$defs": {"x": {"$id": "x"}}}}, ("items",), "there is no anchor 'no' in x"),
        ({"items": {"$ref": 1}}, ("items",), "a string is expected, not 1"),
        ({"$id": "http://a/b", "items": {"$ref": "http://["}}, ("items",), "is no address"),
        ({"items": {"$ref": "#/type"}, "type": "array"}, ("items",), "a schema is an object or a boolean, not 'array'"),
        ({"$id": "http://a/b", "items": {"$ref": "#x", "const": {"$anchor": "x"}}}, ("items",), "no anchor 'x'"),
        ({"items": {"$ref": "#x"}, "unknown": {"$anchor": "x"}}, ("items",), "no anchor 'x'"),
    ],
)  # fmt: skip
def test_dangling_references(schema: Any, tokens: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        target(schema, *tokens)
    assert message in str(caught.value)


def test_a_document_that_was_not_given_is_refused() -> None:
    with pytest.raises(
        UnsupportedKeyword, match="at #/items '\\$ref': 'http://a/b' is another document; instead: resources="
    ):
        target({"items": {"$ref": "http://a/b"}}, "items")


def test_a_resource_is_found_by_the_address_inside_it() -> None:
    site = target(
        {"$ref": "http://real/one"}, resources={"http://given/as": {"$defs": {"x": {"$id": "http://real/one"}}}}
    )
    assert site.path == "http://given/as#/$defs/x"


def test_a_broken_resource_matters_only_when_it_is_used() -> None:
    resources = {"http://a/b": {"$schema": "http://no.such/draft"}, "http://a/c": {"type": "null"}}
    assert accepts_value(matcher({"$ref": "http://a/c"}, resources=resources), None)
    with pytest.raises(UnsupportedKeyword, match="no draft"):
        matcher({"$ref": "http://a/b"}, resources=resources)


META = {
    "$id": "http://meta/own",
    "$schema": NEW,
    "$vocabulary": {
        "https://json-schema.org/draft/2020-12/vocab/core": True,
        "https://json-schema.org/draft/2020-12/vocab/applicator": True,
        "http://own/vocabulary": False,
    },
}


class TestVocabularies:
    def test_keywords_that_the_meta_schema_leaves_out_are_ignored(self) -> None:
        schema = {"$schema": "http://meta/own", "properties": {"a": {"minimum": 3}, "b": False}}
        reference = matcher(schema, resources={"http://meta/own": META})
        assert accepts_value(reference, {"a": 1}) and not accepts_value(reference, {"b": 1})
        reference = matcher(schema, draft="2020-12", resources={"http://meta/own": META})
        assert accepts_value(reference, {"a": 1})

    def test_an_unknown_vocabulary_that_is_required_is_refused(self) -> None:
        meta = {**META, "$vocabulary": {"http://own/vocabulary": True}}
        with pytest.raises(UnsupportedKeyword, match="vocabulary"):
            matcher({"$schema": "http://meta/own"}, resources={"http://meta/own": meta})

    def test_a_meta_schema_that_leads_to_no_draft(self) -> None:
        resources = {"http://meta/a": {"$schema": "http://meta/b"}, "http://meta/b": {"$schema": "http://meta/a"}}
        with pytest.raises(UnsupportedKeyword, match="no draft 'http://meta/a' is known"):
            matcher({"$schema": "http://meta/a"}, resources=resources)


@given(st.lists(st.text(max_size=4), min_size=1, max_size=5))
def test_any_name_can_be_pointed_to(names: list[str]) -> None:
    schema: Any = {"type": "null"}
    for name in reversed(names):
        schema = {"properties": {name: schema}}
    pointer = "".join(f"/properties/{escape_token(name)}" for name in names)
    root = root_of({**schema, "$ref": "#" + quote(pointer)})
    inner = root
    for name in names:
        inner = inner.child("properties", name)
    assert root.document.resolve(root) is inner and inner.path == "#" + pointer


def test_deep_documents_are_indexed_without_recursion() -> None:
    text = '{"not":' * 3000 + '{"$anchor":"x"}' + "}" * 3000
    value: Any = {"$anchor": "x"}
    for _ in range(3000):
        value = {"not": value}
    root = Library({}, lambda _: value).root(text, None)
    root.document.library.index()
    assert root.document.anchors["x"].path == "#" + "/not" * 3000


@pytest.mark.parametrize(
    ("base", "reference", "address"),
    [
        ("", "a.json", "a.json"),
        ("http://a/b/c.json", "../d.json#x", "http://a/d.json#x"),
        ("http://a/b#c", "#d", "http://a/b#d"),
        ("own://a/b/c", "d", "own://a/b/d"),
        ("own://a/b/c", "/d", "own://a/d"),
        ("urn:a:b", "http://c/d", "http://c/d"),
        ("urn:a:b", "#c", "urn:a:b#c"),
    ],
)
def test_joined(base: str, reference: str, address: str) -> None:
    assert joined(base, reference, "#") == address


@pytest.mark.parametrize(
    ("schema", "place", "reason"),
    [
        ({"const": float("nan")}, "#/const", "nan is not a JSON number"),
        ({"properties": {"a/b": {"enum": [1, [float("inf")]]}}}, "#/properties/a~1b/enum/1/0", "inf is not a JSON number"),
        ('{"items": {"minimum": -Infinity}}', "#/items/minimum", "-inf is not a JSON number"),
        ({"properties": {3: {}}}, "#/properties", "the key 3 is not a string"),
        ({"allOf": [True, {"enum": {1}}]}, "#/allOf/1/enum", "a set is not a JSON value"),
    ],
)
def test_what_json_cannot_hold_is_told_with_its_place(schema: Any, place: str, reason: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        JsonSchema(schema)
    assert caught.value.path == place and caught.value.reason == reason

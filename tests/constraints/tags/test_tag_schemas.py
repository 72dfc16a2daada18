"""JSON schemas in structural tags: written in the styles of models, and without some strings; asked of XGrammar too where it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    StructuralTag,
    UnsupportedKeyword,
    Vocabulary,
)

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))


def _form(schema: Any, **options: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema, **options}}


def _check_against_xgrammar(request: dict[str, Any], texts: Mapping[str, bool]) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo(
        [*(bytes([byte]) for byte in range(256)), b""], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
    )
    try:
        theirs = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(request))
    except RuntimeError:
        pytest.skip("an XGrammar without this")
    for text, is_right in texts.items():
        matcher = xgrammar.GrammarMatcher(theirs)
        assert bool(matcher.accept_string(text) and matcher.accept_token(256)) == is_right, text


_STYLED = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": ["string", "null"]},
        "o": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "additionalProperties": False},
    },
    "required": ["a"],
    "additionalProperties": False,
}
_BAR = "\uff5c"
_MARKS = {
    "qwen_xml": ("<parameter=%s>", "</parameter>"),
    "minimax_xml": ('<parameter name="%s">', "</parameter>"),
    "glm_xml": ("<arg_key>%s</arg_key><arg_value>", "</arg_value>"),
    "deepseek_xml": (f'<{_BAR}DSML{_BAR}parameter name="%s" string="%s">', f"</{_BAR}DSML{_BAR}parameter>"),
    "deepseek_v4_1_xml": (f'<{_BAR}DSML{_BAR} parameter name="%s" string="%s">', f"</{_BAR}DSML{_BAR} parameter>"),
}
_WRITTEN: list[tuple[bool, list[tuple[str, str, bool]]]] = [  # whether it satisfies the schema; key, value, whether it is a bare string
    (True, [("a", "x", True)]), (True, [("a", "", True)]), (True, [("a", "x", True), ("b", "12", False)]),
    (True, [("a", "x\n", True), ("b", " 12 ", False)]), (False, [("b", "12", False)]), (True, [("a", "1", True), ("c", "null", False)]),
    (True, [("a", "1", True), ("c", "zz", True)]), (True, [("a", "x", True), ("o", '{"k":"v"}', False)]),
    (False, [("a", "x", True), ("o", '{"k":1}', False)]), (False, [("a", "x", True), ("a", "y", True)]),
    (False, [("b", "1", False), ("a", "x", True)]), (False, [("a", "x", True), ("b", "x", False)]),
]  # fmt: skip


@pytest.mark.parametrize("style", _MARKS)
def test_styles_of_a_json_schema_are_those_of_xgrammar(style: str) -> None:
    begin, end = _MARKS[style]
    request = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": _STYLED, "style": style}}
    constraint = COMPILER.compile(StructuralTag(json.dumps(request)))
    texts = {
        between.join(
            (begin % ((key, str(is_bare).lower()) if begin.count("%s") == 2 else key)) + value + end for key, value, is_bare in written
        ): is_right
        for is_right, written in _WRITTEN for between in ("", "\n")
    }  # fmt: skip
    assert {text: constraint.accepts(text.encode()) for text in texts} == texts
    _check_against_xgrammar(request, texts)


# -- members inside of members ----------------------------------------------------------------------------------------------

_NESTED = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "number"},
        "c": {"type": ["string", "null"]},
        "o": {"$ref": "#/$defs/o"},
        "l": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "x<y": {"enum": ["u", "v"]},
    },
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {
        "o": {
            "type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "boolean"}}, "required": ["k"],
            "additionalProperties": False,
        }
    },
}  # fmt: skip


def _cohere(name: str, kind: str, value: str) -> str:
    named = f' name="{name}"' if name else ""
    return f'<cofl:value{named} type="{kind}">{value}</cofl:value>'


def _kimi(name: str, kind: str, value: str) -> str:
    return f'<|open|>argument key="{name}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'


_MARK = "]<]minimax[>["


def _minimax(name: str, value: str) -> str:
    return f"{_MARK}<{name}>{value}{_MARK}</{name}>"


_A, _B, _C = _cohere("a", "raw", "x"), _kimi("a", "string", "x"), _minimax("a", "x")
_K, _N, _ONE = _minimax("k", "z"), _minimax("n", "true"), _minimax("item", "1")
NESTED = {
    "cohere_xml": (
        [
            _A, _cohere("a", "raw", ""), f"{_A}\n {_cohere('b', 'json', ' 1.5 ')}\n", _cohere("a", "raw", "<i></cofl:valu</b>"),
            _A + _cohere("c", "raw", "null"), _A + _cohere("c", "json", "null"), _A + _cohere("o", "dict", _cohere("k", "raw", "z")),
            _A + _cohere("o", "dict", f"\n{_cohere('k', 'raw', 'z')}\n{_cohere('n', 'json', 'true')} "),
            _A + _cohere("l", "list", "\n" + _cohere("", "json", "1") + _cohere("", "json", "2")), _A + _cohere("x&lt;y", "raw", "u"),
        ],
        [
            "", _cohere("b", "json", "1"), _cohere("a", "json", "1"), _A + _cohere("o", "dict", ""), _A + _cohere("l", "list", ""),
            _A + _cohere("l", "json", "[1]"), _A + _cohere("x<y", "raw", "u"), _A + _cohere("x&lt;y", "raw", "w"), _A + _A,
            _A + _cohere("o", "json", '{"k":"z"}'), _A + _cohere("l", "list", _cohere("", "raw", "1")),
        ],
    ),
    "kimi_k3_xml": (
        [
            _B, _B + _kimi("b", "number", "12"), _B + "\n" + _kimi("b", "number", " 12 "), _B + _kimi("c", "null", "null"),
            _B + _kimi("c", "string", "null"), _B + _kimi("o", "object", '{"k":"z"}'), _B + _kimi("l", "array", "[1, 2]"),
            _kimi("a", "string", "<|open|>"),
        ],
        ["", _kimi("a", "number", "1"), _B + _kimi("o", "object", "{}"), _B + _kimi("l", "array", "[]"), _B + _kimi("b", "string", "1")],
    ),
    "minimax_m3_xml": (
        [
            _C, _minimax("a", ""), _minimax("a", "x]<]"), f"{_C}\n{_minimax('b', '12')}", _C + _minimax("c", "null"),
            _C + _minimax("c", "nul"), _C + _minimax("o", _K), _C + _minimax("o", f"\n{_K}{_N}"), _C + _minimax("l", f"{_ONE} {_ONE}"),
            _C + _minimax("x<y", "u"),
        ],
        [
            "", _minimax("a", f"x{_MARK}"), _C + _minimax("b", " 12"), _C + _minimax("o", ""), _C + _minimax("l", ""),
            _C + _minimax("o", _N + _K), _C + _minimax("l", _minimax("item", "x")), _C + _minimax("x<y", "w"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", NESTED)
def test_members_are_written_inside_of_members(style: str) -> None:
    request = _form(_NESTED, style=style)
    constraint = COMPILER.compile(StructuralTag(json.dumps(request)))
    accepted, rejected = NESTED[style]
    texts = {**dict.fromkeys(accepted, True), **dict.fromkeys(rejected, False)}
    assert {text: constraint.accepts(text.encode()) for text in texts} == texts
    _check_against_xgrammar(request, texts)


_LIST = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}}
_MANY: dict[str, Any] = {"$defs": {"d0": {"type": "integer"}}, "$ref": "#/$defs/d12"}
for _level in range(1, 13):
    _MANY["$defs"][f"d{_level}"] = {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{_level - 1}"} for name in "ab"}}
REFUSED: list[tuple[Any, str, type[ConstraintError], str, str]] = [
    (_LIST, "cohere_xml", UnsupportedKeyword, "#/format/json_schema", "inside of itself"),
    (_MANY, "minimax_m3_xml", ConstraintLimit, "#/format/json_schema", "one by one"),
    ({"properties": {"v": {"type": "array"}}}, "cohere_xml", UnsupportedKeyword, "#/format/json_schema/properties/v", "items of any kind"),
    ({"properties": {"v": {"type": "array", "items": {"type": "null"}, "uniqueItems": True}}}, "cohere_xml", UnsupportedKeyword,
     "#/format/json_schema/properties/v", "'uniqueItems'"),
    ({"properties": {"v": {"type": "object", "minProperties": 1}}}, "minimax_m3_xml", UnsupportedKeyword,
     "#/format/json_schema/properties/v", "'minProperties'"),
    ({"minProperties": 1}, "qwen_xml", UnsupportedKeyword, "#/format/json_schema", "'minProperties'"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "style", "kind", "path", "message"), REFUSED)
def test_what_members_cannot_be_written_for_is_refused(schema: Any, style: str, kind: Any, path: str, message: str) -> None:
    with pytest.raises(kind, match=message) as error:
        COMPILER.compile(StructuralTag(json.dumps(_form(schema, style=style))))
    assert error.value.path == path


# -- strings left out ---------------------------------------------------------------------------------------------------------

EXCLUSIONS: list[tuple[Any, list[str], list[Any]]] = [
    (
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, ["</x>"],
        [{"a": "hi"}, {"a": "</x>"}, {"a": "</x"}, {"a": "a</x>b"}, {"a": "", "b": ["</x>"]}, {"a": "", "b": ["</x"]}, {"a": "", "b": {"</x>": 1}},
         {"a": "", "c": {"</x": 1}}, {"a": "", "</x>": 1}, {"a": "<", "b": [{"k": {"z": "</x>"}}]}, {"b": "</x"}],
    ),
    ({"enum": ["a</x>", "b", ["</x>"], {"</x>": 1}, 3]}, ["</x>"], ["b", "a</x>", ["</x>"], {"</x>": 1}, 3]),
    ({"type": "array", "items": {"type": "string", "maxLength": 6}}, ["ab", "b."], [["a"], ["xab"], ["b"], ["b."], ["abb."], ["b a"], ["bxx"]]),
    (
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"v": {"pattern": "^z", "type": "string"}, "n": {"$ref": "#/$defs/n"}}}}},
        ["zz"], [{"v": "z", "n": {"v": "zy"}}, {"v": "z", "n": {"v": "zz"}}, {"v": "zz"}, {"v": "zyzz"}, {"n": {"n": {"v": "z"}}}],
    ),
]  # fmt: skip


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for each in inner for text in _strings(each)]


@pytest.mark.parametrize(("schema", "excludes", "values"), EXCLUSIONS)
def test_excluded_strings_are_in_no_string_and_no_name(schema: Any, excludes: list[str], values: list[Any]) -> None:
    constraint = COMPILER.compile(StructuralTag(json.dumps(_form(schema, excludes=excludes))))
    for value in values:
        is_clean = not any(word in text for text in _strings(value) for word in excludes)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert constraint.accepts(text.encode()) == (is_clean and Draft202012Validator(schema).is_valid(value)), text


def test_an_exclusion_that_json_escapes_is_refused() -> None:
    with pytest.raises(UnsupportedKeyword, match="escape") as error:
        COMPILER.compile(StructuralTag(_form({}, excludes=["a", 'b"'])))
    assert error.value.path == "#/format/excludes/1"
    with pytest.raises(UnsupportedKeyword, match="excludes"):
        COMPILER.compile(StructuralTag(_form({"type": "object"}, style="qwen_xml", excludes=["a"])))

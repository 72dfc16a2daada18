"""What requests to engines say becomes the right constraint, or a typed refusal."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import Compiler, ConstraintError, Ebnf, JsonSchema, Lark, Vocabulary
from maskwright.integrations.compilers import MOST_KEPT, WHITESPACE, Compilers, whitespace_of
from maskwright.integrations.sources import grammar_of, source_of

from .stand_ins import END, HEAD_PADDING, TURN, tokenizer

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_token_ids=[256])
COMPILER = Compiler(VOCABULARY)
KINDS = ["json_schema", "regex", "grammar", "choice", "structural_tag"]


@pytest.mark.parametrize(
    ("text", "kind", "notation"),
    [
        ('root ::= "a"', Ebnf, "xgrammar"),
        ('\ufeff# of rules\nroot ::= [a-z]{2,-1}\n', Ebnf, "xgrammar"),
        ("root ::= 'a' #x20 [#x0-#x1F]", Ebnf, "w3c"),
        ("root = 'a' | 'b' ;", Ebnf, "iso"),
        ("greeting name = 'a', { 'b' } ;", Ebnf, "iso"),
        ('root ::= "a" <[3]> !<think>', Ebnf, "xgrammar"),
        ('start: "a"', Lark, None),
        ('start: "x ::= y"', Lark, None),  # `::=` in a string makes no rule
        ('// root ::= "a"\nstart: "a"', Lark, None),
        ('%import common.INT\nstart: INT', Lark, None),
        ('?start: a | b\na.2: "="\nb: "b = c"', Lark, None),
        ('start: x{"a"}\nx{y}: "=" y', Lark, None),
        ('start[capture]: "a"', Lark, None),
    ],
)  # fmt: skip
def test_the_notation_of_a_grammar(text: str, kind: type, notation: str | None) -> None:
    source = grammar_of(text)
    assert type(source) is kind and getattr(source, "notation", None) == notation


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", '{"grammars": []}', 'root ::= "a', "root ::= ("])
def test_what_is_no_grammar(text: str) -> None:
    with pytest.raises(ConstraintError):
        COMPILER.compile(grammar_of(text))


WRITTEN = st.one_of(
    st.text(max_size=12),
    st.text(alphabet='ab"\'\\[](){}<>|*+?:=.,;/#%-\n 01$^', max_size=24),
    st.lists(st.sampled_from(['root ::= "a"', "start: x", "x", "|", '"type"', "{", "}", ":", "[", "]", ",", "structures", '"format"', "\n", "(", "<[3]>", "1", "null"])).map(" ".join),
    st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["tag", "structural_tag", "a"]),
                 lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "format", "structures", "triggers", "begin", "schema", "end", "tags", "at_least_one", "json_schema", "content"]), inner, max_size=4), max_leaves=8).map(json.dumps),
)  # fmt: skip


@given(st.sampled_from(KINDS), WRITTEN)
@settings(max_examples=300)
def test_whatever_is_written_is_compiled_or_refused_by_type(kind: str, text: str) -> None:
    with contextlib.suppress(ConstraintError):
        COMPILER.compile(source_of(kind, text))


def accepts(kind: str, text: str, output: str, **options: Any) -> bool:
    return COMPILER.compile(source_of(kind, text, **options)).accepts(output)


LEGACY = {"structures": [{"begin": "<a>", "schema": {"type": "integer"}, "end": "</a>"}], "triggers": ["<a>"]}


@pytest.mark.parametrize("form", [LEGACY, {"type": "structural_tag", **LEGACY}])
def test_older_structural_tags(form: dict[str, Any]) -> None:
    text = json.dumps(form)
    assert accepts("structural_tag", text, "x<a>1</a>y") and accepts("structural_tag", text, "x")
    assert not accepts("structural_tag", text, "<a>x</a>")
    at_least_one = json.dumps({**form, "at_least_one": True})
    assert accepts("structural_tag", at_least_one, "<a>1</a>y") and not accepts("structural_tag", at_least_one, "x")


def test_older_structural_tags_with_schemas_as_text() -> None:
    structures = [{**LEGACY["structures"][0], "schema": '{"type": "integer"}'}]
    for more in ({}, {"at_least_one": True}):
        text = json.dumps({**LEGACY, "structures": structures, **more})
        assert accepts("structural_tag", text, "<a>1</a>") and not accepts("structural_tag", text, "<a>x</a>")


def test_tools_without_parameters() -> None:
    tag = {"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": None}, "end": "</a>"}
    for form in ({"format": tag}, {"structures": [{"begin": "<a>", "schema": None, "end": "</a>"}], "triggers": ["<a>"]}):
        assert accepts("structural_tag", json.dumps(form), '<a>{"x": [null]}</a>')
    inner = {"type": "const_string", "value": None}  # null is a fault where it is no schema
    with pytest.raises(ConstraintError, match="value"):
        source_of("structural_tag", json.dumps({"format": inner}))


@pytest.mark.parametrize(
    "form",
    [{"format": None}, {"structures": {}, "triggers": ["<a>"]}, {"structures": [1], "triggers": [], "at_least_one": True}, {"format": {"type": "tag"}}, {}, [], 1, "x",
     {**LEGACY, "unknown": 1}, {**LEGACY, "at_least_one": True, "unknown": 1}, {"structures": LEGACY["structures"], "at_least_one": True}],
)  # fmt: skip
def test_malformed_structural_tags(form: Any) -> None:
    with pytest.raises(ConstraintError):
        source_of("structural_tag", json.dumps(form))


def test_kinds() -> None:
    assert accepts("json_object", "anything", '{"a":1}') and not accepts("json_object", "", "[1]")
    assert accepts("json_value", "", "[1]")
    assert accepts("choice", '["a", "b\\n"]', "b\n") and not accepts("choice", '["a"]', "b")
    assert accepts("json_schema", '{"const": 1}', "1")
    with pytest.raises(ConstraintError, match="'nonsense' is no kind"):
        source_of("nonsense", "")
    with pytest.raises(ConstraintError, match="string"):
        source_of("json_schema", {"const": 1})  # type: ignore[arg-type]


def test_white_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WHITESPACE, raising=False)
    assert whitespace_of() == "auto"
    monkeypatch.setenv(WHITESPACE, "spaced")
    assert whitespace_of() == "spaced"
    assert whitespace_of(compact=True) == whitespace_of(most=0) == "compact"
    assert accepts("json_schema", '{"type": "array"}', "[1,  2]", whitespace=whitespace_of(most=2))
    assert not accepts("json_schema", '{"type": "array"}', "[1,   2]", whitespace=whitespace_of(most=2))
    assert isinstance(source_of("json_object", "", "compact"), JsonSchema)


# -- compilers ------------------------------------------------------------------------------------------------------------


def compilers(**options: Any) -> Compilers:
    return Compilers(tokenizer(), len(tokenizer()) + HEAD_PADDING, **options)


def test_a_vocabulary_for_each_set_of_ends() -> None:
    known = compilers()
    source = source_of("regex", "a")
    end, turn = tokenizer().convert_tokens_to_ids([END, TURN])
    assert known.compile(source) is known.compile(source, [end]) is known.compile(source, set())
    both = known.compile(source, {end, turn})
    assert both is known.compile(source, [turn, end]) is not known.compile(source)
    assert both.vocabulary.eos_token_ids == tuple(sorted((end, turn)))
    for other in range(MOST_KEPT):
        known.compile(source, {end, other})
    assert known.compile(source, {end, turn}) is not both  # the longest unused was forgotten
    assert known.compile(source, {end, 10**9}) is known.compile(source)  # ids that no model has


def test_the_models_ends_come_before_the_tokenizers() -> None:
    turn = tokenizer().convert_tokens_to_ids(TURN)
    assert compilers(eos_token_ids=[turn]).compile(source_of("regex", "a")).vocabulary.eos_token_ids == (turn,)
    nobody = tokenizer()
    nobody.eos_token = None
    with pytest.raises(ConstraintError, match="ends the text"):
        Compilers(nobody, len(nobody)).compile(source_of("regex", "a"))


def test_tokenizers_that_do_not_fit() -> None:
    with pytest.raises(ConstraintError, match="does not fit the model"):
        Compilers(tokenizer(), 100).compile(source_of("regex", "a"))
    with pytest.raises(ConstraintError, match="no fast"):
        Compilers(object(), 100).compile(source_of("regex", "a"))

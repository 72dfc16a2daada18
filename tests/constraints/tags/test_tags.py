"""Structural tags: against plain Python on every short text, against brute force over tokens, against XGrammar."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints import (
    Choice,
    Compiler,
    ConstraintError,
    ConstraintLimit,
    JsonSchema,
    OutputParser,
    Regex,
    StructuralTag,
    UnsupportedKeyword,
    Vocabulary,
)
from maskwright.constraints.front_ends.tags.events import TagDelta, TagEnd, TagStart, TextDelta
from maskwright.constraints.front_ends.tags.tree import (
    AnyOf,
    Const,
    Joined,
    Repeat,
    Separated,
    Sequence,
    Tag,
    Text,
    Token,
    Triggered,
)
from maskwright.constraints.runtime.constraint import as_token_ids

from ..grammars import Twin

TOKENS = [bytes([byte]) for byte in range(256)] + [
    b"<a",
    b"a>",
    b"<a>b",
    b"</a>",
    b">a<",
    b"ab",
    b"b</a>a",
    "é<".encode(),
]
X, END, EOS = len(TOKENS), len(TOKENS) + 1, len(TOKENS) + 2
VOCABULARY = Vocabulary(
    [*TOKENS, b"<x>", None, None], eos_token_ids=[EOS, END], special_tokens={"<x>": X, "<end>": END}
)
COMPILER = Compiler(VOCABULARY)
WORD = Choice(["a", "ab"])


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(chars) for length in range(longest + 1) for chars in product(alphabet, repeat=length)]


# -- text ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
@settings(max_examples=25)
def test_text_leaves_out_exactly_what_is_excluded(excludes: list[str]) -> None:
    constraint = COMPILER.compile(StructuralTag(Text(excludes)))
    for text in texts("abc", 5):
        assert constraint.accepts(text) == (not any(word in text for word in excludes)), text


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=2, unique=True))
@settings(max_examples=25)
def test_text_in_a_tag_goes_to_its_first_end(ends: list[str]) -> None:
    constraint = COMPILER.compile(StructuralTag(Tag("(", Text(), ends)))
    for text in texts("abc", 5):
        found = [i + len(end) for end in ends for i in range(len(text)) if text.startswith(end, i)]
        assert constraint.accepts("(" + text) == (bool(found) and min(found) == len(text)), text


def test_text_takes_characters_of_several_bytes() -> None:
    constraint = COMPILER.compile(StructuralTag(Text(["é|"])))
    assert constraint.accepts("è é ÿ \u00e9 😀") and not constraint.accepts("aé|b")
    assert constraint.advance_bytes(constraint.start(), b"\xff") is None
    assert constraint.accepts("") and COMPILER.compile(StructuralTag(Text())).accepts("<x>")  # the text, not the token


# -- masks --------------------------------------------------------------------------------------------------------------

_leaf: st.SearchStrategy[Any] = st.sampled_from(
    [Const("a"), Const("<x>"), Const("b<x>a"), Token("<x>"), WORD, Text(["ab"]), Text(["<a>", "b"]), Regex("[ab]{1,2}")]
)


def _inner(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tag = st.builds(
        Tag, st.sampled_from(["<a>", "<a", "<x>", "é"]), children, st.sampled_from(["</a>", "<x>", ["b", "</a>"]])
    )
    return st.one_of(
        tag,
        st.lists(children, max_size=2).map(Sequence),
        st.lists(children, min_size=1, max_size=2).map(AnyOf),
        st.builds(Repeat, children, st.integers(0, 1), st.sampled_from([None, 1, 2])),
        st.builds(Joined, st.lists(st.tuples(children, st.booleans()), max_size=2), st.sampled_from(["", ",", "<x>"])),
        st.builds(
            Separated, st.lists(tag, min_size=1, max_size=2), st.sampled_from(["", ","]), st.booleans(), st.booleans()
        ),
        st.lists(tag, min_size=1, max_size=2).flatmap(_triggered),
    )


def _triggered(tags: list[Tag]) -> st.SearchStrategy[Any]:
    triggers = sorted({tag.begin[: 2 if tag.begin[0] == "<" and tag.begin != "<x>" else None] for tag in tags})
    return st.builds(Triggered, st.just(triggers), st.just(tags), st.booleans(), st.booleans(), st.sampled_from([(), ("ba",)]),
                     st.sampled_from(["", "a"]))  # fmt: skip


parts = st.recursive(_leaf, _inner, max_leaves=4)


@given(parts, st.integers(0, 9))
def test_every_mask_equals_brute_force(part: Any, seed: int) -> None:
    source = StructuralTag(part)
    try:
        constraint = COMPILER.compile(source)
    except ConstraintError as error:
        assert "nothing satisfies" in str(error)
        return
    twin = Twin(source, VOCABULARY, alphabet=b"ab<>/,x\xc3\xa9\xa0\x80\xff\xfe" + str(X).encode(), horizon=60)
    rng = random.Random(seed)
    state, position = constraint.start(), twin.start()
    for _ in range(4):
        legal = set(as_token_ids(constraint.mask(state)))
        assert legal == twin.mask(position)
        assert constraint.is_accepting(state) == twin.reference.is_accepting(position)
        choices = sorted(legal - {EOS, END}, key=lambda token: (token < 97, token))
        if not choices:
            break
        token = rng.choice(choices[:12] if rng.random() < 0.7 else choices)
        state, position = (
            constraint.advance(state, token),
            twin.reference.run(VOCABULARY.spellings[token] or b"", position),
        )
        assert state is not None


@given(parts, st.integers(0, 9))
@settings(max_examples=30)
def test_some_token_always_lowers_the_number_that_suffices(part: Any, seed: int) -> None:
    try:
        constraint = COMPILER.compile(StructuralTag(part))
    except ConstraintError:
        return
    rng, state = random.Random(seed), constraint.start()
    for _ in range(4):
        distance = constraint.min_tokens(state)
        assert (distance == 0) == constraint.is_accepting(state)
        after = [constraint.advance(state, token) for token in as_token_ids(constraint.mask(state)) if token < EOS - 1]
        assert distance == 0 or min(constraint.min_tokens(s) for s in after if s is not None) <= distance - 1
        if not after:
            return
        state = rng.choice(after)
        assert state is not None


# -- special tokens -------------------------------------------------------------------------------------------------------


def test_names_of_special_tokens_in_marks_are_the_tokens() -> None:
    constraint = COMPILER.compile(
        StructuralTag(Tag("<x>", WORD, "<end>"))
    )  # <end> is an EOS id: it ends the output by itself
    assert as_token_ids(constraint.mask(constraint.start())) == [X]
    assert not constraint.accepts("<x>ab")
    state = constraint.advance(constraint.start(), X)
    assert state is not None and constraint.forced(state) == b"a"
    state = constraint.advance_bytes(state, b"ab")
    assert state is not None and set(as_token_ids(constraint.mask(state))) == {EOS, END}


def test_forced_text_ends_where_a_special_token_begins() -> None:
    constraint = COMPILER.compile(StructuralTag(Sequence((Const("ab<x>ab"), Const("!")))))
    assert constraint.forced(constraint.start()) == b"ab"
    state = constraint.advance_bytes(constraint.start(), b"ab")
    assert state is not None and constraint.forced(state) == b"" and constraint.min_tokens(state) == 3
    assert constraint.explain(state, X).allowed and not constraint.explain(state, 97).allowed
    state = constraint.advance(state, X)
    assert state is not None and constraint.forced(state) == b"ab!"


def test_tokens_can_be_named_by_id_and_unknown_ones_are_refused() -> None:
    assert as_token_ids(COMPILER.compile(StructuralTag(Token(X))).mask(1))  # compiles
    with pytest.raises(ConstraintError, match="no token"):
        COMPILER.compile(StructuralTag(Token("<y>")))


def test_no_text_contains_a_special_token() -> None:
    for source in (Regex("(?s).*"), JsonSchema({"type": "string"}), Regex(r"[^a]*"), StructuralTag(Text(["a"]))):
        constraint = COMPILER.compile(source)
        state = (
            constraint.advance_bytes(constraint.start(), b'"') if isinstance(source, JsonSchema) else constraint.start()
        )
        assert state is not None and X not in as_token_ids(constraint.mask(state))
        assert constraint.advance(state, X) is None and not constraint.explain(state, X).allowed


# -- parsing --------------------------------------------------------------------------------------------------------------


def test_tags_are_told_with_their_content() -> None:
    tags = [Tag("<a>", WORD, "</a>"), Tag("<n>", Text(), ["</n>", "."])]
    parser = OutputParser(COMPILER.compile(StructuralTag(Triggered(["<a>", "<n>"], tags))))
    events = parser.feed("x<<a>ab</a><n>1</") + parser.feed("</n>") + parser.feed(" <") + parser.finish()
    assert events == [
        TextDelta("x<"), TagStart(0, "<a>"), TagDelta(0, "ab"), TagEnd(0, "<a>", "ab"),
        TagStart(1, "<n>"), TagDelta(1, "1"), TagDelta(1, "</"), TagEnd(1, "<n>", "1</"), TextDelta(" "), TextDelta("<"),
    ]  # fmt: skip
    assert parser.is_complete


# -- requests -------------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
CALL = {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</f>"}
OTHER = {"begin": "<g>", "content": {"type": "any_text"}, "end": ["</g>", "</h>"]}
FORMS: list[tuple[Any, list[str]]] = [
    ({"type": "const_string", "value": "ab"}, ["ab", "a", "abb", ""]),
    ({"type": "any_text"}, ["", "ab <f>"]),
    ({"type": "any_text", "excludes": ["b<", "cc"]}, ["", "ab <f>", "ab<", "acca", "cbcb"]),
    ({"type": "regex", "pattern": "a+b?"}, ["a", "aab", "b", "xab"]),
    ({"type": "or", "elements": [{"type": "const_string", "value": "a"}, CALL]}, ["a", '<f>{"n":1}</f>', "<f></f>", ""]),
    ({"type": "sequence", "elements": [CALL, {"type": "const_string", "value": "!"}]}, ['<f>{"n":1}</f>!', '<f>{"n":1}</f>', "!"]),
    (OTHER | {"type": "tag"}, ["<g></g>", "<g>a</h>", "<g>a</g>b</g>", "<g>", "<g><g></g>"]),
    ({"type": "triggered_tags", "triggers": ["<f>"], "tags": [CALL]}, ["", "a", 'a<f>{"n":1}</f>b<f>{"n":2}</f>', "a<f>", "a<f", "a<f>x</f>"]),
    (
        {"type": "triggered_tags", "triggers": ["<"], "tags": [CALL, OTHER], "stop_after_first": True},
        ['a<f>{"n":1}</f>', 'a<f>{"n":1}</f>b', "<g>x</g>", "x<", "x", "<f>{}</f>"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<"], "tags": [CALL, OTHER], "at_least_one": True},
        ['<f>{"n":1}</f>', 'a<f>{"n":1}</f>b', "<g>x</g>", "x", "", '<f>{"n":1}</f>b<g></g>c'],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<f"], "tags": [CALL], "excludes": ["bad"]},
        ["ba<f", 'b<f>{"n":1}</f>ad', "bad", 'a<f>{"n":1}</f>bad'],
    ),
    (
        {"type": "tags_with_separator", "tags": [CALL, OTHER], "separator": ", "},
        ["", '<f>{"n":1}</f>', '<f>{"n":1}</f>, <g>,</g>', '<f>{"n":1}</f>,', '<f>{"n":1}</f><g></g>'],
    ),
    (
        {"type": "tags_with_separator", "tags": [CALL], "separator": "", "at_least_one": True, "stop_after_first": True},
        ["", '<f>{"n":1}</f>', '<f>{"n":1}</f><f>{"n":1}</f>'],
    ),
    ({"type": "optional", "content": CALL}, ["", '<f>{"n":1}</f>', '<f>{"n":1}</f><f>{"n":1}</f>']),
    ({"type": "plus", "content": {"type": "const_string", "value": "ab"}}, ["", "ab", "ababab", "aba"]),
    ({"type": "star", "content": {"type": "const_string", "value": "ab"}}, ["", "ab", "ababab", "aba"]),
    ({"type": "repeat", "min": 1, "max": 2, "content": {"type": "const_string", "value": "a"}}, ["", "a", "aa", "aaa"]),
    ({"type": "dispatch", "rules": [["<f>", {"type": "regex", "pattern": "[0-9]"}]], "loop": True}, ["a", "a<f>1", "a<f>", "<f>1<f>2b"]),
    (
        {"type": "dispatch", "rules": [["<f>", {"type": "regex", "pattern": "[0-9]"}]], "loop": False, "excludes": ["z"]},
        ["a", "a<f>1", "a<f>", "<f>1<f>2", "az", "<f>1z"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "samples"), FORMS, ids=lambda value: value.get("type", "") if isinstance(value, dict) else ""
)
def test_structural_tags_mean_what_xgrammar_takes_them_for(form: dict[str, Any], samples: list[str]) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    request = {"type": "structural_tag", "format": form}
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    theirs = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(request))
    ours = COMPILER.compile(StructuralTag(request))
    for text in samples:
        matcher = xgrammar.GrammarMatcher(theirs, terminate_without_stop_token=True)
        expected = matcher.accept_string(text) and matcher.is_terminated()
        if not expected:
            matcher = xgrammar.GrammarMatcher(theirs)
            expected = matcher.accept_string(text) and matcher.accept_token(256)
        assert ours.accepts(text) == expected, text


ACCEPTED: list[tuple[Any, str, str]] = [
    ({"type": "structural_tag", "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}], "triggers": ["<f"]}, 'a<f>{"n":1}</f>', "<f>"),
    ({"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}, '{"n":1}', "{}"),
    ({"type": "json_schema", "name": "x", "strict": True, "schema": SCHEMA}, '{"n":1}', "{}"),
    ({"json": SCHEMA}, '{"n":1}', "{}"),
    ({"json": None, "regex": "[0-9]+"}, "12", "a"),
    ({"json_object": True}, "{}", "[]"),
    ({"structural_tag": json.dumps({"type": "structural_tag", "format": CALL})}, '<f>{"n":1}</f>', "<f>"),
    ({"type": "json_object"}, '{"a":[1]}', "[]"),
    ({"type": "text"}, "anything", ""),
    ({"type": "regex", "pattern": "[0-9]+"}, "12", "a"),
    ({"type": "grammar", "grammar": 'root ::= "a" | "b"'}, "b", "c"),
    ({"type": "choice", "choice": ["yes", "no"]}, "no", "maybe"),
    ({"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "tags": [{"begin": {"type": "token", "token": "<x>"}, "content": {"type": "any_text"}, "end": {"type": "token", "token": "<x>"}}]}, "text", "a\x00<"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "good", "bad"), ACCEPTED, ids=lambda value: value.get("type", "") if isinstance(value, dict) else ""
)
def test_request_forms_are_read(form: dict[str, Any], good: str, bad: str) -> None:
    for spelled in (form, json.dumps(form)):
        constraint = COMPILER.compile(StructuralTag(spelled))
        assert constraint.accepts(good)
        assert form.get("type") in ("text", "token_triggered_tags") or not constraint.accepts(bad)


def test_tags_between_special_tokens() -> None:
    constraint = COMPILER.compile(StructuralTag(ACCEPTED[-1][0]))
    state = constraint.advance_bytes(constraint.start(), b"a")
    for token in (X, 97, X, 98, X):
        assert state is not None
        state = constraint.advance(state, token)
    assert state is not None and not constraint.is_accepting(state) and constraint.min_tokens(state) == 1


REFUSED: list[tuple[Any, type, str, str]] = [
    ({"type": "structural_tag", "format": {"type": "sequence", "elements": [CALL, {"type": "exclude_token", "exclude_tokens": ["<y>"]}]}}, ConstraintError, "#/format/elements/1", "no token"),
    ({"type": "structural_tag", "format": {"type": "any_tokens", "max_tokens": -3}}, ConstraintError, "#/format/max_tokens", "negative"),
    ({"type": "structural_tag", "format": {"type": "any_tokens", "exclude_tokens": [True]}}, ConstraintError, "#/format/exclude_tokens/0", "a token"),
    ({"type": "structural_tag", "format": {"type": "any_tokens", "exclude_tokens": ["<y>"]}}, ConstraintError, "#/format", "no token"),
    ({"type": "structural_tag", "format": {"type": "token_dispatch", "rules": [[3, CALL]]}}, ConstraintError, "#/format/rules/0", "name of a token"),
    ({"type": "structural_tag", "format": {"type": "any_text", "max_tokens": "3"}}, ConstraintError, "#/format/max_tokens", "an integer"),
    ({"type": "structural_tag", "format": {"type": "any_text", "exclude": ["a"]}}, ConstraintError, "#/format", "not a member"),
    ({"type": "structural_tag", "format": {"type": "any_text", "excludes": [1]}}, ConstraintError, "#/format/excludes/0", "string"),
    ({"type": "structural_tag", "format": {"type": "or", "elements": []}}, ConstraintError, "#/format", "nothing"),
    ({"type": "structural_tag", "format": {"type": "tag", "begin": "a", "end": "b"}}, ConstraintError, "#/format", "'content' is missing"),
    ({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<x"], "tags": [CALL]}}, ConstraintError, "#/format", "no tag begins"),
    ({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [CALL, OTHER]}}, ConstraintError, "#/format", "no trigger begins"),
    ({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": SCHEMA, "style": "xml"}}, UnsupportedKeyword, "#/format", "style"),
    ({"type": "structural_tag", "format": {**CALL, "content": {"type": "json_schema", "json_schema": {"type": "array", "items": {"type": "x"}}}}}, ConstraintError, "#/format/content/items", "type"),
    ({"type": "structural_tag", "format": {"type": "repeat", "min": 3, "max": 2, "content": {"type": "any_text"}}}, ConstraintError, "#/format", "impossible"),
    ({"format": {}}, ConstraintError, "#", "type"),
    ([1], ConstraintError, "#", "object"),
    ({"json": SCHEMA, "regex": "a"}, ConstraintError, "#", "json and regex"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "kind", "path", "message"), REFUSED)
def test_errors_tell_the_path(form: Any, kind: type[ConstraintError], path: str, message: str) -> None:
    with pytest.raises(kind, match=message) as error:
        COMPILER.compile(StructuralTag(json.dumps(form)))
    assert error.value.path == path


def test_deep_nesting_is_a_limit() -> None:
    deep: Any = Const("a")
    for _ in range(300):
        deep = Repeat(deep)
    with pytest.raises(ConstraintLimit, match="nesting"):
        COMPILER.compile(StructuralTag(deep))
    form: Any = {"type": "any_text"}
    for _ in range(300):
        form = {"type": "star", "content": form}
    with pytest.raises(ConstraintLimit, match="nesting"):
        StructuralTag({"type": "structural_tag", "format": form})


@pytest.mark.parametrize("content", [Regex("[ab<]*"), Text(), Regex("a*<*b?<*")])
def test_content_that_looks_like_its_end_is_told_apart(content: Any) -> None:
    constraint = COMPILER.compile(StructuralTag(Triggered(["<a>"], [Tag("<a>", content, ["</a>", "<<>"])])))
    for inside in ("", "<", "a<", "a<b<", "aa"):
        for cut in (1, 2, 3, 50):
            reply = f"<a>{inside}</a>x<a>{inside}</a>".encode()
            parser = OutputParser(constraint)
            events = [
                event for i in range(0, len(reply), cut) for event in parser.feed(reply[i : i + cut])
            ] + parser.finish()
            assert [event.content for event in events if isinstance(event, TagEnd)] == [inside, inside], inside
            assert "".join(event.text for event in events if isinstance(event, TagDelta)) == 2 * inside


SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), None, b"<a>", b"<b>", b"<c>"], [256], {"<a>": 257, "<b>": 258, "<c>": 259}
)
TOKEN_A, TOKEN_B, TOKEN_C = (SPECIAL.spellings[token] or b"" for token in (257, 258, 259))
DIGITS_FORM = {"type": "regex", "pattern": "[0-9]+"}
TOKEN_FORMS: list[tuple[dict[str, Any], list[bytes], list[bytes]]] = [
    ({"type": "any_tokens"}, [b"", b"a" + TOKEN_A + TOKEN_B, TOKEN_C], [b"\xff"]),
    ({"type": "any_tokens", "exclude_tokens": ["<a>", 258]}, [b"<a>", TOKEN_C + b"x"], [TOKEN_A, TOKEN_B]),
    ({"type": "tag", "begin": {"type": "token", "token": "<a>"}, "content": {"type": "any_tokens"}, "end": {"type": "token", "token": "<b>"}},
     [TOKEN_A + TOKEN_B, TOKEN_A + b"x" + TOKEN_C + b"y" + TOKEN_A + TOKEN_B], [TOKEN_A + b"x", TOKEN_A + TOKEN_B + TOKEN_B]),
    ({"type": "token_dispatch", "rules": [["<a>", DIGITS_FORM]], "exclude_tokens": ["<b>"]}, [b"x", TOKEN_C + TOKEN_A + b"1" + TOKEN_A + b"22x"], [TOKEN_A, TOKEN_B, TOKEN_A + b"x"]),
    ({"type": "token_dispatch", "rules": [["<a>", DIGITS_FORM]], "loop": False}, [TOKEN_B, TOKEN_B + TOKEN_A + b"1"], [TOKEN_A + b"1x", TOKEN_A]),
    ({"type": "token_triggered_tags", "trigger_tokens": ["<a>"], "exclude_tokens": ["<c>"],
      "tags": [{"begin": {"type": "token", "token": "<a>"}, "content": DIGITS_FORM, "end": "!"}]}, [b"", TOKEN_B + TOKEN_A + b"1!" + TOKEN_B, b"<c>"], [TOKEN_C, TOKEN_A + b"1"]),
    ({"type": "grammar", "grammar": 'root ::= TagDispatch(("x", word)) word ::= "1"'.replace(" word ::=", "\nword ::=")}, [b"", b"ax1b"], [b"x"]),
]  # fmt: skip


@pytest.mark.parametrize(("form", "accepted", "rejected"), TOKEN_FORMS)
def test_text_with_special_tokens_in_it(form: dict[str, Any], accepted: list[bytes], rejected: list[bytes]) -> None:
    constraint = Compiler(SPECIAL).compile(StructuralTag({"type": "structural_tag", "format": form}))
    assert [one for one in accepted if not constraint.accepts(one)] == []
    assert [one for one in rejected if constraint.accepts(one)] == []
    for text in accepted:
        parser = OutputParser(constraint)
        events = [*parser.feed(text), *parser.finish()]
        assert not any("\ufffd" in repr(event) for event in events)

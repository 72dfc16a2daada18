"""The extension `maskwright` of answers: how free each token was, and what the constraint kept the model from saying."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Compiler, JsonSchema, Regex, Vocabulary
from maskwright.engine.requests.output import TokenRecord
from maskwright.engine.requests.request import Request
from maskwright.sampling import SamplingParams, TokenLogprob
from maskwright.server import token_details
from maskwright.server.settings import ServerSettings
from maskwright.server.token_details import DetailReader

from .alike import assert_alike
from .serving import served

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "languages": {"type": "array", "items": {"enum": ["en", "fr"]}}},
    "required": ["name", "age", "languages"],
    "additionalProperties": False,
}
ASKED: Any = {"messages": [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}], "max_tokens": 64, "temperature": 0}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}


def chunks(http: httpx.Client, path: str, **options: Any) -> Iterator[Any]:
    with http.stream("POST", path, json={**options, "stream": True}) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line[6:])


def streamed(http: httpx.Client, path: str = "/v1/chat/completions", **options: Any) -> tuple[Any, list[Any], str]:
    """(what is told once, the tokens of choice 0, its text)."""
    every = list(chunks(http, path, **options))
    assert not any("maskwright" in chunk for chunk in every[1:])
    tokens, text = [], ""
    for chunk in every:
        for choice in chunk["choices"]:
            text += choice["delta"].get("content", "") if "delta" in choice else choice["text"]
            assert choice.get("maskwright", {"version": 1})["version"] == 1
            tokens += choice.get("maskwright", {"tokens": []})["tokens"]
    return every[0]["maskwright"], tokens, text


def test_each_token_says_how_free_it_was(http: httpx.Client) -> None:
    form = {"json": SCHEMA, "disable_any_whitespace": True}
    head, tokens, text = streamed(http, **ASKED, structured_outputs=form, maskwright={"tokens": True})
    assert head["version"] == 1 and head["vocabulary_size"] > 1000
    assert head["constraint"]["compile_seconds"] >= 0 and head["constraint"]["min_tokens"] > 5
    assert "".join(token["text"] for token in tokens) == text and json.loads(text)["name"]
    kinds = {token["kind"] for token in tokens}
    assert kinds == {"forced", "constrained", "free"}
    for token in tokens:
        assert token["num_allowed"] >= 1 and 0 <= token["kept_mass"] <= 1 and 0 <= token["probability"] <= 1
        assert len(token["candidates"]) == 5
    forced = "".join(token["text"] for token in tokens if token["kind"] == "forced")
    assert forced.startswith('{"name":"')


def test_masked_candidates_say_why(http: httpx.Client) -> None:
    _, tokens, _ = streamed(http, **ASKED, response_format=FORM, maskwright={"tokens": True, "candidates": 8})
    masked = [candidate for token in tokens for candidate in token["candidates"] if not candidate["allowed"]]
    assert masked and all(candidate["reason"] for candidate in masked)
    inside = [candidate for candidate in masked if candidate.get("dies_at") is not None]
    assert inside and all(candidate["expected"] for candidate in inside)
    assert any(path.startswith("#/properties/age") for token in tokens for path in token["paths"])


def test_paths_are_of_the_members_to_which_the_text_belongs(http: httpx.Client) -> None:
    _, tokens, text = streamed(http, **ASKED, response_format=FORM, maskwright={"tokens": True})
    value, at = json.loads(text), 0
    names, ages = text.index(value["name"]), text.index(str(value["age"]))
    for token in tokens:
        end = at + len(token["text"])
        for member, begin, length in (("name", names, len(value["name"])), ("age", ages, len(str(value["age"])))):
            if begin <= at and end <= begin + length and end > at:
                assert token["paths"] == [f"#/properties/{member}"]
        at = end
    assert tokens[0]["paths"][0] == "#"


def test_what_the_mask_left_is_the_kept_mass(http: httpx.Client) -> None:
    """The probabilities of the masked candidates are part of what was not kept."""
    _, tokens, _ = streamed(http, **ASKED, response_format=FORM, maskwright={"tokens": True, "candidates": 20})
    for token in tokens:
        masked = sum(candidate["probability"] for candidate in token["candidates"] if not candidate["allowed"])
        kept = sum(candidate["probability"] for candidate in token["candidates"] if candidate["allowed"])
        assert kept <= token["kept_mass"] + 1e-4 and masked <= 1 - token["kept_mass"] + 1e-4


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_whole_answer_has_what_its_stream_has(http: httpx.Client, path: str) -> None:
    asked = {**ASKED, "response_format": FORM, "maskwright": {"tokens": True}}
    if path == "/v1/completions":
        asked = {**asked, "prompt": "Ada Lovelace, 36"}
        del asked["messages"]
    whole = http.post(path, json=asked).json()
    _, tokens, _ = streamed(http, path, **asked)
    assert_alike(whole["choices"][0]["maskwright"], {"version": 1, "tokens": tokens})
    assert whole["maskwright"]["version"] == 1


def test_it_is_off_unless_asked_for(http: httpx.Client) -> None:
    for asked in (ASKED, {**ASKED, "maskwright": {}}, {**ASKED, "maskwright": {"tokens": False, "candidates": 9}}):
        answer = http.post("/v1/chat/completions", json={**asked, "response_format": FORM}).json()
        assert "maskwright" not in answer and "maskwright" not in answer["choices"][0]
        assert not any("maskwright" in json.dumps(chunk) for chunk in chunks(http, "/v1/chat/completions", **asked))


def test_nothing_is_computed_for_it_then(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("details were computed for a request that did not ask for them")

    monkeypatch.setattr(token_details, "DetailReader", never)
    for asked in (ASKED, {**ASKED, "stream": True, "maskwright": {}}):
        assert http.post("/v1/chat/completions", json={**asked, "response_format": FORM}).status_code == 200


def test_it_changes_no_output_and_no_logprobs(http: httpx.Client) -> None:
    asked = {**ASKED, "temperature": 1.3, "seed": 5, "logprobs": True, "top_logprobs": 2, "response_format": FORM}
    plain = http.post("/v1/chat/completions", json=asked).json()["choices"][0]
    told = http.post("/v1/chat/completions", json={**asked, "maskwright": {"tokens": True, "candidates": 7}}).json()["choices"][0]
    assert {name: told[name] for name in plain} == plain


def test_without_candidates_forced_tokens_are_not_asked_of_the_model(http: httpx.Client) -> None:
    _, tokens, _ = streamed(http, **ASKED, response_format=FORM, maskwright={"tokens": True, "candidates": 0})
    assert any(token["probability"] is None and token["kind"] == "forced" for token in tokens)
    assert all(token["candidates"] == [] for token in tokens)


def test_free_text_is_free(http: httpx.Client) -> None:
    head, tokens, _ = streamed(http, **{**ASKED, "max_tokens": 5}, maskwright={"tokens": True})
    assert head["constraint"] is None
    assert all(token["kind"] == "free" and token["kept_mass"] == pytest.approx(1.0) for token in tokens)
    assert all(candidate["allowed"] for token in tokens for candidate in token["candidates"])


def test_several_outputs_are_told_apart(http: httpx.Client) -> None:
    asked = {**ASKED, "n": 2, "temperature": 1.5, "seed": 1, "regex": "[a-z]{3,9}", "maskwright": {"tokens": True}}
    whole = http.post("/v1/chat/completions", json=asked).json()
    for choice in whole["choices"]:
        assert "".join(token["text"] for token in choice["maskwright"]["tokens"]) == choice["message"]["content"]
    best = http.post("/v1/completions", json={"prompt": ["x", "y"], "n": 1, "best_of": 3, "temperature": 1.5, "seed": 1, "regex": "[a-z]{3,9}",
                                              "maskwright": {"tokens": True}}).json()  # fmt: skip
    for choice in best["choices"]:
        assert "".join(token["text"] for token in choice["maskwright"]["tokens"]) == choice["text"]


def test_tokens_of_calls_come_too(http: httpx.Client) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}}}}
    _, tokens, _ = streamed(http, **ASKED, tools=[tool], tool_choice="required", maskwright={"tokens": True})
    assert "weather" in "".join(token["text"] for token in tokens)


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"version": 2, "tokens": True}, "maskwright.version"),
        ({"token": True}, "maskwright.token"),
        ({"tokens": True, "candidates": 21}, "maskwright.candidates"),
        ({"tokens": True, "candidates": -1}, "maskwright.candidates"),
    ],
)
def test_what_it_does_not_know_is_refused(http: httpx.Client, asked: Any, param: str) -> None:
    answer = http.post("/v1/chat/completions", json={**ASKED, "maskwright": asked})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param


def test_the_operators_limit_counts(llm: LLM) -> None:
    with served(llm, ServerSettings(max_logprobs=3)) as server, server.http() as http:
        answer = http.post("/v1/chat/completions", json={**ASKED, "maskwright": {"tokens": True, "candidates": 4}})
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "maskwright.candidates"


# -- the reader alone -------------------------------------------------------------------------------------------------------

WORDS = [bytes([byte]) for byte in range(256)] + [b"aa", b"ab", "é".encode()]
EOS = len(WORDS)
VOCABULARY = Vocabulary([*WORDS, None], eos_token_ids=[EOS])


def read(source: Any, token_ids: list[int], num_allowed: list[int], top: list[int], max_tokens: int = 50) -> list[Any]:
    constraint = None if source is None else Compiler(VOCABULARY).compile(source)
    request = Request(prompt_token_ids=(0,), sampling=SamplingParams(max_tokens=max_tokens), constraint=constraint)
    reader = DetailReader(request, constraint, VOCABULARY, 100, num_candidates=len(top))
    candidates = tuple(TokenLogprob(token_id, -1.0) for token_id in top)
    return reader.read([TokenRecord(token_id, -0.5, 0.9, number, candidates) for token_id, number in zip(token_ids, num_allowed, strict=True)])


def test_a_token_that_could_not_finish_in_time_is_told_as_such() -> None:
    """After "a" only "b" ends at once; another "a" would, but then needs one token more than there is."""
    (first,) = read(Regex("(aa)*b|a{5}"), [97], [3], [97, 98, 99], max_tokens=50)
    assert [candidate["allowed"] for candidate in first["candidates"]] == [True, True, False]
    (tight,) = read(Regex("b|a{5}"), [98], [1], [97, 98, 99], max_tokens=1)
    told = {candidate["id"]: candidate for candidate in tight["candidates"]}
    assert told[98]["allowed"] and "max_tokens" in told[97]["reason"] and "cannot follow" in told[99]["reason"]


def test_characters_of_several_tokens_come_with_the_last() -> None:
    first, second = read(JsonSchema({"const": "é"}), [ord('"'), 0xC3], [1, 2], [])
    assert (first["text"], second["text"], second["token"]) == ('"', "", "\ufffd")
    third, fourth = read(None, [0xC3, 0xA9], [257, 257], [])
    assert (third["text"], fourth["text"]) == ("", "é")


def test_tokens_that_are_no_text_have_no_spelling() -> None:
    (only,) = read(Regex("a"), [97], [1], [EOS])
    assert only["candidates"][0]["token"] is None and "not complete" in only["candidates"][0]["reason"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_fields_say_what_the_constraint_did_to_them(http: httpx.Client, path: str) -> None:
    asked: Any = {**ASKED, "response_format": FORM, "maskwright": {"fields": True}}
    if path == "/v1/completions":
        asked = {**asked, "prompt": "Ada Lovelace, 36"}
        del asked["messages"]
    choice = http.post(path, json=asked).json()["choices"][0]
    fields, text = choice["maskwright"]["fields"], choice["text"] if "text" in choice else choice["message"]["content"]
    assert set(choice["maskwright"]) == {"version", "fields"}
    value = json.loads(text)
    assert [field["path"] for field in fields if field["path"][:1] != ["languages"]] == [["name"], ["age"], []]
    assert len([field for field in fields if field["path"][:1] == ["languages"]]) == len(value["languages"]) + 1
    for field in fields:
        assert 0 <= field["probability"] <= field["constrained_probability"] <= 1 and 0 <= field["kept_mass"] <= 1
        assert field["probability"] == pytest.approx(field["constrained_probability"] * field["kept_mass"], rel=1e-3, abs=1e-9)
    streamed_fields = [
        field
        for chunk in chunks(http, path, **asked)
        for each in chunk["choices"]
        for field in each.get("maskwright", {}).get("fields", ())
    ]
    assert_alike(streamed_fields, fields)


def test_a_strained_field_is_marked(http: httpx.Client) -> None:
    odd = {"type": "object", "properties": {"a": {"const": "zqxjkvbzqx"}}, "required": ["a"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": odd}}
    choice = http.post("/v1/chat/completions", json={**ASKED, "response_format": form, "maskwright": {"fields": True}}).json()["choices"][0]
    (a, whole) = choice["maskwright"]["fields"]
    assert a["strained"] and a["kept_mass"] < 0.01 and not whole["strained"]


def test_a_number_that_is_all_of_the_output_is_told_of_at_its_end(http: httpx.Client) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer", "minimum": 7, "maximum": 7}}}
    asked = {**ASKED, "response_format": form, "maskwright": {"fields": True}}
    told = [each.get("maskwright") for chunk in chunks(http, "/v1/chat/completions", **asked) for each in chunk["choices"]]
    (fields,) = [each["fields"] for each in told if each]
    assert fields[0]["path"] == []
    free = http.post("/v1/chat/completions", json={**ASKED, "maskwright": {"fields": True}}).json()
    assert "maskwright" not in free["choices"][0] and "maskwright" in free

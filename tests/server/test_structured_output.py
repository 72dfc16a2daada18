"""Every way to ask for a constraint, and what is answered when it cannot be had."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.server.settings import ServerSettings

from .serving import Served, served

ASKED: Any = {"messages": [{"role": "user", "content": "Ada Lovelace, 36"}], "max_tokens": 24, "temperature": 1.2, "seed": 4}
SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}
GRAMMAR = 'root ::= ("ab" | "cd"){2}'
TAGS = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<on>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</on>"},
}


def ask(http: httpx.Client, **options: Any) -> Any:
    answer = http.post("/v1/chat/completions", json={**ASKED, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


def refusal(http: httpx.Client, status: int = 400, **options: Any) -> Any:
    answer = http.post("/v1/chat/completions", json={**ASKED, **options})
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    return error


@pytest.mark.parametrize(
    "asked",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": False}}},
        {"response_format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
        {"response_format": {"type": "json_object", "schema": SCHEMA}},
        {"structured_outputs": {"json": SCHEMA}},
        {"guided_json": json.dumps(SCHEMA)},
        {"json_schema": SCHEMA},
    ],
    ids=str,
)
def test_json_schemas(http: httpx.Client, asked: Any) -> None:
    choice = ask(http, **asked)
    assert json.loads(choice["message"]["content"])["on"] in (True, False) and choice["finish_reason"] == "stop"


@pytest.mark.parametrize("asked", [{"response_format": {"type": "json_object"}}, {"structured_outputs": {"json_object": True}}], ids=str)
def test_any_object(http: httpx.Client, asked: Any) -> None:
    assert isinstance(json.loads(ask(http, **asked)["message"]["content"]), dict)


@pytest.mark.parametrize(
    "asked",
    [
        {"response_format": {"type": "regex", "regex": "[a-c]{3}x"}},
        {"response_format": {"type": "regex", "pattern": "[a-c]{3}x"}},
        {"structured_outputs": {"regex": "[a-c]{3}x"}},
        {"guided_regex": "[a-c]{3}x"},
        {"regex": "[a-c]{3}x"},
    ],
    ids=str,
)
def test_regular_expressions(http: httpx.Client, asked: Any) -> None:
    assert re.fullmatch("[a-c]{3}x", ask(http, **asked)["message"]["content"])


@pytest.mark.parametrize(
    "asked",
    [
        {"response_format": {"type": "grammar", "grammar": GRAMMAR}},
        {"response_format": {"type": "grammar", "grammar": 'start: ("ab" | "cd") ("ab" | "cd")', "syntax": "lark"}},
        {"structured_outputs": {"grammar": GRAMMAR}},
        {"guided_grammar": GRAMMAR},
        {"grammar": GRAMMAR},
        {"ebnf": 'root ::= ("ab" | "cd") ("ab" | "cd")'},
    ],
    ids=str,
)
def test_grammars(http: httpx.Client, asked: Any) -> None:
    assert re.fullmatch("(ab|cd){2}", ask(http, **asked)["message"]["content"])


@pytest.mark.parametrize(
    "asked",
    [{"response_format": {"type": "choice", "choice": ["yes", "no"]}}, {"guided_choice": ["yes", "no"]}, {"structured_outputs": {"choice": ["yes", "no"]}}],
    ids=str,
)
def test_choices(http: httpx.Client, asked: Any) -> None:
    assert ask(http, **asked)["message"]["content"] in ("yes", "no")


@pytest.mark.parametrize("asked", [{"response_format": TAGS}, {"structured_outputs": {"structural_tag": TAGS}}], ids=["openai", "vllm"])
def test_structural_tags(http: httpx.Client, asked: Any) -> None:
    assert re.fullmatch(r'<on>\{"on": ?(true|false)\}</on>', ask(http, **asked)["message"]["content"])


def test_text_is_no_constraint(http: httpx.Client) -> None:
    plain, text = ask(http), ask(http, response_format={"type": "text"})
    assert plain["message"] == text["message"]


def test_completions_take_them_too(http: httpx.Client) -> None:
    answer = http.post("/v1/completions", json={"prompt": "x", "max_tokens": 8, "regex": "[0-9]{4}"})
    assert re.fullmatch("[0-9]{4}", answer.json()["choices"][0]["text"])


# -- refused --------------------------------------------------------------------------------------------------------------


def test_an_unsupported_keyword_is_named_with_its_path(http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": r"(a)\1"}}}
    error = refusal(http, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}})
    assert error["param"] == "response_format.json_schema.schema" and error["type"] == "invalid_request_error"
    assert error["path"].startswith("#/properties/name") and error["reason"]


@pytest.mark.parametrize(("member", "value"), [("name", 1), ("name", None), ("description", {})])
@pytest.mark.parametrize("is_flat", [True, False])
def test_names_and_descriptions_of_schemas_are_texts(http: httpx.Client, member: str, value: Any, is_flat: bool) -> None:
    form = {"name": "x", "schema": SCHEMA, member: value}
    error = refusal(http, response_format={"type": "json_schema", **(form if is_flat else {"json_schema": form})})
    assert error["param"].endswith(f".{member}")


LOOSE_SCHEMA = {"type": "string", "maxLength": 3, "pattern": r"(a)\1"}
LOOSE = {"type": "json_schema", "name": "x", "schema": LOOSE_SCHEMA, "strict": False}
LOOSE_TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"x": LOOSE_SCHEMA}, "required": ["x"]}, "strict": False}


@pytest.mark.parametrize(
    ("path", "asked", "holder"),
    [
        ("/v1/chat/completions", {"messages": ASKED["messages"], "response_format": {"type": "json_schema", "json_schema": {k: v for k, v in LOOSE.items() if k != "type"}}}, None),
        ("/v1/chat/completions", {"messages": ASKED["messages"], "tools": [{"type": "function", "function": LOOSE_TOOL}], "tool_choice": "required"}, None),
        ("/v1/completions", {"prompt": "x", "response_format": LOOSE}, None),
        ("/v1/responses", {"input": "x", "text": {"format": LOOSE}}, "response"),
        ("/v1/messages", {"messages": ASKED["messages"], "max_tokens": 40, "output_config": {"format": LOOSE}}, "message"),
    ],
    ids=["chat", "tools", "completions", "responses", "messages"],
)  # fmt: skip
def test_without_strict_it_is_left_out_and_told(http: httpx.Client, path: str, asked: Any, holder: str | None) -> None:
    whole = http.post(path, json=asked)
    assert whole.status_code == 200, whole.text
    residue = whole.json()["residue"]
    assert len(residue) == 1 and "pattern" in residue[0]
    with http.stream("POST", path, json={**asked, "stream": True}) as stream:
        lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: {")]
    first = json.loads(lines[0])
    assert (first if holder is None else first[holder])["residue"] == residue


NOTED = {"type": "string", "maxLength": 3, "patern": "a"}
NOTED_TOOL = {"type": "object", "properties": {"x": NOTED}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("path", "asked", "place"),
    [
        ("/v1/chat/completions", {"messages": ASKED["messages"], "json_schema": NOTED}, "#"),
        ("/v1/chat/completions", {"messages": ASKED["messages"], "tools": [{"type": "function", "function": {"name": "f", "parameters": NOTED_TOOL}}], "tool_choice": "required"}, "#/tools/0/function/parameters/properties/x"),
        ("/v1/completions", {"prompt": "x", "json_schema": NOTED}, "#"),
        ("/v1/responses", {"input": "x", "json_schema": NOTED}, "#"),
        ("/v1/messages", {"messages": ASKED["messages"], "max_tokens": 40, "json_schema": NOTED}, "#"),
        ("/api/generate", {"prompt": "x", "format": NOTED}, "#"),
        ("/completion", {"prompt": "x", "json_schema": NOTED}, "#"),
        ("/generate", {"text": "x", "sampling_params": {"json_schema": json.dumps(NOTED)}}, "#"),
    ],
    ids=["chat", "tools", "completions", "responses", "messages", "ollama", "llama.cpp", "sglang"],
)  # fmt: skip
def test_what_is_read_in_another_way_is_noted(http: httpx.Client, path: str, asked: Any, place: str) -> None:
    answer = http.post(path, json={**asked, "stream": False})
    assert answer.status_code == 200, answer.text
    told = answer.json().get("meta_info", answer.json())
    assert len(told["notes"]) == 1 and f"{place}: 'patern'" in told["notes"][0] and "residue" not in told


@pytest.mark.parametrize(
    ("asked", "param", "code"),
    [
        ({"regex": "(["}, "regex", "constraint_syntax"),
        ({"grammar": "root ::= other"}, "grammar", None),
        ({"guided_json": {"type": "nothing"}}, "guided_json", None),
        ({"json_schema": False}, "json_schema", "invalid_constraint"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", None),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.json_schema.schema", "invalid_value"),
        ({"response_format": {"type": "regex", "regex": "a", "flags": "i"}}, "response_format.flags", "unknown_parameter"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "whitespace_pattern": " "}}, "structured_outputs.whitespace_pattern", "invalid_value"),
        ({"regex": "a", "guided_json": {}}, "regex", None),
        ({"regex": "[a-z]{30}", "max_tokens": 2}, "max_tokens", "max_tokens_too_small"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]}, "tools", "invalid_constraint"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "f"}, "tool_choice", "invalid_value"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice", None),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(http: httpx.Client, asked: Any, param: str, code: str | None) -> None:
    error = refusal(http, **asked)
    assert error["param"] == param
    assert code is None or error["code"] == code


def test_hostile_nesting_is_refused(http: httpx.Client) -> None:
    deep = '{"not":' * 5000 + "{}" + "}" * 5000
    body = json.dumps({**ASKED, "json_schema": "SCHEMA"}).replace('"SCHEMA"', deep)
    for text in (body, "[" * 200_000):
        answer = http.post("/v1/chat/completions", content=text, headers={"content-type": "application/json"})
        assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_an_operator_can_refuse_grammars(llm: LLM) -> None:
    with served(llm, ServerSettings(client_grammars=False)) as closed, closed.http() as http:
        for asked in ({"regex": "a"}, {"grammar": GRAMMAR}, {"response_format": TAGS}):
            assert refusal(http, 403, **asked)["code"] == "grammars_refused"
        assert json.loads(ask(http, json_schema=SCHEMA)["message"]["content"])["on"] in (True, False)
        assert ask(http, guided_choice=["yes", "no"])["message"]["content"] in ("yes", "no")


def test_a_constraint_is_compiled_once(server: Served, http: httpx.Client) -> None:
    def counted() -> dict[str, float]:
        lines = [line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if line.startswith("maskwright:constraint")]
        lines = [(name, value) for name, value in lines if "outcome" not in name or "compiled" in name]
        return {name.split("{")[0]: float(value) for name, value in lines if "bucket" not in name}

    before = counted()
    for _ in range(3):
        ask(http, regex="once[0-9]{2}")
    after = counted()
    assert after["maskwright:constraint_compile_seconds_count"] - before["maskwright:constraint_compile_seconds_count"] == 1
    assert after["maskwright:constraint_cache_hits_total"] - before["maskwright:constraint_cache_hits_total"] == 2

"""Ollama's interface, the routes of vLLM's tools, and the names of the model."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pytest

from maskwright import LLM, UsageError
from maskwright.cli.options import spread
from maskwright.server.settings import ServerSettings

from .serving import served

SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}
SAID: Any = [{"role": "user", "content": "hello"}]
TOOL: Any = {"type": "function", "function": {"name": "switch", "parameters": SCHEMA}}
FEW = {"num_predict": 40, "temperature": 0}


def lines(http: httpx.Client, path: str, body: Any) -> list[Any]:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize(("path", "asked"), [("/api/chat", {"messages": SAID}), ("/api/generate", {"prompt": "hello", "system": "be brief"})])
@pytest.mark.parametrize("form", ["json", SCHEMA, None, ""])
def test_ollamas_answers_whole_and_in_lines(http: httpx.Client, path: str, asked: Any, form: Any) -> None:
    body = {**asked, "options": {**FEW, "num_ctx": 4096}, "format": form}
    answer = http.post(path, json={**body, "stream": False, "keep_alive": "5m"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-maskwright-ignored"] == "keep_alive, options.num_ctx"
    whole = answer.json()
    content = whole["response"] if path == "/api/generate" else whole["message"]["content"]
    assert whole["done"] is True and whole["done_reason"] in ("stop", "length") and whole["eval_count"] > 0
    if form:
        jsonschema.validate(json.loads(content), SCHEMA if isinstance(form, dict) else {"type": "object"})
    *parts, last = lines(http, path, body)
    joined = "".join(part["response"] if path == "/api/generate" else part["message"]["content"] for part in parts)
    assert joined == content and last["done"] is True and not any(part["done"] for part in parts)


def test_ollamas_tools_and_histories(http: httpx.Client) -> None:
    bias: Any = {"messages": SAID, "tools": [TOOL], "options": {**FEW, "temperature": 2.0}, "stream": False}
    for seed in range(6):
        asked = {**bias, "options": {**bias["options"], "seed": seed}}
        message = http.post("/api/chat", json=asked).json()["message"]
        for call in message.get("tool_calls", ()):
            jsonschema.validate(call["function"]["arguments"], SCHEMA)
        told = [part["message"]["tool_calls"] for part in lines(http, "/api/chat", {**asked, "stream": True}) if "tool_calls" in part["message"]]
        assert told == ([message["tool_calls"]] if "tool_calls" in message else [])
    history = [*SAID, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "switch", "arguments": {"on": True}}}]}]
    history += [{"role": "tool", "content": "done", "tool_name": "switch"}]
    assert http.post("/api/chat", json={"messages": history, "options": FEW, "stream": False}).status_code == 200


def test_ollamas_last_message_is_gone_on_with(http: httpx.Client) -> None:
    begun = [*SAID, {"role": "assistant", "content": '{"on": '}]
    answer = http.post("/api/chat", json={"messages": begun, "format": SCHEMA, "options": FEW, "stream": False}).json()
    assert set(json.loads('{"on": ' + answer["message"]["content"])) == {"on"}


@pytest.mark.parametrize(("path", "asked", "empty"), [("/api/chat", {"messages": []}, "message"), ("/api/generate", {}, "response"), ("/api/generate", {"prompt": ""}, "response")])
def test_who_says_nothing_to_ollama_has_the_model_loaded(http: httpx.Client, path: str, asked: Any, empty: str) -> None:
    answer = http.post(path, json={**asked, "model": "embedded:latest"})
    told = answer.json()
    assert answer.status_code == 200 and told["done"] is True and told["done_reason"] == "load"
    assert told[empty] in ("", {"role": "assistant", "content": ""})
    assert http.post(path, json={**asked, "keep_alive": 0}).json()["done_reason"] == "unload"
    assert http.post(path, json={**asked, "model": "llama"}).status_code == 404
    (running,) = http.get("/api/ps").json()["models"]
    assert running["name"] == "embedded" and running["size"] > 0


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank", "/v1/score", "/score", "/rerank", "/classify", "/encode", "/embeddings", "/embedding", "/pooling", "/v2/rerank", "/reranking", "/v1/reranking"])
def test_embeddings_and_ranks_are_refused_by_their_name(http: httpx.Client, path: str) -> None:
    error = http.post(path, json={"input": "x"}).json()["error"]
    assert error["code"] == "unsupported_endpoint" and error["message"].startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("path", "same"),
    [("/v1/health", "/health"), ("/models", "/v1/models"), ("/health_generate", "/health"), ("/get_server_info", "/server_info")],
)
def test_other_servers_names_of_routes(http: httpx.Client, path: str, same: str) -> None:
    assert http.get(path).json() == http.get(same).json()
    assert http.post("/chat/completions", json={"messages": SAID, "max_tokens": 2}).json()["object"] == "chat.completion"


NOTHING: list[Any] = [
    {"detokenize": True}, {"tokenization_kwargs": {}}, {"structured_outputs": {}}, {"structured_outputs": {"json": None, "regex": None}},
    {"structured_outputs": {"choice": [], "grammar": ""}}, {"grammar": "", "json_schema": None, "guided_choice": []}, {"ebnf": "", "regex": ""},
    {"stop": []}, {"session_params": {}}, {"n_predict": -1, "t_max_predict_ms": 0, "reasoning_budget": -1, "samplers": [], "response_fields": []},
    {"reasoning_format": "auto", "parse_tool_calls": True, "id_slot": -1, "n_keep": 0, "timings_per_token": False, "repeat_penalty": None},
]  # fmt: skip


@pytest.mark.parametrize("more", NOTHING)
def test_what_asks_for_nothing_is_no_error(http: httpx.Client, more: Any) -> None:
    asked = {"messages": SAID, "max_tokens": 2, "temperature": 0}
    answer, plain = (http.post("/v1/chat/completions", json={**asked, **each}) for each in (more, {}))
    assert answer.status_code == 200 and "x-maskwright-ignored" not in answer.headers
    assert answer.json()["choices"] == plain.json()["choices"]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/completion", {"prompt": "x", "n_predict": 60, "grammar": "", "json_schema": SCHEMA}),
        ("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 60, "ebnf": "", "regex": None, "json_schema": json.dumps(SCHEMA)}}),
        ("/v1/chat/completions", {"messages": SAID, "max_tokens": 60, "guided_grammar": "", "guided_choice": [], "guided_json": SCHEMA}),
    ],
)
def test_an_empty_constraint_contradicts_no_other(http: httpx.Client, path: str, asked: Any) -> None:
    answer = http.post(path, json=asked)
    assert answer.status_code == 200, answer.text


def test_llamacpps_names_of_our_parameters(http: httpx.Client) -> None:
    asked = {"messages": SAID, "temperature": 0}
    theirs, ours = {"n_predict": 5, "repeat_penalty": 1.3, "typ_p": 0.9}, {"max_tokens": 5, "repetition_penalty": 1.3, "typical_p": 0.9}
    answers = [http.post("/v1/chat/completions", json={**asked, **names}).json() for names in (theirs, ours, {**theirs, "n_predict": 1, "max_tokens": 5})]
    assert answers[0]["usage"]["completion_tokens"] <= 5
    assert answers[0]["choices"] == answers[1]["choices"] == answers[2]["choices"]
    error = http.post("/v1/chat/completions", json={**asked, "repeat_penalty": -1}).json()["error"]
    assert error["param"] == "repetition_penalty"


def test_what_llamacpps_page_sends_is_named_where_it_has_no_effect(http: httpx.Client) -> None:
    asked = {
        "messages": SAID, "max_tokens": 3, "reasoning_format": "none", "timings_per_token": True, "return_progress": True, "cache_prompt": True,
        "dynatemp_range": 0, "dynatemp_exponent": 1, "xtc_probability": 0, "xtc_threshold": 0.1, "typ_p": 1, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
        "repeat_last_n": 64, "repeat_penalty": 1, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1,
        "samplers": [], "id_slot": 0,
    }  # fmt: skip
    answer = http.post("/v1/chat/completions", json=asked)
    assert answer.status_code == 200, answer.text
    named = set(answer.headers["x-maskwright-ignored"].split(", "))
    assert named == {"reasoning_format", "timings_per_token", "return_progress", "id_slot"}


def test_tokens_of_a_conversation_are_those_that_its_reply_begins_behind(http: httpx.Client) -> None:
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for more in ({}, {"tools": [tool]}, {"messages": [*SAID, {"role": "assistant", "content": "Well, "}], "continue_final_message": True}):
        asked = {"messages": SAID, **more}
        told = http.post("/tokenize", json=asked).json()
        used = http.post("/v1/chat/completions", json={**asked, "max_tokens": 60}).json()["usage"]["prompt_tokens"]
        assert told["count"] == len(told["tokens"]) == used
    assert http.post("/tokenize", json={"messages": SAID, "tools": [{"type": "function"}]}).status_code == 400


@pytest.mark.parametrize(
    ("path", "more", "param"),
    [
        ("/v1/chat/completions", {"logprob_token_ids": [1]}, "logprob_token_ids"),
        ("/v1/chat/completions", {"repetition_detection": {"max_pattern_size": 4}}, "repetition_detection"),
        ("/v1/chat/completions", {"structured_outputs": {"json": SCHEMA, "disable_additional_properties": True}}, "structured_outputs.disable_additional_properties"),
        ("/v1/chat/completions", {"samplers": ["top_k"]}, "samplers"),
        ("/v1/chat/completions", {"t_max_predict_ms": 100}, "t_max_predict_ms"),
        ("/v1/chat/completions", {"reasoning_budget": 8}, "reasoning_budget"),
        ("/completion", {"grammar_lazy": True}, "grammar_lazy"),
        ("/completion", {"speculative.n_max": 4}, "speculative.n_max"),
    ],
)
def test_what_others_have_and_this_has_not_is_refused_with_advice(http: httpx.Client, path: str, more: Any, param: str) -> None:
    asked = {"prompt": "x"} if path == "/completion" else {"messages": SAID}
    error = http.post(path, json={**asked, **more}).json()["error"]
    assert error["param"] == param and "is not supported: " in error["message"]


def test_prompts_of_sglang_in_their_turn_and_apart(http: httpx.Client) -> None:
    body = {"text": ["a", "b"], "sampling_params": {"max_new_tokens": 2}, "priority": 1, "extra_key": ["one", "two"]}
    answer = http.post("/generate", json=body)
    assert answer.status_code == 200 and answer.headers["x-maskwright-ignored"] == "priority"
    assert http.post("/generate", json={**body, "extra_key": ["one"]}).json()["error"]["param"] == "extra_key"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"format": "xml"}, "format"),
        ({"format": {"type": "robot"}}, "format.schema"),
        ({"options": {"temprature": 1}}, "options.temprature"),
        ({"options": {"temperature": -1}}, "options.temperature"),
        ({"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "messages[0].images"),
        ({"template": "x"}, "template"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"model": "llama"}, "model"),
    ],
)
def test_ollamas_errors(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post("/api/chat", json={"messages": SAID, "stream": False, **more})
    assert answer.status_code in (400, 404) and isinstance(answer.json()["error"], str)
    assert answer.json()["param"] == param, answer.text


def test_what_ollamas_clients_ask_first(http: httpx.Client) -> None:
    (model,) = http.get("/api/tags").json()["models"]
    assert model["name"] == "embedded" and http.get("/api/version").json()["version"]
    assert http.post("/api/show", json={"model": "embedded"}).json()["capabilities"]


def test_the_model_has_names(llm: LLM, http: httpx.Client) -> None:
    few = {"messages": SAID, "max_tokens": 2}
    assert http.post("/v1/chat/completions", json={**few, "model": "default"}).status_code == 200
    assert http.post("/v1/chat/completions", json={**few, "model": "other"}).status_code == 404
    with served(llm, ServerSettings(served_model_name=("first", "second"))) as running, running.http() as named:
        assert [each["id"] for each in named.get("/v1/models").json()["data"]] == ["first", "second"]
        for name in ("first", "second", "default"):
            assert named.post("/v1/chat/completions", json={**few, "model": name}).json()["model"] == "first"
        assert named.post("/v1/chat/completions", json={**few, "model": "embedded"}).status_code == 404
    with served(llm, ServerSettings(any_model=True)) as running, running.http() as named:
        assert named.post("/v1/chat/completions", json={**few, "model": "gpt-x"}).status_code == 200
    with pytest.raises(UsageError, match="served_model_name"):
        ServerSettings(served_model_name="one")  # type: ignore[arg-type]


def test_names_on_the_command_line() -> None:
    name = "--served-model-name"
    assert spread(["--port", "1", name, "a", "b", "c", "--model", "m"], name) == ["--port", "1", name, "a", name, "b", name, "c", "--model", "m"]
    assert spread([name, "a"], name) == [name, "a"] and spread(["--model", "m", "x"], name) == ["--model", "m", "x"]


def test_what_vllms_tools_ask(llm: LLM) -> None:
    with served(llm, ServerSettings(api_key=("secret",))) as running, running.http() as http:
        http.headers["Authorization"] = "Bearer secret"
        assert http.get("/ping").status_code == http.post("/ping").status_code == 200
        assert http.get("/load").json() == {"server_load": 0}
        told = http.get("/server_info")
        assert told.json()["max_model_len"] > 0 and "secret" not in told.text
        for path in ("/v1/embeddings", "/v1/rerank"):
            error = http.post(path, json={"input": "x"}).json()["error"]
            assert error["code"] == "unsupported_endpoint" and "embeds none" in error["message"]

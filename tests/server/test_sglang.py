"""SGLang's own routes, in the shapes of its documentation."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx
import jsonschema
import pytest

from maskwright.server.sglang.answers import Generated

FEW: Any = {"max_new_tokens": 6, "temperature": 0}
SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}
TAG = {"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}


def post(http: httpx.Client, text: Any = "hello", params: Any = FEW, **asked: Any) -> Any:
    answer = http.post("/generate", json={"text": text, "sampling_params": params, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(http: httpx.Client, text: Any = "hello", params: Any = FEW, **asked: Any) -> list[Any]:
    answer = http.post("/generate", json={"text": text, "sampling_params": params, **asked, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    *lines, last = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert last == "[DONE]"
    return [json.loads(line) for line in lines]


def timeless(told: Any) -> Any:
    meta = {name: value for name, value in told["meta_info"].items() if name not in ("e2e_latency", "id", "cached_tokens")}
    return {"text": told["text"], "output_ids": told["output_ids"], "meta_info": meta}


def test_an_answer_has_sglangs_members(http: httpx.Client) -> None:
    told = post(http, rid="mine")
    Generated.model_validate(told, strict=True)
    assert set(told) == {"text", "output_ids", "meta_info"} and told["meta_info"]["id"] == "mine"
    assert set(told["meta_info"]) == {"id", "finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens", "e2e_latency"}
    assert told["meta_info"]["finish_reason"] == {"type": "length", "length": 6} and len(told["output_ids"]) == 6


@pytest.mark.parametrize(
    "params",
    [FEW, {**FEW, "regex": "[ab]{3}"}, {**FEW, "stop": "un"}, {**FEW, "n": 2}, {**FEW, "max_new_tokens": 0}, {"json_schema": json.dumps(SCHEMA), "temperature": 0}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("logprobs", [{}, {"return_logprob": True, "top_logprobs_num": 2, "logprob_start_len": 0}], ids=str)
def test_the_last_event_is_the_whole_answer(http: httpx.Client, params: Any, logprobs: Any) -> None:
    whole = post(http, params=params, **logprobs)
    each = whole if isinstance(whole, list) else [whole]
    told = events(http, params=params, **logprobs)
    for number, one in enumerate(each):
        of_one = [event for event in told if event.get("index", 0) == number]
        assert timeless(of_one[-1]) == timeless(one)
        for before, after in pairwise(of_one):  # each has all of the text so far
            assert after["text"].startswith(before["text"]) and after["output_ids"][: len(before["output_ids"])] == before["output_ids"]


def test_constraints_hold(http: httpx.Client) -> None:
    jsonschema.validate(json.loads(post(http, params={"json_schema": json.dumps(SCHEMA)})["text"]), SCHEMA)
    assert post(http, params={"ebnf": 'root ::= "yes" | "no"'})["text"] in ("yes", "no")
    assert post(http, params={"regex": "[0-9]{4}"})["text"].isdecimal()
    assert post(http, params={"structural_tag": json.dumps(TAG)})["text"] == post(http, params={"structural_tag": TAG})["text"] == "abc"


def test_lists_of_prompts(http: httpx.Client) -> None:
    alone = [post(http, text)["text"] for text in ("hello", "b")]
    assert [each["text"] for each in post(http, ["hello", "b"])] == alone
    different = post(http, ["hello", "b"], [FEW, {**FEW, "regex": "[ab]{3}"}], rid=["x", "y"], return_logprob=[False, True])
    assert different[0]["text"] == alone[0] and len(different[1]["text"]) == 3
    assert [each["meta_info"]["id"] for each in different] == ["x", "y"]
    assert ["output_token_logprobs" in each["meta_info"] for each in different] == [False, True]
    ids = http.post("/tokenize", json={"prompt": "hello"}).json()["tokens"]
    raw = http.post("/tokenize", json={"content": "hello"}).json()["tokens"]
    assert post(http, None, input_ids=raw)["text"] == alone[0] and ids
    assert [each["text"] for each in post(http, None, input_ids=[raw, raw])] == [alone[0]] * 2


def test_log_probabilities_of_prompt_and_output(http: httpx.Client) -> None:
    asked = {"return_logprob": True, "return_text_in_logprobs": True, "top_logprobs_num": 1}
    meta = post(http, **asked, logprob_start_len=0)["meta_info"]
    assert meta["input_token_logprobs"][0][0] is None and len(meta["input_token_logprobs"]) == meta["prompt_tokens"]
    assert "".join(text for _, _, text in meta["input_token_logprobs"]) == "hello"
    assert len(meta["output_token_logprobs"]) == len(meta["output_top_logprobs"]) == 6
    later = post(http, **asked, logprob_start_len=1)["meta_info"]
    assert later["input_token_logprobs"] == meta["input_token_logprobs"][1:]
    assert post(http, **asked)["meta_info"]["input_token_logprobs"] == []
    assert post(http, return_logprob=True)["meta_info"]["output_token_logprobs"][0][2] is None
    greedy = [[logprob, token] for logprob, token, _ in meta["output_token_logprobs"]]
    assert greedy == [[top[0][0], top[0][1]] for top in meta["output_top_logprobs"]]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"text": None}, "text"),
        ({"input_ids": [1]}, "text"),
        ({"text": []}, "text"),
        ({"sampling_params": {"temprature": 1}}, "sampling_params.temprature"),
        ({"sampling_params": {"temperature": -1}}, "sampling_params.temperature"),
        ({"sampling_params": [{"temperature": "x"}]}, "sampling_params[0].temperature"),
        ({"sampling_params": [{}, {}]}, "sampling_params"),
        ({"sampling_params": {"json_schema": "{"}}, "sampling_params.json_schema"),
        ({"sampling_params": {"json_schema": '{"type": "robot"}'}}, "sampling_params.json_schema"),
        ({"sampling_params": {"structural_tag": "{"}}, "sampling_params.structural_tag"),
        ({"sampling_params": {"regex": "a", "ebnf": 'root ::= "a"'}}, "sampling_params.ebnf"),
        ({"sampling_params": {"max_new_tokens": 1, "regex": "a{30}"}}, "sampling_params.max_new_tokens"),
        ({"sampling_params": {"custom_params": {}, "stop_regex": "a"}}, "sampling_params.stop_regex"),
        ({"sampling_params": {"stop": "\ud800"}}, "sampling_params.stop"),
        ({"top_logprobs_num": 100, "return_logprob": True}, "top_logprobs_num"),
        ({"logprob_start_len": -5}, "logprob_start_len"),
        ({"rid": ["a", "b"]}, "rid"),
        ({"image_data": "x"}, "image_data"),
        ({"lora_path": "x"}, "lora_path"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_named(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post("/generate", content=json.dumps({"text": "x", **more}), headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


def test_what_is_ignored_is_named(http: httpx.Client) -> None:
    asked = {"text": "x", "sampling_params": {**FEW, "skip_special_tokens": False, "priority": 3}, "data_parallel_rank": 1, "log_metrics": True}
    told = http.post("/generate", json=asked).headers["x-maskwright-ignored"]
    assert set(told.split(", ")) == {"sampling_params.skip_special_tokens", "data_parallel_rank", "sampling_params.priority"}


def test_which_model_there_is(http: httpx.Client) -> None:
    assert http.get("/get_model_info").json()["model_path"] == "embedded" and http.get("/model_info").json()["is_generation"] is True

"""Prompts that are told before the output, and the log-probabilities of their tokens."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from maskwright import LLM

from .test_streams import events_of

PATH = "/v1/completions"
FEW: Any = {"prompt": "hello", "max_tokens": 4, "temperature": 0}


def post(http: httpx.Client, **asked: Any) -> Any:
    answer = http.post(PATH, json={**FEW, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_prompt_is_told_before_the_output(http: httpx.Client, llm: LLM) -> None:
    plain = post(http)["choices"][0]["text"]
    assert post(http, echo=True)["choices"][0]["text"] == "hello" + plain
    ids = list(llm.tokenizer.encode("hey", add_special_tokens=False))
    told = post(http, prompt=ids, echo=True, n=2)["choices"]
    assert [each["text"] for each in told] == ["hey" + post(http, prompt=ids)["choices"][0]["text"]] * 2


def test_log_probabilities_of_a_prompt_are_those_that_the_model_gives_its_tokens(http: httpx.Client, llm: LLM) -> None:
    """Twin: what is generated after a prompt, scored as part of a longer one."""
    ids = list(llm.tokenizer.encode("a short text", add_special_tokens=False))
    first = post(http, prompt=ids, logprobs=2, return_token_ids=True)["choices"][0]
    scored = post(http, prompt=ids + first["token_ids"], logprobs=2, echo=True, max_tokens=0)
    logprobs = scored["choices"][0]["logprobs"]
    assert scored["choices"][0]["text"] == "a short text" + first["text"] and scored["usage"]["completion_tokens"] == 0
    assert scored["choices"][0]["finish_reason"] == "length"
    assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"][0] is None
    assert len(logprobs["tokens"]) == len(ids) + 4
    assert logprobs["tokens"][len(ids) :] == first["logprobs"]["tokens"]
    assert logprobs["token_logprobs"][len(ids) :] == pytest.approx(first["logprobs"]["token_logprobs"], abs=1e-3)
    assert [sorted(each) for each in logprobs["top_logprobs"][len(ids) :]] == [sorted(each) for each in first["logprobs"]["top_logprobs"]]
    text = scored["choices"][0]["text"]
    for token, start in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert text[start : start + len(token)] == token


@pytest.mark.parametrize("more", [{}, {"logprobs": 1}, {"max_tokens": 0, "logprobs": 1}, {"max_tokens": 0}, {"n": 2, "logprobs": 0}], ids=str)
def test_a_stream_tells_the_same(http: httpx.Client, more: Any) -> None:
    whole = post(http, echo=True, **more)
    chunks = [chunk["choices"][0] for chunk in events_of(http, PATH, {**FEW, "echo": True, **more})]
    for choice in whole["choices"]:
        own = [chunk for chunk in chunks if chunk["index"] == choice["index"]]
        assert "".join(chunk["text"] for chunk in own) == choice["text"]
        assert own[-1]["finish_reason"] == choice["finish_reason"]
        if "logprobs" in more:
            for name, values in choice["logprobs"].items():
                assert [each for chunk in own if chunk["logprobs"] for each in chunk["logprobs"][name]] == values, name


def test_prompt_logprobs_as_vllm_tells_them(http: httpx.Client, llm: LLM) -> None:
    ids = list(llm.tokenizer.encode("hello", add_special_tokens=False))
    (choice,) = post(http, prompt=ids, prompt_logprobs=2)["choices"]
    first, *others = choice["prompt_logprobs"]
    assert first is None and len(others) == len(ids) - 1 and "logprobs" in choice and choice["logprobs"] is None
    echoed = post(http, prompt=ids, echo=True, logprobs=2, max_tokens=0)["choices"][0]["logprobs"]
    for place, told in enumerate(others, 1):
        own = told[str(ids[place])]
        assert own["logprob"] == echoed["token_logprobs"][place] and own["decoded_token"] == echoed["tokens"][place]
        ranks = {each["rank"]: each["logprob"] for each in told.values()}
        assert {1, 2} <= set(ranks) and 2 <= len(told) <= 3 and ranks[1] >= ranks[2]
        assert own["rank"] in (1, 2) or own["logprob"] <= ranks[2]
    assert post(http, prompt=[ids, ids[:1]], prompt_logprobs=0)["choices"][1]["prompt_logprobs"] == [None]


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        ({"prompt_logprobs": 1000}, "prompt_logprobs"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"max_tokens": 0, "regex": "a"}, "max_tokens"),
        ({"max_tokens": 0, "min_tokens": 1}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"suffix": "end"}, "suffix"),
        ({"echo": "yes"}, "echo"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post(PATH, json={**FEW, **more})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text

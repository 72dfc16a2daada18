"""Parameters that clients send as a matter of course: taken where their meaning is kept, refused by name and with advice where it is not."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from openai.types import completion_create_params as completion_params
from openai.types.chat import completion_create_params as chat_params

from maskwright import LLM
from maskwright.sampling.params import OPTIONS
from maskwright.server.chat import ChatBody
from maskwright.server.completions import CompletionBody
from maskwright.server.errors import PARAMETER_NAMES
from maskwright.server.sampling_options import BY_ENDPOINT, OWN, WITHHELD

from .test_captured import CHAT, COMPLETIONS, MESSAGES, RESPONSES, events, post
from .test_reasoning import TEMPLATE

SAID: Any = [{"role": "user", "content": "hello"}]
ASKED: Any = {
    CHAT: {"messages": SAID, "max_tokens": 3},
    COMPLETIONS: {"prompt": "hello", "max_tokens": 3},
    RESPONSES: {"input": "hello", "max_output_tokens": 3},
    MESSAGES: {"messages": SAID, "max_tokens": 3},
}
SPOKEN_OF: Any = {"store": True, "metadata": {"a": "b"}, "service_tier": "auto", "safety_identifier": "x", "prompt_cache_key": "y"}
KEPT: Any = {"prompt_cache_retention": "24h", "prompt_cache_options": {}, "user": "u", "parallel_tool_calls": False}


def text_of(answer: Any) -> Any:
    """What was said."""
    if "choices" in answer:
        choice = answer["choices"][0]
        return choice.get("text") or choice["message"]["content"]
    return answer["output"][0]["content"][0]["text"] if "output" in answer else answer["content"][0]["text"]


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {**SPOKEN_OF, **KEPT, "modalities": ["text"], "prediction": {"type": "content", "content": "x"}, "verbosity": "low"}),
        (CHAT, {"audio": None, "functions": [], "function_call": None, "web_search_options": None}),
        (CHAT, {"skip_special_tokens": True, "spaces_between_special_tokens": True, "add_generation_prompt": True, "echo": False}),
        (CHAT, {"reasoning_effort": "low", "logprobs": False, "stop": None, "n": None, "tools": None, "tool_choice": "none"}),
        (COMPLETIONS, {"echo": False, "suffix": None, "user": "u", "logprobs": None, "best_of": None}),
        (RESPONSES, {**SPOKEN_OF, **KEPT, "truncation": "auto", "include": ["reasoning.encrypted_content"], "background": False}),
        (RESPONSES, {"store": False, "truncation": "disabled", "include": [], "previous_response_id": None, "conversation": None}),
        (RESPONSES, {"text": {"verbosity": "high"}, "reasoning": {"effort": "low", "summary": "auto"}, "max_tool_calls": 3}),
        (MESSAGES, {"metadata": {"user_id": "u"}, "service_tier": "auto", "mcp_servers": [], "container": None, "speed": "standard"}),
        (MESSAGES, {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}}),
    ],
    ids=str,
)  # fmt: skip
def test_what_asks_for_nothing_else_changes_nothing(http: httpx.Client, path: str, more: Any) -> None:
    assert text_of(post(http, path, {**ASKED[path], **more})) == text_of(post(http, path, ASKED[path]))


@pytest.mark.parametrize(
    ("path", "more", "advice"),
    [
        (CHAT, {"functions": [{"name": "f"}]}, "write them as tools"),
        (CHAT, {"function_call": "auto"}, "tool_choice"),
        (CHAT, {"modalities": ["text", "audio"]}, "writes text"),
        (CHAT, {"web_search_options": {}}, "as a function"),
        (CHAT, {"max_token": 3}, "did you mean max_tokens?"),
        (CHAT, {"response_fromat": {}}, "did you mean response_format?"),
        (CHAT, {"xyzzy": 1}, "/docs"),
        (COMPLETIONS, {"suffix": "end"}, "behind the prompt"),
        (RESPONSES, {"conversation": "c"}, "previous_response_id"),
        (RESPONSES, {"prompt": {"id": "p"}}, "instructions and input"),
        (RESPONSES, {"background": True}, "client has gone"),
        (RESPONSES, {"include": ["all"]}, "message.output_text.logprobs"),
        (RESPONSES, {"top_logprobs": 2}, "include"),
        (RESPONSES, {"text": {"verbosity": 3}}, "string"),
        (RESPONSES, {"reasoning": {"summary": 3}}, "string"),
        (MESSAGES, {"mcp_servers": [{"url": "x"}]}, "give the model their tools"),
        (MESSAGES, {"speed": "fast"}, "one speed"),
        (MESSAGES, {"thinking": {"type": "enabled", "display": "loud"}}, "summarized or omitted"),
    ],
    ids=str,
)  # fmt: skip
def test_what_would_change_the_answer_is_refused_with_advice(http: httpx.Client, path: str, more: Any, advice: str) -> None:
    answer = http.post(path, json={**ASKED[path], **more})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"].split(".")[0].split("[")[0] in more and advice in error["message"]


def test_parameters_of_the_official_client_are_known() -> None:
    for asked, body in (
        (chat_params.CompletionCreateParamsBase, ChatBody),
        (completion_params.CompletionCreateParamsBase, CompletionBody),
    ):
        assert not set(asked.__annotations__) - set(body.model_fields) - set(body.refused)


def test_other_kinds_are_named_together(http: httpx.Client) -> None:
    for path, more, said in (
        (COMPLETIONS, {"prompt": None}, "prompt: Input should be a valid string or a valid list"),
        (CHAT, {"stop": 5}, "stop: Input should be a valid string or a valid list"),
        (CHAT, {"logit_bias": []}, "logit_bias: Input should be a valid object"),
    ):
        assert http.post(path, json={**ASKED[path], **more}).json()["error"]["message"] == said


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_sampling_beside_their_own_holds(http: httpx.Client, path: str) -> None:
    asked = {**ASKED[path], "temperature": 1.5, "seed": 5, "top_k": 400, "min_p": 0.001, "presence_penalty": 0.1}
    first, second = (text_of(post(http, path, asked)) for _ in range(2))
    chat = {**ASKED[CHAT], **{name: asked[name] for name in ("temperature", "seed", "top_k", "min_p", "presence_penalty")}}
    assert first == second == text_of(post(http, CHAT, chat))
    other = {**asked, "logit_bias": {"0": 0}, "regex": "[a-c]{2}", "stop_token_ids": []}
    assert text_of(post(http, path, other)) in {a + b for a in "abc" for b in "abc"}
    refused = http.post(path, json={**asked, "min_p": 2}).json()["error"]
    assert refused["param"] == "min_p"


def test_responses_end_at_a_stop_string(http: httpx.Client) -> None:
    whole = text_of(post(http, RESPONSES, {"input": "hello", "max_output_tokens": 12, "temperature": 0}))
    mark = whole[3:5]
    cut = post(http, RESPONSES, {"input": "hello", "max_output_tokens": 12, "temperature": 0, "stop": mark})
    assert text_of(cut) == whole[: whole.index(mark)] and cut["status"] == "completed"


def test_logprobs_of_responses(client: openai.OpenAI, llm: LLM) -> None:
    asked: Any = {"model": "embedded", "input": "hello", "max_output_tokens": 6, "temperature": 0}
    asked |= {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    (item,) = client.responses.create(**asked).output
    assert item.type == "message" and item.content[0].type == "output_text"
    told = item.content[0].logprobs or []
    assert len(told) == 6 and all(len(token.top_logprobs) == 2 for token in told)
    assert "".join(token.token for token in told) == item.content[0].text
    pieces = [event for event in client.responses.create(**asked, stream=True) if event.type == "response.output_text.delta"]
    assert ["".join(each.token for each in piece.logprobs) for piece in pieces] == [piece.delta for piece in pieces]
    chat = client.chat.completions.create(
        model="embedded", messages=SAID, max_tokens=6, temperature=0, logprobs=True, top_logprobs=2
    ).choices[0]
    assert chat.logprobs is not None
    assert [token.token for token in chat.logprobs.content or []] == [token.token for token in told]


def test_logprobs_of_a_constrained_text_are_of_its_tokens(http: httpx.Client) -> None:
    more = {"include": ["message.output_text.logprobs"], "regex": "[ab]{4}"}
    part = post(http, RESPONSES, {**ASKED[RESPONSES], "max_output_tokens": 9, **more})["output"][0]["content"][0]
    assert "".join(token["token"] for token in part["logprobs"]) == part["text"]


def test_bias_chooses_among_what_is_allowed(http: httpx.Client, llm: LLM) -> None:
    """Also a bias towards what the constraint forbids, which changes nothing."""
    token_of = {text: str(token_id) for token_id, text in enumerate(llm.vocabulary.tokens)}
    for text in ("a", "b"):
        bias = {token_of[text.encode()]: 100, token_of[b"z"]: 100}
        assert text_of(post(http, CHAT, {**ASKED[CHAT], "regex": "[ab]{3}", "logit_bias": bias})) == text * 3


def test_what_is_thought_can_be_left_out(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)
    asked: Any = {"messages": SAID, "max_tokens": 40, "thinking": {"type": "enabled", "budget_tokens": 12}, "regex": "[a-z]{3}"}
    shown = post(http, MESSAGES, asked)["content"]
    hidden = {**asked, "thinking": {**asked["thinking"], "display": "omitted"}}
    assert post(http, MESSAGES, hidden)["content"] == [{**shown[0], "thinking": ""}, shown[1]]
    told = [event["delta"]["type"] for event in events(http, MESSAGES, hidden) if event["type"] == "content_block_delta"]
    assert told[0] == "signature_delta" and set(told[1:]) == {"text_delta"}


def test_logprobs_of_responses_leave_reasoning_out(http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.tokenizer._backend, "chat_template", TEMPLATE)
    asked = {"input": "hello", "max_output_tokens": 40, "regex": "[a-z]{3}", "include": ["message.output_text.logprobs"]}
    thought, said = post(http, RESPONSES, asked)["output"]
    assert thought["content"][0]["text"] and "logprobs" in said["content"][0]
    assert "".join(token["token"] for token in said["content"][0]["logprobs"]).endswith(said["content"][0]["text"])


def test_usage_comes_last_when_it_is_asked_for(http: httpx.Client) -> None:
    for path in (CHAT, COMPLETIONS):
        asked = {**ASKED[path], "regex": "[ab]{3}", "stream_options": {"include_usage": True}}
        *chunks, last = events(http, path, asked)
        assert last["choices"] == [] and 1 <= last["usage"]["completion_tokens"] <= 3
        assert all(chunk["usage"] is None for chunk in chunks)
        assert not any("usage" in event for event in events(http, path, ASKED[path]))
    assert json.loads(http.post(CHAT, json={**ASKED[CHAT], "stream_options": {"include_usage": True}}).text)["error"]["param"] == "stream_options"


def test_every_sampling_option_is_a_parameter_or_withheld() -> None:
    names = {option.name for option in OPTIONS}
    assert names >= BY_ENDPOINT | WITHHELD
    assert {PARAMETER_NAMES.get(name, name) for name in names - WITHHELD} <= CompletionBody.model_fields.keys()
    assert not WITHHELD & CompletionBody.model_fields.keys()
    assert set(OWN) <= names & CompletionBody.model_fields.keys()  # by names that the operator lists

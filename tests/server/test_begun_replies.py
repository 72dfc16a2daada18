"""Replies that the client has begun: the model goes on behind their text, and so does the constraint."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import JsonSchema, Tools
from maskwright.server.deltas import CallStart
from maskwright.server.reasoning import reasoned
from maskwright.server.replies import ReplyParts, ReplyReader
from maskwright.server.settings import ServerSettings

from .serving import served
from .test_stream_splits import COMPILER, FIND, events_of
from .test_streams import events_of as streamed_events

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
QUESTION: Any = {"role": "user", "content": "Ada Lovelace, 36, lives in London."}


def begun(text: Any, **more: Any) -> dict[str, Any]:
    messages = [QUESTION, {"role": "assistant", "content": text}]
    return {"messages": messages, "continue_final_message": True, "max_tokens": 60, "temperature": 0, **more}


def reply(http: httpx.Client, body: Any) -> str:
    """The content of a reply, the same whole and streamed."""
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    content: str = answer.json()["choices"][0]["message"]["content"]
    parts = [event["choices"][0]["delta"].get("content") or "" for event in streamed_events(http, CHAT, body)]
    assert "".join(parts) == content
    return content


@pytest.mark.parametrize("text", ['{"name": "', '{"name":"Ada L', '{"name":"Grüße', '{"name": "x", "age": 1', '{"name":"x","age":1}'])
def test_the_constraint_begins_inside_the_text(http: httpx.Client, text: str) -> None:
    rest = reply(http, begun(text, response_format=FORMAT, add_generation_prompt=False))
    value = json.loads(text + rest)
    assert set(value) == {"name", "age"} and isinstance(value["age"], int)
    assert reply(http, begun(text, response_format=FORMAT, echo=True)) == text + rest
    parts = [{"type": "text", "text": text[:3]}, {"type": "text", "text": text[3:]}]
    assert reply(http, begun(parts, response_format=FORMAT)) == rest


def test_a_message_may_be_a_prefix(http: httpx.Client) -> None:
    body = begun('{"name": "', response_format=FORMAT)
    del body["continue_final_message"]
    body["messages"][-1]["prefix"] = True
    assert reply(http, body) == reply(http, begun('{"name": "', response_format=FORMAT))


def test_free_text_goes_on(http: httpx.Client, llm: LLM) -> None:
    text = "Ada Lovelace is"
    prompt = llm.tokenizer.render_chat(begun(text)["messages"], is_begun=True)
    assert prompt.endswith(text) and not llm.tokenizer.render_chat(begun(text)["messages"]).endswith(text)
    tokens = llm.tokenizer.encode(prompt, add_special_tokens=False)
    expected = http.post("/v1/completions", json={"prompt": list(tokens), "max_tokens": 8, "temperature": 0}).json()["choices"][0]["text"]
    assert reply(http, begun(text, max_tokens=8)) == expected


def test_a_stop_string_is_looked_for_in_what_is_new(http: httpx.Client) -> None:
    rest = reply(http, begun('{"name":"A', response_format=FORMAT))
    mark = rest[1:3]
    assert reply(http, begun('{"name":"A', response_format=FORMAT, stop=[mark, "name"])) == rest[: rest.index(mark)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nme', r"behind '{\"n' comes"),
        ("Sure:", "behind '' comes"),
        ('{"name":"x","age":1}}', "nothing, not '}'"),
    ],
)
def test_what_cannot_be_a_beginning_is_refused(http: httpx.Client, text: str, said: str) -> None:
    answer = http.post(CHAT, json=begun(text, response_format=FORMAT))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == "messages" and said.replace("\\", "") in error["message"].replace("\\", "")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"messages": [QUESTION]}, "messages[0]"),
        ({"messages": [QUESTION, {"role": "assistant", "content": ""}]}, "messages[1]"),
        ({"messages": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}]}, "messages[0]"),
        ({"add_generation_prompt": True}, "add_generation_prompt"),
        ({"continue_final_message": False, "add_generation_prompt": False}, "add_generation_prompt"),
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused(http: httpx.Client, more: Any, param: str) -> None:
    answer = http.post(CHAT, json=begun("a", **more))
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


def test_anthropics_messages(http: httpx.Client) -> None:
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    asked: Any = {"max_tokens": 60, "temperature": 0, "output_config": form}
    messages = [QUESTION, {"role": "assistant", "content": [{"type": "text", "text": '{"name": "'}]}]
    answer = http.post(MESSAGES, json={**asked, "messages": messages})
    assert answer.status_code == 200, answer.text
    (block,) = answer.json()["content"]
    assert set(json.loads('{"name": "' + block["text"])) == {"name", "age"}
    wrong = [QUESTION, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}]
    error = http.post(MESSAGES, json={**asked, "messages": wrong}).json()["error"]
    assert error["param"] == "messages[1]"


def test_a_call_that_is_begun_is_told_from_its_start(llm: LLM) -> None:
    text = '<tool_call>\n{"name": "halt", "arguments": {"now": '
    schema = {"type": "object", "properties": {"now": {"type": "boolean"}}, "required": ["now"], "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "halt", "parameters": schema}}]
    with served(llm, ServerSettings(tool_style="hermes")) as running, running.http() as http:
        answer = http.post(CHAT, json=begun(text, tools=tools))
        assert answer.status_code == 200, answer.text
        (call, *_) = answer.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "halt" and json.loads(call["function"]["arguments"])["now"] in (True, False)


@pytest.mark.parametrize("stop", [(), ("absent",)])
def test_wherever_a_reply_is_begun_the_rest_is_what_is_new(stop: tuple[str, ...]) -> None:
    source = reasoned(Tools([FIND], style="llama3-json", answer=JsonSchema(SCHEMA, whitespace="flexible")), is_open=False)
    constraint = COMPILER.compile(source)
    thought, said, called = "so it is", '{"name": "find", "age": 36}', '{"name": "find", "parameters": {"text": "é"}}'
    for text in (f"<think>{thought}</think>\n{said}", f"<think>{thought}</think>\n{called}"):
        thought_end, content_from = text.index("</"), text.index("{")
        for at in range(1, len(text)):
            reader, rest = ReplyReader(source, constraint, stop, begun=text[:at].encode()), ReplyParts()
            for event in events_of(text[at:], [2] if len(text) - at > 4 else []):
                for delta in reader.read(event):
                    rest.add(delta)
                    assert isinstance(delta, CallStart) or delta.text
            assert rest.reasoning == text[max(at, 7) : thought_end]
            assert rest.content == (text[max(at, content_from) :] if said in text else "")
            calls = [] if said in text else [("find", '{"text": "é"}')]
            assert [(call.name, call.arguments) for call in rest.calls] == calls


@pytest.fixture(scope="module")
def merging(llm: LLM) -> tuple[str, str]:
    """A text and what the constraint wants behind it, where the tokenizer writes the text's last token otherwise in both together."""
    tokens = [token.decode() for token in llm.vocabulary.text_tokens if token and token.isalpha() and len(token) > 2]
    for token in tokens:
        for cut in range(1, len(token)):
            alone = llm.tokenizer.encode(token[:cut], add_special_tokens=False)
            if len(alone) == 1 and len(llm.tokenizer.encode(token, add_special_tokens=False)) == 1:
                return token[:cut], token[cut:]
    raise AssertionError("every tokenizer has such")


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_the_last_token_of_the_beginning_is_written_anew(http: httpx.Client, llm: LLM, merging: tuple[str, str], path: str) -> None:
    """Then the model may choose the token that holds the end of the beginning and what follows."""
    head, rest = merging
    body = begun(head, regex=f"{head}{rest}", return_token_ids=True)
    if path == MESSAGES:
        body = {"messages": body["messages"], "max_tokens": 60, "regex": f"{head}{rest}"}
    answers = [http.post(path, json={**body, "heal_prompt": heals}).json() for heals in (False, True)]
    if path == MESSAGES:
        assert [answer["content"][0]["text"] for answer in answers] == [rest, rest]
        return
    plain, healed = (answer["choices"][0] for answer in answers)
    assert plain["message"]["content"] == healed["message"]["content"] == rest
    written = b"".join(llm.vocabulary.text_tokens[token] or b"" for token in healed["token_ids"])
    assert written.decode() == head + rest and b"".join(llm.vocabulary.text_tokens[t] or b"" for t in plain["token_ids"]).decode() == rest
    assert answers[1]["usage"]["prompt_tokens"] == answers[0]["usage"]["prompt_tokens"] - 1
    assert reply(http, {**body, "heal_prompt": True, "echo": True}) == head + rest


@pytest.mark.parametrize("text", ['{"name": "', '{"name":"Ada L', '{"name":"Grüße', '{"name": "x", "age": 1', '{"na'])
def test_healed_replies_satisfy_the_constraint(http: httpx.Client, text: str) -> None:
    details = {"maskwright": {"version": 1, "tokens": True, "fields": True}}
    body = begun(text, response_format=FORMAT, heal_prompt=True)
    rest = reply(http, body)
    assert set(json.loads(text + rest)) == {"name", "age"}
    choice = http.post(CHAT, json={**body, **details}).json()["choices"][0]
    assert choice["message"]["content"] == rest and choice["maskwright"]["fields"][-1]["path"] == []


@pytest.mark.parametrize("more", [{"stop": ["x"]}, {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"}])
def test_what_is_read_from_the_first_token_on_is_not_healed(http: httpx.Client, more: Any) -> None:
    text, form = ('{"n', {"response_format": FORMAT}) if "stop" in more else ("{", {})
    answer = http.post(CHAT, json=begun(text, heal_prompt=True, **form, **more))
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "heal_prompt", answer.text


def test_a_reply_that_is_not_begun_is_not_healed(http: httpx.Client) -> None:
    answer = http.post(CHAT, json={"messages": [QUESTION], "response_format": FORMAT, "heal_prompt": True})
    assert answer.status_code == 400 and "begun" in answer.json()["error"]["message"]

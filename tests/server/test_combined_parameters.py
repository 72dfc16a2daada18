"""Parameters in any combination: refused for a reason, or answered, and in a stream with the same text, calls, tokens and end."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
from hypothesis import event, given, settings
from hypothesis import strategies as st

PERSON = {
    "type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
    "required": ["name", "age"], "additionalProperties": False,
}  # fmt: skip
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "é✓"]}, "minItems": 1, "maxItems": 3}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"enum": ["sun", "moon"]}}, "required": ["at"], "additionalProperties": False}}}
NOTE = {"type": "custom", "custom": {"name": "note", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-c]{1,5}"}}}}
CONSTRAINTS: list[dict[str, Any]] = [
    {}, {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": PERSON}}}, {"guided_json": COLOURS}, {"guided_regex": "[a-z]{3,9}"},
    {"guided_choice": ["yes", "yes no", "no"]}, {"structured_outputs": {"json": PERSON, "disable_any_whitespace": True}}, {"grammar": 'root ::= "x" [a-z]{1,6} "."?'},
    {"response_format": {"type": "json_object"}}, {"json_schema": PERSON, "grammar": ""},
]  # fmt: skip
SAMPLING: dict[str, list[Any]] = {
    "temperature": [0, 0.8], "max_tokens": [3, 12, 60], "min_tokens": [0, 2], "stop": ["e", ['"'], ["a", "}"], [], ""], "include_stop_str_in_output": [True],
    "stop_inside": [True, False], "stop_token_ids": [[], [100]], "ignore_eos": [False, True], "bad_words": [[" a"], []], "logit_bias": [{"a": -100}, {"7": 5}],
    "top_k": [1, -1], "top_p": [0.5], "min_p": [0.2], "repeat_penalty": [1.2], "n": [1, 2], "return_token_ids": [True], "return_tokens_as_token_ids": [True],
    "truncate_prompt_tokens": [5, -1], "loop_bound": [0, 2], "cache_salt": ["x"], "canonical": [True], "skip_special_tokens": [False], "samplers": [[], ["top_k"]],
    "id_slot": [-1, 0], "allowed_token_ids": [[], list(range(1000))],
}  # fmt: skip
OF_CHAT: dict[str, list[Any]] = {
    "tools": [[TOOL], [TOOL, NOTE], [NOTE], []], "tool_choice": ["auto", "none", "required", {"type": "function", "function": {"name": "look"}}],
    "parallel_tool_calls": [False], "logprobs": [True], "continue_final_message": [False],
}  # fmt: skip
OF_COMPLETIONS: dict[str, list[Any]] = {"logprobs": [0, 2], "echo": [True], "best_of": [1], "suffix": [""]}


def some(options: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(options)), st.integers(0, 9), max_size=6).map(lambda drawn: {name: options[name][i % len(options[name])] for name, i in drawn.items()})


def chats() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    said = {"messages": [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}], "seed": 3}
    return st.builds(lambda *parts: ("/v1/chat/completions", {k: v for part in (said, *parts) for k, v in part.items()}), st.sampled_from(CONSTRAINTS), some(SAMPLING), some(OF_CHAT))


def completions() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    prompts = st.sampled_from([{"prompt": "Ada is", "seed": 3}, {"prompt": ["a", "b c"], "seed": 3}, {"prompt": [5, 6], "seed": 3}])
    return st.builds(lambda *parts: ("/v1/completions", {k: v for part in parts for k, v in part.items()}), prompts, st.sampled_from(CONSTRAINTS), some(SAMPLING), some(OF_COMPLETIONS))


class Told:
    """What an answer or a stream says of one choice."""

    def __init__(self) -> None:
        self.text, self.end, self.token_ids, self.num_logprobs = "", None, list[int](), 0
        self.calls: dict[int, list[str]] = {}

    def read(self, choice: dict[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        self.text += said.get("content") or choice.get("text") or ""
        self.end = choice["finish_reason"] or self.end
        self.token_ids += choice.get("token_ids") or []
        logprobs = choice.get("logprobs") or {}
        self.num_logprobs += len(logprobs.get("content") or logprobs.get("tokens") or [])
        for number, call in enumerate(said.get("tool_calls") or []):
            known, named = self.calls.setdefault(call.get("index", number), ["", ""]), call.get("function") or call.get("custom") or {}
            known[0] += named.get("name") or ""
            known[1] += named.get("arguments") or named.get("input") or ""


def told(choices: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found: dict[int, Told] = {}
    for choice in choices:
        found.setdefault(choice["index"], Told()).read(choice)
    return {index: vars(one) for index, one in found.items()}


@settings(max_examples=40)
@given(asked=chats() | completions())
def test_a_stream_says_what_the_whole_answer_says(http: httpx.Client, asked: tuple[str, dict[str, Any]]) -> None:
    path, body = asked
    whole = http.post(path, json=body)
    stream = http.post(path, json={**body, "stream": True, "stream_options": {"include_usage": True}})
    event(f"{path} {whole.status_code}")
    assert whole.status_code == stream.status_code in (200, 400), (whole.text, stream.text)
    if whole.status_code == 400:
        assert whole.json()["error"] == stream.json()["error"] and whole.json()["error"]["message"]
        return
    answer, chunks = whole.json(), [json.loads(line[6:]) for line in stream.text.split("\n") if line.startswith("data: {")]
    assert told(answer["choices"]) == told([choice for chunk in chunks for choice in chunk["choices"]])
    assert answer["usage"]["completion_tokens"] == next(chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage"))["completion_tokens"]
    for choice in answer["choices"]:
        for call in (choice.get("message") or {}).get("tool_calls") or []:
            if choice["finish_reason"] == "tool_calls" and call["type"] == "function":
                jsonschema.validate(json.loads(call["function"]["arguments"]), TOOL["function"]["parameters"])

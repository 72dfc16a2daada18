"""The kinds of requests of `mixed_soak.py`, each with what its answer has to be. All follow from a number."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jsonschema

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
MOST_OUTPUTS = 3  # of one request
Form = dict[str, Any]


@dataclass
class Answer:
    """What came back, whole: one object, or the data of all events."""

    status: int
    headers: dict[str, str]
    body: Any  # of JSON; None for a stream
    events: list[Any] = field(default_factory=list)
    num_done: int = 0  # `data: [DONE]`

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")


@dataclass(frozen=True)
class Ask:
    """A request. check(answer) raises AssertionError or jsonschema's error where the answer is not what it has to be."""

    kind: str
    path: str
    content: bytes
    check: Callable[[Answer], None]
    method: str = "POST"
    is_long: bool = False  # takes long enough that its client can leave in between


def ask(kind: str, path: str, body: Form, check: Callable[[Answer], None], *, is_long: bool = False) -> Ask:
    return Ask(kind, path, json.dumps(body).encode(), check, is_long=is_long)


# -- what answers say


@dataclass
class Said:
    """What one choice of a chat said."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish_reason: str | None = None
    num_ends: int = 0


def said(answer: Answer) -> dict[int, Said]:
    """The choices of a chat or completion, streamed or not, by their index."""
    found: dict[int, Said] = {}
    for event in answer.events if answer.is_stream else [answer.body]:
        assert "error" not in event, event
        for choice in event["choices"]:
            one = found.setdefault(choice["index"], Said())
            told = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
            one.text += told.get("content") or ""
            for position, call in enumerate(told.get("tool_calls") or ()):
                made = one.calls.setdefault(call.get("index", position), {"name": "", "arguments": ""})
                made["name"] += call["function"].get("name") or ""
                made["arguments"] += call["function"].get("arguments") or ""
            if choice.get("finish_reason"):
                one.finish_reason, one.num_ends = choice["finish_reason"], one.num_ends + 1
    return found


def ends(answer: Answer, number: int = 1) -> list[Said]:
    """The choices, each of which ended once."""
    assert answer.status == 200, (answer.status, answer.body)
    assert not answer.is_stream or answer.num_done == 1, f"[DONE] came {answer.num_done} times"
    choices = said(answer)
    assert sorted(choices) == list(range(number)), sorted(choices)
    assert all(one.num_ends == 1 for one in choices.values()), choices
    return list(choices.values())


def satisfies(holds: Callable[[str], Any], number: int, answer: Answer) -> None:
    for one in ends(answer, number):
        assert one.finish_reason == "stop" and holds(one.text) is not False, one


def has_text(answer: Answer) -> None:
    (one,) = ends(answer)
    assert one.finish_reason in ("stop", "length"), one


def valid(schema: Form, text: str) -> None:
    jsonschema.validate(json.loads(text), schema)


def refused(status: int, code: str | None, answer: Answer) -> None:
    """The documented error: an object with a message, a type and this code."""
    assert answer.status == status, (answer.status, answer.body)
    error = answer.body["error"]
    assert error["message"] and error["type"], error
    assert code is None or error["code"] == code, error


# -- the kinds


def closed(properties: Form, required: list[str] | None = None) -> Form:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def user(chance: random.Random) -> list[Form]:
    return [{"role": "user", "content": f"item {chance.getrandbits(30)}"}]


def name_of(chance: random.Random) -> str:
    """Half of them known, half of them new."""
    return f"k{chance.randrange(8)}" if chance.random() < 0.5 else f"n{chance.getrandbits(44):x}"


def streamed(chance: random.Random) -> Form:
    return {"stream": True, "stream_options": {"include_usage": True}} if chance.random() < 0.6 else {}


def free(chance: random.Random) -> Ask:
    body = {"messages": user(chance), "max_tokens": chance.randrange(1, 30), "ignore_eos": True, "seed": chance.getrandbits(20)}
    return ask("free", CHAT, {**body, "temperature": 1, **streamed(chance)}, has_text)


def long(chance: random.Random) -> Ask:
    body = {"messages": user(chance), "max_tokens": 300, "ignore_eos": True, "stream": True}
    return ask("long", CHAT, body, has_text, is_long=True)


def small_schema(chance: random.Random) -> Form:
    return closed({name_of(chance): {"type": "integer", "minimum": 0, "maximum": 99}, "open": {"type": "boolean"}})


def schema(chance: random.Random) -> Ask:
    form, number = small_schema(chance), chance.choice((1, 1, 1, MOST_OUTPUTS))
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": form, "strict": True}}
    body = {"messages": user(chance), "response_format": asked, "max_tokens": 60, "n": number, "temperature": 1, **streamed(chance)}
    return ask("schema", CHAT, body, partial(satisfies, partial(valid, form), number))


def text_constraint(chance: random.Random) -> Ask:
    tag = name_of(chance)
    constraint, pattern = chance.choice((
        ({"regex": f"{tag}-[a-z]{{2,6}}"}, f"{tag}-[a-z]{{2,6}}"),
        ({"guided_choice": [tag, f"{tag}{tag}"]}, f"({tag}){{1,2}}"),
        ({"grammar": f'root ::= "{tag}" digit\ndigit ::= [0-9]'}, f"{tag}[0-9]"),
    ))  # fmt: skip
    body = {"prompt": f"item {chance.getrandbits(30)}", "max_tokens": 60, **constraint, **streamed(chance)}
    return ask("text constraint", COMPLETIONS, body, partial(satisfies, partial(matches, pattern), 1))


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def tools_of(chance: random.Random) -> dict[str, Form]:
    """Parameters of some functions by their names."""
    return {f"do_{name_of(chance)}": small_schema(chance) for _ in range(chance.randrange(1, 4))}


def as_tools(parameters: dict[str, Form]) -> list[Form]:
    return [{"type": "function", "function": {"name": name, "parameters": form}} for name, form in parameters.items()]


def tools(chance: random.Random) -> Ask:
    parameters, choice = tools_of(chance), chance.choice(("required", "auto"))
    body = {"messages": user(chance), "tools": as_tools(parameters), "tool_choice": choice, "max_tokens": 160}
    return ask("tools", CHAT, body | streamed(chance), partial(calls_or_text, parameters, None if choice == "auto" else False))


def tools_and_format(chance: random.Random) -> Ask:
    parameters, form = tools_of(chance), small_schema(chance)
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": form, "strict": True}}
    body = {"messages": user(chance), "tools": as_tools(parameters), "response_format": asked, "max_tokens": 160}
    return ask("tools and format", CHAT, body | streamed(chance), partial(calls_or_text, parameters, form))


def calls_or_text(parameters: dict[str, Form], text_schema: Form | bool | None, answer: Answer) -> None:
    """Calls that fit their functions; or text that fits its schema (None: any text, which may be cut short; False: none)."""
    (one,) = ends(answer)
    if one.finish_reason == "length":
        assert text_schema is None, one
        return
    assert (one.finish_reason == "tool_calls") == bool(one.calls), one
    for call in one.calls.values():
        valid(parameters[call["name"]], call["arguments"])
    if not one.calls:
        assert text_schema is not False, one
        if isinstance(text_schema, dict):
            valid(text_schema, one.text)


def stop_strings(chance: random.Random) -> Ask:
    stop = chance.choice(("a", "e", "on", "\n"))
    body: Form = {"messages": user(chance), "max_tokens": 40, "stop": [stop, "zz"], "temperature": 1, **streamed(chance)}
    if chance.random() < 0.5:
        body |= {"regex": "[a-z]{5,30}", "stop_inside": False}
        return ask("stop strings", CHAT, body, partial(satisfies, partial(matches, "[a-z]{5,30}"), 1))
    return ask("stop strings", CHAT, body, partial(lacks, stop))


def lacks(stop: str, answer: Answer) -> None:
    (one,) = ends(answer)
    assert stop not in one.text and one.finish_reason in ("stop", "length"), one


def huge_schema(chance: random.Random) -> Ask:
    names = [f"p{chance.getrandbits(40):x}" for _ in range(chance.randrange(200, 600))]
    kinds: tuple[Form, ...] = ({"type": "integer"}, {"enum": ["a", "b"]}, {"type": "string", "maxLength": 9}, {"type": "boolean"})
    form = closed({name: chance.choice(kinds) for name in names}, required=[])
    body = {"messages": user(chance), "json_schema": form, "max_tokens": 60, **streamed(chance)}
    return ask("huge schema", CHAT, body, partial(satisfies, partial(valid, form), 1))


def responses(chance: random.Random) -> Ask:
    form = small_schema(chance)
    asked = {"type": "json_schema", "name": "x", "schema": form, "strict": True}
    body = {"input": "x", "max_output_tokens": 60, "text": {"format": asked}, "stream": chance.random() < 0.5}
    return ask("responses", RESPONSES, body, partial(response_is, form))


def response_is(form: Form, answer: Answer) -> None:
    assert answer.status == 200, (answer.status, answer.body)
    whole = answer.body
    if answer.is_stream:
        finals = [event for event in answer.events if event["type"] == "response.completed"]
        assert len(finals) == 1 and answer.events[-1] is finals[0], [event["type"] for event in answer.events][-3:]
        whole = finals[0]["response"]
    assert whole["status"] == "completed", whole
    valid(form, whole["output"][-1]["content"][0]["text"])


def messages(chance: random.Random) -> Ask:
    parameters = tools_of(chance)
    offered = [{"name": name, "input_schema": form} for name, form in parameters.items()]
    body = {"model": "embedded", "messages": user(chance), "max_tokens": 160, "tools": offered, "tool_choice": {"type": "any"}}
    return ask("messages", MESSAGES, body, partial(uses_a_tool, parameters))


def uses_a_tool(parameters: dict[str, Form], answer: Answer) -> None:
    assert answer.status == 200, (answer.status, answer.body)
    blocks = [block for block in answer.body["content"] if block["type"] == "tool_use"]
    assert blocks and answer.body["stop_reason"] == "tool_use", answer.body
    for block in blocks:
        jsonschema.validate(block["input"], parameters[block["name"]])


def listed(chance: random.Random) -> Ask:
    def check(answer: Answer) -> None:
        assert answer.status == 200, answer.status

    return Ask("list", chance.choice(("/v1/models", "/health", "/version")), b"", check, "GET")


def bad(chance: random.Random) -> Ask:
    asked: Form = {"messages": user(chance), "max_tokens": 20}
    tag = f"{chance.getrandbits(40):x}"
    path, content, status, code = chance.choice((
        (CHAT, b"{", 400, "invalid_json"),
        (CHAT, b"\xff\xfe{}", 400, "invalid_json"),
        (CHAT, b"[" * 5000, 400, None),
        (CHAT, b'{"messages": [{"role": "user", "content": "\\ud800"}]}', 400, "invalid_value"),
        (CHAT, {**asked, f"x{tag}": 1}, 400, "unknown_parameter"),
        (CHAT, {**asked, "temperature": "hot"}, 400, None),
        (CHAT, {**asked, "temperature": -1}, 400, None),
        (CHAT, {**asked, "n": 10_000}, 400, None),
        (CHAT, {**asked, "model": f"x{tag}"}, 404, "model_not_found"),
        (CHAT, {"max_tokens": 3}, 400, None),
        (CHAT, {**asked, "regex": f"{tag}(["}, 400, "constraint_syntax"),
        (CHAT, {**asked, "json_schema": {"type": f"x{tag}"}}, 400, None),
        (CHAT, {**asked, "json_schema": {"pattern": f"({tag}) \\1"}}, 400, "unsupported_constraint"),
        (CHAT, {**asked, "json_schema": {"const": "a" * 500}}, 400, "max_tokens_too_small"),
        (CHAT, {**asked, "grammar": f"root ::= {tag}x"}, 400, None),
        (CHAT, {**asked, "tools": as_tools({"f": {"type": "x"}})}, 400, None),
        (CHAT, {**asked, "messages": [{"role": "user", "content": "word " * 5000}]}, 400, "context_length_exceeded"),
        (COMPLETIONS, {"prompt": [[1, 10**9]]}, 400, None),
        (f"/v1/{tag}", asked, 404, None),
    ))  # fmt: skip
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return Ask("bad input", path, content, partial(refused, status, code))


SHARES = (
    (free, 16), (long, 3), (schema, 18), (text_constraint, 12), (tools, 10), (tools_and_format, 6), (stop_strings, 6),
    (huge_schema, 2), (responses, 5), (messages, 4), (listed, 4), (bad, 14),
)  # fmt: skip


def request(number: int) -> Ask:
    chance = random.Random(number)
    (make,) = chance.choices([kind for kind, _ in SHARES], [share for _, share in SHARES])
    return make(chance)

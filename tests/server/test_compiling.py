"""Constraints are compiled beside the event loop and the engine: nobody waits who did not ask, and equal ones are compiled once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Regex, Source
from maskwright.server.settings import ServerSettings

from .serving import Served, served
from .test_reliability import eventually

CHAT = "/v1/chat/completions"
ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12, "temperature": 0}
TAG: Any = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
FORMS: list[Any] = [
    {"type": "regex", "regex": "a"},
    {"type": "grammar", "grammar": 'root ::= "a"'},
    TAG,
]
REFUSED: list[tuple[str, Any]] = [
    *((CHAT, {**ASK, "response_format": form}) for form in FORMS),
    *((CHAT, {**ASK, "structured_outputs": form}) for form in ({"regex": "a"}, {"grammar": 'root ::= "a"'}, {"structural_tag": TAG})),
    *((CHAT, {**ASK, **more}) for more in ({"guided_regex": "a"}, {"guided_grammar": 'root ::= "a"'}, {"regex": "a"}, {"ebnf": 'root ::= "a"'})),
    (CHAT, {**ASK, "grammar": 'root ::= "a"'}),
    ("/v1/completions", {"prompt": "x", "regex": "a"}),
    ("/v1/responses", {"input": "x", "text": {"format": FORMS[0]}}),
    ("/v1/messages", {**ASK, "output_config": {"format": FORMS[0]}}),
]


def test_a_slow_one_is_compiled_once_and_nobody_else_waits(
    server: Served, http: httpx.Client, llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, released, num_compiled = Regex("slow[a-z]{2}"), threading.Event(), [0]
    compile_it = llm.compiler.compile

    def slow_compile(asked: Source) -> Any:
        if asked == source and not llm.compiler.knows(source):
            num_compiled[0] += 1
            assert released.wait(120)
        return compile_it(asked)

    def num_queries() -> float:
        lines = http.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith("maskwright:constraint_queries_total"))

    monkeypatch.setattr(llm.compiler, "compile", slow_compile)
    before = num_queries()
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(http.post, CHAT, json={**ASK, "regex": "slow[a-z]{2}"}) for _ in range(5)]
        assert eventually(http, lambda: num_queries() - before == 5)
        assert http.post(CHAT, json=ASK).status_code == 200
        assert http.post(CHAT, json={**ASK, "regex": "fast[0-9]"}).status_code == 200
        assert not any(each.done() for each in asked) and num_compiled == [1]
        released.set()
        texts = {each.result().json()["choices"][0]["message"]["content"] for each in asked}
    assert num_compiled == [1] and len(texts) == 1 and texts.pop().startswith("slow")


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ({"regex": "a{2000000}"}, "repetition"),
        ({"regex": "a" * 60_000}, "pattern_characters"),
        ({"json_schema": {"enum": list(range(100_001))}}, "enum_values"),
        ({"guided_json": {"const": 10**299 * 1000}}, "digits"),
    ],
    ids=["repetition", "pattern", "enum", "digits"],
)
def test_limits_are_named(http: httpx.Client, more: Any, limit: str) -> None:
    answer = http.post(CHAT, json={**ASK, **more})
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["code"] == "constraint_limit" and error["limit"] == limit, error
    assert error["param"] == next(iter(more))


def test_an_operator_refuses_grammars_under_every_name(llm: LLM) -> None:
    with served(llm, ServerSettings(client_grammars=False)) as closed, closed.http() as http:
        for path, body in REFUSED:
            answer = http.post(path, json=body)
            assert answer.status_code == 403, (path, body, answer.text)
            assert answer.json()["error"]["code"] == "grammars_refused" and answer.json()["error"]["type"] == "permission_error"
        schema = {"type": "json_schema", "name": "x", "schema": {"type": "integer"}}
        assert http.post("/v1/responses", json={"input": "x", "text": {"format": schema}}).status_code == 200
        assert http.post("/v1/messages", json={**ASK, "output_config": {"format": schema}}).status_code == 200

"""Constraints are compiled beside the server: nobody waits who did not ask."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Limits
from maskwright.server.settings import ServerSettings

from .serving import TIMEOUT, Served, served
from .slow_sources import ENDLESS, slow_gbnf
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


KNOWN: Any = {**ASK, "regex": "known[0-9]"}


def slow(number: int) -> Any:
    return {**ASK, "structured_outputs": {"grammar": slow_gbnf(number)}}


def measured(http: httpx.Client, name: str, **labels: str) -> float:
    """A metric; the sum over the labels that are not given."""
    lines = [line for line in http.get("/metrics").text.splitlines() if line.startswith(name)]
    fitting = [line for line in lines if all(f'{label}="{value}"' in line for label, value in labels.items())]
    return sum(float(line.split()[-1]) for line in fitting)


@pytest.fixture
def patient(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server that would compile a constraint for hours, and takes four at a time."""
    monkeypatch.setattr(llm.compiler, "limits", ENDLESS)
    with served(llm, ServerSettings(max_compiles=4)) as running:
        yield running


@contextmanager
def attack(server: Served, *bodies: Any) -> Iterator[list[socket.socket]]:
    """Clients who send something and wait for the answer."""
    address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address, timeout=TIMEOUT)) for _ in bodies]
        for client, body in zip(clients, bodies, strict=True):
            content = json.dumps(body).encode()
            head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            client.sendall(head.encode() + content)
        yield clients


def test_nobody_waits_for_a_strangers_schema(patient: Served) -> None:
    queue = "maskwright:constraint_compile_queue"
    with patient.http() as http:
        assert http.post(CHAT, json=KNOWN).status_code == 200
        with attack(patient, slow(0), slow(1), slow(0)):
            assert eventually(http, lambda: measured(http, queue, lane="slow") == 2)
            before = measured(http, "maskwright:constraint_cache_hits_total")
            assert http.post(CHAT, json=ASK).status_code == 200
            assert http.post(CHAT, json=KNOWN).status_code == 200
            assert measured(http, "maskwright:constraint_cache_hits_total") == before + 1
            assert http.post(CHAT, json={**ASK, "regex": "new[0-9]"}).status_code == 200
            assert measured(http, queue, lane="slow") == 2
        outcomes = "maskwright:constraint_compile_seconds_count"
        assert eventually(http, lambda: measured(http, outcomes, outcome="cancelled") == 2)
        assert measured(http, queue) == 0


def test_who_compiles_something_slow_is_answered_beside_others(patient: Served) -> None:
    """It stands back for a while and no longer, however long the others' answers are."""
    way = patient.service.giving_way
    with patient.http() as http, attack(patient, slow(5)):
        assert eventually(http, lambda: measured(http, "maskwright:constraint_compile_queue", lane="slow") == 1)
        other = {"Authorization": "Bearer other"}
        with http.stream("POST", CHAT, json={**ASK, "max_tokens": 1500, "ignore_eos": True, "stream": True}, headers=other) as stream:
            lines = stream.iter_lines()  # kept: the connection is closed with it
            next(lines)
            assert http.post(CHAT, json=ASK).status_code == 200
            assert len(way._open) == 2 and not way._waiting


def test_a_full_queue_says_when_to_come_again(patient: Served) -> None:
    with patient.http() as http:
        assert http.post(CHAT, json=KNOWN).status_code == 200
        with attack(patient, *map(slow, range(4))):
            assert eventually(http, lambda: measured(http, "maskwright:constraint_compile_queue", lane="slow") == 4)
            answer = http.post(CHAT, json={**ASK, "regex": "new[0-9]{2}"})
            assert answer.status_code == 429 and answer.json()["error"]["code"] == "compile_queue_full"
            assert int(answer.headers["Retry-After"]) >= 1 and "max_compiles" in answer.json()["error"]["message"]
            assert http.post(CHAT, json=KNOWN).status_code == 200
            other = http.post(CHAT, json={**ASK, "regex": "new[0-9]{2}"}, headers={"Authorization": "Bearer of another"})
            assert other.status_code == 200  # whoever has all places gives one up


def test_a_refusal_is_remembered(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.compiler, "limits", Limits(seconds=0.2))
    with served(llm) as hasty, hasty.http() as http:
        errors = [http.post(CHAT, json=slow(2)) for _ in range(3)]
        assert {error.status_code for error in errors} == {400}
        first, *others = [error.json()["error"] for error in errors]
        assert first["code"] == "constraint_limit" and first["limit"] == "seconds" and others == [first, first]
        assert measured(http, "maskwright:constraint_compile_seconds_count") == 1


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

"""Clients that go, parts that fail, signals: nothing else is touched by it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.constraints import Regex
from maskwright.server.settings import ServerSettings

from .serving import TIMEOUT, Served, served

MESSAGES: Any = [{"role": "user", "content": "hello"}]
LONG: Any = {"messages": MESSAGES, "max_tokens": 1500, "ignore_eos": True, "temperature": 0}
SHORT: Any = {"messages": MESSAGES, "max_tokens": 4, "temperature": 0}
CHAT = "/v1/chat/completions"


def eventually(http: httpx.Client, holds: Callable[[], bool]) -> bool:
    """Whether it holds after some requests to the server; each takes a while."""
    return any(holds() or http.get("/health").status_code != 200 for _ in range(2000))


def test_a_stream_that_is_left_frees_its_blocks(server: Served, http: httpx.Client) -> None:
    with http.stream("POST", CHAT, json={**LONG, "stream": True, "n": 2}) as stream:
        lines = stream.iter_lines()  # kept: the connection is closed with it
        next(lines)
        assert eventually(http, lambda: server.service.worker.num_open == 2)
    assert eventually(http, lambda: server.service.worker.num_open == 0)
    assert eventually(http, lambda: server.service.worker.statistics.num_blocks_in_use == 0)
    assert http.post(CHAT, json=SHORT).status_code == 200


def test_a_client_that_goes_while_it_waits_is_noticed(server: Served, http: httpx.Client) -> None:
    body = json.dumps(LONG).encode()
    address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    with socket.create_connection(address, timeout=TIMEOUT) as connection:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert eventually(http, lambda: server.service.worker.num_open == 1)
    assert eventually(http, lambda: server.service.worker.num_open == 0)
    assert eventually(http, lambda: server.service.worker.statistics.num_blocks_in_use == 0)


def test_a_constraint_that_fails_ends_its_request_alone(llm: LLM, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = http.post(CHAT, json={**SHORT, "max_tokens": 40}).json()["choices"]
    broken = llm.compiler.compile(Regex("broken[a-z]{5}"))

    def fail(*_: object) -> None:
        raise RuntimeError("injected")

    monkeypatch.setattr(broken, "advance", fail)
    with ThreadPoolExecutor(4) as pool:
        neighbours = [pool.submit(http.post, CHAT, json={**SHORT, "max_tokens": 40}) for _ in range(3)]
        answer = http.post(CHAT, json={**SHORT, "max_tokens": 40, "regex": "broken[a-z]{5}"})
        assert answer.status_code == 500 and answer.json()["error"]["code"] == "generation_failed"
        assert all(neighbour.result().json()["choices"] == expected for neighbour in neighbours)
    with http.stream("POST", CHAT, json={**SHORT, "max_tokens": 40, "regex": "broken[a-z]{5}", "stream": True}) as stream:
        events = [line for line in stream.iter_lines() if line]
    assert json.loads(events[-1].removeprefix("data: "))["error"]["type"] == "server_error"


def test_a_model_that_raises_is_asked_again_for_the_next(llm: LLM, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = http.post(CHAT, json=SHORT).json()["choices"]

    def fail(*_: object) -> None:
        raise RuntimeError("injected")

    with monkeypatch.context() as patch:
        patch.setattr(llm.driver._engine.runner, "forward", fail)
        patch.setattr(llm.driver._engine._plain, "_whole_steps", None)
        assert http.post(CHAT, json=SHORT).status_code == 500
    assert http.post(CHAT, json=SHORT).json()["choices"] == expected


def test_an_engine_that_breaks_is_told_and_goes_on(llm: LLM, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("injected")

    with monkeypatch.context() as patch:
        patch.setattr(llm.driver._engine.scheduler, "schedule", fail)
        assert http.post(CHAT, json=SHORT).status_code == 500
    assert http.post(CHAT, json=SHORT).status_code == 200
    assert eventually(http, lambda: not llm.driver.has_work)


def test_a_tokenizer_that_raises_ends_its_request_alone(llm: LLM, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("injected")

    with monkeypatch.context() as patch:
        patch.setattr(llm.tokenizer, "encode", fail)
        answer = http.post(CHAT, json=SHORT)
    assert answer.status_code == 500 and "injected" not in answer.text
    assert http.post(CHAT, json=SHORT).status_code == 200


def test_silent_streams_are_kept_alive(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, is_heard = llm.driver._engine.runner.forward, threading.Event()

    def wait_and_go_on(*args: Any, **options: Any) -> Any:  # silent until the client has heard of it
        assert is_heard.wait(60)
        return forward(*args, **options)

    monkeypatch.setattr(llm.driver._engine.runner, "forward", wait_and_go_on)
    monkeypatch.setattr(llm.driver._engine._plain, "_whole_steps", None)  # in which forward pass and draw are one
    lines = []
    with (
        served(llm, ServerSettings(keep_alive_seconds=0.001)) as patient,
        patient.http() as http,
        http.stream("POST", CHAT, json={**SHORT, "stream": True}) as stream,
    ):
        for line in stream.iter_lines():
            lines.append(line)
            if line == ": keep-alive":
                is_heard.set()
    assert is_heard.is_set() and lines[-2:] == ["data: [DONE]", ""]


def test_many_streams_at_once(server: Served, http: httpx.Client) -> None:
    kinds: list[Any] = [{}, {"regex": "[a-z]{4}"}, {"json_schema": {"type": "integer"}}, {"guided_choice": ["yes", "no"]}]

    def ask(number: int) -> tuple[int, str]:
        body = {**SHORT, "max_tokens": 8, **kinds[number % 4], "stream": True}
        with http.stream("POST", CHAT, json=body) as stream:
            lines = [line for line in stream.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
        return number % 4, "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(48)))
    assert len(set(answers)) == 4
    with server.http() as http:
        assert eventually(http, lambda: server.service.worker.num_open == 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM")
def test_sigterm_lets_running_requests_finish(tmp_path: Path) -> None:
    log = (tmp_path / "log").open("w+")
    starting = [sys.executable, "-m", "maskwright", "serve", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(starting, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            log.write(line)
            if "Uvicorn running on" in line:
                address = line.split("running on ")[1].split()[0]
                break
        assert address, (tmp_path / "log").read_text()
        long = {**LONG, "max_tokens": 60, "stream": True}
        with httpx.Client(base_url=address, timeout=TIMEOUT) as http, http.stream("POST", CHAT, json=long) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        assert rest[-1] == "data: [DONE]" and '"length"' in rest[-2]
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.communicate()
        log.close()

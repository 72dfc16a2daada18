"""What fails for one request, or for all of them for a while, in a server that goes on."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import torch

from maskwright import LLM

from .serving import TIMEOUT, Served, served
from .test_reliability import eventually

CHAT = "/v1/chat/completions"
ASKED: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12, "temperature": 0, "ignore_eos": True}
POISON = {**ASKED, "user": "poison"}


def is_poison(chunk: Any) -> bool:
    return chunk.sequence.request.user == "poison"


@contextmanager
def faulty_model(llm: LLM, change: Callable[[Any, Any], Any]) -> Iterator[None]:
    """`change(chunks, forward)` instead of the forward pass, which no step has together with its draw meanwhile."""
    runner, plain = llm.driver._engine.runner, llm.driver._engine._plain
    forward, whole_steps = runner.forward, plain._whole_steps
    plain._whole_steps = None
    runner.forward = lambda chunks, columns: change(chunks, lambda computed: forward(computed, columns))
    try:
        yield
    finally:
        runner.forward, plain._whole_steps = forward, whole_steps


def raise_for_poison(chunks: Any, forward: Any) -> Any:
    if any(map(is_poison, chunks)):
        raise RuntimeError("injected")
    return forward(chunks)


def no_numbers_for_poison(chunks: Any, forward: Any) -> Any:
    with torch.inference_mode():
        logits, row = forward(chunks).clone(), 0
        for chunk in chunks:
            if chunk.completes:
                logits[row] = float("nan") if is_poison(chunk) else logits[row]
                row += 1
    return logits


@pytest.mark.parametrize(("change", "name"), [(raise_for_poison, "ModelFailure"), (no_numbers_for_poison, "InvalidLogits")])
def test_one_sequence_that_breaks_the_model_ends_alone(llm: LLM, http: httpx.Client, change: Any, name: str) -> None:
    bodies = [{**ASKED, "messages": [{"role": "user", "content": f"hello {number}"}]} for number in range(6)]
    expected = [http.post(CHAT, json=body).json()["choices"] for body in bodies]
    with faulty_model(llm, change), ThreadPoolExecutor(8) as pool:
        poisoned = [pool.submit(http.post, CHAT, json=POISON) for _ in range(2)]
        answers = list(pool.map(lambda body: http.post(CHAT, json=body), bodies))
        assert [answer.json()["choices"] for answer in answers] == expected
        for each in poisoned:
            error = each.result().json()["error"]
            assert each.result().status_code == 500 and error["code"] == "generation_failed" and name in error["message"]
    assert http.post(CHAT, json=POISON).status_code == 200  # its prompt is not remembered wrongly


def test_a_model_that_always_fails_makes_the_server_unready(llm: LLM, http: httpx.Client) -> None:
    def fail(chunks: Any, forward: Any) -> Any:
        raise RuntimeError("injected")

    with faulty_model(llm, fail):
        assert http.get("/ready").json() == {"ready": True}
        assert {http.post(CHAT, json=ASKED).status_code for _ in range(3)} == {500}
        answer = http.get("/ready")
        assert answer.status_code == 503 and "generation fails" in answer.json()["reason"]
        assert http.get("/health").status_code == 200
    assert http.get("/ready").json() == {"ready": True}
    assert http.post(CHAT, json=ASKED).status_code == 200
    assert "maskwright:engine_failures_total" in http.get("/metrics").text


def test_an_engine_that_fails_once_loses_nothing(llm: LLM, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = http.post(CHAT, json=ASKED).json()["choices"]
    scheduler = llm.driver._engine.scheduler
    schedule, calls = scheduler.schedule, []

    def fail_at_times() -> Any:
        calls.append(1)
        if len(calls) in (3, 12):
            raise RuntimeError("injected")
        return schedule()

    monkeypatch.setattr(scheduler, "schedule", fail_at_times)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: http.post(CHAT, json=ASKED), range(4)))
    assert len(calls) > 12
    assert all(answer.json()["choices"] == expected for answer in answers)


def test_too_few_blocks_are_named_or_cost_time_only() -> None:
    llm = LLM(num_kv_blocks=8, max_sequences=4)
    with served(llm) as small, small.http() as http:
        error = http.post(CHAT, json={**ASKED, "messages": [{"role": "user", "content": "word " * 200}]}).json()["error"]
        assert error["code"] == "context_length_exceeded" and "num_kv_blocks" in error["message"]
        schema = {"type": "array", "items": {"const": "a long string that has to be written"}, "minItems": 90, "maxItems": 90}
        asked = {**ASKED, "ignore_eos": False, "max_tokens": 2000, "json_schema": schema}
        error = http.post(CHAT, json=asked).json()["error"]
        assert error["code"] == "max_tokens_too_small" and "num_kv_blocks" in error["message"]
        bodies = [{**ASKED, "messages": [{"role": "user", "content": f"{number}"}], "max_tokens": 40} for number in range(4)]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda body: http.post(CHAT, json=body).json()["choices"], bodies))
        assert small.service.worker.statistics.num_preemptions > 0
        assert together == [http.post(CHAT, json=body).json()["choices"] for body in bodies]


def test_clients_that_go_at_any_moment_leave_nothing(server: Served, http: httpx.Client) -> None:
    chance = random.Random(7)
    address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    kinds: list[Any] = [{}, {"regex": "[a-z]{30}"}, {"json_schema": {"type": "array", "items": {"type": "integer"}}}, {"n": 3}]

    def go(number: int) -> None:
        body = json.dumps({**ASKED, "ignore_eos": not number % 4, "max_tokens": 400, "stream": number % 2 == 0, **kinds[number % 4]}).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        sent, num_reads = (head + body)[: chance.choice([20, len(head), len(head) + 30, 9999, 9999, 9999])], chance.randrange(3)
        with socket.create_connection(address, timeout=TIMEOUT) as connection:
            connection.sendall(sent)
            if len(sent) == len(head + body) and number % 2 == 0:
                for _ in range(num_reads):
                    connection.recv(200)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(go, range(40)))
    service = server.service
    assert eventually(http, lambda: service.worker.num_open == 0 and service._num_open == 0)
    assert eventually(http, lambda: service.worker.statistics.num_blocks_in_use == 0)
    assert http.post(CHAT, json=ASKED).status_code == 200

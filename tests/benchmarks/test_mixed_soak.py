"""What `make soak` asserts is asserted: answers that are wrong, doubled or cut fail it, and so do figures that do not add up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
HEAD = b"HTTP/1.1 200 OK\r\nx-request-id: soak-0\r\n"


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module("mixed_soak")
    for name in ("mixed_soak", "soak_kinds"):
        del sys.modules[name]


def whole(body: Any, head: bytes = HEAD) -> bytes:
    content = json.dumps(body).encode()
    return head + b"content-length: %d\r\n\r\n" % len(content) + content


def stream(*data: str) -> bytes:
    body = "".join(f"data: {each}\n\n" for each in data).encode()
    return HEAD + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def test_requests_follow_from_their_numbers_and_are_of_every_kind(soak: ModuleType) -> None:
    kinds = import_module("soak_kinds")
    made = [kinds.request(number) for number in range(400)]
    assert [ask.content for ask in made] == [kinds.request(number).content for number in range(400)]
    assert {ask.kind.replace(" ", "_") for ask in made} >= {"free", "long", "schema", "tools", "huge_schema", "bad_input", "stop_strings"}
    assert len({ask.kind for ask in made}) == len(kinds.SHARES)


CHUNK = json.dumps({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]})
END = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}})
RIGHT = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}}


@pytest.mark.parametrize(
    ("raw", "is_right"),
    [
        (whole(RIGHT), True),
        (stream(CHUNK, END, "[DONE]"), True),
        (whole(RIGHT) + b"x", False),  # more than one answer
        (whole(RIGHT) + whole(RIGHT), False),
        (whole(RIGHT)[:-1], False),
        (b"", False),
        (whole(RIGHT, HEAD.replace(b"soak-0", b"soak-1")), False),  # somebody else's
        (whole(RIGHT, HEAD.replace(b"200", b"500")), False),
        (stream(CHUNK, END), False),
        (stream(CHUNK, END, "[DONE]", "[DONE]"), False),
        (stream(CHUNK, END, END, "[DONE]"), False),
        (stream(CHUNK, "[DONE]"), False),
        (stream(CHUNK, json.dumps({"error": {"message": "m"}}), "[DONE]"), False),
        (stream(CHUNK, END, "[DONE]")[:-4], False),
    ],
)  # fmt: skip
def test_answers_are_judged(soak: ModuleType, raw: bytes, is_right: bool) -> None:
    kinds, count = import_module("soak_kinds"), soak.Count()
    soak.judge(kinds.Ask("free", kinds.CHAT, b"{}", kinds.has_text), "whole", raw, "soak-0", count)
    assert (count.failures == []) == is_right
    assert not is_right or (count.outputs, count.tokens) == ({"stop": 1}, 2)


def series(soak: ModuleType, **changed: float) -> Any:
    """Metrics of a server that has answered one chat."""
    model = (("model_name", "embedded"),)
    found = {(name, model): changed.get(name.partition(":")[2], 0.0) for name in soak.GAUGES}
    found["process_resident_memory_bytes", ()] = changed.get("memory", 1e9)
    found["process_open_fds", ()] = changed.get("files", 10.0)
    found["http_requests_total", (("handler", "/v1/chat/completions"), ("status", "2xx"), ("code", "200"))] = changed.get("answered", 1.0)
    found["http_requests_total", (("handler", "/v1/chat/completions"), ("status", "5xx"), ("code", "500"))] = changed.get("failed", 0.0)
    found["vllm:request_success_total", (("finished_reason", "stop"),)] = changed.get("stopped", 1.0)
    found["vllm:generation_tokens_total", model] = changed.get("generated", 2.0)
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {}, {"num_requests_running": 1.0}, {"kv_cache_usage_perc": 0.01}, {"constraint_compile_queue": 1.0}, {"memory": 1.3e9}, {"files": 30.0},
        {"answered": 0.0}, {"answered": 2.0}, {"failed": 1.0}, {"stopped": 0.0}, {"stopped": 2.0}, {"generated": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_figures_have_to_add_up(soak: ModuleType, changed: dict[str, float]) -> None:
    count = soak.Count()
    count.statuses["/v1/chat/completions", 200] = 1
    count.outputs["stop"], count.tokens = 1, 2
    found = soak.findings(count, {}, series(soak), series(soak, **changed))
    assert sum(not holds for holds, _ in found.values()) == len(changed), found


def test_threads_and_processes_are_counted_and_bounded(soak: ModuleType) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        threads, processes = soak.crowd(os.getpid())
        child.kill()
    if Path("/proc/self/stat").exists():
        assert threads >= 1 and processes >= 1
    holds = soak.crowd_findings((10, 3), (10 + soak.THREADS_BOUND, 3 + soak.PROCESSES_BOUND))
    grown = soak.crowd_findings((10, 3), (11 + soak.THREADS_BOUND, 4 + soak.PROCESSES_BOUND))
    assert [one for one, _ in holds.values()] == [True, True] and [one for one, _ in grown.values()] == [False, False]

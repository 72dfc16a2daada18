"""Bodies that were refused for their constraint are refused again unread."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from maskwright.server import refused_bodies
from maskwright.server.errors import ApiError
from maskwright.server.refused_bodies import LEAST_BYTES, RefusedBodies

from .serving import Served

CHAT = "/v1/chat/completions"
A, B, C = (letter * LEAST_BYTES for letter in (b"a", b"b", b"c"))
BODY = A
REFUSAL = ApiError(400, "no", code="invalid_constraint", path="#/a")


def scope(path: str = CHAT, kind: bytes = b"application/json") -> dict[str, Any]:
    return {"path": path, "query_string": b"", "headers": [(b"host", b"x"), (b"content-type", kind)], "route": "its route"}


def asked(number: int) -> dict[str, Any]:
    """A request that is refused, and long enough to be remembered."""
    schema = {"type": "object", "properties": {"a": {"type": f"nothing{number}", "description": "x" * LEAST_BYTES}}}
    return {"messages": [{"role": "user", "content": "x"}], "json_schema": schema}


def test_the_same_bytes_to_the_same_place_are_known() -> None:
    found: list[None] = []
    known = RefusedBodies(lambda: found.append(None))
    assert not known and known.find(scope(), BODY) is None
    known.see(scope(), BODY, REFUSAL)
    again = known.find(scope(), BODY)
    assert again is not None and again.route == "its route" and again.error is not REFUSAL
    assert again.error.body == REFUSAL.body and again.error.__traceback__ is None
    for other in (scope("/v1/completions"), scope(kind=b"text/plain"), {**scope(), "query_string": b"a"}):
        assert known.find(other, BODY) is None
    assert known.find(scope(), BODY[:-1] + b"z") is None and len(found) == 1


@pytest.mark.parametrize(
    "error", [ApiError(500, "broken", code="constraint_limit"), ApiError(429, "later", code="compile_queue_full"), ApiError(400, "no", code="invalid_value")]
)
def test_what_may_be_answered_another_time_is_not_remembered(error: ApiError) -> None:
    known = RefusedBodies()
    known.see(scope(), BODY, error)
    assert not known


def test_short_ones_are_read_as_quickly() -> None:
    known = RefusedBodies()
    known.see(scope(), BODY[1:], REFUSAL)
    assert not known


def test_those_sent_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_bodies, "MOST_KNOWN", 2)
    known = RefusedBodies()
    for body in (A, B):
        known.see(scope(), body, REFUSAL)
    assert known.find(scope(), A) is not None
    known.see(scope(), C, REFUSAL)
    assert [known.find(scope(), body) is not None for body in (A, B, C)] == [True, False, True]


@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_a_second_answer_is_the_first_one_again(server: Served, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = asked(1)
    if path == "/v1/messages":
        body = {"max_tokens": 9, "messages": body["messages"], "output_config": {"format": {"type": "json_schema", "schema": body["json_schema"]}}}
    with server.http() as http:
        first = http.post(path, json=body, headers={"X-Request-Id": "one"})
        assert first.status_code == 400 and "nothing1" in first.text
        counted = refused(http, path)
        with monkeypatch.context() as patch:
            patch.setattr("maskwright.server.chat.turn_of", lambda *_: pytest.fail("it was read"))
            second = http.post(path, json=body, headers={"X-Request-Id": "one"})
        assert (second.status_code, second.json()) == (400, first.json())
        assert second.headers["x-request-id"] == "one"
        assert refused(http, path) == [count + 1 for count in counted]
        body["messages"] = [{"role": "user", "content": "y"}]
        assert http.post(path, json=body).json()["error"]["message"] == first.json()["error"]["message"]  # read, as it is another


def refused(http: httpx.Client, path: str) -> list[float]:
    """How often by the metrics, of requests and of constraints."""
    metrics = http.get("/metrics").text
    wanted = (rf'http_requests_total{{[^}}]*code="400"[^}}]*handler="{path}"[^}}]*}} (\S+)', r"maskwright:constraint_errors_total{[^}]*} (\S+)")
    return [float(re.findall(pattern, metrics)[0]) for pattern in wanted]

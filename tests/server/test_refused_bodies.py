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
    assert not known and known.find(scope(), b"body") is None
    known.see(scope(), b"body", REFUSAL)
    again = known.find(scope(), b"body")
    assert again is not None and again.route == "its route" and again.error is not REFUSAL
    assert again.error.body == REFUSAL.body and again.error.__traceback__ is None
    for other in (scope("/v1/completions"), scope(kind=b"text/plain"), {**scope(), "query_string": b"a"}):
        assert known.find(other, b"body") is None
    assert known.find(scope(), b"bodz") is None and len(found) == 1


@pytest.mark.parametrize(
    "error", [ApiError(500, "broken", code="constraint_limit"), ApiError(429, "later", code="compile_queue_full"), ApiError(400, "no", code="invalid_value")]
)
def test_what_may_be_answered_another_time_is_not_remembered(error: ApiError) -> None:
    known = RefusedBodies()
    known.see(scope(), b"body", error)
    assert not known


def test_those_sent_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_bodies, "MOST_KNOWN", 2)
    known = RefusedBodies()
    for body in (b"a", b"b"):
        known.see(scope(), body, REFUSAL)
    assert known.find(scope(), b"a") is not None
    known.see(scope(), b"c", REFUSAL)
    assert [known.find(scope(), body) is not None for body in (b"a", b"b", b"c")] == [True, False, True]


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

"""Requests that are ended from elsewhere, the cache of prefixes that is emptied, and who may do that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from maskwright import LLM
from maskwright.server.settings import ServerSettings

from .serving import Served, served

LONG: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1500, "ignore_eos": True, "temperature": 0, "stream": True}
SHORT: Any = {**LONG, "max_tokens": 2, "stream": False}
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def keyed(llm: LLM) -> Iterator[Served]:
    with served(llm, ServerSettings(api_key=("one", "two"), admin_api_key=("operator",))) as running:
        yield running


def by(http: httpx.Client, key: str, path: str, body: Any = None) -> httpx.Response:
    return http.post(path, json=body, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("name", ["body", "rid", "header", "answer", "all"])
@pytest.mark.parametrize(("path", "key"), [("/abort_request", "one"), ("/abort_requests", "one"), ("/abort_request", "operator")])
def test_a_request_is_ended_by_its_names(keyed: Served, name: str, path: str, key: str) -> None:
    more = {"body": {"request_id": "mine"}, "rid": {"rid": "mine"}}.get(name, {})
    headers = {"Authorization": "Bearer one"} | ({"X-Request-Id": "mine"} if name == "header" else {})
    with keyed.http() as http, keyed.http() as other, http.stream("POST", CHAT, json={**LONG, **more}, headers=headers) as stream:
        lines = (line.removeprefix("data: ") for line in stream.iter_lines() if line)
        wanted = json.loads(next(lines))["id"] if name == "answer" else "mine"
        body: Any = {"request_ids": [wanted, "nobody"]} if path == "/abort_requests" else {"rid": wanted}
        if name == "all" and path == "/abort_request":
            body = {"abort_all": True}
        elif name == "all":
            body = {"request_ids": json.loads(next(lines))["id"]}
        assert by(other, "two", path, body).json() == {"aborted": 0}
        assert by(other, key, path, body).json() == {"aborted": 1}
        error = json.loads(list(lines)[-1])["error"]
        assert error["code"] == "request_aborted" and by(other, key, path, body).json() == {"aborted": 0}


def test_a_whole_answer_that_is_ended_is_an_error(keyed: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with keyed.http() as http, ThreadPoolExecutor(1) as pool:
        answering = pool.submit(by, http, "one", CHAT, {**LONG, "stream": False, "request_id": "whole"})
        with keyed.http() as other:
            while by(other, "one", "/abort_request", {"rid": "whole"}).json() == {"aborted": 0}:
                assert not answering.done()
        answer = answering.result()
    assert answer.status_code == 409 and answer.headers["x-should-retry"] == "false"
    assert answer.json()["error"]["code"] == "request_aborted"


def test_which_request_has_to_be_said(keyed: Served) -> None:
    with keyed.http() as http:
        assert by(http, "one", "/abort_request", {}).json()["error"]["param"] == "rid"
        assert by(http, "one", "/abort_requests", {}).json()["error"]["param"] == "request_ids"


@pytest.mark.parametrize("path", ["/reset_prefix_cache", "/flush_cache"])
def test_operators_empty_the_cache_of_prefixes(keyed: Served, llm: LLM, path: str) -> None:
    long = {**SHORT, "messages": [{"role": "user", "content": "hello " * 40}]}

    def num_cached(http: httpx.Client) -> int:
        return int(by(http, "one", CHAT, long).json()["usage"]["prompt_tokens_details"]["cached_tokens"])

    with keyed.http() as http:
        num_cached(http)
        refused = by(http, "one", path)
        assert refused.status_code == 403 and refused.json()["error"]["code"] == "operators_only" and num_cached(http) > 0
        assert by(http, "operator", path).status_code == 200 and num_cached(http) == 0


def test_without_keys_everybody_is_an_operator(http: httpx.Client) -> None:
    assert http.post("/reset_prefix_cache").status_code == http.get("/flush_cache").status_code == 200


def test_operators_keys_are_keys(keyed: Served, llm: LLM) -> None:
    with keyed.http() as http:
        assert by(http, "operator", CHAT, SHORT).status_code == 200 and by(http, "other", CHAT, SHORT).status_code == 401
        assert "operator" not in http.get("/server_info", headers={"Authorization": "Bearer one"}).text
    with served(llm, ServerSettings(admin_api_key=("operator",))) as running, running.http() as http:
        assert http.post(CHAT, json=SHORT).status_code == 401 and by(http, "operator", CHAT, SHORT).status_code == 200

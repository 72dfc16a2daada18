"""Stored responses: gone on from, asked for, deleted; bounded, and apart by API key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright import LLM
from maskwright.server.errors import ApiError
from maskwright.server.settings import ServerSettings
from maskwright.server.stored.store import StoredResponses

from .serving import served

PATH = "/v1/responses"
FEW: Any = {"max_output_tokens": 6, "temperature": 0}
KEYS = ServerSettings(api_key=("one", "two"), max_stored_responses=3, max_stored_bytes=20_000)


def post(http: httpx.Client, **asked: Any) -> Any:
    answer = http.post(PATH, json={"input": "hello", **FEW, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def said(response: Any) -> str:
    return str(response["output"][0]["content"][0]["text"])


def test_a_response_that_goes_on_reads_the_whole_conversation(http: httpx.Client) -> None:
    first = post(http, instructions="be brief")
    assert first["store"] is True and first["previous_response_id"] is None
    second = post(http, input="and?", previous_response_id=first["id"])
    third = post(http, input=[{"role": "user", "content": "so?"}], previous_response_id=second["id"], store=False)
    history = [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": said(first)},
        {"role": "user", "content": "and?"}, {"role": "assistant", "content": said(second)},
    ]  # fmt: skip
    alone = post(http, input=[*history, {"role": "user", "content": "so?"}])
    assert said(third) == said(alone) and third["usage"]["input_tokens"] == alone["usage"]["input_tokens"]
    assert third["previous_response_id"] == second["id"] and third["store"] is False
    assert http.get(f"{PATH}/{third['id']}").status_code == 404


def test_calls_and_their_results_go_on(http: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
    tools = [{"type": "function", "name": "f", "parameters": schema}]
    first = post(http, tools=tools, tool_choice="required", max_output_tokens=60)
    (call,) = first["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "7"}
    second = post(http, input=[result], previous_response_id=first["id"])
    whole = [{"role": "user", "content": "hello"}, call, result]
    assert said(second) == said(post(http, input=whole))


def test_what_was_stored_is_given_back(http: httpx.Client, client: openai.OpenAI) -> None:
    with client.responses.stream(model="embedded", input="hello", extra_body={"regex": "[ab]{3}"}) as stream:
        streamed = stream.get_final_response()
    assert client.responses.retrieve(streamed.id).output_text == streamed.output_text
    first = post(http)
    assert http.get(f"{PATH}/{first['id']}").json() == first
    second = post(http, input=[{"role": "user", "content": "a"}, {"role": "user", "content": "b", "id": "mine"}], previous_response_id=first["id"])
    items = client.responses.input_items.list(second["id"], order="asc").data
    assert [item.type for item in items] == ["message"] * 4 and items[-1].id == "mine" and items[1].id == first["output"][0]["id"]
    assert len({item.id for item in items}) == 4
    page = http.get(f"{PATH}/{second['id']}/input_items", params={"limit": 1}).json()
    assert page["has_more"] and page["first_id"] == page["last_id"] == "mine"
    rest = http.get(f"{PATH}/{second['id']}/input_items", params={"after": "mine"}).json()
    assert [item["id"] for item in rest["data"]] == [item.id for item in items[-2::-1]] and not rest["has_more"]
    client.responses.delete(first["id"])
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first["id"])
    assert post(http, previous_response_id=second["id"])  # it needs no other one


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("GET", "/resp_x", 404, "response_not_found"), ("DELETE", "/resp_x", 404, "response_not_found"),
    ("GET", "/resp_x/input_items", 404, "response_not_found"), ("POST", "/resp_x/cancel", 404, "response_not_found"),
    ("GET", "/resp_x/input_items?limit=0", 400, "invalid_value"), ("GET", "/resp_x/input_items?order=up", 400, "invalid_value"),
    ("GET", "/resp_x?stream=true", 400, "unsupported_parameter"),
])  # fmt: skip
def test_what_is_not_there_is_named(http: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    answer = http.request(method, PATH + path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    unknown = http.post(PATH, json={"input": "x", "previous_response_id": "resp_x"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "previous_response_not_found")


def test_running_in_the_background_is_refused(http: httpx.Client) -> None:
    assert http.post(f"{PATH}/{post(http)['id']}/cancel").json()["error"]["code"] == "unsupported_endpoint"


@pytest.fixture(scope="module")
def keyed(llm: LLM) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with served(llm, KEYS) as running, running.http() as one, running.http() as two:
        for http, key in ((one, "one"), (two, "two")):
            http.headers["Authorization"] = f"Bearer {key}"
        yield one, two


def test_keys_are_apart(keyed: tuple[httpx.Client, httpx.Client]) -> None:
    one, two = keyed
    mine = post(one, request_id="same")
    assert two.get(f"{PATH}/{mine['id']}").status_code == two.delete(f"{PATH}/{mine['id']}").status_code == 404
    assert two.post(PATH, json={"input": "x", "previous_response_id": mine["id"]}).status_code == 400
    theirs = post(two, input="other", request_id="same")
    assert theirs["id"] == mine["id"] and one.get(f"{PATH}/{mine['id']}").json() == mine


def test_the_oldest_goes(keyed: tuple[httpx.Client, httpx.Client]) -> None:
    one, _ = keyed
    first, second, third = (post(one)["id"] for _ in range(3))
    assert one.get(f"{PATH}/{first}").status_code == 200
    fourth = post(one)["id"]
    assert [one.get(f"{PATH}/{each}").status_code for each in (first, second, third, fourth)] == [200, 404, 200, 200]
    too_large = post(one, metadata={"x": "y" * 30_000})["id"]
    assert one.get(f"{PATH}/{too_large}").status_code == 404


def test_a_server_that_stores_nothing_says_so(llm: LLM) -> None:
    with served(llm, ServerSettings(max_stored_responses=0)) as running, running.http() as http:
        answer = http.post(PATH, json={"input": "hello", **FEW, "store": True})
        assert answer.json()["store"] is False and answer.headers["x-maskwright-ignored"] == "store"
        assert "x-maskwright-ignored" not in http.post(PATH, json={"input": "hello", **FEW}).headers
        assert http.get(f"{PATH}/{answer.json()['id']}").status_code == 404


OPERATIONS = st.lists(st.tuples(st.sampled_from(["put", "get", "delete"]), st.sampled_from("ab"), st.integers(0, 4), st.integers(0, 60)), max_size=40)


@given(OPERATIONS, st.integers(0, 4), st.integers(0, 600))
def test_the_store_is_a_list_of_what_was_used_last(operations: Any, max_count: int, max_bytes: int) -> None:
    store, twin = StoredResponses(max_count, max_bytes), list[tuple[tuple[str, str], int]]()  # (key, bytes), the oldest use first
    for kind, owner, number, size in operations:
        key, known = (owner, f"r{number}"), dict(twin)
        if kind == "put":
            store.put(owner, {"id": key[1], "output": [], "pad": "x" * size}, [])
            num_bytes = len(f'[{{"id": "{key[1]}", "output": [], "pad": "{"x" * size}"}}, []]')
            twin = [each for each in twin if each[0] != key] + ([(key, num_bytes)] if max_count and num_bytes <= max_bytes else [])
            while len(twin) > max_count or sum(each for _, each in twin) > max_bytes:
                twin.pop(0)
        elif key in known:
            (store.get if kind == "get" else store.delete)(*key)
            twin = [each for each in twin if each[0] != key] + ([(key, known[key])] if kind == "get" else [])
        else:
            with pytest.raises(ApiError):
                (store.get if kind == "get" else store.delete)(*key)
        assert len(store) == len(twin) and store.num_bytes == sum(each for _, each in twin)


def test_an_item_is_named_by_its_id(http: httpx.Client) -> None:
    """As clients do that count on what is stored: of the answer, and of what it was an answer to."""
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
    asked = [{"role": "user", "content": "hello"}]
    tools = [{"type": "function", "name": "f", "parameters": schema}]
    first = post(http, input=asked, tools=tools, tool_choice="required", max_output_tokens=60)
    (call,) = first["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "7"}
    named = post(http, input=[*asked, {"type": "item_reference", "id": call["id"]}, result])
    whole = post(http, input=[*asked, call, result], store=False)
    assert said(named) == said(whole) and named["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    listed = http.get(f"{PATH}/{named['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item["type"] for item in listed] == ["message", "function_call", "function_call_output"]
    again = post(http, input=[{"type": "item_reference", "id": item["id"]} for item in listed])
    assert again["usage"]["input_tokens"] == named["usage"]["input_tokens"]


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "msg_0"}, {"id": "msg_0"}, {"type": "item_reference", "id": None}])
def test_an_item_that_is_not_stored_is_named(http: httpx.Client, reference: Any) -> None:
    error = http.post(PATH, json={"input": [{"role": "user", "content": "a"}, reference]})
    assert error.status_code == 400, error.text
    told = error.json()["error"]
    assert (told["param"], told["code"]) == ("input[1]", "item_not_found")


def test_items_go_with_their_response() -> None:
    stored = StoredResponses(max_count=2, max_bytes=10_000)

    def put(owner: str, number: int, shared: bool) -> None:
        items = [{"id": "shared" if shared else f"in{number}", "type": "message"}]
        stored.put(owner, {"id": f"r{number}", "output": [{"id": f"out{number}"}, {"type": "without id"}]}, items)

    put("me", 1, True)
    put("me", 2, True)
    assert stored.item("me", "out1", "p")["id"] == "out1" and stored.item("me", "shared", "p")
    with pytest.raises(ApiError):
        stored.item("you", "out1", "p")
    put("me", 3, False)  # the first one makes room
    with pytest.raises(ApiError):
        stored.item("me", "out1", "p")
    assert stored.item("me", "shared", "p") and stored.item("me", "in3", "p")
    stored.delete("me", "r2")
    with pytest.raises(ApiError):
        stored.item("me", "shared", "p")
    stored.delete("me", "r3")
    assert not stored._items

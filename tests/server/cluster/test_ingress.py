"""Two whole servers behind an ingress, all in this process: the surface is that of one, and any of them answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from maskwright import LLM
from maskwright.engine.requests.known_prompt import KnownPrompt
from maskwright.server.app import create_app
from maskwright.server.cluster.affinity import PrefixAffinity
from maskwright.server.cluster.asked import Asked, Head, Whole
from maskwright.server.cluster.forwarding import ReplicaLost
from maskwright.server.cluster.in_process import answered, whole
from maskwright.server.cluster.ingress import IngressMetrics, ingress_app
from maskwright.server.cluster.knowledge import Knowledge
from maskwright.server.service import Service
from maskwright.server.settings import ServerSettings

NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99, "minimum": 0}}, "required": ["n"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": NUMBER}}
KEYS = ServerSettings(api_key=("secret",), admin_api_key=("chief",), max_body_bytes=5000, allowed_origins=("https://a.example",))


class Replica:
    """A server, what it knows, and whether it is to die at its next piece."""

    def __init__(self, llm: LLM, settings: ServerSettings) -> None:
        self.app = create_app(llm, settings)
        self.service: Service = self.app.state.service
        self.knowledge = Knowledge()
        self.service.on_running = self.knowledge.note
        self.pieces_left: int | None = None
        self.num_asked = 0

    def facts(self) -> set[int]:
        prompts = self.knowledge.prompts
        counts = dict(zip(prompts, self.service.llm.driver.num_known(prompts), strict=True))
        return self.knowledge.facts(counts, self.service.llm.compiler.knows, self.service.adapters)


class Together:
    """`Replicas` of this process, chosen by affinity."""

    def __init__(self, replicas: dict[str, Replica], metrics: IngressMetrics) -> None:
        self.replicas, self._metrics = replicas, metrics
        self.policy = PrefixAffinity()
        self.policy.update(replicas)
        self.chosen: list[str] = []

    def begin_anew(self) -> None:
        """All live, and nobody knows anything of earlier requests."""
        self.policy = PrefixAffinity()
        self.chosen.clear()
        for replica in self.replicas.values():
            replica.pieces_left, replica.num_asked = None, 0
            replica.knowledge = Knowledge()
            replica.service.on_running = replica.knowledge.note

    async def ask(self, asked: Asked) -> AsyncGenerator[Head | bytes, None]:
        alive = [name for name, each in self.replicas.items() if each.pieces_left != 0]
        self.policy.update(alive)
        name = self.policy.rank(asked.key, lambda _: 0.0)[0]
        self.policy.routed(asked.key, name)
        self.chosen.append(name)
        replica = self.replicas[name]
        replica.num_asked += 1
        pieces = answered(replica.app, asked)
        try:
            async for each in pieces:
                if replica.pieces_left is not None:
                    if replica.pieces_left == 0:
                        raise ReplicaLost(name)
                    replica.pieces_left -= 1
                yield each
        finally:
            await pieces.aclose()

    async def ask_all(self, asked: Asked) -> list[Whole]:
        return [await whole(each.app, asked) for each in self.replicas.values()]

    async def metrics(self) -> dict[str, str]:
        own = {"ingress": self._metrics.text()}
        return own | {name: each.service.metrics.text().decode() for name, each in self.replicas.items()}

    async def obstacles(self) -> list[str | None]:
        return [await each.service.obstacle() for each in self.replicas.values()]


class Scene:
    """An ingress, its replicas, and a client of it and one of a single server; they live as long as the event loop, as starting the
    processes that compile takes a while."""

    def __init__(self, llm: LLM, settings: ServerSettings) -> None:
        self._runner, self._stack, self._llm, self._settings = asyncio.Runner(), AsyncExitStack(), llm, settings
        self._runner.run(self._open())

    async def _open(self) -> None:
        settings, metrics = self._settings, IngressMetrics()
        replicas = {name: Replica(LLM(threads=1), settings) for name in ("one", "two")}
        single = create_app(self._llm, settings)
        for app in (*(each.app for each in replicas.values()), single):
            await self._stack.enter_async_context(app.router.lifespan_context(app))
        replicas["two"].service.responses = replicas["one"].service.responses
        self.together = Together(replicas, metrics)
        front = ingress_app(self.together, settings, 3, metrics)
        self.client, self.single = [await self._stack.enter_async_context(_client(app)) for app in (front, single)]

    def play(self, play: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        self.together.begin_anew()
        self._runner.run(play(self))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def scene(llm: LLM) -> Iterator[Scene]:
    opened = Scene(llm, ServerSettings())
    yield opened
    opened.close()


def _client(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x", timeout=60)


CHANGING = {"id", "created", "created_at", "completed_at", "request_id", "item_id", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
            "timings", "kv_transfer_params", "cached_tokens", "prompt_tokens_details", "input_tokens_details", "cache_read_input_tokens", "input_tokens",
            "metrics", "meta_info", "e2e_latency", "tokens_cached", "tokens_evaluated"}  # fmt: skip


def plain(value: Any) -> Any:
    """Without what no two answers have in common."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in CHANGING}
    return [plain(each) for each in value] if isinstance(value, list) else value


def read(response: httpx.Response) -> Any:
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        return plain(response.json()) if "json" in response.headers.get("content-type", "") else response.text
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [plain(json.loads(each)) if each.startswith("{") else each for each in events]


SURFACE: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/models", None), ("GET", "/v1/models/embedded", None), ("GET", "/version", None), ("GET", "/nowhere", None), ("GET", "/", None),
    ("GET", "/playground/grammars", None), ("DELETE", "/v1/chat/completions", None), ("GET", "/ready", None), ("GET", "/ping", None),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x 5"}], "response_format": FORMAT, "seed": 1}),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x 5"}], "response_format": FORMAT, "seed": 1, "stream": True}),
    ("POST", "/v1/chat/completions", {"messages": [], "nonsense": 1}),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "regex": "a(?=b)"}),
    ("POST", "/v1/completions", {"prompt": ["a", "b"], "max_tokens": 4, "temperature": 0, "n": 1}),
    ("POST", "/v1/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5, "temperature": 0, "stream": True}),
    ("POST", "/api/generate", {"prompt": "x", "stream": False, "options": {"temperature": 0, "num_predict": 4}}),
    ("POST", "/tokenize", {"prompt": "hello"}), ("POST", "/v1/embeddings", {"input": "x"}),
    ("POST", "/abort_requests", {"request_ids": "unknown"}), ("POST", "/abort_request", {}), ("POST", "/reset_prefix_cache", {}), ("GET", "/load", None),
    ("POST", "/v1/files", {}),
]  # fmt: skip


def test_the_surface_is_that_of_one_server(scene: Scene) -> None:
    async def play(scene: Scene) -> None:
        for method, path, body in SURFACE:
            ours, theirs = [await each.request(method, path, json=body) for each in (scene.client, scene.single)]
            assert ours.status_code == theirs.status_code, (path, ours.text)
            if path != "/ready":
                assert read(ours) == read(theirs), path
            assert ours.headers.get("content-type") == theirs.headers.get("content-type"), path
            assert ours.headers["x-request-id"]
        named = await scene.client.post("/v1/completions", json={"prompt": "x", "max_tokens": 1}, headers={"X-Request-Id": "mine"})
        assert named.headers.get_list("x-request-id") == ["mine"] and named.json()["id"] == "cmpl-mine"

    scene.play(play)


def test_prompts_and_constraints_meet_who_knows_them(scene: Scene) -> None:
    async def play(scene: Scene) -> None:
        together = scene.together
        for number in range(6):
            for subject in "abc":
                body = {"prompt": f"{subject} is told here, " * 20 + str(number), "max_tokens": 2, "temperature": 0, "guided_json": NUMBER if subject == "a" else None}
                answer = await scene.client.post("/v1/completions", json={name: value for name, value in body.items() if value})
                assert answer.status_code in (200, 400), answer.text
        for place in range(3):
            assert len(set(together.chosen[place::3])) == 1

    scene.play(play)


def test_another_replica_answers_for_one_that_is_lost(scene: Scene) -> None:
    async def play(scene: Scene) -> None:
        body = {"prompt": "hello", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
        right = (await scene.single.post("/v1/completions", json=body)).json()["choices"]
        first = await scene.client.post("/v1/completions", json=body)
        scene.together.replicas[scene.together.chosen[0]].pieces_left = 1  # the head, and no more
        again = await scene.client.post("/v1/completions", json=body)
        assert first.json()["choices"] == again.json()["choices"] == right
        assert len(set(scene.together.chosen[1:])) == 2
        left = next(each for each in scene.together.replicas.values() if each.pieces_left is None)
        left.pieces_left = 2  # the head and one piece of a stream
        broken = (await scene.client.post("/v1/completions", json=body | {"stream": True})).text.strip().split("\n\n")
        assert json.loads(broken[-1].removeprefix("data: "))["error"]["code"] == "replica_lost" and len(broken) >= 2
        text = (await scene.client.get("/metrics")).text
        assert 'maskwright:lost_replicas_total{replica="ingress"} 2.0' in text
        assert 'maskwright:broken_streams_total{replica="ingress"} 1.0' in text
        assert 'vllm:generation_tokens_total{replica="one",' in text and 'vllm:generation_tokens_total{replica="two",' in text

    scene.play(play)


def test_the_ingress_lets_in_whom_one_server_lets_in(llm: LLM) -> None:
    async def play(scene: Scene) -> None:
        client, replicas = scene.client, scene.together.replicas.values()
        for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"X-Api-Key": "secret"}, 200)):
            assert (await client.get("/v1/models", headers=headers)).status_code == status
        assert sum(each.num_asked for each in replicas) == 1
        secret, chief = ({"Authorization": f"Bearer {key}"} for key in ("secret", "chief"))
        assert (await client.post("/reset_prefix_cache", headers=secret)).status_code == 403
        assert (await client.post("/reset_prefix_cache", headers=chief)).status_code == 200
        large = await client.post("/v1/completions", json={"prompt": "x" * 6000}, headers=secret)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")
        assert sum(each.num_asked for each in replicas) == 1
        preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
        assert (await client.options("/v1/completions", headers=preflight)).headers["access-control-allow-origin"] == "https://a.example"

    keyed = Scene(llm, KEYS)
    try:
        keyed.play(play)
    finally:
        keyed.close()


def test_a_conversation_goes_on_elsewhere(scene: Scene) -> None:
    async def play(scene: Scene) -> None:
        client, together = scene.client, scene.together
        first = (await client.post("/v1/responses", json={"input": "hello", "max_output_tokens": 3})).json()
        body = {"input": "more", "previous_response_id": first["id"], "max_output_tokens": 3}
        assert (await client.post("/v1/responses", json=body)).status_code == 200
        assert together.chosen[0] == together.chosen[1]
        together.replicas[together.chosen[0]].pieces_left = 0
        assert (await client.post("/v1/responses", json=body)).status_code == 200
        assert (await client.get(f"/v1/responses/{first['id']}")).json()["id"] == first["id"]
        assert together.chosen[2] != together.chosen[0]

    scene.play(play)


def test_what_a_replica_tells_is_what_is_in_its_cache(scene: Scene) -> None:
    async def play(scene: Scene) -> None:
        assert (await scene.client.post("/reset_prefix_cache")).status_code == 200
        prompt = "all of this text is in the cache, " * 10
        body = {"prompt": prompt, "max_tokens": 2, "temperature": 0, "guided_regex": "[a-z]{1,2}"}
        assert (await scene.client.post("/v1/completions", json=body)).status_code == 200
        replica = scene.together.replicas[scene.together.chosen[0]]
        (served,) = replica.knowledge._served.values()
        (known,) = replica.service.llm.driver.num_known([served.prompt])
        assert len(served.prompt.token_ids) - 1 <= known <= len(served.prompt.token_ids)
        longer = KnownPrompt((*served.prompt.token_ids[:20], 1, 2, 3))
        other = KnownPrompt((served.prompt.token_ids[0] + 1, 2))
        counts = replica.service.llm.driver.num_known([longer, other, KnownPrompt(served.prompt.token_ids, "gone")])
        assert counts == [20, 0, 0]
        facts = {fact for _, fact in served.key.prefixes}
        assert served.key.constraint is not None and replica.facts() == facts | {served.key.constraint}
        assert (await scene.client.post("/reset_prefix_cache")).status_code == 200
        assert replica.facts() == {served.key.constraint}

    scene.play(play)


@pytest.mark.parametrize("max_requests", [1, 3])
def test_of_many_requests_the_last_ones_are_kept(max_requests: int) -> None:
    knowledge = Knowledge(max_requests)
    knowledge.note([])
    assert knowledge.prompts == [] and knowledge.facts({}, lambda _: False, ["sql"]) != set()

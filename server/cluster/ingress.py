"""The application in front of the replicas: the same HTTP surface as one server, whose requests others answer.

It knows who may ask (the server's own gate), reads the request, and forwards it. What concerns all replicas is asked of all:
metrics, readiness, ending requests, emptying caches.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..client import CALLER
from ..cors import cors_options
from ..errors import ApiError, route_path
from ..gate import Gate
from ..metrics import HttpMetrics
from ..settings import ServerSettings, named_paths
from .asked import Asked, Whole
from .exposition import merged
from .forwarding import Answer, Forwarding
from .routing_key import routing_key

FOR_ALL = ("/abort_request", "/abort_requests", "/flush_cache", "/load", "/reset_prefix_cache")
KEPT_OUT = (b"content-length", b"transfer-encoding", b"connection", b"authorization", b"x-api-key", b"x-request-id", b"expect")


class Replicas(Protocol):
    """Who answers requests."""

    def ask(self, asked: Asked) -> Answer:
        """One of them, which the router chooses. Raises ReplicaLost, and ApiError (429) when too many wait."""

    async def ask_all(self, asked: Asked) -> list[Whole]:
        """The answers of all that live."""

    async def metrics(self) -> dict[str, str]:
        """Of each replica, and each ingress, by its name."""

    async def obstacles(self) -> list[str | None]:
        """Of each replica the reason why it takes no requests; None for one that does."""


class Ingress:
    """An ASGI application without its gate; see `ingress_app`."""

    def __init__(self, replicas: Replicas, settings: ServerSettings, max_retries: int, metrics: IngressMetrics) -> None:
        self._replicas, self._max_retries, self._metrics = replicas, max_retries, metrics
        self._adapters: Collection[str] = named_paths(settings.lora_modules)
        self._own: dict[str, Callable[[], Awaitable[Response]]] = {
            "/metrics": self._show_metrics, "/health": self._health, "/ping": self._ping, "/ready": self._ready,
        }  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path = route_path(scope)
        if (own := self._own.get(path)) is not None and scope["method"] == "GET":
            await (await own())(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            asked = self._asked(scope, path, await request.body())
        except ClientDisconnect:
            return
        if path in FOR_ALL:
            await _together(await self._replicas.ask_all(asked))(scope, receive, send)
            return
        forwarding = Forwarding(asked, self._replicas.ask, self._max_retries)
        try:
            await forwarding.run(receive, send)
        finally:
            self._metrics.see(forwarding)

    def _asked(self, scope: Scope, path: str, body: bytes) -> Asked:
        request_id = scope["state"]["request_id"]
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in KEPT_OUT]
        headers.append((b"x-request-id", request_id.encode()))
        key = routing_key(path, body, request_id, self._adapters)
        return Asked(scope["method"], path, scope["query_string"], tuple(headers), body, scope.get("client"), CALLER.get(), key)

    async def _show_metrics(self) -> Response:
        return Response(merged(await self._replicas.metrics()), media_type=CONTENT_TYPE_LATEST)

    async def _health(self) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ping(self) -> Response:
        return Response()

    async def _ready(self) -> Response:
        obstacles = await self._replicas.obstacles()
        if None in obstacles:
            return JSONResponse({"ready": True})
        reasons = "; ".join(sorted({each for each in obstacles if each is not None}))
        return JSONResponse({"ready": False, "reason": reasons or "there is no replica"}, 503)


class IngressMetrics:
    """What one ingress counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.http = HttpMetrics(self._registry)
        lost, broken = "Times that a replica was lost over a request.", "Streams that ended with replica_lost."
        self._lost = Counter("maskwright:lost_replicas", lost, registry=self._registry)
        self._broken = Counter("maskwright:broken_streams", broken, registry=self._registry)

    def see(self, forwarding: Forwarding) -> None:
        self._lost.inc(forwarding.num_lost)
        self._broken.inc(forwarding.is_broken)

    def text(self) -> str:
        return generate_latest(self._registry).decode()


def ingress_app(replicas: Replicas, settings: ServerSettings, max_retries: int, metrics: IngressMetrics) -> ASGIApp:
    """The whole application of an ingress. max_retries: other replicas that are asked when one is lost."""
    app: ASGIApp = Gate(Ingress(replicas, settings, max_retries, metrics), settings, metrics.http)
    return CORSMiddleware(app, **cors_options(settings)) if settings.allowed_origins else app


async def _live(receive: Receive, send: Send) -> None:
    """There is nothing to start and nothing to stop."""
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


def _together(answers: Sequence[Whole]) -> Response:
    """One answer of what all replicas said: an error if there is one, sums of numbers, else what the first one said."""
    if not answers:
        raise ApiError(503, "there is no replica", code="no_replica", headers={"Retry-After": "1"})
    told = next((each for each in answers if each.head.status >= 400), answers[0])
    body, kind = told.body, dict(told.head.headers).get(b"content-type", b"").decode("latin-1")
    if told.head.status < 400 and kind.startswith("application/json"):
        read = [json.loads(each.body) for each in answers]
        body = json.dumps({name: sum(each[name] for each in read) for name in read[0]}).encode()
    return Response(body, told.head.status, media_type=kind or None)

"""The gate that every request passes first: an id, limits on head and body, and the key. Plain ASGI, so that streams
are not held up."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .arriving import ArrivingBody
from .client import CALLER, CLIENT, TRUSTED_CALLER, Caller, name_of
from .errors import ANTHROPIC_PATH, ERROR, GONE, ApiError, ClientGone, api_error, route_path
from .giving_way import GivingWay
from .metrics import HttpMetrics
from .refused_bodies import RefusedBodies
from .settings import ServerSettings
from .streams import unless

logger = logging.getLogger("maskwright.server.access")

OPEN = ("/", "/health", "/ready", "/version", "/metrics", "/docs", "/openapi.json")  # need no key
FILES_PATH = "/v1/files"
FORM_BYTES = 4096  # around a file in a form
OPEN_FOLDER = "/playground/"
METHODS = "GET, HEAD, POST, DELETE, OPTIONS"  # that there are paths for
LOOK_BYTES = 1 << 20  # of a body that is looked at before it is read
_REQUEST_ID = re.compile(r"[\w.:/-]{1,128}", re.ASCII)


class Gate:
    """Around the application. A request id that the client gives is kept, so that logs of both sides can be joined."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        metrics: HttpMetrics,
        giving_way: GivingWay | None = None,
        refused: RefusedBodies | None = None,
    ) -> None:
        """giving_way: of clients that compile here, and refused: what they sent; None where nothing is compiled."""
        self._app, self._settings, self._metrics, self._giving_way = app, settings, metrics, giving_way
        self._refused = RefusedBodies() if refused is None else refused
        self._operators = [_digest(key) for key in settings.admin_api_key]
        self._digests = [_digest(key) for key in settings.api_key] + self._operators

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope["root_path"] = self._settings.root_path
        request_id, path = _request_id(headers), route_path(scope)
        scope["path"] = self._settings.root_path + path
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id, path)
        started, asked = time.perf_counter(), scope
        try:
            self._check_headers(headers)
            self._check_coding(headers)
            self._tell_caller(scope, path, headers)
            asked = _as_get(scope)
            await self._ask(asked, ArrivingBody(receive, headers, *self._bounds(path)), answer)
        except ClientGone:
            answer.status = GONE
        except Exception as error:  # answered here, or the connection would be closed under the client's next request
            if not answer.has_begun:
                await api_error(error).response(path, request_id)(scope, receive, answer)
            elif not isinstance(error, ApiError):
                raise
        finally:
            seconds = time.perf_counter() - started
            self._metrics.see(scope["method"], getattr(asked.get("route"), "path", None), answer.status, seconds)
            facts = {"request_id": request_id, "method": scope["method"], "path": scope["path"], "status": answer.status}
            logger.info("%s %s %s %s %.3fs", *facts.values(), seconds, extra=facts | {"seconds": round(seconds, 6)})

    def _tell_caller(self, scope: Scope, path: str, headers: Headers) -> None:
        """Who asks, for all that answers the request. Raises ApiError for a key that is not known."""
        if (caller := scope.get(TRUSTED_CALLER)) is not None:
            CLIENT.set(name_of(scope, bytes.fromhex(caller.key_digest)))
            CALLER.set(caller)
            return
        self._check_key(path, headers)
        digest = _digest(_key(headers))
        matches = [hmac.compare_digest(digest, known) for known in self._operators]
        is_operator = any(matches) or not self._digests
        CLIENT.set(name_of(scope, digest))
        CALLER.set(Caller(digest.hex() if self._digests else "", is_operator))  # without keys, what is sent as one is nothing

    async def _ask(self, scope: Scope, body: ArrivingBody, answer: Send) -> None:
        """Have a request read and answered. What only looks at the server stands back for nobody.

        Raises ApiError for what is refused unread, ClientGone when the client has left before it was read.
        """
        if scope["method"] == "OPTIONS" and scope["path"].endswith("*"):  # about the server, not about one of its paths
            await Response(status_code=204, headers={"Allow": METHODS})(scope, body, answer)
            return
        way, client = self._giving_way, CLIENT.get()
        if way is None or scope["method"] != "POST":
            await self._app(scope, body, answer)
            return
        looked_at = await body.whole(LOOK_BYTES)
        if looked_at is not None and (found := self._refused.find(scope, looked_at)) is not None:
            scope["route"] = found.route
            raise found.error
        if way.is_slow(client) and looked_at is None:
            await way.turn(client, None)
        elif way.is_slow(client):
            await unless(body.gone(), way.turn(client, looked_at))
        with way.answering(client):
            await self._app(scope, body, answer)
        if looked_at is not None and (error := scope["state"].get(ERROR)) is not None:
            self._refused.see(scope, looked_at, error)

    def _bounds(self, path: str) -> tuple[int, float]:
        """How many bytes the body of a request to this path may have, and seconds to arrive."""
        settings = self._settings
        if path == FILES_PATH and settings.batch_folder is not None:
            return settings.max_file_bytes + FORM_BYTES, settings.request_seconds
        return settings.max_body_bytes, settings.body_seconds

    def _check_headers(self, headers: Headers) -> None:
        num_bytes, settings = sum(len(name) + len(value) for name, value in headers.raw), self._settings
        if num_bytes > settings.max_header_bytes:
            message = f"the headers have {num_bytes} bytes, and this server allows {settings.max_header_bytes}"
            raise ApiError(431, message, code="headers_too_large")
        if len(headers.raw) > settings.max_headers:
            message = f"the request has {len(headers.raw)} headers, and this server allows {settings.max_headers}"
            raise ApiError(431, message, code="too_many_headers")

    def _check_coding(self, headers: Headers) -> None:
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):
            message = f"the body is sent as {coding[:40]} (Content-Encoding), and this server reads it only as it is"
            raise ApiError(415, message, code="unsupported_encoding", headers={"Accept-Encoding": "identity"})

    def _check_key(self, path: str, headers: Headers) -> None:
        if not self._digests or path in OPEN or path.startswith(OPEN_FOLDER):
            return
        given = _key(headers)
        digest = _digest(given)
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all of them: time tells nothing
        if not any(matches):
            message = "the API key is wrong" if given else "an API key is missing: send it as Authorization: Bearer KEY"
            raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


class _Answer:
    """A `send` that adds the request id, as clients of that path read it, and remembers the status."""

    def __init__(self, send: Send, request_id: str, path: str) -> None:
        self._send, self._request_id = send, request_id
        self._is_anthropic = path.startswith(ANTHROPIC_PATH)
        self.status = 0

    @property
    def has_begun(self) -> bool:
        return self.status != 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._request_id
            if self._is_anthropic:
                headers["request-id"] = self._request_id
        await self._send(message)


def _as_get(scope: Scope) -> Scope:
    """HEAD asks for what GET answers, of which the server sends the head alone."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid4().hex


def _key(headers: Headers) -> str:
    """The key that the client gives, "" if none."""
    bearer = headers.get("authorization", "")
    return bearer[7:] if bearer[:7].lower() == "bearer " else headers.get("x-api-key", "")


def _digest(key: str) -> bytes:
    """A digest that has one length for all keys, so that comparing digests tells nothing about a key."""
    return hashlib.sha256(key.encode()).digest()

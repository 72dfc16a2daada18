"""The line of HTTP before any endpoint: framing, HEAD, other origins, TLS, a proxy's path, clients that read nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from maskwright import LLM, UsageError
from maskwright.server.protocol import Protocol
from maskwright.server.run import Ground, Server, prepare, server_of
from maskwright.server.settings import ServerSettings

from .serving import TIMEOUT, Served

CHAT = "/v1/chat/completions"
ASK: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "temperature": 0}


@contextlib.contextmanager
def run(server: uvicorn.Server, ground: Ground) -> Iterator[tuple[str, int]]:
    """A server that runs, and its address."""
    thread = threading.Thread(target=server.run, args=([ground.listening],))
    address = ground.listening.getsockname()[:2]
    thread.start()
    try:
        wait_for(address)
        yield address
    finally:
        server.should_exit = True
        thread.join()


def wait_for(address: tuple[str, int]) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(retries=7), timeout=TIMEOUT) as http, contextlib.suppress(httpx.ReadError, httpx.RemoteProtocolError):
        http.get(f"http://{address[0]}:{address[1]}/health")


@contextlib.contextmanager
def serving(llm: LLM, settings: ServerSettings) -> Iterator[tuple[Served, tuple[str, int]]]:
    """A server as `maskwright serve` makes it."""
    ground = prepare(settings)
    server = server_of(llm, settings, "embedded", ground.tls, ground.tracer_provider)
    with run(server, ground) as address:
        yield Served(server._service, f"http://{address[0]}:{address[1]}"), address


@pytest.fixture(scope="module")
def front(llm: LLM) -> Iterator[tuple[Served, tuple[str, int]]]:
    settings = ServerSettings(
        port=0, root_path="/llm", allowed_origins=("https://a.example",), allow_credentials=True, api_key=("key",), idle_seconds=0.2
    )
    with serving(llm, settings) as running:
        yield running


def exchange(address: tuple[str, int], sent: bytes) -> bytes:
    """All that the server says before it closes the connection."""
    with socket.create_connection(address, timeout=TIMEOUT) as connection:
        connection.sendall(sent)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return answer


# ---- framing

BODY = json.dumps(ASK).encode()
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
HIDDEN = b"GET /version HTTP/1.1\r\nHost: hidden\r\n\r\n"


@pytest.mark.parametrize(
    ("version", "headers", "status"),
    [
        ("1.1", ["Content-Length: 4", "Transfer-Encoding: chunked"], 400),
        ("1.1", ["Transfer-Encoding: chunked", f"Content-Length: {len(CHUNKED)}"], 400),
        ("1.1", ["transfer-encoding: Chunked", "content-length: 0"], 400),
        ("1.0", ["Transfer-Encoding: chunked"], 400),
        ("1.1", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], 501),
        ("1.1", ["Transfer-Encoding: identity, chunked"], 501),
        ("1.1", ["Transfer-Encoding : chunked"], 400),
        ("1.1", ["Content-Length: 4", "Content-Length: 5"], 400),
        ("1.1", ["Content-Length: +4"], 400),
        ("1.1", ["X: y\r\n folded: z", "Content-Length: 4", "Transfer-Encoding:\tchunked"], 400),
    ],
)
def test_a_request_whose_end_is_in_doubt_is_refused_and_nothing_behind_it_is_answered(
    front: Any, version: str, headers: list[str], status: int
) -> None:
    head = "\r\n".join([f"POST {CHAT} HTTP/{version}", "Host: x", "Authorization: Bearer key", "Content-Type: application/json", *headers])
    answer = exchange(front[1], head.encode() + b"\r\n\r\n" + CHUNKED + HIDDEN)
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in answer.lower() and json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /version HTTP/2.0\r\nHost: x", 505),
        ("PRI * HTTP/2.0", 505),
        ("GET /version HTTP/3.0\r\nHost: x", 505),
        ("GET /version HTTP/1.1\r\nHost: a b", 400),
        ("GET /version HTTP/1.1\r\nHost: a/b", 400),
        ("GET /version HTTP/1.1\r\nHost: me@x", 400),
        ("GET http://me@x/version HTTP/1.1\r\nHost: x", 400),
        ("GET http://x/version HTTP/1.1\r\nHost: a b", 400),
        ("GET /version HTTP/1.1\r\nHost: x\r\nHost: x", 400),
        ("GET /version HTTP/1.1", 400),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(front: Any, head: str, status: int) -> None:
    answer = exchange(front[1], head.encode() + b"\r\n\r\n" + HIDDEN)
    assert answer.startswith(b"HTTP/1.1 %d " % status) and answer.count(b"HTTP/1.1 ") == 1, answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://x/version", "y", 200), ("HTTP://x:80/llm/version?a=b", "[::1]:80", 200), ("https://x?a", "", 200),
        ("http://x/nothing", "x", 404), ("//version", "x", 404),
    ],
)  # fmt: skip
def test_a_target_may_name_the_server(front: Any, target: str, host: str, status: int) -> None:
    """RFC 9112, 3.2.2."""
    answer = exchange(front[1], f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer key\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer


def test_empty_lines_before_and_behind_requests_are_passed_over(front: Any) -> None:
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Authorization: Bearer key", "Content-Type: application/json", f"Content-Length: {len(BODY)}"]
    last = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = exchange(front[1], b"\r\n\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n" + BODY + b"\r\n\r\n" + last)
    assert answer.count(b"HTTP/1.1 200 ") == 2, answer


def test_options_of_the_server(front: Any) -> None:
    answer = exchange(front[1], b"OPTIONS * HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 204 ") and b"allow: GET, HEAD, POST" in answer


@pytest.mark.parametrize("header", ["Transfer-Encoding: chunked", f"Content-Length: {len(BODY)}"])
def test_one_of_them_is_a_request(front: Any, header: str) -> None:
    lines = [f"POST {CHAT} HTTP/1.1", "Host: x", "Authorization: Bearer key", "Connection: close", "Content-Type: application/json", header]
    answer = exchange(front[1], "\r\n".join(lines).encode() + b"\r\n\r\n" + (CHUNKED if "chunked" in header else BODY))
    assert answer.startswith(b"HTTP/1.1 200 ")


# ---- HEAD


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/version", "/metrics", "/docs", "/openapi.json", "/v1/models", "/playground/style.css"])
def test_head_is_get_without_a_body(front: Any, path: str) -> None:
    with front[0].http() as http:
        headers = {"Authorization": "Bearer key"}
        head, got = http.head(path, headers=headers), http.get(path, headers=headers)
    assert head.status_code == got.status_code == 200 and head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"] if got.content else True
    if path != "/metrics":
        assert head.headers["content-length"] == got.headers["content-length"]


def test_head_of_what_takes_post_alone_is_refused(front: Any) -> None:
    with front[0].http() as http:
        answer = http.head(CHAT, headers={"Authorization": "Bearer key"})
    assert answer.status_code == 405 and answer.headers["allow"] == "POST" and answer.content == b""


# ---- other origins


def test_pages_of_named_origins_may_ask(front: Any) -> None:
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    with front[0].http() as http:
        allowed = http.options(CHAT, headers=asked)  # without a key, as browsers ask
        refused = http.options(CHAT, headers={**asked, "Origin": "https://b.example"})
        unknown = http.post(CHAT, json=ASK, headers={"Origin": "https://a.example"})
        answered = http.post(CHAT, json=ASK, headers={"Origin": "https://a.example", "Authorization": "Bearer key"})
    assert allowed.status_code == 200 and allowed.headers["access-control-allow-origin"] == "https://a.example"
    assert "authorization" in allowed.headers["access-control-allow-headers"] and "POST" in allowed.headers["access-control-allow-methods"]
    assert refused.status_code == 400 and "access-control-allow-origin" not in refused.headers
    assert (unknown.status_code, unknown.headers["access-control-allow-origin"]) == (401, "https://a.example")
    assert answered.status_code == 200 and "X-Request-Id" in answered.headers["access-control-expose-headers"]


def test_without_the_option_no_origin_may(http: httpx.Client) -> None:
    answer = http.get("/version", headers={"Origin": "https://a.example"})
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


# ---- the path of a proxy


def test_a_proxy_may_leave_its_path_or_take_it_off(front: Any) -> None:
    with front[0].http() as http:
        for path in ("/llm/health", "/health", "/llm/", "/llm", "/llm/playground/app.mjs"):
            assert http.get(path).status_code == 200, path  # these need no key
        for path in ("/llm/v1/models", "/v1/models"):
            assert http.get(path).status_code == 401 and http.get(path, headers={"Authorization": "Bearer key"}).status_code == 200
        for path in ("/llmx/health", "/llm/nothing"):
            assert http.get(path, headers={"Authorization": "Bearer key"}).status_code == 404
        anthropic = http.post("/llm/v1/messages", json={})
        assert anthropic.status_code == 401 and anthropic.json()["type"] == "error"
        assert http.get("/llm/openapi.json").json()["servers"] == [{"url": "/llm"}]


# ---- keep-alive


def test_connections_are_kept_for_as_long_as_asked(front: Any) -> None:
    with socket.create_connection(front[1], timeout=TIMEOUT) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while piece := connection.recv(4096):  # ends when the server closes, before it would by default
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200 ")


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    options = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command = ["openssl", "req", *options, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the openssl command to make a certificate")
    return made, key


def test_https(llm: LLM, certificate: tuple[Path, Path]) -> None:
    settings = ServerSettings(port=0, ssl_certfile=certificate[0], ssl_keyfile=certificate[1])
    with serving(llm, settings) as (_, address), httpx.Client(verify=ssl.create_default_context(cafile=certificate[0]), timeout=TIMEOUT) as http:
        assert http.get(f"https://127.0.0.1:{address[1]}/version").status_code == 200


def test_clients_may_have_to_show_a_certificate(llm: LLM, certificate: tuple[Path, Path]) -> None:
    settings = ServerSettings(port=0, ssl_certfile=certificate[0], ssl_keyfile=certificate[1], ssl_ca_certs=certificate[0])
    known = ssl.create_default_context(cafile=certificate[0])
    known.load_cert_chain(*certificate)
    with serving(llm, settings) as (_, address):
        with httpx.Client(verify=known, timeout=TIMEOUT) as http:
            assert http.get(f"https://127.0.0.1:{address[1]}/version").status_code == 200
        stranger = ssl.create_default_context(cafile=certificate[0])
        with httpx.Client(verify=stranger, timeout=TIMEOUT) as http, pytest.raises(httpx.TransportError):
            http.get(f"https://127.0.0.1:{address[1]}/version")


def test_files_that_are_no_certificate_are_told_at_once(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    for options, message in (
        ({"ssl_certfile": tmp_path / "nothing"}, "--ssl-certfile .*nothing: no certificate and key"),
        ({"ssl_certfile": certificate[0]}, "--ssl-certfile .*: no certificate and key"),
        ({"ssl_certfile": certificate[0], "ssl_keyfile": tmp_path / "text"}, "--ssl-keyfile .*text"),
        ({"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1], "ssl_ca_certs": tmp_path / "text"}, "--ssl-ca-certs .*text"),
    ):
        with pytest.raises(UsageError, match=message):
            prepare(ServerSettings(port=0, **options))


# ---- settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"api_key": ("schlüssel",)}, "visible ASCII characters"),
        ({"api_key": ("good", "a b")}, "visible ASCII characters"),
        ({"api_key": ("line\n",)}, "visible ASCII characters"),
        ({"port": 65536}, "port is at most 65535, not 65536"),
        ({"tool_style": "hermse"}, 'unknown tool_style "hermse"; did you mean hermes'),
        ({"root_path": "llm/"}, "root_path begins with a slash"),
        ({"root_path": "/llm/"}, "root_path begins with a slash"),
        ({"allow_credentials": True}, "allow_credentials needs allowed_origins"),
        ({"allow_credentials": True, "allowed_origins": ("*",)}, "allow_credentials needs allowed_origins"),
        ({"ssl_keyfile": Path("key")}, "need ssl_certfile"),
        ({"idle_seconds": 0}, "idle_seconds is more than 0"),
    ],
)
def test_settings_that_cannot_be(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        ServerSettings(**wrong)
    assert "schlüssel" not in str(raised.value)


# ---- clients that read nothing


class Answering:
    """An application that answers with a large body, whole or in pieces, and tells how it ended."""

    def __init__(self, pieces: int) -> None:
        self.pieces, self.ended = pieces, threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for number in range(self.pieces):
                await send({"type": "http.response.body", "body": b"x" * (16 << 20), "more_body": number + 1 < self.pieces})
        finally:
            self.ended.set()


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_client_that_reads_nothing_is_ended(pieces: int) -> None:
    """Whether the application waits for it, or has left all that it says to the transport."""
    application = Answering(pieces)
    protocol = partial(Protocol, head_seconds=TIMEOUT, send_seconds=0.2)
    config = uvicorn.Config(application, http=protocol, lifespan="off", log_level="warning", h11_max_incomplete_event_size=65536)  # type: ignore[arg-type]
    server, ground = uvicorn.Server(config), prepare(ServerSettings(port=0))
    thread = threading.Thread(target=server.run, args=([ground.listening],))
    thread.start()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(TIMEOUT)
        while client.connect_ex(ground.listening.getsockname()):  # until it listens
            pass
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert application.ended.wait(TIMEOUT)
        asyncio.run(no_connections(server))
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 20):
                pass
    server.should_exit = True
    thread.join(TIMEOUT)
    assert not thread.is_alive()


async def no_connections(server: uvicorn.Server) -> None:
    async with asyncio.timeout(TIMEOUT):
        while server.server_state.connections:
            await asyncio.sleep(0.01)


# ---- stopping


def test_streams_that_outlast_the_draining_end_with_an_error(llm: LLM) -> None:
    long = {**ASK, "max_tokens": 1800, "ignore_eos": True, "stream": True}
    settings = ServerSettings(port=0, drain_seconds=1)
    ground = prepare(settings)
    server = server_of(llm, settings, "embedded")
    thread = threading.Thread(target=server.run, args=([ground.listening],))
    thread.start()
    wait_for(ground.listening.getsockname()[:2])
    server._service.llm.driver.step = slowed(server._service.llm.driver.step)  # type: ignore[method-assign]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{ground.listening.getsockname()[1]}", timeout=TIMEOUT) as http, http.stream("POST", CHAT, json=long) as stream:
            lines = stream.iter_lines()
            next(lines)
            server.should_exit = True
            rest = [line for line in lines if line]
    finally:
        del server._service.llm.driver.step
        server.should_exit = True
        thread.join(TIMEOUT)
    assert not thread.is_alive()
    error = json.loads(rest[-1].removeprefix("data: "))["error"]
    assert (error["code"], error["message"]) == ("shutting_down", "this server is shutting down")


def test_what_is_compiled_when_the_draining_ends_is_told_so(llm: LLM) -> None:
    async def never_done(data: bytes, client: str) -> bytes:
        return await asyncio.get_running_loop().create_future()

    asked = {**ASK, "json_schema": {"type": "integer"}}
    settings = ServerSettings(port=0, drain_seconds=1)
    ground = prepare(settings)
    server = server_of(llm, settings, "embedded")
    server._service.compiler._lanes.compile = never_done  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, args=([ground.listening],))
    thread.start()
    address = ground.listening.getsockname()[:2]
    wait_for(address)
    try:
        with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=f"http://127.0.0.1:{address[1]}", timeout=TIMEOUT) as http:
            answering = pool.submit(http.post, CHAT, json=asked)
            while not server._service.compiler._jobs:
                assert not answering.done(), answering.result().text
            server.should_exit = True
            answer = answering.result()
    finally:
        server.should_exit = True
        thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")


def slowed(step: Any) -> Any:
    """Steps that take their time, so that a request outlasts a second whatever the machine."""
    pause = threading.Event()

    def slow() -> Any:
        pause.wait(0.01)
        return step()

    return slow


def test_what_is_served_is_told(llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    from maskwright.server.run import told_of
    from maskwright.server.service import Service

    lines = dict.fromkeys(line for _, line in told_of(Service(llm, ServerSettings(root_path="/llm"), ("embedded",)), "http://127.0.0.1:8000"))
    told = "\n".join(lines)
    assert "model embedded: 9 MB of weights in float32 on cpu, 1 thread" in told and "context 2,048 tokens; KV cache" in told
    assert "API http://127.0.0.1:8000/llm/v1, reference http://127.0.0.1:8000/llm/docs, playground http://127.0.0.1:8000/llm/" in told
    assert "everybody" not in told
    exposed = [line for _, line in told_of(Service(llm, ServerSettings(host="0.0.0.0"), ("embedded",)), "http://0.0.0.0:8000")]
    assert exposed[-1].startswith("everybody who reaches this machine may use it: give --api-key")
    keyed = [line for _, line in told_of(Service(llm, ServerSettings(host="0.0.0.0", api_key=("k",)), ("embedded",)), "http://0.0.0.0:8000")]
    assert len(keyed) == len(exposed) - 1


def test_a_server_is_told_of_by_the_log_when_it_is_up(llm: LLM) -> None:
    assert issubclass(Server, uvicorn.Server) and isinstance(server_of(llm, ServerSettings(port=0), "embedded"), Server)

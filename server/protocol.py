"""uvicorn's HTTP/1.1 (h11), with our errors for what never becomes a request, and limits on the time that a client may take: to
send the head of a request, and to read what it asked for."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .errors import ApiError

logger = logging.getLogger(__name__)

LINGER_SECONDS = 2.0  # for the client to read why it was refused, while what it still sends is thrown away


_HOST = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)  # RFC 3986, 3.2.2, with a port
_ABSOLUTE = re.compile(rb"https?://([^/?#]+)([^#]*)", re.IGNORECASE)
_LINE_ENDS = b"\r\n"


class StrictConnection(h11.Connection):
    """Requests whose end two servers could see at different places are no requests (RFC 9112, 6.1): one of them would take for
    the body what the other answers as the next request. Nor are those whose host, or version, is none."""

    def next_event(self) -> Any:
        event = super().next_event()
        return _checked(event) if isinstance(event, h11.Request) else event

    def start_next_cycle(self) -> None:
        """Empty lines that old clients send behind a body are no beginning of a request (RFC 9112, 2.2)."""
        super().start_next_cycle()
        rest, _ = self.trailing_data
        if num_empty := len(rest) - len(rest.lstrip(_LINE_ENDS)):
            self._receive_buffer.maybe_extract_at_most(num_empty)


def _checked(request: h11.Request) -> h11.Request:
    """The request as an endpoint reads it. Raises RemoteProtocolError for one that is none."""
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" in names and b"content-length" in names:
        raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
    if b"transfer-encoding" in names and request.http_version < b"1.1":
        raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
    if not request.http_version.startswith(b"1."):
        raise h11.RemoteProtocolError(f"its version is {request.http_version.decode()}", error_status_hint=505)
    absolute = _ABSOLUTE.fullmatch(request.target)
    hosts = [value for name, value in request.headers if name == b"host"] + ([absolute[1]] if absolute else [])
    if not all(map(_HOST.fullmatch, hosts)):
        raise h11.RemoteProtocolError("bad Host")
    if absolute is None:
        return request
    headers = [(name, absolute[1] if name == b"host" else value) for name, value in request.headers]  # RFC 9112, 3.2.2
    target = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
    return h11.Request(method=request.method, target=target, headers=headers, http_version=request.http_version)


class Protocol(H11Protocol):
    """One connection. Its clients get JSON also where uvicorn writes a line of text: for heads that are too large, late or no HTTP.

    head_seconds: from the connection, or the first byte of a later request, to the end of its head.
    send_seconds: a client that takes nothing of what waits for it for that long is gone. What waits is bounded: nothing is added to
    what the transport holds before it has passed most of it on.
    """

    def __init__(self, *arguments: Any, head_seconds: float, send_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        assert self.config.h11_max_incomplete_event_size is not None, "run.py sets it"
        self.conn = StrictConnection(h11.SERVER, self.config.h11_max_incomplete_event_size)
        self._head_seconds, self._send_seconds = head_seconds, send_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def on_response_complete(self) -> None:
        self._watch_reading()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            data = data.lstrip(_LINE_ENDS)
            if not data:
                return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing() and not self._is_refused:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._send_timer is not None:
            self._send_timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls while it handles the parser's error."""
        status = getattr(sys.exception(), "error_status_hint", 400)
        limit = self.config.h11_max_incomplete_event_size
        reason = f"this is not a request of HTTP/1.1: {sys.exception()}"
        message = f"the head of the request is larger than {limit} bytes" if status == 431 else reason
        self._refuse(ApiError(status, message, code="headers_too_large" if status == 431 else "invalid_request"))

    def _wait_for_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_reading(self) -> None:
        """From now on as long as something waits for the client, it has to take some of it."""
        if self._send_timer is None and (waiting := self.transport.get_write_buffer_size()):
            self._send_timer = self.loop.call_later(self._send_seconds, self._look_at_reading, waiting)

    def _look_at_reading(self, num_before: int) -> None:
        self._send_timer = None
        if self.transport.get_write_buffer_size() < num_before:
            self._watch_reading()
        else:
            logger.info("a client read nothing for %s seconds; its connection was ended", self._send_seconds)
            self.transport.abort()

    def _lose_patience(self) -> None:
        self._head_timer = None
        message = f"the head of the request took longer than {self._head_seconds} seconds"
        self._refuse(ApiError(408, message, code="request_timeout"))

    def _refuse(self, error: ApiError) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = error.response()
            headers = [(b"connection", b"close"), *answer.raw_headers]
            begin = h11.Response(status_code=error.status, headers=headers)
            for event in (begin, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self._is_refused = True
        if self.transport.can_write_eof():  # closed at once, with something unread, the connection would be reset
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

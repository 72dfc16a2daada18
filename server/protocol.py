"""uvicorn's HTTP/1.1, with our errors for what never becomes a request, and a limit on the time that its head may take."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .errors import ApiError

LINGER_SECONDS = 2.0  # for the client to read why it was refused, while what it still sends is thrown away


class Protocol(H11Protocol):
    """One connection. Its clients get JSON also where uvicorn writes a line of text: for heads that are too large, late or no HTTP.

    head_seconds: from the connection, or the first byte of a later request, to the end of its head.
    """

    def __init__(self, *arguments: Any, head_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing() and not self._is_refused:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls while it handles the parser's error."""
        status = getattr(sys.exception(), "error_status_hint", 400)
        limit = self.config.h11_max_incomplete_event_size
        message = f"the head of the request is larger than {limit} bytes" if status == 431 else "this is not HTTP/1.1"
        self._refuse(ApiError(status, message, code="headers_too_large" if status == 431 else "invalid_request"))

    def _wait_for_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

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

"""From plans to the answer of an endpoint: the plans are run, and their events told, whole or as a stream, in the form
of that endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeAlias

from fastapi import Request
from fastapi.responses import Response
from starlette.responses import JSONResponse

from ..engine.requests.output import Event
from ..planning import Plan
from .errors import ApiError
from .service import Service
from .streams import EVENTS, EventStream, unless_gone

MOST_TOLD = 2000  # characters of the header
Events: TypeAlias = AsyncIterator[tuple[int, Event]]  # which output of the request, and its event


class Writer(Protocol):
    """Makes an endpoint's answer of the events of one request."""

    async def whole(self, events: Events) -> dict[str, Any] | list[dict[str, Any]]:
        """The answer when all outputs have ended."""

    def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """Server-sent events, while they come."""

    def failed(self, error: ApiError) -> bytes:
        """The last event of a stream that fails."""


IGNORED = "X-Maskwright-Ignored"  # the header that names what of a request had no effect


async def answer(
    request: Request,
    plans: Sequence[Plan],
    writer: Writer,
    is_streamed: bool | None,
    ignored: Iterable[str] = (),
    media_type: str = EVENTS,
    names: Sequence[str] = (),
) -> Response:
    """The answer to a request whose plans are ready. Raises ApiError while no event was sent.

    ignored: what of the request had no effect, for a header. media_type: of a stream; where it is not that of events, no
    comments keep it alive. names: under which the request can be ended from elsewhere, beside the id that it has by its headers.
    Its outputs end with it: when it is written, when the client goes, and when it fails.
    """
    service: Service = request.app.state.service
    stack = AsyncExitStack()
    events = await stack.enter_async_context(service.running(plans, [request.state.request_id, *names]))
    response: Response
    if is_streamed:
        settings = service.settings
        seconds = settings.keep_alive_seconds if media_type == EVENTS else None
        response = EventStream(writer.stream(events), stack, seconds, settings.send_seconds, writer.failed, media_type)
    else:
        async with stack:
            response = JSONResponse(await unless_gone(request, writer.whole(events)))
    tell_ignored(response, ignored)
    return response


def renamed(ignored: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """What has no effect, as this endpoint calls it. names: from a chat completion's names to this endpoint's."""
    return [names.get(name, name) for name in ignored]


def tell_ignored(response: Response, ignored: Iterable[str]) -> None:
    """Name in the header of an answer what of its request had no effect."""
    told = ", ".join(dict.fromkeys(ignored)).encode("ascii", "backslashreplace").decode()
    if told:
        response.headers[IGNORED] = told[:MOST_TOLD]

"""OpenTelemetry spans: one for each HTTP request, inside it one for its constraint and one for each output. Off unless asked for.

Attributes are those of the semantic conventions for HTTP and for generative AI; `maskwright.` is ours. Only who asks for traces
needs the package (`pip install "maskwright[traces]"`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..engine.requests.output import Event
from ..engine.requests.request import Request
from ..errors import UsageError


class Traces:
    """Begins spans with the tracer of a provider; without one it does nothing."""

    def __init__(self, provider: Any | None, model_name: str) -> None:
        self._tracer = provider.get_tracer("maskwright") if provider is not None else None
        self._model_name = model_name

    @contextmanager
    def span(self, name: str, **attributes: Any) -> Iterator[None]:
        """A span around a block, inside the one that is current."""
        if self._tracer is None:
            yield
            return
        with self._tracer.start_as_current_span(name, attributes=attributes):
            yield

    def output(self, request: Request) -> OutputSpan:
        """The span of one output, from now to its end."""
        if self._tracer is None:
            return OutputSpan(None)
        sampling = request.sampling
        attributes = {
            "gen_ai.operation.name": "text_completion",
            "gen_ai.provider.name": "maskwright",
            "gen_ai.request.model": request.adapter or self._model_name,
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "maskwright.is_constrained": request.constraint is not None,
        }
        return OutputSpan(self._tracer.start_span(f"generate {self._model_name}", attributes=attributes))


class OutputSpan:
    """Sees the events of one output. It ends with the last one, or with `close` when the client has gone."""

    def __init__(self, span: Any | None) -> None:
        self._span = span
        self._has_begun = False

    def see(self, event: Event) -> None:
        if self._span is None:
            return
        if event.tokens and not self._has_begun:
            self._has_begun = True
            self._span.add_event("first token")
        output = event.output
        if output is not None:
            self._span.set_attributes(
                {
                    "gen_ai.usage.input_tokens": output.num_prompt_tokens,
                    "gen_ai.usage.output_tokens": len(output.token_ids),
                    "gen_ai.usage.cache_read.input_tokens": output.num_cached_tokens,
                    "gen_ai.response.finish_reasons": [output.finish_reason],
                }
            )
            self.close()

    def close(self) -> None:
        if self._span is not None:
            self._span.end()
            self._span = None


@contextmanager
def closing_all(spans: Iterable[OutputSpan]) -> Iterator[list[OutputSpan]]:
    """A block at whose end the spans have ended."""
    made = list(spans)
    try:
        yield made
    finally:
        for span in made:
            span.close()


class Tracing:
    """ASGI around the application: a span for each request, continuing the client's trace (`traceparent`)."""

    def __init__(self, app: ASGIApp, provider: Any) -> None:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        self._app, self._tracer = app, provider.get_tracer("maskwright")
        self._extract, self._kind, self._failed = extract, SpanKind.SERVER, StatusCode.ERROR

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = self._extract(dict(Headers(scope=scope)))
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with self._tracer.start_as_current_span(scope["method"], context=known, kind=self._kind, attributes=attributes) as span:

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(self._failed)
                await send(message)

            try:
                await self._app(scope, receive, watched)
            finally:
                if (route := getattr(scope.get("route"), "path", None)) is not None:
                    span.set_attribute("http.route", route)
                    span.update_name(f"{scope['method']} {route}")
                if (request_id := scope.get("state", {}).get("request_id")) is not None:
                    span.set_attribute("maskwright.request_id", request_id)


def exporting_provider() -> Any:
    """A provider that sends spans over OTLP/HTTP, as the OTEL_ variables of the environment say.

    Raises UsageError without the package.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise UsageError(f'--traces needs {error.name}, which is not installed; pip install "maskwright[traces]"') from error
    name = os.environ.get("OTEL_SERVICE_NAME", "maskwright")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider

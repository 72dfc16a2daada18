"""The application under uvicorn, until SIGTERM or SIGINT: then running requests finish and new ones are not taken."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from ..errors import UsageError
from ..llm import LLM
from .app import create_app
from .garbage import Garbage
from .listening import bound_socket, url_of
from .logs import JsonFormatter
from .own_parts import check_names
from .protocol import Protocol
from .service import Service
from .settings import ServerSettings
from .traces import exporting_provider

logger = logging.getLogger("maskwright.server")

LAST_WORDS_SECONDS = 5  # for clients to read that their requests were ended, when --drain-seconds are over
EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a server stands on beside its model."""

    listening: socket.socket  # bound, but nobody is let in yet
    tls: ssl.SSLContext | None
    tracer_provider: Any | None


class Server(uvicorn.Server):
    """Tells what it serves when it does, and ends what is left when the time for draining is over."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._garbage = Garbage(lambda: service.num_asked)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._garbage.start()
        listening = (sockets or [each for server in self.servers for each in server.sockets])[0]
        url = url_of(listening, "https" if self.config.ssl else "http")
        logging.getLogger("uvicorn.error").info("Uvicorn running on %s (Press CTRL+C to quit)", url)  # as scripts wait for it
        for level, line in told_of(self._service, url):
            logger.log(level, line)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.drain(self._service.settings.drain_seconds)
        await super().shutdown(sockets)
        await self._garbage.stop()


def prepare(settings: ServerSettings) -> Ground:
    """Look at all that may be wrong with the settings here, before a model is loaded. Raises UsageError."""
    check_names(settings)
    tls = _tls(settings)
    provider = exporting_provider() if settings.traces else None
    return Ground(bound_socket(settings.host, settings.port), tls, provider)


def server_of(
    llm: LLM, settings: ServerSettings, model_name: str, tls: ssl.SSLContext | None = None, tracer_provider: Any | None = None
) -> Server:
    """A server that is not yet running."""
    app = create_app(llm, settings, model_name=model_name, tracer_provider=tracer_provider)
    seconds = settings.drain_seconds
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=_log_config(settings.log_format),
        access_log=False,  # the gate writes one line for each request, with its id
        h11_max_incomplete_event_size=2 * settings.max_header_bytes,  # the gate is exact, and this ends what never does
        http=partial(Protocol, head_seconds=settings.head_seconds, send_seconds=settings.send_seconds),  # type: ignore[arg-type]  # it is only called
        ws="none",
        timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]  # a timer takes fractions, too
        timeout_graceful_shutdown=None if seconds is None else seconds + LAST_WORDS_SECONDS,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    return Server(config, app.state.service)


def serve(llm: LLM, settings: ServerSettings, model_name: str, ground: Ground) -> None:
    """Serve until a signal says otherwise, and return when the last request has finished."""
    server = server_of(llm, settings, model_name, ground.tls, ground.tracer_provider)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it once more when all is done, which is no failure
    server.run([ground.listening])


def told_of(service: Service, url: str) -> Iterator[tuple[int, str]]:
    """(level, line) of what an operator wants to know when a server is up."""
    llm, settings = service.llm, service.settings
    config, footprint = llm.config, llm.driver.footprint
    threads = f"{footprint.num_threads} thread{'' if footprint.num_threads == 1 else 's'}"
    weights, cache = f"{footprint.weight_bytes / 1e6:,.0f} MB", f"{footprint.cache_bytes / 1e6:,.0f} MB"
    if footprint.host_weight_bytes:
        weights += f" (and {footprint.host_weight_bytes / 1e6:,.0f} MB in host memory)"
    yield logging.INFO, f"model {service.model_name}: {weights} of weights in {config.dtype} on {config.device}, {threads}"
    room = f"{config.num_kv_blocks:,} blocks of {config.block_size:,} tokens"
    yield logging.INFO, f"context {service.model_len:,} tokens; KV cache {cache}, {room}"
    if service.adapters:
        yield logging.INFO, f"adapters {', '.join(service.adapters)}"
    base = url + settings.root_path
    yield logging.INFO, f"API {base}/v1, reference {base}/docs, playground {base}/"
    if settings.host in EVERYWHERE and not (settings.api_key or settings.admin_api_key):
        advice = "give --api-key, or --host 127.0.0.1 for this machine alone"
        yield logging.WARNING, f"everybody who reaches this machine may use it: {advice}"


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if settings.ssl_certfile is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, password=_no_password)
    except (OSError, ssl.SSLError) as error:
        files = _named(("--ssl-certfile", settings.ssl_certfile), ("--ssl-keyfile", settings.ssl_keyfile))
        raise UsageError(f"{files}: no certificate and key in PEM that belong together ({error})") from None
    if settings.ssl_ca_certs is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(settings.ssl_ca_certs)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ssl-ca-certs {settings.ssl_ca_certs}: no certificates in PEM ({error})") from None
    return context


def _no_password() -> str:
    """A key that is encrypted is refused: OpenSSL would ask the terminal."""
    raise ssl.SSLError("the key is encrypted; give one that is not")


def _named(*options: tuple[str, object]) -> str:
    return " ".join(f"{name} {value}" for name, value in options if value is not None)


def _log_config(log_format: str) -> dict[str, Any]:
    """Uvicorn's configuration of logs, with our own loggers beside its own."""
    loggers = {**LOGGING_CONFIG["loggers"], "maskwright": {"handlers": ["default"], "level": "INFO", "propagate": False}}
    formatters = {name: {"()": JsonFormatter} for name in LOGGING_CONFIG["formatters"]}
    return {**LOGGING_CONFIG, "loggers": loggers} | ({"formatters": formatters} if log_format == "json" else {})

"""The application under uvicorn, until SIGTERM or SIGINT: then running requests finish and new ones are not taken."""

from __future__ import annotations

import gc
import logging
import signal
from functools import partial
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from ..llm import LLM
from .app import create_app
from .logs import JsonFormatter
from .protocol import Protocol
from .settings import ServerSettings
from .traces import exporting_provider

logger = logging.getLogger(__name__)


def server_of(llm: LLM, settings: ServerSettings, model_name: str) -> uvicorn.Server:
    """A server that is not yet running."""
    config = uvicorn.Config(
        create_app(llm, settings, model_name=model_name, tracer_provider=exporting_provider() if settings.traces else None),
        host=settings.host,
        port=settings.port,
        log_config=_log_config(settings.log_format),
        access_log=False,  # the gate writes one line for each request, with its id
        h11_max_incomplete_event_size=2 * settings.max_header_bytes,  # the gate is exact, and this ends what never does
        http=partial(Protocol, head_seconds=settings.head_seconds),  # type: ignore[arg-type]  # it is only called
        ws="none",
        timeout_graceful_shutdown=settings.drain_seconds,
    )
    return uvicorn.Server(config)


def serve(llm: LLM, settings: ServerSettings, model_name: str) -> None:
    """Serve until a signal says otherwise, and return when the last request has finished."""
    server = server_of(llm, settings, model_name)
    memory = llm.statistics
    weights, cache = memory.num_weight_bytes / 1e6, memory.num_cache_bytes / 1e6
    logger.info("%s: %.0f MB of weights, %.0f MB of KV cache", model_name, weights, cache)
    gc.collect()
    gc.freeze()  # what is loaded now stays: looking through it again and again held a step up for 160 ms
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it once more when all is done, which is no failure
    server.run()


def _log_config(log_format: str) -> dict[str, Any]:
    """Uvicorn's configuration of logs, with our own loggers beside its own."""
    loggers = {**LOGGING_CONFIG["loggers"], "maskwright": {"handlers": ["default"], "level": "INFO", "propagate": False}}
    formatters = {name: {"()": JsonFormatter} for name in LOGGING_CONFIG["formatters"]}
    return {**LOGGING_CONFIG, "loggers": loggers} | ({"formatters": formatters} if log_format == "json" else {})

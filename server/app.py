"""The application: all endpoints around one model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from ..llm import LLM
from . import anthropic_messages, chat, completions, operations, playground, reference, responses, tokens
from .batches import routes as batch_routes
from .batches.running import Batches
from .cors import cors_options
from .documentation import document
from .errors import add_handlers
from .gate import Gate
from .llamacpp import completion as llamacpp_completion
from .llamacpp import operations as llamacpp_operations
from .ollama import chats as ollama_chats
from .ollama import models as ollama_models
from .service import Service
from .settings import ServerSettings
from .sglang import generate as sglang_generate
from .sglang import operations as sglang_operations
from .stored import routes as stored_responses
from .traces import Tracing
from .vllm import adapters as vllm_adapters
from .vllm import operations as vllm_operations

DESCRIPTION = "OpenAI's interface, with output that satisfies its constraint: JSON Schema, regular expression, grammar, tools."


def create_app(
    llm: LLM, settings: ServerSettings | None = None, *, model_name: str = "embedded", tracer_provider: Any | None = None
) -> FastAPI:
    """An ASGI application that serves `llm`. It steps the engine from its startup until its shutdown.

    model_name: the name that clients use for the model, unless the settings have another one. tracer_provider:
    OpenTelemetry's, which is told of every request; None for no traces.
    """
    settings = settings or ServerSettings()
    service = Service(llm, settings, settings.served_model_name or (model_name,), tracer_provider)
    batches = None if settings.batch_folder is None else Batches(settings.batch_folder, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        if batches is not None:
            batches.start(app)
        yield
        if batches is not None:
            await batches.stop()
        await service.stop()

    app = FastAPI(
        title="Maskwright",
        version=version("maskwright"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # it is our own: FastAPI's loads scripts from a CDN
        redoc_url=None,
    )
    app.state.service, app.state.batches = service, batches
    others = (
        vllm_adapters, vllm_operations, llamacpp_completion, llamacpp_operations, sglang_generate, sglang_operations,
        ollama_chats, ollama_models,
    )  # fmt: skip
    own = (chat, completions, responses, stored_responses, anthropic_messages, batch_routes, tokens, operations)
    for part in (*own, *others, playground, reference):
        app.include_router(part.router)
    add_handlers(app)
    app.add_middleware(
        Gate, settings=settings, metrics=service.metrics.http, giving_way=service.giving_way, refused=service.refused_bodies
    )
    if settings.allowed_origins:  # around the gate: browsers ask first without a key, and may read why they were refused
        app.add_middleware(CORSMiddleware, **cors_options(settings))
    if tracer_provider is not None:
        app.add_middleware(Tracing, provider=tracer_provider)
    app.openapi = cache(partial(document, app, needs_key=bool(settings.api_key or settings.admin_api_key)))  # type: ignore[method-assign]  # FastAPI's own way to give another document
    return app

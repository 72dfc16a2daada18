"""The application: all endpoints around one model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from ..llm import LLM
from . import chat, completions, operations, playground, responses, tokens
from .errors import add_handlers
from .gate import Gate
from .service import Service
from .settings import ServerSettings

DESCRIPTION = "OpenAI's interface, with output that satisfies its constraint: JSON Schema, regular expression, grammar, tools."


def create_app(llm: LLM, settings: ServerSettings | None = None, *, model_name: str = "embedded") -> FastAPI:
    """An ASGI application that serves `llm`. It begins to step the engine when it is started, and ends that when it is stopped.

    model_name: what clients call the model, unless the settings say otherwise.
    """
    settings = settings or ServerSettings()
    service = Service(llm, settings, settings.served_model_name or model_name)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(title="Maskwright", version=version("maskwright"), description=DESCRIPTION, lifespan=lifespan)
    app.state.service = service
    for part in (chat, completions, responses, tokens, operations, playground):
        app.include_router(part.router)
    add_handlers(app)
    app.add_middleware(Gate, settings=settings)
    return app

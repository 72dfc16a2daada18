"""GET /ping, /load and /server_info; /v1/embeddings and its like, which a model that generates text does not have."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..errors import ApiError
from ..service import Service

router = APIRouter(include_in_schema=False)
SECRET = ("api_key",)  # fields of the settings that nobody is told


@router.get("/ping", summary="Whether the server lives", response_class=Response)
@router.post("/ping")
async def ping(request: Request) -> Response:
    """As /health."""
    service: Service = request.app.state.service
    return Response(status_code=200 if service.worker.is_alive else 503)


@router.get("/load", summary="How many outputs are under way")
async def load(request: Request) -> dict[str, int]:
    """server_load: outputs that are planned, wait or run."""
    service: Service = request.app.state.service
    return {"server_load": service.num_open}


@router.get("/server_info", summary="How the server was started")
async def server_info(request: Request) -> dict[str, Any]:
    """The settings of the server, but for keys, and the engine's configuration."""
    service: Service = request.app.state.service
    settings = {each.name: getattr(service.settings, each.name) for each in fields(service.settings) if each.name not in SECRET}
    config = service.llm.config
    engine = {each.name: _plain(getattr(config, each.name)) for each in fields(config)}
    return {"model": service.model_name, "max_model_len": service.model_len, "settings": settings, "engine": engine}


@router.post("/v1/embeddings")
@router.post("/v1/rerank")
@router.post("/v1/score")
@router.post("/pooling")
@router.post("/api/embed")
@router.post("/api/embeddings")
async def refuse_embeddings(request: Request) -> Response:
    name = request.app.state.service.model_name
    message = f"{request.url.path}: the model {name!r} generates text and embeds none; it takes a server with a model of embeddings"
    raise ApiError(400, message, code="unsupported_endpoint")


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)

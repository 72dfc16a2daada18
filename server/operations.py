"""What operators and their tools ask: /health, /ready, /metrics, /version, and /v1/models."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from .answers import HealthAnswer, ModelAnswer, ModelList, ReadyAnswer, VersionAnswer
from .documentation import answers
from .service import Service

router = APIRouter()
STARTED = int(time.time())


LIVES: Any = {
    200: {"model": HealthAnswer, "description": "It lives."},
    503: {"model": HealthAnswer, "description": "It does not."},
}


@router.get("/v1/health", summary="Whether the server lives, as llama.cpp", response_class=JSONResponse, responses=LIVES)
@router.get("/health", summary="Whether the server lives", response_class=JSONResponse, responses=LIVES)
async def health(request: Request) -> Response:
    """200 while the engine's thread runs, else 503: start the server anew."""
    service: Service = request.app.state.service
    return JSONResponse({"status": "ok"}) if service.worker.is_alive else JSONResponse({"status": "error"}, 503)


@router.get(
    "/ready",
    summary="Whether the server takes requests",
    responses={200: {"model": ReadyAnswer}, 503: {"model": ReadyAnswer, "description": "It does not."}},
)
async def ready(request: Request) -> Response:
    """503 with the reason while it shuts down, or generation fails: send requests elsewhere."""
    service: Service = request.app.state.service
    obstacle = await service.obstacle()
    return JSONResponse({"ready": True}) if obstacle is None else JSONResponse({"ready": False, "reason": obstacle}, 503)


@router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """In Prometheus' text format; names as vLLM's, and maskwright: for constraints."""
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/version", summary="The version of the server", responses={200: {"model": VersionAnswer}})
async def show_version() -> dict[str, str]:
    return {"version": version("maskwright")}


@router.get("/models", summary="The models that can be asked, as llama.cpp", responses=answers(ModelList))
@router.get("/v1/models", summary="The models that can be asked", responses=answers(ModelList))
async def models(request: Request) -> dict[str, Any]:
    service: Service = request.app.state.service
    return {"object": "list", "data": [_model(service, name) for name in (*service.model_names, *service.adapter_paths)]}


@router.get("/v1/models/{name:path}", summary="One of them", responses=answers(ModelAnswer))
async def model(request: Request, name: str) -> dict[str, Any]:
    service: Service = request.app.state.service
    service.check_model(name)
    return _model(service, name)


def _model(service: Service, name: str) -> dict[str, Any]:
    path = service.adapter_paths.get(name)
    return {
        "id": name,
        "object": "model",
        "created": STARTED,
        "owned_by": "maskwright",
        "max_model_len": service.model_len,
        "parent": None if path is None else service.model_name,
        "root": None if path is None else str(path),
    }

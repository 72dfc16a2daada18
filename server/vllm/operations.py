"""GET /ping, /load and /server_info, POST /reset_prefix_cache and /abort_requests; /v1/embeddings and its like, which a model that
generates text does not have."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ..answers import ErrorAnswer
from ..body import Body
from ..client import CALLER
from ..documentation import answers
from ..errors import no_embeddings
from ..service import Service

router = APIRouter()
SECRET = ("api_key", "admin_api_key")  # fields of the settings that nobody is told
ALIVE: Any = {200: {"description": "It lives."}, 503: {"description": "It does not."}}
REFUSED: Any = {400: {"model": ErrorAnswer, "description": "Always: the model generates text."}}
EMPTY: Any = {name: told for name, told in answers(ErrorAnswer).items() if name != 200} | {200: {"description": "It is done."}}


class LoadAnswer(BaseModel):
    server_load: int


class ServerInfo(BaseModel):
    model: str
    max_model_len: int
    settings: dict[str, Any]
    engine: dict[str, Any]


class AbortBody(Body):
    """Which requests are to be ended."""

    request_ids: str | list[str] = Field(description="Their ids: request_id, X-Request-Id or the id of the answer.")


class AbortAnswer(BaseModel):
    aborted: int = Field(description="How many requests were ended.")


@router.get("/ping", summary="Whether the server lives", response_class=Response, responses=ALIVE)
@router.post("/ping", summary="Whether the server lives", response_class=Response, responses=ALIVE)
async def ping(request: Request) -> Response:
    """As /health."""
    service: Service = request.app.state.service
    return Response(status_code=200 if service.worker.is_alive else 503)


@router.get("/load", summary="How many outputs are under way", responses=answers(LoadAnswer))
async def load(request: Request) -> dict[str, int]:
    """server_load: outputs that are planned, wait or run."""
    service: Service = request.app.state.service
    return {"server_load": service.num_open}


@router.get("/get_server_info", summary="How the server was started, as SGLang", responses=answers(ServerInfo))
@router.get("/server_info", summary="How the server was started", responses=answers(ServerInfo))
async def server_info(request: Request) -> dict[str, Any]:
    """The settings of the server, but for keys, and the engine's configuration."""
    service: Service = request.app.state.service
    settings = {each.name: getattr(service.settings, each.name) for each in fields(service.settings) if each.name not in SECRET}
    config = service.llm.config
    engine = {each.name: _plain(getattr(config, each.name)) for each in fields(config)}
    return {"model": service.model_name, "max_model_len": service.model_len, "settings": settings, "engine": engine}


@router.post("/reset_prefix_cache", summary="Forget all prompts that are known", response_class=Response, responses=EMPTY)
async def reset_prefix_cache(request: Request) -> Response:
    """Prompts are computed anew from now on. Requests that run are not touched. For operators, where there are keys."""
    await request.app.state.service.forget_prefixes()
    return Response()


@router.post("/abort_requests", summary="End requests that run", responses=answers(AbortAnswer))
async def abort_requests(request: Request, body: AbortBody) -> dict[str, int]:
    """Requests of one's own key, or for operators of all. They end with an error; ids that are not known are passed over."""
    service: Service = request.app.state.service
    request_ids = [body.request_ids] if isinstance(body.request_ids, str) else body.request_ids
    return {"aborted": sum(service.requests.end(request_id, CALLER.get()) for request_id in dict.fromkeys(request_ids))}


@router.post("/v1/embeddings", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/v1/rerank", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/v2/rerank", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/v1/reranking", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/reranking", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/v1/score", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/pooling", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/score", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/rerank", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/classify", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/encode", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/embeddings", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/embedding", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
async def refuse_embeddings(request: Request) -> Response:
    """Embeddings take a server with a model of embeddings."""
    raise no_embeddings(request.url.path, request.app.state.service.model_name)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)

"""GET /get_model_info, /health_generate, /flush_cache, POST /abort_request: what SGLang's tools ask beside /generate."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import Field

from ..answers import ErrorAnswer
from ..body import Body
from ..client import CALLER
from ..documentation import answers
from ..errors import ApiError
from ..operations import LIVES
from ..service import Service
from ..vllm.operations import AbortAnswer
from .answers import ModelInfo

router = APIRouter()
_DONE: Any = {"description": "It is done.", "content": {"text/plain": {"schema": {"type": "string"}}}}
FLUSHED = {**answers(ErrorAnswer), 200: _DONE}


class AbortRequestBody(Body):
    """Which request is to be ended."""

    rid: str | None = Field(None, description="Its rid, X-Request-Id or the id of its answer.")
    abort_all: bool | None = Field(None, description="All that the caller may end.")


@router.get("/get_model_info", summary="Which model there is, as SGLang tells it", responses=answers(ModelInfo))
@router.get("/model_info", summary="Which model there is, as SGLang tells it", responses=answers(ModelInfo))
async def model_info(request: Request) -> dict[str, Any]:
    """The model by its name: where its files are is not told."""
    name = request.app.state.service.model_name
    return {"model_path": name, "tokenizer_path": name, "is_generation": True, "preferred_sampling_params": None}


@router.get("/health_generate", summary="Whether a token can be generated, as SGLang", response_class=JSONResponse, responses=LIVES)
async def health_generate(request: Request) -> Response:
    """200 when the engine gives a token within a second, else 503."""
    service: Service = request.app.state.service
    return JSONResponse({"status": "ok"}) if await service.generates() else JSONResponse({"status": "error"}, 503)


@router.get("/flush_cache", summary="Forget all known prompts, as SGLang", responses=FLUSHED)
@router.post("/flush_cache", summary="Forget all known prompts, as SGLang", responses=FLUSHED)
async def flush_cache(request: Request) -> Response:
    """As /reset_prefix_cache."""
    await request.app.state.service.forget_prefixes()
    return PlainTextResponse("Cache flushed.\n")


@router.post("/abort_request", summary="End a request that runs, as SGLang", responses=answers(AbortAnswer))
async def abort_request(request: Request, body: AbortRequestBody) -> dict[str, int]:
    """A request of one's own key, or for operators of all. It ends with an error; an id that is not known is passed over."""
    service: Service = request.app.state.service
    if not body.abort_all and not body.rid:
        raise ApiError(400, "rid is missing: which request is to be ended? abort_all ends all", param="rid", code="invalid_value")
    return {"aborted": service.requests.end(None if body.abort_all else body.rid, CALLER.get())}

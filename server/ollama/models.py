"""GET /api/tags, /api/ps, /api/version and POST /api/show: what Ollama's clients ask before they ask the model."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..body import Body
from ..errors import no_embeddings
from ..operations import STARTED
from ..service import Service
from .answers import OllamaError, OllamaLoaded, OllamaModels, OllamaShown, OllamaVersion, answers

REFUSED: Any = {400: {"model": OllamaError, "description": "Always: the model generates text."}}
FOR_EVER = "9999-12-31T23:59:59Z"
router = APIRouter()


class ShowBody(Body):
    """Which model is asked about."""

    model: str | None = None
    name: str | None = None
    verbose: bool | None = None


@router.get("/api/tags", summary="The models that can be asked, as Ollama lists them", responses=answers(OllamaModels))
async def tags(request: Request) -> dict[str, Any]:
    service: Service = request.app.state.service
    modified = datetime.fromtimestamp(STARTED, UTC).isoformat()
    names = (*service.model_names, *service.adapters)
    return {"models": [{"name": name, "model": name, "modified_at": modified, "details": {}} for name in names]}


@router.get("/api/ps", summary="The model that is loaded, as Ollama tells it", responses=answers(OllamaLoaded))
async def loaded(request: Request) -> dict[str, Any]:
    """The one that the server has, until it ends."""
    service: Service = request.app.state.service
    size = service.llm.driver.footprint.weight_bytes
    on_device = 0 if service.llm.config.device == "cpu" else size
    told = {"name": service.model_name, "model": service.model_name, "size": size, "size_vram": on_device, "details": {}}
    return {"models": [{**told, "context_length": service.model_len, "expires_at": FOR_EVER}]}


@router.get("/api/version", summary="The version of the server, as Ollama tells it", responses=answers(OllamaVersion))
async def show_version() -> dict[str, str]:
    return {"version": version("maskwright")}


@router.post("/api/show", summary="What the model can do, as Ollama tells it", responses=answers(OllamaShown))
async def show(request: Request, body: ShowBody) -> dict[str, Any]:
    """The template of the model and its abilities."""
    service: Service = request.app.state.service
    service.check_model(body.model or body.name)
    info = {"general.architecture": "maskwright", "maskwright.context_length": service.model_len}
    template = service.llm.tokenizer.chat_template
    return {"template": template, "details": {}, "model_info": info, "capabilities": ["completion", "tools"]}


@router.post("/api/embed", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
@router.post("/api/embeddings", summary="Refused: the model generates text", response_class=Response, responses=REFUSED)
async def refuse_embeddings(request: Request) -> Response:
    """Embeddings take a server with a model of embeddings."""
    raise no_embeddings(request.url.path, request.app.state.service.model_name)

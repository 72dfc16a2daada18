"""GET /props and /slots, POST /apply-template."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ..answers import ErrorAnswer
from ..chat import ChatBody, turn_of
from ..documentation import answers
from ..errors import ApiError, told_as
from ..service import Service
from ..streams import unless_gone
from .answers import AppliedTemplate, Props, Slot
from .completion import SAMPLERS

router = APIRouter()


@router.get("/props", summary="How the server is set up, as llama.cpp tells it", responses=answers(Props))
async def props(request: Request) -> dict[str, Any]:
    """The sampling that holds where a request says nothing, the size of the context, and the chat template."""
    service: Service = request.app.state.service
    llm = service.llm
    names = ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "ignore_eos")
    sampling = {name: getattr(llm.default_sampling, name) for name in names}
    params = {**sampling, "repeat_penalty": llm.default_sampling.repetition_penalty, "samplers": SAMPLERS}
    return {
        "default_generation_settings": {"params": params, "n_ctx": service.model_len},
        "total_slots": llm.config.max_sequences,
        "model_alias": service.model_name,
        "modalities": {"vision": False, "audio": False},
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "chat_template": llm.tokenizer.chat_template,
        "bos_token": llm.tokenizer.bos_token,
        "eos_token": llm.tokenizer.eos_token,
        "build_info": f"maskwright {version('maskwright')}",
    }


@router.get(
    "/slots",
    summary="The places of the batch, as llama.cpp tells them",
    response_model=list[Slot],
    responses={200: {"model": list[Slot]}, 503: {"model": ErrorAnswer, "description": "With fail_on_no_slot: none is free."}},
)
async def slots(request: Request, fail_on_no_slot: int | None = None) -> Response:
    """As many as run at the same time at most. Requests have no fixed places: those that run are shown in the first ones."""
    service: Service = request.app.state.service
    num_slots, num_running = service.llm.config.max_sequences, service.worker.statistics.num_running
    if fail_on_no_slot and num_running >= num_slots:
        raise ApiError(503, "no slot is free", code="no_free_slot", headers={"Retry-After": "1"})
    speculative = service.llm.features.speculation != "off"
    told = {"n_ctx": service.model_len, "speculative": speculative}
    return JSONResponse([{"id": number, **told, "is_processing": number < num_running} for number in range(num_slots)])


@router.post("/apply-template", summary="The text that a conversation is shown as", responses=answers(AppliedTemplate))
async def apply_template(request: Request, body: ChatBody) -> dict[str, str]:
    """A conversation by the model's chat template, for /completion. Nothing is generated."""
    service: Service = request.app.state.service
    service.check_model(body.model)
    with told_as({}):
        return {"prompt": await unless_gone(request, service.in_thread(_rendered, service, body))}


def _rendered(service: Service, body: ChatBody) -> str:
    turn, _ = turn_of(service, body)
    return service.llm.planner.rendered(turn)

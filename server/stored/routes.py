"""GET and DELETE /v1/responses/ID, and its input items. A client finds what was stored with its own API key."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from ..answers import ResponseAnswer
from ..client import CALLER
from ..documentation import answers
from ..errors import ApiError
from ..service import Service

router = APIRouter()


class DeletedResponse(BaseModel):
    id: str
    object: Literal["response"]
    deleted: Literal[True]


class InputItems(BaseModel):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


@router.get("/v1/responses/{response_id}", summary="A response that was stored", responses=answers(ResponseAnswer))
async def get_response(request: Request, response_id: str, stream: bool | None = None) -> dict[str, Any]:
    """The response as it ended."""
    if stream:
        raise ApiError(400, "stream: a response that has ended is told whole", param="stream", code="unsupported_parameter")
    service: Service = request.app.state.service
    return (await service.responses.get(CALLER.get().key_digest, response_id)).response


@router.delete("/v1/responses/{response_id}", summary="Forget a response", responses=answers(DeletedResponse))
async def delete_response(request: Request, response_id: str) -> dict[str, Any]:
    """Responses that went on from it stay as they are."""
    service: Service = request.app.state.service
    await service.responses.delete(CALLER.get().key_digest, response_id)
    return {"id": response_id, "object": "response", "deleted": True}


@router.get("/v1/responses/{response_id}/input_items", summary="What a response was an answer to", responses=answers(InputItems))
async def list_input_items(
    request: Request,
    response_id: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
) -> dict[str, Any]:
    """The items of the conversation before the response, those of earlier responses included; the last ones first, unless asked
    otherwise. after: the id of the item behind which the list begins."""
    service: Service = request.app.state.service
    items = list((await service.responses.get(CALLER.get().key_digest, response_id)).input_items)
    if order == "desc":
        items.reverse()
    if after is not None:
        place = next((place for place, item in enumerate(items) if item.get("id") == after), None)
        if place is None:
            raise ApiError(400, f"after: there is no item {after!r} in this response", param="after", code="invalid_value")
        items = items[place + 1 :]
    shown = items[:limit]
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"object": "list", "data": shown, "first_id": first, "last_id": last, "has_more": len(items) > limit}


@router.post("/v1/responses/{response_id}/cancel", summary="Refused: none is in the background", responses=answers(ResponseAnswer))
async def cancel_response(request: Request, response_id: str) -> dict[str, Any]:
    """Only responses in the background can be cancelled so, and there are none: close the connection of one that runs."""
    service: Service = request.app.state.service
    await service.responses.get(CALLER.get().key_digest, response_id)
    message = "nothing runs in the background here: a response ends when its connection is closed, or by /abort_request"
    raise ApiError(400, message, code="unsupported_endpoint")

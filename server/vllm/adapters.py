"""POST /v1/load_lora_adapter and /v1/unload_lora_adapter: adapters come and go while requests run, where the operator allows it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import Field

from ...engine.errors import AdapterError, AdapterInUse
from ...errors import UsageError
from ..answers import ErrorAnswer
from ..body import Body, Ignored
from ..documentation import answers
from ..errors import ApiError
from ..service import Service

router = APIRouter()
_DONE: Any = {"description": "It is done.", "content": {"text/plain": {"schema": {"type": "string"}}}}
ANSWERS = {**answers(ErrorAnswer), 200: _DONE}
POLL_SECONDS = 0.02  # between two looks whether the last request with an adapter has ended


class LoadBody(Body):
    """Which adapter is loaded, and what requests call it."""

    lora_name: str = Field(description="What requests name as their model.")
    lora_path: str = Field(description="A folder of peft or a GGUF file, on the server's machine.")
    base_model_name: str | None = Field(None, description="The model that it is for.")
    load_inplace: bool | None = Field(None, description="In place of one of that name, if any; refused while that is in use.")


class UnloadBody(Body):
    """Which adapter is unloaded."""

    lora_name: str
    lora_int_id: Annotated[int | None, Ignored("Adapters have names.")] = None
    wait: bool | None = Field(None, description="Take no more requests for it, and answer when the last one has ended.")


@router.post("/v1/load_lora_adapter", summary="Load an adapter", responses=ANSWERS)
async def load(request: Request, body: LoadBody) -> Response:
    """Load a LoRA adapter from a folder of the server, for requests whose model has its name. Needs --runtime-adapters."""
    service = _allowed(request)
    service.check_model(body.base_model_name)
    try:
        service.check_adapter_name(body.lora_name)
    except UsageError as error:
        raise ApiError(400, str(error), param="lora_name", code="invalid_value") from error
    try:
        load_adapter = partial(service.llm.load_adapter, replace=bool(body.load_inplace))
        await service.apart(load_adapter, body.lora_name, body.lora_path)
    except AdapterError as error:
        raise _told(error, "lora_path") from error
    return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' added successfully.")


@router.post("/v1/unload_lora_adapter", summary="Unload an adapter", responses=ANSWERS)
async def unload(request: Request, body: UnloadBody) -> Response:
    """Unload a LoRA adapter, unless requests run with it. Needs --runtime-adapters."""
    service = _allowed(request)
    if body.lora_name not in service.adapters:
        message = f"there is no adapter {body.lora_name!r} here"
        raise ApiError(404, message, param="lora_name", code="adapter_not_found")
    try:
        await (_unload_later if body.wait else _unload_now)(service, body.lora_name)
    except AdapterError as error:
        raise _told(error, "lora_name") from error
    return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")


async def _unload_now(service: Service, name: str) -> None:
    await service.apart(service.llm.driver.unload_adapter, name)


async def _unload_later(service: Service, name: str) -> None:
    """Unload an adapter when the last request with it has ended; the engine's thread steps them."""
    driver = service.llm.driver
    await service.apart(driver.retire_adapter, name)
    is_gone = False
    try:
        async with asyncio.timeout(service.settings.request_seconds):
            while not is_gone:
                try:
                    await _unload_now(service, name)
                    is_gone = True
                except AdapterInUse:
                    await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        message = f"requests with the adapter {name!r} did not end within {service.settings.request_seconds} seconds"
        raise ApiError(504, message, code="request_timeout") from None
    finally:
        if not is_gone:
            with suppress(AdapterError):
                driver.retire_adapter(name, is_leaving=False)


def _allowed(request: Request) -> Service:
    service: Service = request.app.state.service
    if not service.settings.runtime_adapters:
        message = "clients may not load or unload adapters here; the operator allows it with --runtime-adapters"
        raise ApiError(403, message, code="not_allowed")
    return service


def _told(error: AdapterError, param: str) -> ApiError:
    if isinstance(error, AdapterInUse):
        return ApiError(409, str(error), param="lora_name", code="adapter_in_use")
    return ApiError(400, str(error), param=param, code="invalid_adapter")

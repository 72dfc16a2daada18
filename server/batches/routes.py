"""/v1/files and /v1/batches, as OpenAI's clients use them. A client finds what is its own, by its API key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile

from ..body import Body
from ..client import CALLER
from ..documentation import answers
from ..errors import ApiError
from ..gate import FILES_PATH
from .batch import Window
from .files import UPLOADED
from .lines import Endpoint
from .running import Batches

router = APIRouter()
Listed = TypeVar("Listed")
MAX_METADATA = 16  # pairs, as OpenAI bounds them
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "string", "format": "binary"}, "purpose": {"enum": [UPLOADED]}},
                    "required": ["file", "purpose"],
                }
            }
        },
    }
}


class FileAnswer(BaseModel):
    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed"]


class DeletedFile(BaseModel):
    id: str
    object: Literal["file"]
    deleted: Literal[True]


class FileList(BaseModel):
    object: Literal["list"]
    data: list[FileAnswer]
    first_id: str | None
    last_id: str | None
    has_more: bool


class BatchCounts(BaseModel):
    total: int
    completed: int
    failed: int


class BatchFault(BaseModel):
    code: str
    line: int
    message: str
    param: str | None


class BatchFaults(BaseModel):
    object: Literal["list"]
    data: list[BatchFault]


class BatchAnswer(BaseModel):
    id: str
    object: Literal["batch"]
    endpoint: str
    errors: BatchFaults | None
    input_file_id: str
    completion_window: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    expires_at: int
    in_progress_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: BatchCounts
    metadata: dict[str, str] | None


class BatchList(BaseModel):
    object: Literal["list"]
    data: list[BatchAnswer]
    first_id: str | None
    last_id: str | None
    has_more: bool


_BYTES: dict[str, Any] = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
_CONTENT = {**answers(FileAnswer), 200: {"description": "The bytes of the file.", **_BYTES}}


class AskedBatch(Body):
    input_file_id: str
    endpoint: Endpoint
    completion_window: Window
    metadata: Annotated[dict[str, str], Field(max_length=MAX_METADATA)] | None = None


@router.post(FILES_PATH, summary="Keep a file of requests", responses=answers(FileAnswer), openapi_extra=_UPLOAD)
async def upload_file(request: Request) -> dict[str, Any]:
    """A form with `file`, one request a line, and `purpose`, which is "batch"."""
    batches = _batches(request)
    async with request.form(max_files=1, max_fields=8) as form:
        file, purpose = form.get("file"), form.get("purpose")
        if not isinstance(file, UploadFile):
            raise ApiError(400, "file is missing: a form with a file is sent here", param="file", code="invalid_value")
        if purpose != UPLOADED:
            raise ApiError(400, f'purpose is "{UPLOADED}", not {purpose!r}', param="purpose", code="invalid_value")
        other = next((name for name in form if name not in ("file", "purpose")), None)
        if other is not None:
            message = f"{other} is not supported: files stay until they are deleted"
            raise ApiError(400, message, param=other, code="unsupported_parameter")
        add = partial(batches.files.add, CALLER.get().key_digest, file.filename or "file", UPLOADED, file.file)
        return (await asyncio.to_thread(add)).told()


@router.get(FILES_PATH, summary="The files that are kept", responses=answers(FileList))
async def list_files(
    request: Request,
    purpose: Literal["batch", "batch_output"] | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
) -> dict[str, Any]:
    found = [file.told() for file in _batches(request).files.of(CALLER.get().key_digest, purpose)]
    return _page(found if order == "asc" else found[::-1], limit, after)


@router.get(FILES_PATH + "/{file_id}", summary="What is known of a file", responses=answers(FileAnswer))
async def get_file(request: Request, file_id: str) -> dict[str, Any]:
    return _batches(request).files.get(CALLER.get().key_digest, file_id).told()


@router.get(FILES_PATH + "/{file_id}/content", summary="A file", response_class=FileResponse, responses=_CONTENT)
async def get_content(request: Request, file_id: str) -> FileResponse:
    """Its bytes."""
    files = _batches(request).files
    file = files.get(CALLER.get().key_digest, file_id)
    return FileResponse(files.path(file), media_type="application/octet-stream")


@router.delete(FILES_PATH + "/{file_id}", summary="Delete a file", responses=answers(DeletedFile))
async def delete_file(request: Request, file_id: str) -> dict[str, Any]:
    """A batch that still needs it fails."""
    files = _batches(request).files
    files.delete(files.get(CALLER.get().key_digest, file_id))
    return {"id": file_id, "object": "file", "deleted": True}


@router.post("/v1/batches", summary="Answer a file of requests", responses=answers(BatchAnswer))
async def create_batch(request: Request, body: AskedBatch) -> dict[str, Any]:
    """The batch, which is worked on when those before it have ended."""
    owner = CALLER.get().key_digest
    return _batches(request).add(owner, body.endpoint, body.input_file_id, body.metadata).told()


@router.get("/v1/batches", summary="All batches", responses=answers(BatchList))
async def list_batches(
    request: Request, limit: Annotated[int, Query(ge=1, le=100)] = 20, after: str | None = None
) -> dict[str, Any]:
    """The newest first."""
    return _page([batch.told() for batch in _batches(request).of(CALLER.get().key_digest)], limit, after)


@router.get("/v1/batches/{batch_id}", summary="How far a batch is", responses=answers(BatchAnswer))
async def get_batch(request: Request, batch_id: str) -> dict[str, Any]:
    return _batches(request).get(CALLER.get().key_digest, batch_id).told()


@router.post("/v1/batches/{batch_id}/cancel", summary="End a batch", responses=answers(BatchAnswer))
async def cancel_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """What is answered by then is kept."""
    batches = _batches(request)
    batch = batches.get(CALLER.get().key_digest, batch_id)
    batches.cancel(batch)
    return batch.told()


def _batches(request: Request) -> Batches:
    found: Batches | None = request.app.state.batches
    if found is None:
        message = "files and batches need a folder: the server is started with --batch-folder FOLDER for that"
        raise ApiError(400, message, code="unsupported_endpoint")
    return found


def _page(found: Sequence[dict[str, Any]], limit: int, after: str | None) -> dict[str, Any]:
    if after is not None:
        place = next((place for place, each in enumerate(found) if each["id"] == after), None)
        if place is None:
            raise ApiError(400, f"after: there is no {after!r} here", param="after", code="invalid_value")
        found = found[place + 1 :]
    shown = found[:limit]
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"object": "list", "data": list(shown), "first_id": first, "last_id": last, "has_more": len(found) > limit}

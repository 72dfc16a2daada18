"""The OpenAPI document: answers and errors of every endpoint, and who may ask."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from .answers import AnthropicErrorAnswer, ChatCompletionChunk, Completion, ErrorAnswer, MessageEvent, ResponseEvent
from .gate import OPEN

Responses = dict[int | str, dict[str, Any]]
ENDED_BY_DONE = (ChatCompletionChunk, Completion)  # events of streams whose last one is no object
EVENTS = (ChatCompletionChunk, Completion, ResponseEvent, MessageEvent)  # of streams: named in the document, not in any answer
REASONS: dict[int | str, str] = {
    400: "The request makes no sense, asks for what is not supported, or for more than a limit.",
    401: "The API key is missing or wrong.",
    403: "The operator does not allow it.",
    404: "There is no such model.",
    413: "The body is too large.",
    429: "Too many requests run or wait; try again later.",
    500: "A failure inside the server.",
    503: "The server shuts down.",
    "default": "Any other error.",
}


def answers(
    whole: type[BaseModel] | UnionType, event: type[BaseModel] | None = None, error: type[BaseModel] = ErrorAnswer
) -> Responses:
    """The answers of an endpoint for the document: its answer, which with "stream" comes as events, and its errors."""
    success: dict[str, Any] = {"model": whole}
    if event is not None:
        said = f"The answer. With `stream`: server-sent events whose data are `{event.__name__}` objects."
        success |= {"description": said, "content": {"text/event-stream": {"schema": _event_schema(event)}}}
    found: Responses = {200: success}
    for status, reason in REASONS.items():
        found[status] = {"model": error, "description": reason}
    return found


def anthropic_answers(whole: type[BaseModel], event: type[BaseModel] | None = None) -> Responses:
    """The answers of an endpoint for the document, with errors in Anthropic's shape."""
    return answers(whole, event, AnthropicErrorAnswer)


def document(app: FastAPI, *, needs_key: bool) -> dict[str, Any]:
    """The OpenAPI document of an application."""
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = made.setdefault("components", {})
    components["schemas"] = {**_schemas(EVENTS), **components.get("schemas", {})}
    if needs_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        guarded = [operation for path, item in made["paths"].items() if path not in OPEN for operation in item.values()]
        for operation in guarded:
            operation["security"] = [{"key": []}]
    return made


def _event_schema(event: type[BaseModel]) -> dict[str, Any]:
    """The schema of one server-sent event, as OpenAPI 3.2 describes streams."""
    content = {"contentMediaType": "application/json", "contentSchema": {"$ref": f"#/components/schemas/{event.__name__}"}}
    data: dict[str, Any] = {"type": "string", **content}
    if event in ENDED_BY_DONE:
        data = {"anyOf": [data, {"const": "[DONE]"}]}
    return {"type": "object", "properties": {"event": {"type": "string"}, "data": data}, "required": ["data"]}


def _schemas(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    named = [(model, "serialization") for model in models]
    _, found = models_json_schema(named, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]  # literals
    schemas: dict[str, Any] = found["$defs"]
    return schemas

"""What Ollama's answers consist of, for the documentation and for tests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from ..answers import Captured, ErrorDetail, Looped, Notes, Residue
from ..documentation import Responses
from ..documentation import answers as documented


class OllamaError(ErrorDetail):
    """Any error: `error` is its message, as Ollama's clients read it; what is wrong stands beside it."""

    error: str


class OllamaFunction(BaseModel):
    name: str
    arguments: dict[str, Any]


class OllamaCall(BaseModel):
    function: OllamaFunction


class OllamaMessage(BaseModel):
    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[OllamaCall] | None = None


class OllamaLine(Captured, Looped):
    """A whole answer, or one line of a stream."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | None = None
    total_duration: int | None = Field(None, description="Nanoseconds.")
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    stop_reason: str | None = None
    is_complete: bool | None = None
    residue: Residue = None
    notes: Notes = None


class OllamaChat(OllamaLine):
    message: OllamaMessage


class OllamaGenerated(OllamaLine):
    response: str
    thinking: str | None = None


class OllamaModel(BaseModel):
    name: str
    model: str
    modified_at: str
    details: dict[str, Any]


class OllamaModels(BaseModel):
    models: list[OllamaModel]


class OllamaLoadedModel(BaseModel):
    name: str
    model: str
    size: int = Field(description="Bytes of the weights.")
    size_vram: int
    details: dict[str, Any]
    context_length: int
    expires_at: str


class OllamaLoaded(BaseModel):
    models: list[OllamaLoadedModel]


class OllamaVersion(BaseModel):
    version: str


class OllamaShown(BaseModel):
    template: str
    details: dict[str, Any]
    model_info: dict[str, Any]
    capabilities: list[str]


def answers(whole: type[BaseModel], *, is_streamed: bool = False) -> Responses:
    """The answers of an endpoint for the document, with errors in Ollama's shape; a stream is lines of the same form."""
    found = documented(whole, None, OllamaError)
    if is_streamed:
        line = {"schema": {"$ref": f"#/components/schemas/{whole.__name__}"}}
        found[200] |= {"description": "The answer; unless stream is false, lines of the same form.", "content": {LINES: line}}
    return found


LINES = "application/x-ndjson"

"""POST /api/chat and /api/generate: Ollama's requests as chat completions, answered as lines of JSON.

A last message of the assistant is the beginning of the reply, as Ollama has it.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import Field, ValidationError

from ...engine.requests.output import Event, RequestOutput
from ...planning import Plan
from ..answering import Events, answer, renamed, tell_ignored
from ..body import Body, Ignored
from ..chat import ChatBody, plan_chat
from ..deltas import ContentDelta, ReplyDelta, ThoughtDelta
from ..errors import ApiError, told_as
from ..remarks import loops_of, remarks_of
from ..replies import ReplyParts, reader_of
from ..service import Service
from ..streams import unless_gone
from .answers import LINES, OllamaChat, OllamaGenerated, answers

# Ollama's options, as chat completions call them.
SAME_NAMES = (
    "temperature", "top_k", "top_p", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty", "loop_bound",
    "typical_p", "mirostat", "mirostat_tau", "mirostat_eta", "repeat_last_n",
)  # fmt: skip
HONOURED = {"num_predict": "max_tokens", "repeat_penalty": "repetition_penalty"} | {name: name for name in SAME_NAMES}
IGNORED_OPTIONS = (
    "num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "use_mlock", "low_vram", "numa",
    "tfs_z", "penalize_newline", "vocab_only", "f16_kv",
)  # fmt: skip
NAMES = {ours: f"options.{theirs}" for theirs, ours in HONOURED.items()} | {"response_format": "format"}
NAMES |= {"reasoning_effort": "think", "chat_template_kwargs.enable_thinking": "think"}
router = APIRouter()


class OllamaBody(Body):
    """What both endpoints take."""

    refused = MappingProxyType(
        {"template": "it is the operator's choice"}
        | dict.fromkeys(("logprobs", "top_logprobs"), "ask /v1/chat/completions for them")
    )
    neutral = MappingProxyType({"top_logprobs": (0,)})
    model: str | None = None
    format: str | dict[str, Any] | None = Field(None, description='"json", or a JSON Schema for the reply.')
    options: dict[str, Any] | None = Field(None, description="temperature, top_k, seed, stop, num_predict and the like.")
    stream: bool | None = Field(None, description="True unless given.")
    think: bool | str | None = Field(None, description="Handed to the chat template: enable_thinking, reasoning_effort.")
    truncate: Annotated[bool | None, Ignored("What is too long is refused.", (True,), is_empty_neutral=False)] = None
    shift: Annotated[bool | None, Ignored("What is too long is refused.", (True,), is_empty_neutral=False)] = None
    keep_alive: Annotated[str | int | float | None, Ignored("The model stays loaded.", is_empty_neutral=False)] = None


class OllamaChatBody(OllamaBody):
    """A conversation to be continued."""

    messages: list[dict[str, Any]] = Field(description="role, content, thinking, tool_calls, tool_name.")
    tools: list[dict[str, Any]] | None = None


class OllamaGenerateBody(OllamaBody):
    """A prompt to be answered."""

    refused = MappingProxyType(
        {
            "images": "this model reads text",
            "suffix": "text is written behind the prompt",
            "raw": "ask /v1/completions for a prompt without a template",
        }
    )
    prompt: str = ""
    system: str | None = None
    context: Annotated[list[int] | None, Ignored("Send the conversation to /api/chat.")] = None


@router.post("/api/chat", summary="Continue a conversation, as Ollama", responses=answers(OllamaChat, is_streamed=True))
async def chat(request: Request, body: OllamaChatBody) -> Response:
    """Ollama's chat, with `format` and tools that always hold."""
    messages = [_message(message, f"messages[{index}]") for index, message in enumerate(body.messages)]
    if not messages:
        return _loaded(request, body, {"message": {"role": "assistant", "content": ""}})
    asked: dict[str, Any] = {"messages": messages, "tools": body.tools or None}
    if messages and messages[-1]["role"] == "assistant":
        asked["continue_final_message"] = True
    return await _answer(request, body, asked, is_chat=True)


@router.post("/api/generate", summary="Answer a prompt, as Ollama", responses=answers(OllamaGenerated, is_streamed=True))
async def generate(request: Request, body: OllamaGenerateBody) -> Response:
    """Ollama's generate: a prompt as the user's message."""
    if not body.prompt:
        return _loaded(request, body, {"response": ""})
    system = [{"role": "system", "content": body.system}] if body.system else []
    return await _answer(request, body, {"messages": [*system, {"role": "user", "content": body.prompt}]}, is_chat=False)


def _loaded(request: Request, body: OllamaBody, empty: Mapping[str, Any]) -> Response:
    """Who says nothing has the model loaded, or unloaded with keep_alive: 0. Here it is there as long as the server."""
    service: Service = request.app.state.service
    service.check_model(_model(body))
    told = {"model": body.model or service.model_name, "created_at": datetime.now(UTC).isoformat(), **empty}
    response = JSONResponse({**told, "done": True, "done_reason": "unload" if body.keep_alive == 0 else "load"})
    tell_ignored(response, body.ignored)
    return response


async def _answer(request: Request, body: OllamaBody, asked: Mapping[str, Any], *, is_chat: bool) -> Response:
    service: Service = request.app.state.service
    with told_as(NAMES):
        try:
            made = ChatBody.model_validate({**asked, **_options(body), **_format(body), **_thinking(body), "model": _model(body)})
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from error
        plan = await unless_gone(request, plan_chat(service, made))
        writer = OllamaWriter(body.model or service.model_name, plan, is_chat=is_chat)
        ignored = [*body.ignored, *renamed(made.ignored, NAMES)]
        return await answer(request, [plan], writer, body.stream is not False, ignored, media_type=LINES)


class OllamaWriter:
    """Makes lines of JSON of the events of one output."""

    def __init__(self, model: str, plan: Plan, *, is_chat: bool) -> None:
        self._model, self._plan, self._is_chat = model, plan, is_chat
        self._reader, self._parts, self._started = reader_of(plan), ReplyParts(), time.perf_counter()
        self._output: RequestOutput | None = None

    async def whole(self, events: Events) -> dict[str, Any]:
        """The answer when the output has ended."""
        async for _, event in events:
            self._read(event)
        parts = self._parts
        return self._line(parts.content, parts.reasoning, self._calls(), self._ending())

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The lines, while they come. Calls are told whole."""
        async for _, event in events:
            deltas = self._read(event)
            content = "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))
            thinking = "".join(delta.text for delta in deltas if isinstance(delta, ThoughtDelta))
            if content or thinking:
                yield _encoded(self._line(content, thinking, [], {"done": False}))
        if self._parts.calls:
            yield _encoded(self._line("", "", self._calls(), {"done": False}))
        yield _encoded(self._line("", "", [], self._ending()))

    def failed(self, error: ApiError) -> bytes:
        """The last line of a stream that failed."""
        return _encoded({"error": error.message})

    def _read(self, event: Event) -> list[ReplyDelta]:
        deltas = self._reader.read(event)
        for delta in deltas:
            self._parts.add(delta)
        if event.output is not None:
            self._output = event.output
        return deltas

    def _calls(self) -> list[dict[str, Any]]:
        return [{"function": {"name": call.name, "arguments": _object(call.arguments)}} for call in self._parts.calls]

    def _line(self, content: str, thinking: str, calls: list[dict[str, Any]], more: Mapping[str, Any]) -> dict[str, Any]:
        head = {"model": self._model, "created_at": datetime.now(UTC).isoformat()}
        thought = {"thinking": thinking} if thinking else {}
        if not self._is_chat:
            return {**head, "response": content, **thought, **more}
        called = {"tool_calls": calls} if calls else {}
        return {**head, "message": {"role": "assistant", "content": content, **thought, **called}, **more}

    def _ending(self) -> dict[str, Any]:
        """Durations are in nanoseconds; what is not measured is not told."""
        assert self._output is not None, "the output has ended"
        return {
            "done": True,
            "done_reason": self._reader.finish_reason(self._output),
            "total_duration": round((time.perf_counter() - self._started) * 1e9),
            "prompt_eval_count": self._output.num_prompt_tokens,
            "eval_count": len(self._output.token_ids),
            **self._reader.told_stop(self._output),
            **loops_of(self._output),
            **remarks_of(self._plan),
        }


def _model(body: OllamaBody) -> str | None:
    return None if body.model is None else body.model.removesuffix(":latest")


def _options(body: OllamaBody) -> dict[str, Any]:
    """The options, as chat completions call them. Raises ApiError for one that is not known."""
    made: dict[str, Any] = {}
    for name, value in (body.options or {}).items():
        if name in HONOURED:
            made[HONOURED[name]] = value
        elif name in IGNORED_OPTIONS:
            body.ignored.append(f"options.{name}")
        elif value is not None:
            raise ApiError(400, f"unknown parameter: options.{name}", param=f"options.{name}", code="unknown_parameter")
    if isinstance(made.get("max_tokens"), int) and made["max_tokens"] < 0:  # as many as there is room for
        del made["max_tokens"]
    return made


def _format(body: OllamaBody) -> dict[str, Any]:
    if not body.format:
        return {}
    if body.format == "json":
        return {"response_format": {"type": "json_object"}}
    if isinstance(body.format, str):
        raise ApiError(400, f'format is "json" or a JSON Schema, not {body.format!r}', param="format", code="invalid_value")
    return {"response_format": {"type": "json_object", "schema": body.format}}


def _thinking(body: OllamaBody) -> dict[str, Any]:
    if body.think is None:
        return {}
    effort = {"reasoning_effort": body.think} if isinstance(body.think, str) else {}
    return {"chat_template_kwargs": {"enable_thinking": bool(body.think)}, **effort}


def _message(message: Mapping[str, Any], place: str) -> dict[str, Any]:
    if message.get("images"):
        raise ApiError(400, f"{place}.images: this model reads text", param=f"{place}.images", code="unsupported_content")
    made = {name: message[name] for name in ("role", "content", "tool_calls") if message.get(name) is not None}
    if message.get("thinking"):
        made["reasoning_content"] = message["thinking"]
    if message.get("tool_name"):
        made["name"] = message["tool_name"]
    return {"role": None, "content": "", **made}


def _object(arguments: str) -> Any:
    """The arguments of a call as an object; {} for a call that was cut short."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"

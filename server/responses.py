"""POST /v1/responses: OpenAI's newer interface over the same conversations. What it was and what it answered is stored for a while
(`stored/`), so that a later request can go on from there."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import Field, ValidationError

from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .answering import Events, answer, renamed
from .answers import ResponseAnswer, ResponseEvent
from .body import Because, Body, Ignored
from .captured import captures_of
from .chat import ChatBody, plan_chat
from .client import CALLER
from .documentation import answers
from .errors import ApiError, told_as
from .namespaces import Namespaces
from .remarks import loops_of, remarks_of
from .requested_constraint import ConstraintNames
from .requested_forms import AskedItem, AskedReasoning, AskedText, AskedTool, AskedToolChoice
from .response_input import REFERENCE, InputMessages
from .response_items import ItemWriter
from .sampling_options import SamplingExtras
from .service import Service
from .shared_parameters import HostedParameters
from .stored.items import stored_items
from .stored.store import Item
from .streams import data, unless_gone
from .token_logprobs import LogprobWriter

Included = Literal[
    "message.output_text.logprobs",
    "reasoning.encrypted_content",  # of the rest there is nothing: reasoning is told in the open, and no tool runs here
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
]
LOGPROBS = "message.output_text.logprobs"


class ResponseStreamOptions(Body):
    include_obfuscation: Annotated[bool | None, Ignored("Nothing is padded.")] = None
    include_usage: Annotated[bool | None, Ignored("The last event tells it in any case.", (True,))] = None


class ResponseBody(SamplingExtras, HostedParameters, ConstraintNames):
    """An input to be answered."""

    refused = MappingProxyType(
        {
            "conversation": "conversations are not stored here; go on with previous_response_id, or send all items as input",
            "prompt": "no templates are stored here; send instructions and input",
            "context_management": "send the items that the model is to read",
            "moderation": "nothing is moderated here",
        }
    )
    model: str | None = None
    input: str | list[AskedItem] = Field(description="Text, or messages, calls and their results.")
    previous_response_id: str | None = Field(None, description="The stored response that this one goes on from.")
    store: bool | None = Field(None, description="Whether the response can be asked for later; true unless given.")
    instructions: str | None = Field(None, description="What the model is told first.")
    max_output_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] | None = Field(None, description="Strings that end the output; see also stop_inside.")
    text: AskedText | None = Field(None, description="format: text, json_schema or another response format; verbosity.")
    tools: list[AskedTool] | None = None
    tool_choice: str | AskedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int | None, Field(ge=1), Ignored("It is about tools that a server runs itself.")] = None
    reasoning: AskedReasoning | None = Field(None, description="effort is handed to the chat template; summary has no effect.")
    include: list[Included] | None = Field(None, description="message.output_text.logprobs; the others have no effect.")
    top_logprobs: int | None = Field(None, ge=0, description="Alternatives of each token; needs include.")
    stream: bool | None = None
    return_token_ids: Annotated[bool | None, Ignored("Chat completions tell them.")] = None
    return_tokens_as_token_ids: Annotated[bool | None, Ignored("Chat completions tell them.")] = None
    user: str | None = None
    metadata: dict[str, Any] | None = Field(None, description="Given back.")
    truncation: Literal["disabled", "auto"] | None = Field(None, description="An input that is too long is always refused.")
    background: Annotated[Literal[False] | None, Because("Nothing runs when its client has gone.")] = None
    stream_options: ResponseStreamOptions | None = None
    client_metadata: Annotated[dict[str, Any] | None, Ignored("It is about the client.")] = None


# How the parameters of a chat completion are called here.
NAMES = {"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format", "logprobs": "top_logprobs"} | {
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
SAME = ("model", "stop", "parallel_tool_calls", "user")
# That are only given back.
ECHOED = (
    "instructions", "max_output_tokens", "max_tool_calls", "temperature", "top_p", "top_logprobs", "user", "safety_identifier",
    "prompt_cache_key",
)  # fmt: skip
router = APIRouter()


@router.post("/v1/responses", summary="Answer an input", responses=answers(ResponseAnswer, ResponseEvent))
async def create_response(request: Request, body: ResponseBody) -> Response:
    """OpenAI's responses."""
    service: Service = request.app.state.service
    read = InputMessages(body.instructions)
    with told_as(NAMES, read.renamed):
        before = await _items_before(service, body)
        body = body.model_copy(update={"input": await _with_items(service, body.input)})
        read.recall(before)
        namespaces = Namespaces(body.tools or ())
        chat = _as_chat(body, read, namespaces)
        if body.store and not service.responses.stores:
            body.ignored.append("store")
        plan = await unless_gone(request, plan_chat(service, chat))
        writer = ResponseWriter(f"resp_{body.reply_id or request.state.request_id}", service, body, plan, before, namespaces)
        return await answer(request, [plan], writer, body.stream, [*body.ignored, *renamed(chat.ignored, NAMES)], names=body.names)


class ResponseWriter:
    """Makes a response of the events of one output, whole or as typed events."""

    def __init__(
        self, response_id: str, service: Service, body: ResponseBody, plan: Plan, before: Sequence[Item], namespaces: Namespaces
    ) -> None:
        """before: the items of the conversation that this response goes on from."""
        self._id, self._service, self._body, self._plan, self._before = response_id, service, body, plan, before
        self._is_stored = body.store is not False and service.responses.stores
        self._created = time.time()
        logprobs = LogprobWriter(service.llm.vocabulary, body.top_logprobs or 0) if LOGPROBS in (body.include or ()) else None
        self._items = ItemWriter(response_id, plan, logprobs, namespaces.told)
        self._remarks = remarks_of(plan)
        self._usage: dict[str, Any] | None = None
        self._reason = ""
        self._number = 0  # of the next event

    async def whole(self, events: Events) -> dict[str, Any]:
        """The response when it has ended."""
        async for _, event in events:
            self._read(event)
            await self._end(event)
        return await self._ended()

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The events, while they come."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event({"type": kind, "response": self._response("in_progress")})
        async for _, event in events:
            for each in self._read(event):
                yield self._event(each)
            await self._end(event)
        yield self._event({"type": f"response.{self._status}", "response": await self._ended()})

    def failed(self, error: ApiError) -> bytes:
        """The last events of a stream that failed: many clients raise the first, and read nothing of the second."""
        told = {"code": error.code or "server_error", "message": error.message}
        self._items.give_up()
        raised = self._event({"type": "error", **told, "param": error.param, "error": error.body["error"] | told})
        return raised + self._event({"type": "response.failed", "response": {**self._response("failed"), "error": told}})

    def _read(self, event: Event) -> list[dict[str, Any]]:
        told = self._items.read(event)
        if event.output is not None:
            self._reason = self._items.finish_reason(event.output)
            told += self._items.finish(is_cut=self._status == "incomplete")
            self._usage = self._usage_of(event.output)
        return told

    async def _end(self, event: Event) -> None:
        if event.output is not None:
            self._remarks |= self._items.told_stop(event.output) | loops_of(event.output)
            parts = self._items.parts
            has_calls = bool(parts.calls)
            self._remarks |= await captures_of(self._service, self._plan, event.output, parts.content, has_calls=has_calls)

    async def _ended(self) -> dict[str, Any]:
        """The response as it ends, which is stored."""
        response = self._response(self._status)
        if self._is_stored:
            items = [*self._before, *stored_items(self._body.input, self._id)]
            await self._service.responses.put(CALLER.get().key_digest, response, items)
        return response

    @property
    def _status(self) -> str:
        return "completed" if self._reason == "stop" else "incomplete"

    def _event(self, event: dict[str, Any]) -> bytes:
        numbered = {**event, "sequence_number": self._number}
        self._number += 1
        return f"event: {event['type']}\n".encode() + data(numbered)

    def _usage_of(self, ended: RequestOutput) -> dict[str, Any]:
        """The tokens used. Those of the reasoning are counted by encoding its text again."""
        prompt, output = ended.num_prompt_tokens, len(ended.token_ids)
        thought = self._items.parts.reasoning
        reasoning = len(self._service.llm.tokenizer.encode(thought, add_special_tokens=False)) if thought else 0
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": ended.num_cached_tokens, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": min(reasoning, output)},
            "total_tokens": prompt + output,
        }

    def _response(self, status: str) -> dict[str, Any]:
        body = self._body
        is_cut = status == "incomplete"
        reason = "max_output_tokens" if self._reason == "length" else self._reason
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._service.told_name(self._plan),
            "output": self._items.items if status != "in_progress" else [],
            "usage": self._usage,
            "error": None,
            "incomplete_details": {"reason": reason} if is_cut else None,
            "background": False,
            "metadata": body.metadata or {},
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": None, "summary": None, **(body.reasoning or {})},
            "service_tier": "default",
            "store": self._is_stored,
            "text": {"format": {"type": "text"}, **(body.text or {})},
            "tool_choice": body.tool_choice or "auto",
            "tools": body.tools or [],
            "truncation": "disabled",
            **{name: getattr(body, name) for name in ECHOED},
            **self._remarks,
        }


async def _items_before(service: Service, body: ResponseBody) -> list[Item]:
    """The conversation that a response goes on from. Raises ApiError for one that is not stored."""
    if body.previous_response_id is None:
        return []
    return (await service.responses.get(CALLER.get().key_digest, body.previous_response_id, "previous_response_id")).items


async def _with_items(service: Service, given: str | list[Item]) -> str | list[Item]:
    """The input with items of stored responses in place of references to them. Raises ApiError for one that is not stored."""
    if isinstance(given, str):
        return given
    owner, items = CALLER.get().key_digest, list[Item]()
    for index, item in enumerate(given):
        is_reference = item.get("type") == REFERENCE or (set(item) <= {"id", "type"} and item.get("type") is None and "id" in item)
        items.append(await service.responses.item(owner, item.get("id"), f"input[{index}]") if is_reference else item)
    return items


def _as_chat(body: ResponseBody, read: InputMessages, namespaces: Namespaces) -> ChatBody:
    """The body as a chat completion, whose messages `read` makes. Raises ApiError for what a chat completion has no form for."""
    _check_known(body.text, "text", "format", "verbosity")
    _check_known(body.reasoning, "reasoning", "effort", "summary", "generate_summary")
    for name, value in (body.reasoning or {}).items():
        if not isinstance(value, str | None):
            raise ApiError(400, f"reasoning.{name} is a string", param=f"reasoning.{name}", code="invalid_value")
    if body.top_logprobs and LOGPROBS not in (body.include or ()):
        raise ApiError(400, f'top_logprobs needs include=["{LOGPROBS}"]', param="top_logprobs", code="invalid_value")
    read.read(body.input)
    body.ignored.extend([*read.passed_over, *namespaces.passed_over])
    asked = {
        "messages": read.messages,
        "max_tokens": body.max_output_tokens,
        "response_format": (body.text or {}).get("format"),
        "reasoning_effort": (body.reasoning or {}).get("effort"),
        "verbosity": (body.text or {}).get("verbosity"),
        "logprobs": LOGPROBS in (body.include or ()),
        "top_logprobs": body.top_logprobs,
        "tools": body.tools and namespaces.tools,
        "tool_choice": namespaces.choice(body.tool_choice),
        **{name: getattr(body, name) for name in SAME},
        **body.sampling_extras,
        **body.named_constraints,
    }
    try:
        return ChatBody.model_validate(asked)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def _check_known(form: Mapping[str, Any] | None, place: str, *known: str) -> None:
    unknown = next((name for name, value in (form or {}).items() if name not in known and value is not None), None)
    if unknown is not None:
        raise ApiError(400, f"unknown parameter: {place}.{unknown}", param=f"{place}.{unknown}", code="unknown_parameter")

"""POST /v1/chat/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ..chat import Turn
from ..conversation import answered_tools
from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .answering import Events, answer
from .answers import ChatCompletion, ChatCompletionChunk
from .body import Because
from .captured import captures_of
from .deltas import CallDelta, CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from .documentation import answers
from .errors import ApiError, told_as
from .messages import template_messages, template_variables
from .reasoning import with_reasoning
from .remarks import remarks_of
from .replies import ReplyParts, reader_of
from .requested_constraint import AskedConstraint, ConstraintBody, asked_constraint
from .requested_forms import AskedMessage, AskedTool, AskedToolChoice
from .requested_tools import asked_tools
from .sampling_options import SamplingBody, StreamOptions, sampling_of, tells_usage
from .service import Service
from .streams import DONE, data, error_event, unless_gone
from .token_details import ExtendedBody, detail_writer, details_of, head_of, num_top_wanted
from .token_logprobs import LogprobWriter
from .usage import usage_of


class ChatBody(SamplingBody, ConstraintBody, ExtendedBody):
    """A conversation to be continued."""

    refused = MappingProxyType(
        {
            "functions": "write them as tools",
            "function_call": "write it as tool_choice",
            "audio": "this model writes text",
            "web_search_options": "this server runs no tools; give the model one as a function",
            "moderation": "nothing is moderated here",
        }
    )
    messages: list[AskedMessage] = Field(description="The conversation so far: role, content, tool_calls, tool_call_id.")
    max_completion_tokens: int | None = Field(None, ge=1, description="As max_tokens.")
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, description="Alternatives of each token; needs logprobs.")
    stream_options: StreamOptions | None = None
    tools: list[AskedTool] | None = None
    tool_choice: str | AskedToolChoice | None = Field(None, description="auto, none, required, a function or allowed_tools.")
    parallel_tool_calls: bool | None = Field(None, description="Whether one reply may have several calls.")
    reasoning_effort: str | None = Field(None, description="Handed to the chat template.")
    thinking_token_budget: int | None = Field(None, ge=1, description="Tokens that reasoning may take, where the template has it.")
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="Variables for the chat template.")
    metadata: dict[str, Any] | None = Field(None, description="Has no effect.")
    store: bool | None = Field(None, description="Has no effect: nothing is stored.")
    service_tier: str | None = Field(None, description="Has no effect.")
    safety_identifier: str | None = Field(None, description="Has no effect.")
    prompt_cache_key: str | None = Field(None, description="Has no effect: equal beginnings of prompts are always shared.")
    prompt_cache_retention: str | None = Field(None, description="Has no effect: what is shared is kept while there is room.")
    prompt_cache_options: dict[str, Any] | None = Field(None, description="Has no effect.")
    prediction: dict[str, Any] | None = Field(None, description="Has no effect: guesses ahead are the operator's choice.")
    verbosity: str | None = Field(None, description="Handed to the chat template.")
    modalities: Annotated[list[Literal["text"]] | None, Because("This model writes text.")] = None
    add_generation_prompt: Annotated[Literal[True] | None, Because("A reply always begins anew.")] = None
    continue_final_message: Annotated[Literal[False] | None, Because("A reply always begins anew.")] = None
    echo: Annotated[Literal[False] | None, Because("The last message is not repeated.")] = None


router = APIRouter()


@router.post("/v1/chat/completions", summary="Continue a conversation", responses=answers(ChatCompletion, ChatCompletionChunk))
async def create_chat_completion(request: Request, body: ChatBody) -> Response:
    """OpenAI's chat completions, with constraints and tools that always hold."""
    service: Service = request.app.state.service
    names = {"logprobs": "top_logprobs"} | ({"max_tokens": "max_completion_tokens"} if body.max_completion_tokens else {})
    with told_as(names):
        plan = await unless_gone(request, plan_chat(service, body))
        writer = ChatWriter(f"chatcmpl-{request.state.request_id}", service, body, plan)
        return await answer(request, [plan], writer, body.stream)


async def plan_chat(service: Service, body: ChatBody) -> Plan:
    """The conversation, ready to run. Raises ApiError for what contradicts itself or is not supported."""
    service.check_model(body.model)
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs=true", param="top_logprobs", code="invalid_value")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options needs stream=true", param="stream_options", code="invalid_value")
    num_top = (body.top_logprobs or 0) if body.logprobs else None
    sampling = sampling_of(
        body,
        defaults=service.llm.default_sampling,
        settings=service.settings,
        model_len=service.model_len,
        max_tokens=body.max_completion_tokens,
        logprobs=num_top_wanted(num_top, body.maskwright, service.settings.max_logprobs),
    )
    turn, param = await service.in_thread(turn_of, service, body)
    return await service.plan_turn(turn, sampling, body, param)


def turn_of(service: Service, body: ChatBody) -> tuple[Turn, str | None]:
    """(the messages and what the reply must satisfy, where in the request that is said)."""
    planner, settings = service.llm.planner, service.settings
    is_open = body.tool_choice in (None, "auto") and not planner.has_tool_role
    if is_open and (answered := answered_tools(body.messages)):
        body = body.model_copy(update={"tools": [tool for tool in body.tools or () if _name_of(tool) not in answered]})
    messages = template_messages(body.messages, has_tool_role=planner.has_tool_role)
    asked = asked_constraint(body, allows_grammars=settings.client_grammars)
    if len(body.tools or ()) > settings.max_tools:
        message = f"tools: {len(body.tools or ())} tools, and this server allows {settings.max_tools}"
        raise ApiError(400, message, param="tools", code="limit_exceeded")
    style = planner.style_for("auto") if settings.tool_style == "auto" else settings.tool_style
    tools = asked_tools(body.tools or (), body.tool_choice, body.parallel_tool_calls, style)
    variables = template_variables(body.chat_template_kwargs or {})
    for name in ("reasoning_effort", "verbosity"):
        if getattr(body, name) is not None:
            variables[name] = getattr(body, name)
    if tools is None:
        turn = Turn(messages, (), asked.choice, variables)
    else:
        _check_free(asked)
        turn = Turn(messages, tools[0], tools[1], variables)
        asked = AskedConstraint(tools[1], "tools")
    return with_reasoning(turn, service.llm.tokenizer, body.thinking_token_budget), asked.param


def _check_free(asked: AskedConstraint) -> None:
    if not asked.is_free:
        message = f"{asked.param} and tools contradict each other: a reply has one constraint; set tool_choice to none for the last"
        raise ApiError(400, message, param=asked.param, code="invalid_value")


def _name_of(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function", tool)
    return function.get("name") if isinstance(function, Mapping) else None


class ChatWriter:
    """Makes what OpenAI's clients read from the events of all outputs."""

    def __init__(self, reply_id: str, service: Service, body: ChatBody, plan: Plan) -> None:
        self._service, self._body, self._plan = service, body, plan
        self._head = {"id": reply_id, "created": int(time.time()), "model": service.model_name}
        self._tells_usage = tells_usage(body.stream_options)
        num = len(plan.requests)
        self._readers = [reader_of(plan) for _ in range(num)]
        self._parts = [ReplyParts() for _ in range(num)]
        self._logprobs = [LogprobWriter(service.llm.vocabulary, body.top_logprobs or 0) for _ in range(num)]
        self._details = detail_writer(service, [plan], body.maskwright)
        self._outputs: dict[int, RequestOutput] = {}

    async def whole(self, events: Events) -> dict[str, Any]:
        """The answer when all outputs have ended."""
        async for index, event in events:
            self._read(index, event)
        choices = [await self._choice(index) for index in range(len(self._parts))]
        usage = usage_of(list(self._outputs.values()))
        remarks = {**remarks_of(self._plan), **head_of(self._details)}
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": usage, **remarks}

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The chunks, while they come."""
        remarks = {**remarks_of(self._plan), **head_of(self._details)}
        for index in range(len(self._parts)):
            yield self._chunk(index, {"role": "assistant", "content": ""}, **remarks)
            remarks = {}
        async for index, event in events:
            details = await details_of(self._details, index, event.tokens) if event.tokens else {}
            for chunk in self._chunks(index, event, details):
                yield chunk
            if event.output is not None:
                yield self._chunk(index, {}, finish_reason=self._finish_reason(index), more=await self._captures(index))
        if self._tells_usage:
            usage = usage_of(list(self._outputs.values()))
            yield data({**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield DONE

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _read(self, index: int, event: Event) -> list[ReplyDelta]:
        deltas = self._readers[index].read(event)
        for delta in deltas:
            self._parts[index].add(delta)
        if event.output is not None:
            self._outputs[index] = event.output
        return deltas

    def _chunks(self, index: int, event: Event, details: dict[str, Any]) -> list[bytes]:
        """A chunk for each delta; log-probabilities and details go with the first, or with one of their own."""
        deltas = [_delta(delta) for delta in self._read(index, event)]
        logprobs = self._logprobs[index].chat(event.tokens) if self._body.logprobs and event.tokens else None
        if (logprobs is not None or details) and not deltas:
            deltas = [{"content": ""}]
        chunks = []
        for delta in deltas:
            chunks.append(self._chunk(index, delta, logprobs, more=details))
            logprobs, details = None, {}
        return chunks

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        more: Mapping[str, Any] = MappingProxyType({}),
        **remarks: Any,
    ) -> bytes:
        """more: members of the choice beside OpenAI's."""
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason, **more}
        usage = {"usage": None} if self._tells_usage else {}
        return data({**self._head, "object": "chat.completion.chunk", "choices": [choice], **usage, **remarks})

    async def _choice(self, index: int) -> dict[str, Any]:
        output = self._outputs[index]
        logprobs = self._logprobs[index].chat(output.records) if self._body.logprobs else None
        message = _message(self._parts[index])
        details = await details_of(self._details, index, output.records)
        reason = self._finish_reason(index)
        captured = await self._captures(index)
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": reason, **details, **captured}

    async def _captures(self, index: int) -> dict[str, Any]:
        return await captures_of(self._service, self._plan, self._outputs[index], self._parts[index].content)

    def _finish_reason(self, index: int) -> str:
        reason = self._readers[index].finish_reason(self._outputs[index])
        return "tool_calls" if reason == "stop" and self._parts[index].calls else reason


def _delta(delta: ReplyDelta) -> dict[str, Any]:
    if isinstance(delta, ContentDelta):
        return {"content": delta.text}
    if isinstance(delta, ThoughtDelta):
        return {"reasoning_content": delta.text}
    if isinstance(delta, CallStart):
        function = {"name": delta.name, "arguments": ""}
        return {"tool_calls": [{"index": delta.index, "id": delta.call_id, "type": "function", "function": function}]}
    assert isinstance(delta, CallDelta)
    return {"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]}


def _message(parts: ReplyParts) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": parts.content, "refusal": None}
    if parts.reasoning:
        message["reasoning_content"] = parts.reasoning
    if parts.calls:
        message["content"] = parts.content or None
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in parts.calls
        ]
    return message

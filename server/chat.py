"""POST /v1/chat/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ..chat import Turn
from ..conversation import answered_tools
from ..engine.requests.output import Event, PromptScore, RequestOutput
from ..planning import Plan
from ..sampling import SamplingParams
from .answering import Events, answer
from .answers import ChatCompletion, ChatCompletionChunk
from .body import Because, Ignored, is_empty
from .captured import captures_of
from .completions import check_best_of
from .deltas import CallDelta, CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from .documentation import answers
from .errors import ApiError, told_as
from .messages import template_messages, template_variables, unread
from .prompt_logprobs import check_prompt_logprobs, scored
from .reasoning import with_reasoning
from .remarks import loops_of, remarks_of
from .replies import Call, ReplyParts, reader_of
from .requested_constraint import AskedConstraint, ConstraintBody, asked_constraint
from .requested_forms import AskedMessage, AskedTool, AskedToolChoice
from .requested_tools import asked_tools, own_tools, plain_choice
from .sampling_options import (
    SamplingBody,
    StreamOptions,
    check_stream_options,
    sampling_of,
    tells_usage,
    tells_usage_always,
)
from .searching import SearchParameters, search_of, searched
from .service import Service
from .shared_parameters import HostedParameters
from .streams import DONE, data, error_event, unless_gone
from .token_details import ExtendedBody, detail_writer, details_of, head_of, measured, num_top_wanted
from .token_logprobs import LogprobWriter, token_ids_of
from .usage import usage_of, usage_so_far


class ChatBody(SearchParameters, SamplingBody, HostedParameters, ConstraintBody, ExtendedBody):
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
    best_of: int | None = Field(None, ge=1, description="Outputs generated, of which the n most probable are given.")
    prompt_logprobs: int | None = Field(None, ge=0, description="Alternatives of each token of the prompt; not in a stream.")
    chat_template: str | None = Field(
        None, description="In place of the model's, where the operator allows it: --trust-request-chat-template."
    )
    stream_options: StreamOptions | None = None
    tools: list[AskedTool] | None = None
    tool_choice: str | AskedToolChoice | None = Field(None, description="auto, none, required, a function or allowed_tools.")
    parallel_tool_calls: bool | None = Field(None, description="Whether one reply may have several calls.")
    reasoning_effort: str | None = Field(None, description="Handed to the chat template.")
    include_reasoning: bool | None = Field(None, description="Whether reasoning is told; true unless given.")
    documents: list[dict[str, Any]] | None = Field(None, description="Handed to the chat template.")
    add_special_tokens: Annotated[bool | None, Ignored("The chat template writes them.")] = None
    thinking_token_budget: int | None = Field(None, ge=1, description="Tokens that reasoning may take, where the template has it.")
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="Variables for the chat template.")
    metadata: Annotated[dict[str, Any] | None, Ignored("Nothing is stored.")] = None
    prediction: Annotated[dict[str, Any] | None, Ignored("Guesses ahead are the operator's choice.")] = None
    verbosity: str | None = Field(None, description="Handed to the chat template.")
    modalities: Annotated[list[Literal["text"]] | None, Because("This model writes text.")] = None
    continue_final_message: bool | None = Field(
        None, description="The last message, of the assistant, is the beginning of the reply; so is one with prefix: true."
    )
    add_generation_prompt: bool | None = Field(None, description="The opposite of continue_final_message.")
    echo: bool | None = Field(None, description="With continue_final_message: the beginning is given back before the rest.")


OWN_VARIABLES = ("reasoning_effort", "verbosity", "documents")  # parameters that are variables of the chat template
router = APIRouter()
ANSWERS = answers(ChatCompletion, ChatCompletionChunk)


@router.post("/chat/completions", summary="Continue a conversation, as llama.cpp", responses=ANSWERS)
@router.post("/v1/chat/completions", summary="Continue a conversation", responses=ANSWERS)
async def create_chat_completion(request: Request, body: ChatBody) -> Response:
    """OpenAI's chat completions, with constraints and tools that always hold."""
    service: Service = request.app.state.service
    names = {"logprobs": "top_logprobs"} | ({"max_tokens": "max_completion_tokens"} if body.max_completion_tokens else {})
    with told_as(names):
        plan = await unless_gone(request, plan_chat(service, body))
        writer = ChatWriter(f"chatcmpl-{body.reply_id or request.state.request_id}", service, body, plan)
        return await answer(request, [plan], writer, body.stream, body.ignored, names=body.names)


async def plan_chat(service: Service, body: ChatBody) -> Plan:
    """The conversation, ready to run. Raises ApiError for what contradicts itself or is not supported."""
    service.check_model(body.model)
    if body.top_logprobs and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs=true", param="top_logprobs", code="invalid_value")
    check_stream_options(body.stream_options, body.stream)
    check_best_of(body.best_of, body.n or 1, service.settings.max_n, is_streamed=bool(body.stream) and not body.use_beam_search)
    check_prompt_logprobs(body.prompt_logprobs, body.stream, service.settings.max_logprobs)
    body.note_unsearched()
    search = search_of(body, body.n or 1, body.best_of)
    num_top = (body.top_logprobs or 0) if body.logprobs else None
    sampling = sampling_of(
        body,
        defaults=service.llm.default_sampling if search is None else SamplingParams(),
        settings=service.settings,
        model_len=service.model_len,
        max_tokens=body.max_completion_tokens,
        logprobs=num_top_wanted(num_top, body.maskwright, service.settings.max_logprobs),
        best_of=body.best_of,
    )
    sampling = sampling if search is None else replace(sampling, n=1, best_of=None)
    turn, asked = await service.in_thread(turn_of, service, body)
    plan = await service.plan_turn(turn, sampling, body, asked)
    return measured(scored(searched(plan, search), body.prompt_logprobs), body.maskwright)


def turn_of(service: Service, body: ChatBody) -> tuple[Turn, AskedConstraint]:
    """(the messages and what the reply must satisfy, what of the request says so)."""
    planner, settings = service.llm.planner, service.settings
    tool_choice = plain_choice(body.tool_choice)
    is_open = tool_choice in (None, "auto") and not planner.has_tool_role
    if is_open and (answered := answered_tools(body.messages)):
        body = body.model_copy(update={"tools": [tool for tool in body.tools or () if _name_of(tool) not in answered]})
    messages = template_messages(body.messages, has_tool_role=planner.has_tool_role)
    is_begun = _is_begun(body, messages)
    asked = asked_constraint(body, allows_grammars=settings.client_grammars, languages=settings.client_grammar_languages)
    asked = asked.spaced_freely() if is_begun else asked
    if len(body.tools or ()) > settings.max_tools:
        message = f"tools: {len(body.tools or ())} tools, and this server allows {settings.max_tools}"
        raise ApiError(400, message, param="tools", code="limit_exceeded")
    style = planner.style_for("auto") if settings.tool_style == "auto" else settings.tool_style
    own, passed_over = own_tools(body.tools or ())
    body.ignored.extend(passed_over)
    tools = asked_tools(own, tool_choice, body.parallel_tool_calls, style, asked)
    variables = template_variables(body.chat_template_kwargs or {})
    for name in OWN_VARIABLES:
        if not is_empty(getattr(body, name)):
            variables[name] = getattr(body, name)
    template = _template(service, body)
    body.ignored.extend(name if name in OWN_VARIABLES else f"chat_template_kwargs.{name}" for name in unread(template, variables))
    if body.chat_template:
        variables["chat_template"] = body.chat_template  # what the tokenizer calls it, too
    told = () if tools is None else tools.told
    asked = asked if tools is None else tools.constraint
    turn = Turn(messages, told, asked.choice, variables, is_begun=is_begun)
    reasoned = with_reasoning(turn, service.llm.tokenizer, body.thinking_token_budget)
    if body.thinking_token_budget is not None and reasoned is turn:
        body.ignored.append("thinking_token_budget")
    return reasoned, asked


def _template(service: Service, body: ChatBody) -> str:
    """The chat template: the model's, or one that comes with the request. Raises ApiError where that is not allowed."""
    if not body.chat_template:
        return service.llm.tokenizer.chat_template
    if not service.settings.trust_request_chat_template:
        message = "chat_template: it is the operator's choice, who may leave it to clients with --trust-request-chat-template"
        raise ApiError(400, message, param="chat_template", code="unsupported_parameter")
    return body.chat_template


def _is_begun(body: ChatBody, messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last message is the beginning of the reply. Raises ApiError for one that cannot be."""
    is_begun = bool(body.continue_final_message) or body.messages[-1].get("prefix") is True
    if body.add_generation_prompt == is_begun:
        message = "add_generation_prompt is the opposite of continue_final_message: a reply begins anew, or with the last message"
        raise ApiError(400, message, param="add_generation_prompt", code="invalid_value")
    if not is_begun:
        return False
    last, place = messages[-1], f"messages[{len(messages) - 1}]"
    if last["role"] != "assistant" or not last["content"] or body.messages[-1].get("tool_calls"):
        message = f"{place}: a reply that is begun is a message of the assistant with a text and no calls"
        raise ApiError(400, message, param=place, code="invalid_value")
    return True


def _name_of(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function", tool)
    return function.get("name") if isinstance(function, Mapping) else None


class ChatWriter:
    """Makes what OpenAI's clients read from the events of all outputs."""

    def __init__(self, reply_id: str, service: Service, body: ChatBody, plan: Plan) -> None:
        self._service, self._body, self._plan = service, body, plan
        self._head = {"id": reply_id, "created": int(time.time()), "model": service.told_name(plan)}
        self._tells_usage, self._tells_usage_always = tells_usage(body.stream_options), tells_usage_always(body.stream_options)
        self._num_written = 0  # tokens of all outputs
        num = len(plan.requests)
        self._readers = [reader_of(plan) for _ in range(num)]
        self._parts = [ReplyParts() for _ in range(num)]
        self._logprobs = [self._logprob_writer() for _ in range(num)]
        self._details = detail_writer(service, [plan], body.maskwright, reply_id)
        self._outputs: dict[int, RequestOutput] = {}
        self._scores: dict[int, Sequence[PromptScore]] = {}
        self._echoed = plan.prompt if body.echo and (plan.requests[0].begun or plan.requests[0].healed) else ""

    async def whole(self, events: Events) -> dict[str, Any]:
        """The answer when all outputs have ended."""
        async for index, event in events:
            self._read(index, event)
        places = {id(output): place for place, output in self._outputs.items()}
        chosen = self._plan.chosen([self._outputs[place] for place in range(len(self._parts))])
        choices = [{**await self._choice(places[id(output)]), "index": index} for index, output in enumerate(chosen)]
        usage = usage_of(list(self._outputs.values()))
        remarks = {**remarks_of(self._plan), **head_of(self._details), **self._prompt_ids(), **self._prompt_logprobs()}
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": usage, **remarks}

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The chunks, while they come."""
        remarks = {**remarks_of(self._plan), **head_of(self._details), **self._prompt_ids()}
        for index in range(len(self._parts)):
            yield self._chunk(index, {"role": "assistant", "content": self._echoed}, **remarks)
            remarks = {}
        async for index, event in events:
            details = await details_of(self._details, index, event.tokens, event.output)
            details |= token_ids_of(self._body, event.tokens)
            self._num_written += len(event.tokens)
            for chunk in self._chunks(index, event, details):
                yield chunk
            if event.output is not None:
                more = {**self._readers[index].told_stop(event.output), **loops_of(event.output), **await self._captures(index)}
                yield self._chunk(index, {}, finish_reason=self._finish_reason(index), more=more)
        if self._tells_usage:
            usage = usage_of(list(self._outputs.values()))
            yield data({**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield DONE

    def failed(self, error: ApiError) -> bytes:
        return error_event(error)

    def _logprob_writer(self) -> LogprobWriter:
        body = self._body
        by_id = bool(body.return_tokens_as_token_ids)
        return LogprobWriter(self._service.llm.vocabulary, body.top_logprobs or 0, by_id=by_id)

    def _prompt_ids(self) -> dict[str, Any]:
        return {"prompt_token_ids": list(self._plan.requests[0].prompt_token_ids)} if self._body.return_token_ids else {}

    def _prompt_logprobs(self) -> dict[str, Any]:
        num_top = self._body.prompt_logprobs
        if num_top is None:
            return {}
        return {"prompt_logprobs": LogprobWriter(self._service.llm.vocabulary, num_top).ranked(self._scores[0])}

    def _read(self, index: int, event: Event) -> list[ReplyDelta]:
        if event.prompt_scores is not None:
            self._scores[index] = event.prompt_scores
        deltas = self._readers[index].read(event)
        if self._body.include_reasoning is False:
            deltas = [delta for delta in deltas if not isinstance(delta, ThoughtDelta)]
        for delta in deltas:
            self._parts[index].add(delta)
        if event.output is not None:
            self._outputs[index] = event.output
        return deltas

    def _chunks(self, index: int, event: Event, details: dict[str, Any]) -> list[bytes]:
        """A chunk for each delta; log-probabilities and details go with the first, or with one of their own."""
        read, calls = self._read(index, event), self._parts[index].calls
        deltas = [_delta(delta, isinstance(delta, CallDelta) and calls[delta.index].is_custom) for delta in read]
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
        usage: dict[str, Any] = {"usage": None} if self._tells_usage else {}
        if self._tells_usage_always:
            usage = {"usage": usage_so_far(len(self._plan.requests[0].prompt_token_ids), self._num_written)}
        return data({**self._head, "object": "chat.completion.chunk", "choices": [choice], **usage, **remarks})

    async def _choice(self, index: int) -> dict[str, Any]:
        output = self._outputs[index]
        logprobs = self._logprobs[index].chat(output.records) if self._body.logprobs else None
        message = _message(self._parts[index], self._echoed)
        details = await details_of(self._details, index, output.records, output)
        reason = self._finish_reason(index)
        more = {**self._readers[index].told_stop(output), **details, **await self._captures(index)}
        more |= token_ids_of(self._body, output.records) | loops_of(output)
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": reason, **more}

    async def _captures(self, index: int) -> dict[str, Any]:
        parts = self._parts[index]
        return await captures_of(self._service, self._plan, self._outputs[index], parts.content, has_calls=bool(parts.calls))

    def _finish_reason(self, index: int) -> str:
        reason = self._readers[index].finish_reason(self._outputs[index])
        return "tool_calls" if reason == "stop" and self._parts[index].calls else reason


def _delta(delta: ReplyDelta, is_custom: bool) -> dict[str, Any]:
    """A delta as a chunk has it. is_custom: it is about the call of a custom tool."""
    if isinstance(delta, ContentDelta):
        return {"content": delta.text}
    if isinstance(delta, ThoughtDelta):
        return {"reasoning_content": delta.text}
    if isinstance(delta, CallStart) and delta.is_custom:
        custom = {"name": delta.name, "input": ""}
        return {"tool_calls": [{"index": delta.index, "id": delta.call_id, "type": "custom", "custom": custom}]}
    if isinstance(delta, CallStart):
        function = {"name": delta.name, "arguments": ""}
        return {"tool_calls": [{"index": delta.index, "id": delta.call_id, "type": "function", "function": function}]}
    assert isinstance(delta, CallDelta)
    told = {"custom": {"input": delta.text}} if is_custom else {"function": {"arguments": delta.text}}
    return {"tool_calls": [{"index": delta.index, **told}]}


def _message(parts: ReplyParts, echoed: str) -> dict[str, Any]:
    content = echoed + parts.content
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if parts.reasoning:
        message["reasoning_content"] = parts.reasoning
    if parts.calls:
        message["content"] = content or None
        message["tool_calls"] = [_call(call) for call in parts.calls]
    return message


def _call(call: Call) -> dict[str, Any]:
    if call.is_custom:
        return {"id": call.call_id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}

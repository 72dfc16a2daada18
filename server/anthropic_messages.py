"""POST /v1/messages: Anthropic's Messages interface over the same conversations, and /v1/messages/count_tokens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import Field, ValidationError

from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .answering import Events, answer, renamed
from .answers import MessageAnswer, MessageEvent, MessageTokens
from .anthropic_blocks import BlockWriter
from .anthropic_conversation import chat_messages, chat_tool_choice, chat_tools
from .body import Because, Ignored
from .captured import captures_of
from .chat import ChatBody, plan_chat
from .documentation import anthropic_answers
from .errors import ApiError, anthropic_body, told_as
from .remarks import loops_of, remarks_of
from .replies import reader_of
from .requested_constraint import ConstraintNames
from .requested_forms import (
    AnthropicFormat,
    AnthropicMessage,
    AnthropicOutput,
    AnthropicTextBlock,
    AnthropicThinking,
    AnthropicTool,
    AnthropicToolChoice,
)
from .sampling_options import SamplingExtras
from .service import Service
from .streams import data, unless_gone

# How the parameters of a chat completion are called here.
NAMES = {"response_format": "output_config.format", "stop": "stop_sequences"} | {
    "thinking_token_budget": "thinking.budget_tokens",
    "reasoning_effort": "output_config.effort",
    "chat_template_kwargs.enable_thinking": "thinking.type",
}
STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


class ConversationBody(ConstraintNames):
    """What the model is shown."""

    refused = MappingProxyType(
        {
            "container": "this server runs no tools",
            "mcp_servers": "this server calls nobody; give the model their tools",
            "fallbacks": "there is one model here",
            "inference_geo": "this server is where it is",
        }
    )
    model: str | None = Field(None, description="The name of the model, as /v1/models lists it.")
    messages: list[AnthropicMessage] = Field(
        description="role; content as text or blocks: text, thinking, tool_use, tool_result, documents of text."
    )
    system: str | list[AnthropicTextBlock] | None = Field(None, description="What the model is told first.")
    tools: list[AnthropicTool] | None = Field(None, description="name, description, input_schema, strict.")
    tool_choice: AnthropicToolChoice | None = Field(None, description="type auto, any, tool or none; disable_parallel_tool_use.")
    thinking: AnthropicThinking | None = Field(None, description="type enabled (with budget_tokens), adaptive or disabled.")
    output_config: AnthropicOutput | None = Field(None, description="format: a JSON Schema for the reply; effort.")
    output_format: AnthropicFormat | None = Field(None, description="As output_config.format.")
    context_management: Annotated[dict[str, Any] | None, Ignored("The model is shown the messages that are sent.")] = None
    cache_control: Annotated[dict[str, Any] | None, Ignored("Equal beginnings are always shared.")] = None
    betas: Annotated[list[str] | None, Ignored("They are of Anthropic's servers.")] = None
    anthropic_beta: Annotated[list[str] | None, Ignored("They are of Anthropic's servers.")] = None
    anthropic_version: Annotated[str | None, Ignored("There is one version here.")] = None


class MessageBody(SamplingExtras, ConversationBody):
    """A conversation to be continued."""

    max_tokens: int = Field(ge=1, description="Tokens of the reply at most.")
    stop_sequences: list[str] | None = Field(None, description="Strings that end the reply; see also stop_inside.")
    stream: bool | None = None
    return_token_ids: Annotated[bool | None, Ignored("Chat completions tell them.")] = None
    return_tokens_as_token_ids: Annotated[bool | None, Ignored("Chat completions tell them.")] = None
    metadata: dict[str, Any] | None = Field(None, description="user_id: who shares the engine with others, with --policy fair.")
    service_tier: Annotated[Literal["auto", "standard_only"] | None, Ignored("One tier.", ("auto", "standard_only"))] = None
    speed: Annotated[Literal["standard"] | None, Because("There is one speed here.")] = None


router = APIRouter()


@router.post(
    "/v1/messages",
    summary="Continue a conversation, as Anthropic's interface",
    responses=anthropic_answers(MessageAnswer, MessageEvent),
)
async def create_message(request: Request, body: MessageBody) -> Response:
    """Anthropic's messages, with tools and structured output that always hold."""
    service: Service = request.app.state.service
    with told_as(NAMES):
        chat = _as_chat(body)
        plan = await unless_gone(request, plan_chat(service, chat))
        message_id = f"msg_{body.reply_id or request.state.request_id}"
        writer = MessageWriter(message_id, service, plan, hides_thought=_hides_thought(body))
        return await answer(request, [plan], writer, body.stream, [*body.ignored, *renamed(chat.ignored, NAMES)], names=body.names)


@router.post(
    "/v1/messages/count_tokens", summary="How many tokens a conversation has", responses=anthropic_answers(MessageTokens)
)
async def count_tokens(request: Request, body: ConversationBody) -> dict[str, int]:
    """The tokens that the model would read."""
    with told_as(NAMES):
        plan = await unless_gone(request, plan_chat(request.app.state.service, _as_chat(body)))
    return {"input_tokens": len(plan.requests[0].prompt_token_ids)}


class MessageWriter:
    """Makes a message of the events of one output, whole or as typed events."""

    def __init__(self, message_id: str, service: Service, plan: Plan, *, hides_thought: bool) -> None:
        self._id, self._service, self._plan = message_id, service, plan
        self._num_prompt = len(plan.requests[0].prompt_token_ids)
        self._reader = reader_of(plan)
        self._blocks = BlockWriter(hides_thought=hides_thought)
        self._remarks = remarks_of(plan)
        self._output: RequestOutput | None = None

    async def whole(self, events: Events) -> dict[str, Any]:
        """The message when it has ended."""
        async for _, event in events:
            self._read(event)
        return {**self._message(self._blocks.blocks, self._ending(), self._usage()), **await self._more()}

    async def stream(self, events: Events) -> AsyncGenerator[bytes, None]:
        """The events, while they come."""
        begun = {"input_tokens": self._num_prompt, "output_tokens": 0}
        message = self._message([], {"stop_reason": None, "stop_sequence": None}, begun)
        yield _event({"type": "message_start", "message": message})
        async for _, event in events:
            for each in self._read(event):
                yield _event(each)
        yield _event({"type": "message_delta", "delta": self._ending(), "usage": self._usage(), **await self._more()})
        yield _event({"type": "message_stop"})

    def failed(self, error: ApiError) -> bytes:
        """The last event of a stream that failed."""
        return _event(anthropic_body(error, self._id.removeprefix("msg_")))

    def _read(self, event: Event) -> list[dict[str, Any]]:
        told = [each for delta in self._reader.read(event) for each in self._blocks.take(delta)]
        if event.output is not None:
            self._output = event.output
            told += self._blocks.finish()
        return told

    def _message(self, content: list[dict[str, Any]], ending: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        head = {"id": self._id, "type": "message", "role": "assistant", "model": self._service.told_name(self._plan)}
        return {**head, "content": content, **ending, "usage": usage, **self._remarks}

    async def _more(self) -> dict[str, Any]:
        """Members beside Anthropic's."""
        assert self._output is not None, "the output has ended"
        text = "".join(block["text"] for block in self._blocks.blocks if block["type"] == "text")
        captured = await captures_of(self._service, self._plan, self._output, text, has_calls=bool(self._blocks.num_calls))
        told = self._reader.told_stop(self._output)
        return captured | loops_of(self._output) | {name: told[name] for name in ("is_complete",) if name in told}

    def _ending(self) -> dict[str, Any]:
        assert self._output is not None, "the output has ended"
        reason = self._reader.finish_reason(self._output)
        matched = self._output.stop_string or self._reader.stop_string
        if reason == "stop" and self._blocks.num_calls:
            told = "tool_use"
        else:
            told = "stop_sequence" if matched is not None else STOP_REASONS.get(reason, reason)
        return {"stop_reason": told, "stop_sequence": matched}

    def _usage(self) -> dict[str, Any]:
        """The tokens used. Prompt tokens that were in the cache are counted apart from the others."""
        assert self._output is not None, "the output has ended"
        cached = self._output.num_cached_tokens
        return {
            "input_tokens": self._output.num_prompt_tokens - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": len(self._output.token_ids),
        }


def _as_chat(body: ConversationBody) -> ChatBody:
    """The body as a chat completion. Raises ApiError for what a chat completion has no form for."""
    form = _output_form(body)
    thinking = _thinking(body.thinking)
    choice, parallel = chat_tool_choice(body.tool_choice)
    messages = chat_messages(body.messages, body.system, body.ignored)
    asked = {
        "model": body.model,
        "messages": messages,
        "continue_final_message": bool(messages) and messages[-1]["role"] == "assistant",
        "tools": _tools(body),
        "tool_choice": choice,
        "parallel_tool_calls": parallel,
        "response_format": form,
        "reasoning_effort": (body.output_config or {}).get("effort"),
        **thinking,
        **body.named_constraints,
    }
    if isinstance(body, MessageBody):
        _check_known(body.metadata, "metadata", "user_id")
        user = (body.metadata or {}).get("user_id")
        asked |= {"max_tokens": body.max_tokens, "stop": body.stop_sequences, "user": user, **body.sampling_extras}
    try:
        return ChatBody.model_validate(asked)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def _tools(body: ConversationBody) -> list[dict[str, Any]] | None:
    """The client's own tools; Anthropic's, which run on its servers, are passed over."""
    if body.tools is None:
        return None
    made = chat_tools(body.tools)
    others = [index for index, tool in enumerate(made) if tool is None]
    body.ignored.extend(f"tools[{index}] ({body.tools[index].get('type')})" for index in others)
    return [tool for tool in made if tool is not None]


def _output_form(body: ConversationBody) -> dict[str, Any] | None:
    _check_known(body.output_config, "output_config", "format", "effort")
    given = (body.output_config or {}).get("format")
    if given is not None and body.output_format is not None:
        message = "output_format and output_config.format contradict each other: a reply has one form"
        raise ApiError(400, message, param="output_format", code="invalid_value")
    form: dict[str, Any] | None = given if given is not None else body.output_format
    return form


def _thinking(thinking: dict[str, Any] | None) -> dict[str, Any]:
    """What the chat template and the constraint are told about reasoning. A model whose template knows no reasoning
    does none."""
    if thinking is None:
        return {}
    _check_known(thinking, "thinking", "type", "budget_tokens", "display")
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "disabled"):
        message = f"thinking.type is enabled, adaptive or disabled, not {kind!r}"
        raise ApiError(400, message, param="thinking.type", code="invalid_value")
    if thinking.get("display", "summarized") not in ("summarized", "omitted"):
        message = f"thinking.display is summarized or omitted, not {thinking['display']!r}"
        raise ApiError(400, message, param="thinking.display", code="invalid_value")
    budget = thinking.get("budget_tokens") if kind == "enabled" else None
    return {"chat_template_kwargs": {"enable_thinking": kind != "disabled"}, "thinking_token_budget": budget}


def _hides_thought(body: ConversationBody) -> bool:
    return (body.thinking or {}).get("display") == "omitted"


def _check_known(form: dict[str, Any] | None, place: str, *known: str) -> None:
    unknown = next((name for name, value in (form or {}).items() if name not in known and value is not None), None)
    if unknown is not None:
        raise ApiError(400, f"unknown parameter: {place}.{unknown}", param=f"{place}.{unknown}", code="unknown_parameter")


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\n".encode() + data(event)

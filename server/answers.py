"""What answers consist of, for the documentation at /docs and for tests. They are not made from these models.

Sources: the references of OpenAI's and Anthropic's interfaces. Members may be added to any object.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

FinishReason = Literal["stop", "length", "tool_calls"]
Residue = Annotated[list[str] | None, Field(description='What is not enforced; only with "strict": false.')]
Notes = Annotated[list[str] | None, Field(description="What of the constraint is read in another way than it is written.")]


class Ended(BaseModel):
    """Part of an answer that a stop string has ended."""

    stop_reason: str | None = Field(None, description="The stop string that ended the output, if one did.")
    is_complete: bool | None = Field(None, description="With a constraint: whether the text before the stop string satisfies it.")


class EndedLoop(BaseModel):
    """A value in which the model repeated itself, and which was ended."""

    path: str = Field(description='A JSON Pointer to the value, "#/name"; in arguments behind the name of the tool.')
    text: str = Field(description="What was repeated.")
    count: int = Field(description="How often, until it was seen.")
    start: int = Field(description="The number of the token of the output with which that began.")


class Looped(BaseModel):
    """Part of an answer whose model repeated itself."""

    loops: list[EndedLoop] | None = Field(None, description="Values that were ended because the model looped; see loop_bound.")


class Captured(BaseModel):
    """Part of an answer whose grammar names what its rules read."""

    captures: dict[str, str | list[str]] | None = Field(None, description="What rules have read, by name.")
    captures_error: str | None = Field(None, description="Why that cannot be told.")


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = Field(description="The parameter that is wrong, as a path into the request.")
    code: str | None = Field(description="What is wrong, in one word.")
    path: str | None = Field(None, description="Of a constraint: the place inside the schema.")
    keyword: str | None = Field(None, description="Of a constraint: the keyword that cannot be enforced.")
    reason: str | None = None
    instead: str | None = Field(None, description="What to write instead.")
    line: int | None = Field(None, description="Of a grammar, from 1.")
    column: int | None = None
    limit: str | int | None = Field(None, description="Of a constraint the name of the limit, of the server its value.")


class ErrorAnswer(BaseModel):
    """Any error."""

    error: ErrorDetail


class AnthropicErrorAnswer(BaseModel):
    """Any error, under /v1/messages."""

    type: Literal["error"]
    error: ErrorDetail
    request_id: str | None


# -- chat completions -----------------------------------------------------------------------------------------------------


class CachedTokens(BaseModel):
    cached_tokens: int


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Alternative(BaseModel):
    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(Alternative):
    top_logprobs: list[Alternative]


class ChatLogprobs(BaseModel):
    content: list[TokenLogprob]
    refusal: None


class CalledFunction(BaseModel):
    name: str
    arguments: str = Field(description="JSON text that satisfies the tool's schema.")


class CalledCustom(BaseModel):
    name: str
    input: str = Field(description="Text that satisfies the tool's format.")


class ToolCall(BaseModel):
    """A call of a function, or of a custom tool."""

    id: str
    type: Literal["function", "custom"]
    function: CalledFunction | None = None
    custom: CalledCustom | None = None


class ChatMessage(BaseModel):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


class ChatChoice(Captured, Ended, Looped):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    prompt_logprobs: list[dict[str, Any] | None] | None = None
    residue: Residue = None
    notes: Notes = None


class FunctionDelta(BaseModel):
    name: str | None = None
    arguments: str


class CustomDelta(BaseModel):
    name: str | None = None
    input: str


class ToolCallDelta(BaseModel):
    index: int
    id: str | None = None
    type: Literal["function", "custom"] | None = None
    function: FunctionDelta | None = None
    custom: CustomDelta | None = None


class ChatDelta(BaseModel):
    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChatChunkChoice(Captured, Ended, Looped):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None


class ChatCompletionChunk(BaseModel):
    """One event of a stream. The last one is `[DONE]`, or an error."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    residue: Residue = None
    notes: Notes = None


# -- completions ----------------------------------------------------------------------------------------------------------


class CompletionLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None] = Field(description="The first token of a prompt that is told, with echo, has none.")
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(Captured, Ended, Looped):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    prompt_logprobs: list[dict[str, Any] | None] | None = None
    finish_reason: FinishReason | None = Field(description="None while a stream goes on.")


class Completion(BaseModel):
    """A whole answer, or one event of a stream. The last event is `[DONE]`, or an error."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
    residue: Residue = None
    notes: Notes = None


# -- responses ------------------------------------------------------------------------------------------------------------


class ResponseText(BaseModel):
    type: Literal["output_text", "reasoning_text"]
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class ResponseItem(BaseModel):
    """Reasoning or a message with content, or a call with a name and arguments."""

    id: str
    type: Literal["reasoning", "message", "function_call", "custom_tool_call"]
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"] | None = None
    content: list[ResponseText] | None = None
    summary: list[Any] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None


class ReasoningTokens(BaseModel):
    reasoning_tokens: int


class CacheTokens(CachedTokens):
    cache_write_tokens: int = Field(description="0: nothing is kept for a price.")


class ResponseUsage(BaseModel):
    input_tokens: int
    input_tokens_details: CacheTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ResponseAnswer(Captured, Ended, Looped):
    id: str
    object: Literal["response"]
    created_at: float
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[ResponseItem]
    usage: ResponseUsage | None
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None
    residue: Residue = None
    notes: Notes = None


class ResponseEvent(BaseModel):
    """One event of a stream, with the members of its type; the last has `response`. A stream that fails ends with the events
    `error` and `response.failed`."""

    type: str
    sequence_number: int
    error: ErrorDetail | None = None
    response: ResponseAnswer | None = None
    item: ResponseItem | None = None
    output_index: int | None = None
    item_id: str | None = None
    delta: str | None = None


# -- Anthropic's messages -------------------------------------------------------------------------------------------------


class MessageContent(BaseModel):
    """A block: text, thinking, or the use of a tool."""

    type: Literal["text", "thinking", "tool_use"]
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class MessageUsage(BaseModel):
    input_tokens: int = Field(description="That were not in the cache.")
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class MessageAnswer(Captured, Looped):
    is_complete: bool | None = Field(None, description="Of a reply that a stop sequence ended: does it satisfy its constraint?")
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[MessageContent]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"] | None
    stop_sequence: str | None
    usage: MessageUsage
    residue: Residue = None
    notes: Notes = None


class MessageEvent(Captured, Looped):
    """One event of a stream, with the members of its type."""

    is_complete: bool | None = Field(None, description="In message_delta, as in MessageAnswer.")

    type: Literal[
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ]
    index: int | None = None
    message: MessageAnswer | None = None
    content_block: MessageContent | None = None
    delta: dict[str, Any] | None = None
    usage: MessageUsage | None = None
    error: ErrorDetail | None = None


class MessageTokens(BaseModel):
    input_tokens: int


# -- models, tokens, operations -------------------------------------------------------------------------------------------


class ModelAnswer(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    parent: str | None = None
    root: str | None = None


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[ModelAnswer]


class TokenPiece(BaseModel):
    id: int
    piece: str | list[int]


class TokenizeAnswer(BaseModel):
    """With content, tokens alone: ids, or with their texts, those that are none as bytes."""

    count: int | None = None
    max_model_len: int | None = None
    tokens: list[int] | list[TokenPiece]
    token_strs: list[str] | None = None


class DetokenizeAnswer(BaseModel):
    prompt: str
    content: str


class HealthAnswer(BaseModel):
    status: Literal["ok", "error"]


class VersionAnswer(BaseModel):
    version: str


class ReadyAnswer(BaseModel):
    ready: bool
    reason: str | None = None

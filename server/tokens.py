"""POST /tokenize and /detokenize, as vLLM has them, and with `content` as llama.cpp does."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from .answering import tell_ignored
from .answers import DetokenizeAnswer, TokenizeAnswer
from .body import Body, Ignored
from .chat import ChatBody, turn_of
from .documentation import answers
from .errors import ApiError
from .freed_memory import give_back
from .requested_forms import AskedMessage, AskedTool
from .service import Service
from .streams import unless_gone

router = APIRouter()
LONG_CHARACTERS = 1 << 20  # of a text that takes hundreds of megabytes while it is tokenised


class TokenizeBody(Body):
    """A prompt, or a conversation, which is rendered by the chat template first."""

    model: str | None = None
    prompt: str | None = None
    messages: list[AskedMessage] | None = None
    tools: list[AskedTool] | None = Field(None, description="With messages: what the chat template is shown.")
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="With messages: variables for the chat template.")
    continue_final_message: bool | None = Field(None, description="With messages: the last one, of the assistant, is not ended.")
    add_generation_prompt: bool | None = Field(None, description="The opposite of continue_final_message.")
    content: str | None = Field(None, description="A text, answered in llama.cpp's form.")
    add_special: bool = Field(False, description="Of content: whether the tokens that the tokenizer puts around a text are added.")
    with_pieces: bool = Field(False, description="Of content: whether the text of each token is told.")
    parse_special: Annotated[
        bool | None, Ignored("The names of special tokens in a text are these tokens.", (True,), is_empty_neutral=False)
    ] = None
    add_special_tokens: bool = Field(True, description="Whether the tokens that the tokenizer puts around a text are added.")
    return_token_strs: bool = False


class DetokenizeBody(Body):
    model: str | None = None
    tokens: list[int]


@router.post("/tokenize", summary="Text to token ids", responses=answers(TokenizeAnswer))
async def tokenize(request: Request, response: Response, body: TokenizeBody) -> dict[str, Any]:
    """The token ids of a prompt or a conversation, and how many the model reads at most."""
    service: Service = request.app.state.service
    service.check_model(body.model)
    if sum(each is not None for each in (body.prompt, body.messages, body.content)) != 1:
        raise ApiError(400, "give one of prompt, messages and content", param="prompt", code="invalid_value")
    chat = None if body.messages is None else _as_chat(body)
    token_ids = await unless_gone(request, service.apart(_encode, service, body, chat))
    tell_ignored(response, [*body.ignored, *(chat.ignored if chat is not None else ())])
    if body.content is not None:
        return {"tokens": [_piece(service, token_id) for token_id in token_ids] if body.with_pieces else list(token_ids)}
    answer: dict[str, Any] = {"count": len(token_ids), "max_model_len": service.model_len, "tokens": list(token_ids)}
    if body.return_token_strs:
        answer["token_strs"] = [_text(service, [token_id]) for token_id in token_ids]
    return answer


@router.post("/detokenize", summary="Token ids to text", responses=answers(DetokenizeAnswer))
async def detokenize(request: Request, body: DetokenizeBody) -> dict[str, str]:
    """The text of some tokens, as vLLM and as llama.cpp call it. Special tokens have none."""
    service: Service = request.app.state.service
    service.check_model(body.model)
    size = service.llm.vocabulary.size
    wrong = next((token_id for token_id in body.tokens if not 0 <= token_id < size), None)
    if wrong is not None:
        raise ApiError(400, f"{wrong} is not a token id; they are 0 to {size - 1}", param="tokens", code="invalid_value")
    text = _text(service, body.tokens)
    return {"prompt": text, "content": text}


def _as_chat(body: TokenizeBody) -> ChatBody:
    names = ("messages", "tools", "chat_template_kwargs", "continue_final_message", "add_generation_prompt")
    return ChatBody.model_validate({name: getattr(body, name) for name in names if getattr(body, name) is not None})


def _encode(service: Service, body: TokenizeBody, chat: ChatBody | None) -> tuple[int, ...]:
    if chat is not None:
        turn, _ = turn_of(service, chat)
        return service.llm.tokenizer.encode(service.llm.planner.rendered(turn), add_special_tokens=False)
    text, adds = (body.prompt, body.add_special_tokens) if body.content is None else (body.content, body.add_special)
    assert text is not None, "one of three is given"
    try:
        return service.llm.tokenizer.encode(text, add_special_tokens=adds)
    finally:
        if len(text) > LONG_CHARACTERS:
            give_back()


def _piece(service: Service, token_id: int) -> dict[str, Any]:
    """A token as llama.cpp tells it: bytes that are no text of their own are told as numbers."""
    data = service.llm.vocabulary.tokens[token_id] or b""
    try:
        return {"id": token_id, "piece": data.decode()}
    except UnicodeDecodeError:
        return {"id": token_id, "piece": list(data)}


def _text(service: Service, token_ids: list[int]) -> str:
    tokens = service.llm.vocabulary.text_tokens
    return b"".join(tokens[token_id] or b"" for token_id in token_ids).decode(errors="replace")

"""POST /tokenize and /detokenize, as vLLM has them, and with `content` as llama.cpp does."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from .answering import tell_ignored
from .answers import DetokenizeAnswer, TokenizeAnswer
from .body import Body, Ignored
from .documentation import answers
from .errors import ApiError
from .freed_memory import give_back
from .messages import template_messages
from .requested_forms import AskedMessage
from .service import Service
from .streams import unless_gone

router = APIRouter()
LONG_CHARACTERS = 1 << 20  # of a text that takes hundreds of megabytes while it is tokenised


class TokenizeBody(Body):
    """A prompt, or a conversation, which is rendered by the chat template first."""

    model: str | None = None
    prompt: str | None = None
    messages: list[AskedMessage] | None = None
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
    tell_ignored(response, body.ignored)
    token_ids = await unless_gone(request, service.apart(_encode, service, body))
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


def _encode(service: Service, body: TokenizeBody) -> tuple[int, ...]:
    text, adds = (body.prompt, body.add_special_tokens) if body.content is None else (body.content, body.add_special)
    if text is not None:
        try:
            return service.llm.tokenizer.encode(text, add_special_tokens=adds)
        finally:
            if len(text) > LONG_CHARACTERS:
                give_back()
    has_tool_role = service.llm.planner.has_tool_role
    return service.llm.tokenizer.encode_chat(template_messages(body.messages or (), has_tool_role=has_tool_role))


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

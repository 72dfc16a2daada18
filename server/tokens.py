"""POST /tokenize and /detokenize, as vLLM has them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from .answers import DetokenizeAnswer, TokenizeAnswer
from .body import Body
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
    add_special_tokens: bool = Field(True, description="Whether the tokens that the tokenizer puts around a text are added.")
    return_token_strs: bool = False


class DetokenizeBody(Body):
    model: str | None = None
    tokens: list[int]


@router.post("/tokenize", summary="Text to token ids", responses=answers(TokenizeAnswer))
async def tokenize(request: Request, body: TokenizeBody) -> dict[str, Any]:
    """The token ids of a prompt or a conversation, and how many the model reads at most."""
    service: Service = request.app.state.service
    service.check_model(body.model)
    if (body.prompt is None) == (body.messages is None):
        raise ApiError(400, "give one of prompt and messages", param="prompt", code="invalid_value")
    token_ids = await unless_gone(request, service.apart(_encode, service, body))
    answer: dict[str, Any] = {"count": len(token_ids), "max_model_len": service.model_len, "tokens": list(token_ids)}
    if body.return_token_strs:
        answer["token_strs"] = [_text(service, [token_id]) for token_id in token_ids]
    return answer


@router.post("/detokenize", summary="Token ids to text", responses=answers(DetokenizeAnswer))
async def detokenize(request: Request, body: DetokenizeBody) -> dict[str, str]:
    """The text of some tokens. Special tokens have none."""
    service: Service = request.app.state.service
    service.check_model(body.model)
    size = service.llm.vocabulary.size
    wrong = next((token_id for token_id in body.tokens if not 0 <= token_id < size), None)
    if wrong is not None:
        raise ApiError(400, f"{wrong} is not a token id; they are 0 to {size - 1}", param="tokens", code="invalid_value")
    return {"prompt": _text(service, body.tokens)}


def _encode(service: Service, body: TokenizeBody) -> tuple[int, ...]:
    if body.prompt is not None:
        try:
            return service.llm.tokenizer.encode(body.prompt, add_special_tokens=body.add_special_tokens)
        finally:
            if len(body.prompt) > LONG_CHARACTERS:
                give_back()
    has_tool_role = service.llm.planner.has_tool_role
    return service.llm.tokenizer.encode_chat(template_messages(body.messages or (), has_tool_role=has_tool_role))


def _text(service: Service, token_ids: list[int]) -> str:
    tokens = service.llm.vocabulary.text_tokens
    return b"".join(tokens[token_id] or b"" for token_id in token_ids).decode(errors="replace")

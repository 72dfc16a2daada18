"""Log-probabilities of prompts: who may have them, and plans that ask for them."""

from __future__ import annotations

from dataclasses import replace

from ..planning import Plan
from .errors import ApiError


def check_prompt_logprobs(asked: int | None, is_streamed: bool | None, most: int) -> None:
    """Raises ApiError where they cannot be told, or are too many."""
    if asked is not None and is_streamed:
        message = "prompt_logprobs are told with a whole answer: ask without stream"
        raise ApiError(400, message, param="prompt_logprobs", code="invalid_value")
    if (asked or 0) > most:
        message = f"prompt_logprobs asks for {asked} alternatives of a token, and this server allows {most}"
        raise ApiError(400, message, param="prompt_logprobs", code="limit_exceeded")


def scored(plan: Plan, num_top: int | None) -> Plan:
    """The plan, with so many alternatives of each token of its prompt; None: its tokens are not scored."""
    if num_top is None:
        return plan
    return replace(plan, requests=tuple(replace(request, num_prompt_logprobs=num_top) for request in plan.requests))

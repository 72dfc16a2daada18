"""Conversations and variables as clients send them, for the chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..conversation import OWN, ROLES, read_messages
from .errors import ApiError

# Not variables of a template, but how it is rendered. A template of the client's own could keep the server busy without end.
RESERVED = (
    "chat_template", "add_generation_prompt", "continue_final_message", "sanitize_control_tokens", "tokenize", "tokenizer_kwargs",
    "padding", "truncation", "max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask",
    "conversation", "messages", "tools",
)  # fmt: skip


def template_messages(messages: Sequence[Mapping[str, Any]], *, has_tool_role: bool) -> tuple[dict[str, Any], ...]:
    """The messages, each with a known role; members that are no part of the conversation are left out. Raises
    MessageError."""
    return read_messages(messages, has_tool_role=has_tool_role, roles=ROLES, members=OWN)


def template_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that `chat_template_kwargs` hands to the template."""
    wrong = next((name for name in given if name in RESERVED), None)
    if wrong is not None:
        param = f"chat_template_kwargs.{wrong}"
        raise ApiError(400, f"{param} is not a variable that clients may set", param=param, code="invalid_value")
    return dict(given)

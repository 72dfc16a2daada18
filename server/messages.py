"""Conversations and variables as clients send them, for the chat template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Environment, TemplateError
from jinja2.meta import find_undeclared_variables

from ..conversation import OWN, ROLES, read_messages
from .body import is_empty
from .errors import ApiError

EXTENSIONS = ("jinja2.ext.loopcontrols", "jinja2.ext.do")

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


def unread(template: str, variables: Mapping[str, Any]) -> list[str]:
    """The variables that ask for something and that a chat template does not read."""
    known = _read_by(template)
    return [name for name, value in variables.items() if name not in known and not is_empty(value)]


@lru_cache(maxsize=8)
def _read_by(template: str) -> frozenset[str]:
    """The variables that a template reads; of one with tags of its own, all words in it."""
    try:
        parsed = Environment(extensions=EXTENSIONS).parse(template)
    except TemplateError:
        return frozenset(re.findall(r"\w+", template))
    return frozenset(find_undeclared_variables(parsed))


def template_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that `chat_template_kwargs` hands to the template."""
    wrong = next((name for name in given if name in RESERVED), None)
    if wrong is not None:
        param = f"chat_template_kwargs.{wrong}"
        raise ApiError(400, f"{param} is not a variable that clients may set", param=param, code="invalid_value")
    return dict(given)

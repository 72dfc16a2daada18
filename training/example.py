"""One example: what is asked, and the one right answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from maskwright.prompts import Message, render_messages


@dataclass(frozen=True, slots=True)
class Example:
    """What is asked, as chat messages, and the one right answer; `constraint` is the keyword of `generate` that it belongs to."""

    kind: str
    prompt: str
    answer: str
    constraint: dict[str, Any] = field(default_factory=dict)
    begun: str = ""  # of the reply, before the answer
    is_bare: bool = False  # the prompt alone, without the marks of a conversation

    @property
    def messages(self) -> list[Message]:
        return render_messages(self.prompt, **self.constraint)


def canonical_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def placeholders(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]

"""What the clients are asked to extract, and from what."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

MODEL = "embedded"
TEXT = "Ada Lovelace, 36, lives in London."
MESSAGES: Any = [{"role": "user", "content": TEXT}]


class Person(BaseModel):
    name: str
    age: int


ADA = Person(name="Ada Lovelace", age=36)

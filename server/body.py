"""What every request body has in common: no parameter is unknown, none is converted, and all text is text."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from .errors import ApiError


class Body(BaseModel):
    """A parameter that is not known is refused by name. JSON can write half of a surrogate pair, which no tokenizer can read."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def check_text(cls, given: Any) -> Any:
        place = _half_pair(given)
        if place is not None:
            raise ApiError(400, f"{place} contains half of a surrogate pair", param=place, code="invalid_value")
        return given


def _half_pair(given: Any) -> str | None:
    """The place of the first string with half of a surrogate pair."""
    pending = [("", given)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            for name, member in value.items():
                if not _is_text(name):
                    return place or "a name"
                pending.append((f"{place}.{name}" if place else name, member))
        elif isinstance(value, list):
            pending += [(f"{place}[{index}]", member) for index, member in enumerate(value) if not isinstance(member, int)]
        elif isinstance(value, str) and not _is_text(value):
            return place
    return None


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)

"""The JSON value in a reply that no constraint made: as written, or repaired, as people do who have no constraint."""

from __future__ import annotations

import ast
import json
import re
from typing import Any, NamedTuple

_BEGIN = re.compile(r"[\[{]")
_BETWEEN = re.compile(r"[\s,;]*")
_CLOSERS = {"{": "}", "[": "]"}


class Read(NamedTuple):
    value: Any  # None where there is none
    is_repaired: bool  # it took more than `json.loads`


def read_reply(text: str) -> Read:
    """The first object or array in a reply, with whatever stands around it; several objects in a row are a list."""
    try:
        return Read(json.loads(text), False)
    except (ValueError, RecursionError):
        pass
    begin = _BEGIN.search(text)
    if begin is None:
        return Read(None, False)
    rest = text[begin.start() :]
    values = _values(rest)
    if values:
        return Read(values[0] if len(values) == 1 else values, True)
    return Read(_repaired(rest), True)


def _values(text: str) -> list[Any]:
    """JSON objects and arrays that follow one another from the beginning on."""
    values, at = list[Any](), 0
    while at < len(text) and text[at] in _CLOSERS:
        try:
            value, at = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        found = _BETWEEN.match(text, at)
        at = found.end() if found is not None else at
    return values


def _repaired(text: str) -> Any:
    """The value of a text that is nearly JSON: Python's literals, commas before a closing bracket, brackets that are missing."""
    closed = re.sub(r",(\s*[\]}])", r"\1", _closed(text))
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(closed)
            json.dumps(value)  # no set, no bytes
            return value
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def _closed(text: str) -> str:
    """The text up to where its first bracket closes, or with the brackets that it leaves open."""
    stack, quote, is_escaped = list[str](), "", False
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and not is_escaped else quote
            is_escaped = char == "\\" and not is_escaped
        elif char == '"' or (char == "'" and not text[at - 1 : at].isalnum()):
            quote = char
        elif char in _CLOSERS:
            stack.append(_CLOSERS[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return text[: at + 1]
    return text.rstrip().rstrip(",") + quote + "".join(reversed(stack))

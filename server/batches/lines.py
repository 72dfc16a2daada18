"""The file of a batch: one request a line, in the form of OpenAI's batches.

    {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [...], "response_format": ...}}

A file is checked as a whole before any of it is answered.
Source: https://platform.openai.com/docs/api-reference/batch/request-input
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, get_args

from ...errors import UsageError

Endpoint: TypeAlias = Literal["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"]
ENDPOINTS: tuple[str, ...] = get_args(Endpoint)
MOST_FAULTS = 20  # that are told of one file
MAX_ID = 512  # characters of a custom_id
MEMBERS = frozenset({"custom_id", "method", "url", "body"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DIGEST_BYTES = 16


class BatchLine(NamedTuple):
    """One request."""

    number: int  # of the line in the file, from 1
    custom_id: str  # which its answer has, too
    url: str
    body: dict[str, Any]


class Fault(NamedTuple):
    """What is wrong with a line."""

    number: int  # of the line, from 1
    param: str | None  # the member that is wrong
    message: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.message}"


class BatchFileError(UsageError):
    """A file that no batch can be made of."""

    def __init__(self, faults: list[Fault]) -> None:
        more = "; and perhaps more, after which was not looked" if len(faults) == MOST_FAULTS else ""
        super().__init__("; ".join(map(str, faults)) + more)
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the lines of a file may be."""

    line_bytes: int = 8 << 20
    num_lines: int | None = None
    endpoints: tuple[str, ...] = ENDPOINTS


def id_digest(custom_id: str) -> bytes:
    """16 bytes that stand for an id: files may have millions of them."""
    return hashlib.blake2b(custom_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def checked_ids(path: Path, bounds: Bounds) -> set[bytes]:
    """The digests of all ids in a file. Raises BatchFileError with the lines that are wrong, and OSError."""
    seen: set[bytes] = set()
    faults: list[Fault] = []
    with path.open("rb") as file:
        for line in _lines(file, bounds):
            fault = line if isinstance(line, Fault) else _of_many(line, seen, bounds)
            if fault is not None:
                faults.append(fault)
            if len(faults) == MOST_FAULTS:
                break
    if not seen and not faults:
        faults.append(Fault(1, None, "the file has no requests"))
    if faults:
        raise BatchFileError(faults)
    return seen


def read_lines(path: Path, bounds: Bounds) -> Iterator[BatchLine]:
    """The requests of a file, read as they are asked for. Raises BatchFileError where the file is not what was checked."""
    with path.open("rb") as file:
        for line in _lines(file, bounds):
            if isinstance(line, Fault):
                raise BatchFileError([line])
            yield line


def _of_many(line: BatchLine, seen: set[bytes], bounds: Bounds) -> Fault | None:
    """What is wrong with a line among those before it, which it joins."""
    digest = id_digest(line.custom_id)
    if digest in seen:
        return Fault(line.number, "custom_id", f"custom_id {line.custom_id!r} comes twice: an answer is found by it")
    seen.add(digest)
    if bounds.num_lines is not None and len(seen) == bounds.num_lines + 1:
        return Fault(line.number, None, f"there are more than {bounds.num_lines} requests, which is the limit of one batch")
    return None


def _lines(file: BinaryIO, bounds: Bounds) -> Iterator[BatchLine | Fault]:
    """Lines that are empty are passed over."""
    for number in count(1):
        text = file.readline(bounds.line_bytes + 1)
        if not text:
            return
        if len(text) > bounds.line_bytes:
            yield Fault(number, None, f"it is longer than {bounds.line_bytes} bytes")
            return  # what follows may be the rest of it
        text = text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text
        if text.strip():
            yield _line(number, text, bounds)


def _line(number: int, text: bytes, bounds: Bounds) -> BatchLine | Fault:
    try:
        given = json.loads(text)
    except UnicodeDecodeError:
        return Fault(number, None, "it is not UTF-8")
    except (ValueError, RecursionError) as error:
        return Fault(number, None, f"it is not JSON that can be read: {error}")
    if not isinstance(given, dict):
        return Fault(number, None, 'it is no object; a request is {"custom_id": ..., "method": "POST", "url": ..., "body": {...}}')
    wrong = _wrong_member(given, bounds)
    return Fault(number, *wrong) if wrong else BatchLine(number, given["custom_id"], given["url"], given["body"])


def _wrong_member(given: Mapping[str, Any], bounds: Bounds) -> tuple[str, str] | None:
    """(member, what is wrong with it)."""
    custom_id, url, body = given.get("custom_id"), given.get("url"), given.get("body")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= MAX_ID:
        return "custom_id", f"custom_id is a string of 1 to {MAX_ID} characters, another one in each line"
    if given.get("method", "POST") != "POST":
        return "method", f"method is POST, not {given['method']!r}"
    if url not in bounds.endpoints:
        return "url", f"url is one of {', '.join(bounds.endpoints)}, not {url!r}"
    if not isinstance(body, dict):
        return "body", "body is an object: what would be posted to the url"
    if body.get("stream"):
        return "body", "body.stream: answers of a batch are whole"
    unknown = next((name for name in given if name not in MEMBERS), None)
    return (unknown, f"{unknown} is unknown; a request has {', '.join(sorted(MEMBERS))}") if unknown is not None else None

"""The answers of a batch in a file, so that each request has exactly one line, however often the work was interrupted."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...errors import UsageError
from .lines import id_digest


class ResultFile:
    """Answers are appended, each a whole line in one write."""

    def __init__(self, file: BinaryIO, answered: set[bytes], num_failed: int) -> None:
        self._file = file
        self.answered = answered  # digests of the ids of requests that have an answer
        self.num_failed = num_failed  # answers of these that are errors

    def write(self, record: dict[str, Any]) -> None:
        """Append an answer. When this returns, the end of the process does not lose it."""
        self._file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()
        self.answered.add(id_digest(record["custom_id"]))


@contextmanager
def results_in(path: Path, requested: set[bytes], *, retries_failed: bool = False) -> Iterator[ResultFile]:
    """The file of answers to the requests with these digests of ids, made where there is none.

    What was written before is kept, but for a last line that was cut off and, with retries_failed, answers that are errors.
    Raises UsageError for a file that is something else, belongs to another batch, or is being written by another process.
    """
    file = _locked(path)
    try:
        answers = list(_answers(file, path, requested))
        if retries_failed and any(answer.is_error for answer in answers):
            answers = [answer for answer in answers if not answer.is_error]
            file = _rewritten(file, path, answers)
        else:
            file.truncate(sum(answer.num_bytes for answer in answers))
        file.seek(0, os.SEEK_END)
        yield ResultFile(file, {answer.digest for answer in answers}, sum(answer.is_error for answer in answers))
        os.fsync(file.fileno())
    finally:
        file.close()  # which unlocks it


class _Answer(NamedTuple):
    """A line that was written before."""

    digest: bytes  # of its id
    start: int  # in the file, in bytes
    num_bytes: int
    is_error: bool


def _answers(file: BinaryIO, path: Path, requested: set[bytes]) -> Iterator[_Answer]:
    """All whole lines."""
    seen: set[bytes] = set()
    start = 0
    file.seek(0)
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):  # a process was ended while it wrote
            return
        custom_id, is_error = _read(path, number, line)
        digest = id_digest(custom_id)
        if digest not in requested:
            raise _foreign(path, number, f"answers {custom_id!r}, which the input does not ask")
        if digest in seen:
            raise _foreign(path, number, f"answers {custom_id!r} once more")
        seen.add(digest)
        yield _Answer(digest, start, len(line), is_error)
        start += len(line)


def _read(path: Path, number: int, line: bytes) -> tuple[str, bool]:
    """(custom_id, whether the answer is an error)."""
    try:
        record = json.loads(line)
        custom_id, response = record["custom_id"], record["response"]
        status = 0 if response is None else response["status_code"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise _foreign(path, number, "is no answer of a batch") from None
    if not isinstance(custom_id, str):
        raise _foreign(path, number, "is no answer of a batch")
    return custom_id, status != 200


def _foreign(path: Path, number: int, reason: str) -> UsageError:
    return UsageError(f"{path}, line {number}, {reason}; give another file for the answers, or take this one away")


def _locked(path: Path) -> BinaryIO:
    """The file, for this process alone."""
    while True:
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UsageError(f"{path} is being written by another process") from None
        if _is_at(file, path):
            return file
        file.close()  # it was replaced between opening and locking


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _rewritten(file: BinaryIO, path: Path, answers: list[_Answer]) -> BinaryIO:
    """The file with these answers alone, in its place: at any time there is one or the other, whole."""
    part = path.with_name(f".{path.name}.part")
    made = part.open("w+b")
    fcntl.flock(made, fcntl.LOCK_EX)
    for answer in answers:
        file.seek(answer.start)
        made.write(file.read(answer.num_bytes))
    made.flush()
    os.fsync(made.fileno())
    part.replace(path)
    file.close()
    return made

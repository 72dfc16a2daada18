"""Files of clients on disk. Each client's are its own: who has another API key does not find them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from ..errors import ApiError

UPLOADED, ANSWERS = "batch", "batch_output"  # what files are for, in OpenAI's words
_DESCRIPTION = ".json"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What is known of a file beside its content."""

    id: str
    owner: str  # digest of the key
    filename: str
    purpose: str
    bytes: int
    created_at: int  # seconds since 1970

    def told(self) -> dict[str, Any]:
        """As OpenAI's clients read it."""
        known = {name: value for name, value in asdict(self).items() if name != "owner"}
        return known | {"object": "file", "status": "processed", "expires_at": None}


class Files:
    """The files in one folder: FILE with the content, and FILE.json, which is written last. Methods may wait for the disk."""

    def __init__(self, folder: Path, max_bytes: int, now: Callable[[], float] = time.time) -> None:
        """max_bytes: all files together."""
        self._folder, self._max_bytes, self._now = folder, max_bytes, now
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {each.id: each for each in map(_read, sorted(folder.glob("*" + _DESCRIPTION))) if each is not None}
        for path in folder.iterdir():
            if path.name.removesuffix(_DESCRIPTION) not in self._files:
                path.unlink()  # its writer was interrupted

    @property
    def num_bytes(self) -> int:
        return sum(each.bytes for each in self._files.values())

    def path(self, file: StoredFile) -> Path:
        return self._folder / file.id

    def get(self, owner: str, file_id: str, param: str | None = None) -> StoredFile:
        """A file of this owner. Raises ApiError for one that is not there, or is somebody else's: 404, or 400 where it is named
        by a parameter."""
        found = self._files.get(file_id)
        if found is None or found.owner != owner:
            raise ApiError(400 if param else 404, f"there is no file {file_id!r} here", param=param, code="file_not_found")
        return found

    def of(self, owner: str, purpose: str | None = None) -> list[StoredFile]:
        """All files of an owner, the newest last."""
        found = (each for each in self._files.values() if each.owner == owner and purpose in (None, each.purpose))
        return sorted(found, key=lambda each: (each.created_at, each.id))

    def add(self, owner: str, filename: str, purpose: str, content: BinaryIO) -> StoredFile:
        """Keep what is read from here on. Raises ApiError when there is no room."""
        file_id = f"file-{uuid4().hex}"
        path = self._folder / file_id
        with path.open("wb") as target:
            shutil.copyfileobj(content, target)
            target.flush()
            os.fsync(target.fileno())
            num_bytes = target.tell()
        if purpose == UPLOADED and self.num_bytes + num_bytes > self._max_bytes:  # answers have been worked for
            path.unlink()
            message = f"the files here have {self.num_bytes} bytes, and this server keeps {self._max_bytes}; delete some"
            raise ApiError(400, message, param="file", code="limit_exceeded")
        file = StoredFile(file_id, owner, filename, purpose, num_bytes, int(self._now()))
        replace_text(self._folder / (file_id + _DESCRIPTION), json.dumps(asdict(file)))
        self._files[file_id] = file
        return file

    def delete(self, file: StoredFile) -> None:
        del self._files[file.id]
        for path in (self._folder / (file.id + _DESCRIPTION), self.path(file)):
            path.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a small file: at any time there is the old text or the new one, whole."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _read(path: Path) -> StoredFile | None:
    with suppress(OSError, ValueError, TypeError):
        return StoredFile(**json.loads(path.read_text(encoding="utf-8")))
    return None

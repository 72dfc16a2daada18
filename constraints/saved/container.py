"""A file of named arrays and a JSON header, which is read only if it is complete and unchanged.

    bytes 0-7     MAGIC
    bytes 8-39    BLAKE2b of all that follows
    bytes 40-47   length of the header, little endian
    header        JSON: {"arrays": [[name, dtype, shape], ...], ...}
    arrays        one after the other, each at a multiple of ALIGNMENT from the beginning of the file

Nothing in it is executed or decides what is imported.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ..base.errors import SavedConstraintError

MAGIC = b"mwconst\n"
ALIGNMENT = 64
_DIGEST_SIZE = 32
_LENGTH_AT = len(MAGIC) + _DIGEST_SIZE
_HEADER_AT = _LENGTH_AT + 8
_DTYPES = ("<i4", "<i8", "<u4", "|u1")


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays. A file that is there is replaced when the new one is complete. Raises OSError."""
    little = {name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False) for name, array in arrays.items()}
    directory = [[name, array.dtype.str, list(array.shape)] for name, array in little.items()]
    text = json.dumps({**header, "arrays": directory}, ensure_ascii=False, separators=(",", ":")).encode()
    parts, size = [len(text).to_bytes(8, "little"), text], _HEADER_AT + len(text)
    for array in little.values():
        padding = -size % ALIGNMENT
        parts += [bytes(padding), array.tobytes()]
        size += padding + array.nbytes
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:
        digest.update(part)
    _replace(Path(path), [MAGIC, digest.digest(), *parts])


def _replace(path: Path, parts: list[bytes]) -> None:
    temporary = path.with_name(f".{path.name}-{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays, read-only. Raises OSError, and `SavedConstraintError` for any other file."""
    data = Path(path).read_bytes()
    if data[: len(MAGIC)] != MAGIC:
        raise _unusable(path, "it is not a file of a compiled constraint")
    digest = hashlib.blake2b(memoryview(data)[_LENGTH_AT:], digest_size=_DIGEST_SIZE).digest()
    if digest != data[len(MAGIC) : _LENGTH_AT]:
        raise _unusable(path, "its checksum is wrong: it was cut short or changed")
    try:
        length = int.from_bytes(data[_LENGTH_AT:_HEADER_AT], "little")
        header = json.loads(data[_HEADER_AT : _HEADER_AT + length])
        return header, _arrays(data, header["arrays"], _HEADER_AT + length)
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # a right checksum over something else
        raise _unusable(path, f"its header cannot be read ({type(error).__name__}: {error})") from None


def _arrays(data: bytes, directory: list[list[Any]], at: int) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in directory:
        if dtype not in _DTYPES or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError(f"array {name!r} of {dtype!r} and shape {shape!r}")
        at += -at % ALIGNMENT
        flat = np.frombuffer(data, dtype, math.prod(shape), at)  # raises ValueError beyond the end
        found[name] = flat.reshape(shape).astype(np.dtype(dtype).newbyteorder("="), copy=False)
        at += flat.nbytes
    return found


def _unusable(path: str | os.PathLike[str], reason: str) -> SavedConstraintError:
    return SavedConstraintError(f"{os.fspath(path)} cannot be loaded: {reason}", keyword="file", instead="save it anew")

"""A short digest of a model folder or file, which tells two models apart; where it lies and how it is sharded does not matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import ModelFolderError
from ..gguf.files import GgufModel, is_gguf, open_gguf
from .files import read_json, shard_paths

SAMPLES, SAMPLE_BYTES = 16, 4096  # of each tensor: spots, evenly spaced, and what is read at each
VOLATILE = ("_name_or_path", "transformers_version")  # in config.json: they say nothing about the model


@lru_cache(maxsize=8)
def model_fingerprint(folder: Path, variant: str = "") -> str:
    """SHA-256 (hex) over config.json and all tensors: names, dtypes, shapes and, of each, its bytes at 16 spots of 4 KiB.

    A model that was trained further differs in nearly all bytes of nearly all tensors, so that spots suffice to tell it, and 16 GB
    are fingerprinted in a fraction of a second. It is no protection against somebody who changes a few weights between the spots.
    `variant` says what else makes its numbers others than those that are stored, such as weights that are quantised while loading.
    Raises ModelFolderError.
    """
    if is_gguf(folder):
        return _gguf_fingerprint(open_gguf(folder))
    config = {key: value for key, value in read_json(folder / "config.json").items() if key not in VOLATILE}
    digest = hashlib.sha256((json.dumps(config, sort_keys=True) + variant).encode())
    tensors = sorted((name, path, entry, start) for path in shard_paths(folder) for name, entry, start in _directory(path))
    for name, path, entry, start in tensors:
        digest.update(json.dumps([name, entry["dtype"], entry["shape"]]).encode())
        digest.update(_samples(path, start + entry["data_offsets"][0], start + entry["data_offsets"][1]))
    return digest.hexdigest()


def _gguf_fingerprint(model: GgufModel) -> str:
    """Over the hyper-parameters and the tensors, as for a folder."""
    numbers = {key: value for key, value in model.metadata.items() if isinstance(value, str | int | float)}
    digest = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode())
    for name, tensor in sorted(model.tensors.items()):
        digest.update(json.dumps([name, tensor.type, tensor.shape]).encode())
        data = tensor.data.view(-1).numpy()
        digest.update(b"".join(data[spot : spot + SAMPLE_BYTES].tobytes() for spot in _spots(len(data))))
    return digest.hexdigest()


def _directory(path: Path) -> Iterator[tuple[str, Any, int]]:
    """(name, entry of the header, where data begin) of each tensor. The loader has checked the file."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except (OSError, ValueError) as error:
        raise ModelFolderError(f"{path}: cannot be read: {error}") from None
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, entry, 8 + length


def _samples(path: Path, begin: int, end: int) -> bytes:
    """All of a small tensor, or the same number of bytes at evenly spaced spots."""
    with path.open("rb") as file:
        file.seek(begin)
        if end - begin <= SAMPLES * SAMPLE_BYTES:
            return file.read(end - begin)
        return b"".join(_at(file, begin + spot) for spot in _spots(end - begin))


def _spots(size: int) -> range:
    """Where to read a tensor of `size` bytes: evenly spaced spots, or all one after another of a small one."""
    if size <= SAMPLES * SAMPLE_BYTES:
        return range(0, size, SAMPLE_BYTES)
    stride = (size - SAMPLE_BYTES) // (SAMPLES - 1)
    return range(0, stride * SAMPLES, stride)


def _at(file: Any, place: int) -> bytes:
    file.seek(place)
    read: bytes = file.read(SAMPLE_BYTES)
    return read

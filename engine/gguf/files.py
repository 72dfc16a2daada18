"""Which files a model in GGUF is made of: one, or the parts that it was split into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import ModelFolderError, UnsupportedModel
from .reader import MAGIC, GgufFile, StoredTensor, Value, read_gguf

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufModel:
    """All parts as one: the metadata of the first, the tensors of all."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, StoredTensor]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture"))


def is_gguf(path: Path) -> bool:
    """Whether the path names a GGUF file, by what it is called or by how it begins."""
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def gguf_in(folder: Path) -> Path | None:
    """The GGUF model in a folder, None if there is none. Raises UnsupportedModel where there are several."""
    found = [path for path in sorted(folder.glob("*.gguf")) if _number(path) == 1]
    models = [path for path in found if not path.name.lower().startswith("mmproj")]  # what reads images, beside a model
    if len(models) > 1:
        names = ", ".join(path.name for path in models[:4])
        raise UnsupportedModel(f"{folder}: {len(models)} GGUF models in this folder ({names}); name one of the files")
    return models[0] if models else None


def open_gguf(path: Path) -> GgufModel:
    """The model whose file, or one of whose parts, `path` is. Raises ModelFolderError or UnsupportedModel, naming the file."""
    try:
        stat = path.stat()
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read: {error.strerror}") from None
    return _opened(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=2)  # specification, tokenizer and weights come from the same file, one after another
def _opened(path: Path, version: tuple[int, ...]) -> GgufModel:
    first = read_gguf(_sibling(path, 1))
    count = first.metadata.get("split.count", 1)
    if not isinstance(count, int) or count < 1:
        raise ModelFolderError(f"{first.path}: split.count is {count}")
    parts = [first, *(_part(first, number, count) for number in range(2, count + 1))]
    tensors: dict[str, StoredTensor] = {}
    for part in parts:
        twice = next(iter(tensors.keys() & part.tensors.keys()), None)
        if twice is not None:
            raise ModelFolderError(f"{part.path}: tensor {twice} is in another part of the model too")
        tensors |= part.tensors
    wanted = first.metadata.get("split.tensors.count")
    if count > 1 and wanted is not None and wanted != len(tensors):
        raise ModelFolderError(f"{first.path}: its {count} parts hold {len(tensors)} tensors, not {wanted}")
    return GgufModel(path, first.metadata, tensors)


def _part(first: GgufFile, number: int, count: int) -> GgufFile:
    path = _sibling(first.path, number)
    named = _PART.search(path.name)
    if named is None or int(named[2]) != count:
        raise ModelFolderError(
            f"{first.path}: it is one of {count} parts, which are named -00001-of-{count:05d}.gguf and so on; keep these names"
        )
    if not path.is_file():
        raise ModelFolderError(f"{path}: this part of the model is missing; there are {count}")
    part = read_gguf(path)
    if part.metadata.get("split.no") != number - 1 or part.metadata.get("split.count") != count:
        raise ModelFolderError(f"{path}: it is not part {number} of {count} of {first.path.name}")
    return part


def _number(path: Path) -> int:
    """Which part of a model the file is by its name; a whole model is the first."""
    named = _PART.search(path.name)
    return int(named[1]) if named else 1


def _sibling(path: Path, number: int) -> Path:
    """The part of that number, named as `path` is; `path` itself where it is not named as a part."""
    return path.with_name(_PART.sub(lambda named: f"-{number:05d}-of-{named[2]}{path.name[-5:]}", path.name))

"""Reads a GGUF file, as https://github.com/ggml-org/ggml/blob/master/docs/gguf.md describes it, and believes nothing of it.

Every count, length, offset and size is compared with the file before it is used, so that nothing is allocated that the file has
no bytes for. Tensors stay where they are: what is read of them are views of the mapped file. The library `gguf` knows the types
and their sizes; its own reader trusts the file, and makes two arrays of every string of a vocabulary.
"""

from __future__ import annotations

import mmap
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import ModelFolderError, UnsupportedModel

MAGIC = b"GGUF"
MOST_KEYS, MOST_TENSORS = 1 << 14, 1 << 17  # far above what models have
MOST_DIMENSIONS, LONGEST_NAME, LONGEST_KEY = 4, 64, 65_535  # of ggml, and of the format
_SCALARS: Mapping[int, str] = {  # number of a type of values -> its dtype
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "|b1", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_STRING, _ARRAY = 8, 9


class Strings(ABC):
    """A list of strings, read when it is wanted."""

    __slots__ = ()

    @abstractmethod
    def read(self) -> list[str]: ...

    @abstractmethod
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StoredStrings(Strings):
    """Strings that are still in the file."""

    cursor: _Cursor
    begin: int
    count: int

    def read(self) -> list[str]:
        cursor = self.cursor.at(self.begin)
        return [cursor.string("a string") for _ in range(self.count)]

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class HeldStrings(Strings):
    """Strings of a file that is not written yet."""

    texts: tuple[str, ...]

    def read(self) -> list[str]:
        return list(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


Value = bool | int | float | str | NDArray[Any] | Strings


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it is in the file."""

    name: str
    type: str  # of its blocks, as gguf.GGMLQuantizationType names it
    shape: tuple[int, ...]  # rows first, as in PyTorch
    data: Tensor  # uint8 [*shape without the last, bytes of a row], mapped


@dataclass(frozen=True, slots=True)
class GgufFile:
    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, StoredTensor]


def read_gguf(path: Path) -> GgufFile:
    """The file, mapped. Raises ModelFolderError where it is damaged, UnsupportedModel for a version or type that is not read."""
    cursor = _Cursor(path, _mapped(path))
    _check_version(cursor)
    num_tensors, num_keys = cursor.number("<Q", "tensor count"), cursor.number("<Q", "key count")
    if num_tensors > MOST_TENSORS or num_keys > MOST_KEYS:
        cursor.fail(
            f"it claims {num_tensors} tensors and {num_keys} keys; at most {MOST_TENSORS} and {MOST_KEYS} are read"
        )
    metadata: dict[str, Value] = {}
    for _ in range(num_keys):
        key = cursor.string("a key", LONGEST_KEY)
        if key in metadata:
            cursor.fail(f'the key "{key}" comes twice')
        metadata[key] = _value(cursor, key, cursor.number("<I", f'type of "{key}"'))
    entries = [_entry(cursor) for _ in range(num_tensors)]
    alignment = _alignment(cursor, metadata)
    cursor.position = -(-cursor.position // alignment) * alignment
    return GgufFile(path, metadata, _tensors(cursor, entries, alignment))


def _mapped(path: Path) -> mmap.mmap:
    """The content of the file. Private to this process, so that PyTorch may take it for memory that can be written."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # ValueError: it is empty
        raise ModelFolderError(f"{path}: cannot be read: {error}") from None


class _Cursor:
    """A place in the file, which moves behind what is read. Raises ModelFolderError rather than read beyond the end."""

    def __init__(self, path: Path, content: mmap.mmap, position: int = 0) -> None:
        self.path, self.content, self.position, self.size = path, content, position, len(content)

    def at(self, position: int) -> _Cursor:
        return _Cursor(self.path, self.content, position)

    def fail(self, reason: str) -> NoReturn:
        raise ModelFolderError(f"{self.path}: damaged GGUF file: {reason}")

    def skip(self, num_bytes: int, what: str) -> int:
        """Where the next `num_bytes` bytes begin; the cursor moves behind them."""
        begin = self.position
        if num_bytes > self.size - begin:
            self.fail(f"{what} takes {num_bytes} bytes at byte {begin}, and the file ends at {self.size}")
        self.position = begin + num_bytes
        return begin

    def number(self, layout: str, what: str) -> Any:
        return struct.unpack_from(layout, self.content, self.skip(struct.calcsize(layout), what))[0]

    def string(self, what: str, longest: int | None = None) -> str:
        length = self.number("<Q", f"length of {what}")
        if longest is not None and length > longest:
            self.fail(f"{what} of {length} bytes; at most {longest} are allowed")
        begin = self.skip(length, what)
        try:
            return self.content[begin : begin + length].decode()
        except UnicodeDecodeError:
            self.fail(f"{what} at byte {begin} is not UTF-8")

    def array(self, dtype: str, count: int, what: str) -> NDArray[Any]:
        begin = self.skip(count * np.dtype(dtype).itemsize, what)
        return np.frombuffer(self.content, dtype, count, begin)


def _check_version(cursor: _Cursor) -> None:
    magic = cursor.content[cursor.skip(4, "magic number") : 4]
    if magic != MAGIC:
        cursor.fail(f"it begins with {magic!r}, not {MAGIC!r}")
    version = cursor.number("<I", "version")
    if version in (2, 3):
        return
    is_swapped = version & 0xFFFF == 0 and version != 0
    what = "numbers in big-endian order" if is_swapped else f"version {version}"
    raise UnsupportedModel(f"{cursor.path}: GGUF with {what} is not supported; versions 2 and 3, little-endian, are")


def _value(cursor: _Cursor, key: str, kind: int) -> Value:
    what = f'value of "{key}"'
    if kind in _SCALARS:
        scalar: bool | int | float = cursor.array(_SCALARS[kind], 1, what)[0].item()
        return scalar
    if kind == _STRING:
        return cursor.string(what)
    if kind != _ARRAY:
        cursor.fail(f'"{key}" has a value of type {kind}, which does not exist')
    kind, count = cursor.number("<I", f"type within {what}"), cursor.number("<Q", f"length of {what}")
    if kind in _SCALARS:
        return cursor.array(_SCALARS[kind], count, what)
    if kind != _STRING:
        cursor.fail(f'"{key}" is a list of type {kind}; only numbers and strings are read')
    if count * 8 > cursor.size - cursor.position:
        cursor.fail(f"{what} has {count} strings, more than the file has room for")
    begin = cursor.position
    for _ in range(count):
        cursor.skip(cursor.number("<Q", f"length in {what}"), what)
    return StoredStrings(cursor.at(begin), begin, count)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the file says of a tensor."""

    name: str
    type: str
    shape: tuple[int, ...]
    row_bytes: int
    offset: int  # from where tensors begin

    @property
    def num_bytes(self) -> int:
        num_rows = 1
        for size in self.shape[:-1]:
            num_rows *= size
        return num_rows * self.row_bytes


def _entry(cursor: _Cursor) -> _Entry:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    name = cursor.string("the name of a tensor", LONGEST_NAME)
    num_dimensions = cursor.number("<I", f"dimensions of {name}")
    if not 1 <= num_dimensions <= MOST_DIMENSIONS:
        cursor.fail(f"tensor {name} has {num_dimensions} dimensions; 1 to {MOST_DIMENSIONS} are allowed")
    shape = tuple(cursor.array("<u8", num_dimensions, f"shape of {name}").tolist())[::-1]
    number = cursor.number("<I", f"type of {name}")
    offset = cursor.number("<Q", f"offset of {name}")
    try:
        kind = GGMLQuantizationType(number)
    except ValueError:
        raise UnsupportedModel(f"{cursor.path}: tensor {name} is of type {number}, which is not known") from None
    block, block_bytes = GGML_QUANT_SIZES[kind]
    if 0 in shape or shape[-1] % block:
        cursor.fail(f"tensor {name} has shape {list(shape)}, which is not whole blocks of {block} ({kind.name})")
    return _Entry(name, kind.name, shape, shape[-1] // block * block_bytes, offset)


def _alignment(cursor: _Cursor, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        cursor.fail(f"general.alignment is {alignment}, not a power of two from 8 on")
    return alignment


def _tensors(cursor: _Cursor, entries: list[_Entry], alignment: int) -> dict[str, StoredTensor]:
    begin, found = cursor.position, dict[str, StoredTensor]()
    _check_places(cursor, entries, alignment)
    for entry in entries:
        if entry.name in found:
            cursor.fail(f"tensor {entry.name} comes twice")
        data = np.frombuffer(cursor.content, np.uint8, entry.num_bytes, begin + entry.offset)
        shape = (*entry.shape[:-1], entry.row_bytes)
        found[entry.name] = StoredTensor(entry.name, entry.type, entry.shape, torch.from_numpy(data).view(shape))
    return found


def _check_places(cursor: _Cursor, entries: list[_Entry], alignment: int) -> None:
    """Whether all tensors are within the file, aligned, and none in the place of another."""
    room = cursor.size - cursor.position
    for entry in entries:
        if entry.offset % alignment:
            cursor.fail(f"tensor {entry.name} begins at {entry.offset}, which is no multiple of {alignment}")
        if entry.offset + entry.num_bytes > room:
            cursor.fail(
                f"tensor {entry.name} takes {entry.num_bytes} bytes at {entry.offset}, and there are {max(room, 0)}"
            )
    for first, second in _neighbours(entries):
        if first.offset + first.num_bytes > second.offset:
            cursor.fail(f"tensors {first.name} and {second.name} are in the same place")


def _neighbours(entries: list[_Entry]) -> Iterator[tuple[_Entry, _Entry]]:
    in_order = sorted(entries, key=lambda entry: entry.offset)
    return pairwise(in_order)

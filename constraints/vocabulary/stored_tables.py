"""The tables of a vocabulary in a file: made once for a tokenizer, mapped by every process that uses it, which share one copy.

A file is one header, then arrays as they lie in memory, the packed vocabulary last. It is mapped copy-on-write, with room behind it
(a hole in the file) for what is appended later; what a process appends stays its own. A file is taken only if it belongs to this
user, was made of the same vocabulary by the same sources, and has the digest that its header says; otherwise it is made anew.

    offset  0   magic, SHA-256 of all that follows, bytes of the header as uint64
    offset 64   the header: JSON, see `_Header`
    then        each array at a multiple of 64 bytes, the packed vocabulary at a whole page

Files lie in $MASKWRIGHT_VOCABULARIES, else $XDG_CACHE_HOME/maskwright/vocabularies or ~/.cache/maskwright/vocabularies; the value
`never` keeps none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.ids import Place
from ..base.utf8 import Ranges
from ..numba_support.jit import LOOPS
from .char_class_tables import BodyClass, SubTrie
from .packed_vocabulary import PackedVocabulary
from .trie import TokenTrie
from .vocabulary import Vocabulary

logger = logging.getLogger(__name__)

VARIABLE = "MASKWRIGHT_VOCABULARIES"
SMALLEST = 20_000  # tokens; the tables of a smaller vocabulary are made in less time than a file is checked
_MAGIC = b"maskwright tables 1\n"
_PREFIX, _ALIGNMENT = 64, 64
_MOST_FILES = 8  # the oldest ones are removed
_TRIE = ("byte", "depth", "skip", "first", "order", "token_offsets", "token_bytes")
_SUB_TRIE = ("byte", "depth", "skip", "first", "order")
_BODY = ("slices", "long_tokens", "long_token_lengths")
_NUMBERS = ("longest", "copies_per_token", "longest_outside")


@dataclass(frozen=True, eq=False)
class Tables:
    """What `SharedVocabulary` is made of."""

    trie: TokenTrie
    packed: PackedVocabulary
    bodies: dict[Ranges, BodyClass]
    offsets: dict[Ranges, Place]  # of their tables in the packed vocabulary


def folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where files are kept; None when nowhere."""
    chosen = environment.get(VARIABLE)
    if chosen:
        return None if chosen == "never" else Path(chosen)
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "maskwright", "vocabularies")
    return Path(environment["HOME"], ".cache", "maskwright", "vocabularies") if environment.get("HOME") else None


def path_of(vocabulary: Vocabulary) -> Path | None:
    """The file of a vocabulary; None where it has none."""
    kept = folder() if vocabulary.size >= SMALLEST else None
    return None if kept is None else kept / f"{vocabulary.fingerprint[:32]}-{LOOPS.stamp[:16]}.tables"


# -- reading --------------------------------------------------------------------------------------------------------------


def read(path: Path, vocabulary: Vocabulary) -> Tables | None:
    """The tables of a vocabulary out of its file; None when there is none that can be trusted."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                logger.warning("%s is not used, it belongs to another user", path)
                return None
            size = os.fstat(file.fileno()).st_size
            mapped = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0))
        return _tables(mapped, vocabulary)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as problem:
        logger.warning("%s is not used: %s", path, problem)
        return None


def _tables(mapped: mmap.mmap, vocabulary: Vocabulary) -> Tables:
    """Raises ValueError, KeyError or TypeError when the file is not what it should be."""
    view = memoryview(mapped)
    prefix = len(_MAGIC)
    if bytes(view[:prefix]) != _MAGIC:
        raise ValueError("it does not begin as tables do")
    begin = _PREFIX + int.from_bytes(view[prefix + 32 : prefix + 40], "little")
    header = json.loads(bytes(view[_PREFIX:begin]))
    if hashlib.sha256(view[prefix + 32 : header["end"]]).digest() != view[prefix : prefix + 32]:
        raise ValueError("it is damaged: its digest is another one")
    if (header["fingerprint"], header["stamp"]) != (vocabulary.fingerprint, LOOPS.stamp):
        raise ValueError("it was made of another vocabulary, or by other sources")
    arrays = {name: _array(view, *entry) for name, entry in header["arrays"].items()}
    trie = TokenTrie(**{name: arrays[f"trie.{name}"] for name in _TRIE}, max_depth=header["max_depth"])
    bodies, offsets = {}, {}
    for i, one in enumerate(header["bodies"]):
        ranges: Ranges = tuple((low, high) for low, high in one["ranges"])
        offsets[ranges] = one["offset"]
        fields: dict[str, Any] = {name: arrays[f"{i}.{name}"] for name in _BODY} | {name: one[name] for name in _NUMBERS}
        bodies[ranges] = BodyClass(residual=SubTrie(*(arrays[f"{i}.residual.{name}"] for name in _SUB_TRIE)), **fields)
    words = np.frombuffer(mapped, np.int32, offset=header["packed"])
    return Tables(trie, PackedVocabulary.of_array(words, header["used"]), bodies, offsets)


def _array(view: memoryview, kind: str, shape: list[int], offset: int) -> NDArray[Any]:
    array = np.frombuffer(view, kind, int(np.prod(shape)), offset).reshape(shape)
    array.setflags(write=False)
    return array


# -- writing --------------------------------------------------------------------------------------------------------------


def write(path: Path, vocabulary: Vocabulary, tables: Tables) -> None:
    """Keep tables in a file, whole or not at all. Where that is not possible nothing is kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "r+b") as file:
                _write(file, vocabulary, tables)
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        _remove_old(path)
    except OSError as problem:
        logger.info("tables of a vocabulary are not kept: %s", problem)


def _write(file: Any, vocabulary: Vocabulary, tables: Tables) -> None:
    arrays = {f"trie.{name}": getattr(tables.trie, name) for name in _TRIE}
    bodies = []
    for i, (ranges, body) in enumerate(tables.bodies.items()):
        arrays |= {f"{i}.{name}": getattr(body, name) for name in _BODY}
        arrays |= {f"{i}.residual.{name}": getattr(body.residual, name) for name in _SUB_TRIE}
        bodies.append({"ranges": ranges, "offset": tables.offsets[ranges], **{name: getattr(body, name) for name in _NUMBERS}})
    used = tables.packed.used
    header = {
        "fingerprint": vocabulary.fingerprint, "stamp": LOOPS.stamp, "max_depth": tables.trie.max_depth, "bodies": bodies,
        "used": len(used),
    }  # fmt: skip
    content = _laid_out(header, arrays, used)
    digest = hashlib.sha256()
    file.seek(len(_MAGIC) + 32)
    for part in content:
        digest.update(part)
        file.write(part)
    file.seek(0)
    file.write(_MAGIC + digest.digest())
    file.truncate(header["packed"] + 4 * tables.packed.array.size)  # type: ignore[operator]  # a hole, for what is appended


def _laid_out(header: dict[str, Any], arrays: Mapping[str, NDArray[Any]], used: NDArray[np.int32]) -> list[Any]:
    """All that the digest covers, in order; adds to the header where arrays lie."""
    room = 512 + sum(128 + len(name) for name in arrays) + 2 * len(json.dumps(header))
    begin = -(-(_PREFIX + room) // _ALIGNMENT) * _ALIGNMENT
    parts: list[Any] = []
    places: dict[str, tuple[str, tuple[int, ...], int]] = {}
    at = begin
    for name, array in arrays.items():
        places[name] = (array.dtype.str, array.shape, at)
        end = -(-(at + array.nbytes) // _ALIGNMENT) * _ALIGNMENT
        parts += [np.ascontiguousarray(array).data.cast("B") if array.size else b"", b"\0" * (end - at - array.nbytes)]
        at = end
    packed = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE
    header |= {"arrays": places, "packed": packed, "end": packed + used.nbytes}
    text = json.dumps(header).encode().ljust(begin - _PREFIX)
    assert len(text) == begin - _PREFIX
    length = (begin - _PREFIX).to_bytes(8, "little")
    gap = b"\0" * (_PREFIX - len(_MAGIC) - 40)
    return [length, gap, text, *parts, b"\0" * (packed - at), used.data.cast("B")]


def _remove_old(path: Path) -> None:
    """The files of the same vocabulary by other sources, and the oldest ones beyond `_MOST_FILES`."""
    others = sorted((one for one in path.parent.glob("*.tables") if one != path), key=lambda one: one.stat().st_mtime, reverse=True)
    same = path.name.split("-")[0]
    stale = [one for one in others if one.name.split("-")[0] == same]
    for one in {*stale, *others[_MOST_FILES - 1 :]}:
        with suppress(OSError):
            one.unlink()

"""Where a text is while it is written: which values are open (strings, numbers, arrays, objects, arguments that are no JSON).

Followed byte by byte, beside the automaton: a state knows what may follow, not where a value has begun.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..grammar.segments import TEXT, Segment
from ..vocabulary.vocabulary import Vocabulary
from .constraint import Constraint

Kind = Literal["object", "array", "string", "key", "scalar", "text"]  # scalar: a number or literal; text: no JSON

_SPACE = b" \t\r\n"
_OF_SCALARS = frozenset(b"0123456789+-.eEtrufalsn")
_BEHIND_SCALARS = bytes(byte for byte in range(256) if byte not in _OF_SCALARS)
# Every text that ends a value of a kind has one of these bytes. A text that is no JSON ends where its constraint says.
VALUE_ENDS: dict[Kind, bytes] = {"object": b"}", "array": b"]", "string": b'"', "key": b'"', "scalar": _BEHIND_SCALARS, "text": b""}
_KINDS: dict[int, Kind] = {ord("{"): "object", ord("["): "array", ord('"'): "string"}


class OpenValue(NamedTuple):
    """A value that has begun and not ended."""

    start: int  # its first byte in the text, which no other value begins with
    kind: Kind
    path: str  # a JSON Pointer, "#/items/0"; in arguments behind the name of the tool, "f#/city", in a tag behind its beginning


class Values(Protocol):
    """Follows one text. It is read in pieces, in order."""

    def read(self, data: bytes) -> None: ...

    @property
    def open(self) -> Sequence[OpenValue]:
        """The values that are open behind what was read, the outermost first."""
        ...

    def fork(self) -> Values: ...


class Places(Protocol):
    """Follows one text through a source. It is read in pieces, in order."""

    def read(self, data: bytes) -> tuple[str, ...]:
        """The places in the source to which the next bytes belong, in their order."""
        ...


class WholeText:
    """A text of which no parts are known: it is one value."""

    open: Sequence[OpenValue] = (OpenValue(0, "text", "#"),)

    def read(self, data: bytes) -> None:
        return

    def fork(self) -> WholeText:
        return self


class _Frame(NamedTuple):
    value: OpenValue
    where: str | int | None = None  # of the member or item being read; None while an object waits for a name
    is_escaped: bool = False  # of a string: the last byte was the backslash of an escape


class JsonValues:
    """Follows JSON text. Texts that are none do no harm: they have some values."""

    def __init__(self, start: int = 0, root: str = "#") -> None:
        """start: number of the first byte; root: the path of the outermost value."""
        self._num_read, self._root = start, root
        self._frames: list[_Frame] = []
        self._name = b""  # the key being read, with its quotes

    @property
    def open(self) -> Sequence[OpenValue]:
        return [frame.value for frame in self._frames]

    def fork(self) -> JsonValues:
        child = JsonValues(self._num_read, self._root)
        child._frames, child._name = self._frames.copy(), self._name
        return child

    def read(self, data: bytes) -> None:
        for byte in data:
            self._read(byte)
            self._num_read += 1

    def _read(self, byte: int) -> None:
        kind = self._frames[-1].value.kind if self._frames else None
        if kind in ("string", "key"):
            self._read_string(byte, kind == "key")
            return
        if kind == "scalar":
            if byte in _OF_SCALARS:
                return
            self._frames.pop()
        if byte in b"]}":
            del self._frames[-1:]
        elif byte == ord(","):
            self._go_on()
        elif byte not in _SPACE and byte != ord(":"):
            self._begin(byte)

    def _read_string(self, byte: int, is_key: bool) -> None:
        frame = self._frames[-1]
        self._name += bytes([byte]) if is_key else b""
        if frame.is_escaped or byte == ord("\\"):
            self._frames[-1] = frame._replace(is_escaped=not frame.is_escaped)
        elif byte == ord('"'):
            self._frames.pop()
            if is_key:
                self._frames[-1] = self._frames[-1]._replace(where=_name(self._name))

    def _go_on(self) -> None:
        """Behind a comma."""
        if self._frames:
            frame = self._frames[-1]
            self._frames[-1] = frame._replace(where=None if frame.value.kind == "object" else int(frame.where or 0) + 1)

    def _begin(self, byte: int) -> None:
        around = self._frames[-1] if self._frames else None
        kind = _KINDS.get(byte, "scalar")
        if around is not None and around.value.kind == "object" and around.where is None:
            kind, self._name, path = "key", bytes([byte]), around.value.path
        else:
            path = self._root if around is None else f"{around.value.path}/{around.where}"
        self._frames.append(_Frame(OpenValue(self._num_read, kind, path), 0 if kind == "array" else None))


class Segments:
    """Follows a reply with parts, and knows which part each byte is certain to be of."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint: Constraint = getattr(constraint, "unbudgeted", constraint)
        self._state = self._constraint.start()
        self.last: Segment | None = None  # what was read last is certain to be a part of
        self._held = b""  # bytes of which it is not certain yet what they are

    def fork(self) -> Segments:
        child = Segments.__new__(Segments)
        child._constraint, child._state, child.last, child._held = self._constraint, self._state, self.last, self._held
        return child

    def read(self, byte: int) -> bytes | None:
        """The bytes that are certain, with this one, to be of `last`. None for a byte that cannot come."""
        after, told = self._constraint.step(self._state, byte)
        if after is None:
            return None
        self._state = after
        found = {_bare(each) if isinstance(each, Segment) else TEXT for each in told}
        if len(found) > 1 and self.last not in found:
            self._held += bytes([byte])
            return b""
        self.last = self.last if self.last in found else next(iter(found))
        data, self._held = self._held + bytes([byte]), b""
        return data


class SegmentedValues:
    """Follows a reply with parts: the values of calls, of tags, and of its text where these are JSON. Other text has no values."""

    def __init__(self, constraint: Constraint, is_text_json: bool, json_tags: Container[str] = ()) -> None:
        """json_tags: what the tags begin with whose content is JSON."""
        self._segments, self._is_text_json, self._json_tags = Segments(constraint), is_text_json, json_tags
        self._num_read = self.num_calls = 0  # num_calls: calls that are over
        self._inside: JsonValues | OpenValue | None = None

    @property
    def open(self) -> Sequence[OpenValue]:
        inside = self._inside
        return inside.open if isinstance(inside, JsonValues) else () if inside is None else (inside,)

    def fork(self) -> SegmentedValues:
        child = SegmentedValues.__new__(SegmentedValues)
        child._segments, child._is_text_json, child._json_tags = self._segments.fork(), self._is_text_json, self._json_tags
        child._num_read, child.num_calls = self._num_read, self.num_calls
        child._inside = self._inside.fork() if isinstance(self._inside, JsonValues) else self._inside
        return child

    def read(self, data: bytes) -> None:
        for byte in data:
            before, certain = self._segments.last, self._segments.read(byte)
            if certain is None:
                return
            self._num_read += 1
            segment = self._segments.last
            if segment is not None and segment != before:
                self.num_calls += segment.role == "close call"
                self._inside = self._values_of(segment, self._num_read - len(certain))
            if isinstance(self._inside, JsonValues):
                self._inside.read(certain)

    def _values_of(self, segment: Segment, start: int) -> JsonValues | OpenValue | None:
        """What a segment that begins has inside."""
        if segment.role == "arguments" or (segment.role == "tag" and segment.owner in self._json_tags):
            return JsonValues(start, f"{segment.owner}#")
        if segment.role == "value":
            path = f"{segment.owner}#/{_token(segment.name)}"
            return JsonValues(start, path) if segment.notation == "json" else OpenValue(start, "text", path)
        return JsonValues(start) if segment.role == "text" and self._is_text_json else None


@lru_cache(maxsize=64)
def ending_tokens(vocabulary: Vocabulary, kind: Kind) -> NDArray[np.uint32]:
    """The mask of the tokens that have a byte which a value of a kind may end with. uint32 [ceil(V / 32)], read-only."""
    ends = frozenset(VALUE_ENDS[kind])
    may_end = [spelled is not None and not ends.isdisjoint(spelled) for spelled in vocabulary.spellings]
    row = np.packbits(np.pad(np.array(may_end, bool), (0, -len(may_end) % 32)), bitorder="little").view(np.uint32)
    row.setflags(write=False)
    return row


def _bare(segment: Segment) -> Segment:
    """A segment without what changes from byte to byte."""
    return Segment(segment.role, segment.owner, segment.name, segment.notation)


def _name(quoted: bytes) -> str:
    """The reference token of a JSON Pointer for a key as it is written."""
    try:
        return _token(str(json.loads(quoted, strict=False)))
    except ValueError:
        return _token(quoted[1:-1].decode(errors="replace"))


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

"""The scanner behind stream events: JSON text in pieces of any length goes in, events come out."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from .events import Delta, Event, FieldClosed, FieldKind, FieldOpened
from .field_details import Path

KIND_OF_FIRST: dict[str, FieldKind] = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
LITERALS = {"true": True, "false": False, "null": None}
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
PLAIN_RUN = re.compile(r'[^"\\]+')
SCALAR_RUN = re.compile(r"[^\s,\]}]+")


@dataclass(slots=True)
class _Container:
    """An object or array that is still open."""

    path: Path
    value: Any  # dict or list, filled as members close
    key: str | None = None  # of the member being read; None while an object waits for a key

    def path_of_next(self) -> Path:
        return (*self.path, len(self.value) if self.key is None else self.key)

    def add(self, member: Any) -> None:
        if self.key is None:
            self.value.append(member)
        else:
            self.value[self.key] = member
            self.key = None


class JsonEvents:
    """Turns the pieces of one JSON text into events. Call `feed` for each piece and `finish` once.

    The text is trusted to be JSON, since a mask made it so; anything else raises ValueError. Memory: the values so far.
    """

    def __init__(self) -> None:
        self._open: list[_Container] = []
        self._text: _StringText | None = None  # of the string or key being read
        self._scalar = ""  # JSON text so far of a number or literal
        self._path: Path = ()  # of the scalar being read
        self._is_key = False
        self._is_done = False

    def feed(self, piece: str) -> Iterator[Event]:
        """The events that `piece` completes, deltas merged."""
        position = 0
        while position < len(piece):
            if self._text is not None:
                position = yield from self._string(piece, position)
            elif self._scalar:
                position = yield from self._rest_of_scalar(piece, position)
            else:
                yield from self._structure(piece[position])
                position += 1

    def finish(self) -> Iterator[Event]:
        """The events of the end of the text: a number at the root closes here."""
        if self._scalar:
            yield from self._close_scalar()

    # -- between values ---------------------------------------------------------------------------------------------

    def _structure(self, char: str) -> Iterator[Event]:
        if char in " \t\r\n,:":
            return
        if char in "]}":
            yield from self._close_container()
        elif char == '"' and self._expects_key():
            self._text, self._is_key = _StringText(), True
        elif self._is_done:
            raise ValueError(f"{char!r} after the end of the JSON text")
        else:
            yield from self._open_value(char)

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _open_value(self, char: str) -> Iterator[Event]:
        path = self._open[-1].path_of_next() if self._open else ()
        kind = KIND_OF_FIRST.get(char, "number")
        yield FieldOpened(path, kind)
        self._path = path
        if kind == "object":
            self._open.append(_Container(path, {}))
        elif kind == "array":
            self._open.append(_Container(path, []))
        elif kind == "string":
            self._text, self._is_key = _StringText(), False
        else:
            self._scalar = char
            yield Delta(path, char)

    def _close_container(self) -> Iterator[Event]:
        if not self._open:
            raise ValueError("a closing bracket without an opening one")
        closed = self._open.pop()
        yield from self._close_value(closed.path, closed.value)

    def _close_value(self, path: Path, value: Any) -> Iterator[Event]:
        yield FieldClosed(path, value)
        if self._open:
            self._open[-1].add(value)
        else:
            self._is_done = True

    # -- inside a number or literal ---------------------------------------------------------------------------------

    def _rest_of_scalar(self, piece: str, position: int) -> Generator[Event, None, int]:
        run = SCALAR_RUN.match(piece, position)
        if run is None:
            yield from self._close_scalar()
            return position
        self._scalar += run.group()
        yield Delta(self._path, run.group())
        return run.end()

    def _close_scalar(self) -> Iterator[Event]:
        text, self._scalar = self._scalar, ""
        yield from self._close_value(self._path, _scalar_value(text))

    # -- inside a string --------------------------------------------------------------------------------------------

    def _string(self, piece: str, position: int) -> Generator[Event, None, int]:
        assert self._text is not None
        added, end, is_closed = self._text.read(piece, position)
        if added and not self._is_key:
            yield Delta(self._path, added)
        if is_closed:
            whole, self._text = "".join(self._text.parts), None
            if self._is_key:
                self._open[-1].key = whole
            else:
                yield from self._close_value(self._path, whole)
        return end


class _StringText:
    """Decodes the inside of one JSON string, piece by piece."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._escape = ""  # an escape sequence that is not complete, from its backslash on
        self._high = ""  # a high surrogate that waits for its partner

    def read(self, piece: str, position: int) -> tuple[str, int, bool]:
        """(decoded text, position after what was read, whether the closing quote was read)."""
        first_new = len(self.parts)
        is_closed = False
        while position < len(piece) and not is_closed:
            run = None if self._escape else PLAIN_RUN.match(piece, position)
            if run is not None:
                self._emit(run.group())
                position = run.end()
                continue
            char = piece[position]
            position += 1
            if self._escape or char == "\\":
                self._extend_escape(char)
            else:
                is_closed = True
                self._emit("")
        return "".join(self.parts[first_new:]), position, is_closed

    def _extend_escape(self, char: str) -> None:
        self._escape += char
        if self._escape == "\\" or (self._escape[1] == "u" and len(self._escape) < 6):
            return
        escape, self._escape = self._escape, ""
        if escape[1] != "u":
            self._emit(ESCAPES.get(escape[1], escape[1]))
        else:
            self._emit_unit(chr(int(escape[2:], 16)))

    def _emit_unit(self, unit: str) -> None:
        """Take a UTF-16 code unit: surrogates are joined when they come in pairs, as `json.loads` does."""
        if self._high and "\udc00" <= unit <= "\udfff":
            pair, self._high = self._high + unit, ""
            self._emit(pair.encode("utf-16", "surrogatepass").decode("utf-16"))
        elif "\ud800" <= unit <= "\udbff":
            self._emit("")
            self._high = unit
        else:
            self._emit(unit)

    def _emit(self, text: str) -> None:
        if self._high:
            self.parts.append(self._high)
            self._high = ""
        if text:
            self.parts.append(text)


def _scalar_value(text: str) -> Any:
    if text in LITERALS:
        return LITERALS[text]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

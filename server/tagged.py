"""Replies of structural tags, whose content is told as it was written: tags belong to it. Reasoning before it is told apart, and
stop strings are looked for in its text alone, not in tags.

A stop string ends the reply where the constraint is complete without it. Where more has to follow, it is text like any other.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence

from ..constraints import Constraint, OutputParser
from ..constraints.front_ends.tags.events import Event, ReasoningDelta, ReasoningEnd, ReasoningStart, TextDelta
from ..sampling import StopMatcher, StopStrings
from .deltas import ContentDelta, ReplyDelta, ThoughtDelta


class TaggedReply:
    """Follows one reply. `matched` is the stop string that ended it."""

    def __init__(self, constraint: Constraint, stop: Sequence[str] = (), shows_stop: bool = False) -> None:
        self._parser, self._vocabulary = OutputParser(constraint), constraint.vocabulary
        self._strings, self._shows_stop = StopStrings(stop), shows_stop
        self._is_content = False  # certain that reasoning is over, or that there is none
        self._has_thought = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.matched: str | None = None
        self._held_from: int | None = None  # where text begins that may be the beginning of a stop string
        self._begin_content()

    def skip(self, begun: bytes) -> None:
        """Read the beginning of the reply, of which nothing is told."""
        for event in self._parser.feed(begun):
            self._is_content |= not isinstance(event, ReasoningStart | ReasoningDelta)
        held = self._parser.num_held
        self._begin_content()
        self._written, self._num_shown = bytearray(begun[len(begun) - held :]), held
        self._is_complete = [self._parser.is_complete] * (held + 1)

    def take(self, token_ids: Iterable[int], is_last: bool) -> list[ReplyDelta]:
        """The deltas that the next tokens add."""
        told: list[ReplyDelta] = []
        for token_id in token_ids:
            is_text = self._vocabulary.text_tokens[token_id] is not None
            for byte in self._vocabulary.spellings[token_id] or b"":
                told += self._take_byte(byte, is_text)
        if is_last and self.matched is None:
            told += self._read(self._parser.finish())
            self._held_from = None
            told += self._shown(is_last=True)
        return told

    def _take_byte(self, byte: int, is_text: bool) -> Iterator[ReplyDelta]:
        if self.matched is not None:
            return
        events = self._parser.feed(bytes([byte]))
        if is_text:
            self._written.append(byte)
            self._is_complete.append(self._parser.is_complete)
        yield from self._read(events)
        yield from self._shown()

    def _read(self, events: Sequence[Event]) -> Iterator[ReplyDelta]:
        for event in events:
            if isinstance(event, ReasoningDelta):
                yield ThoughtDelta(event.text)
            elif isinstance(event, ReasoningEnd):
                self._is_content = self._has_thought = True
                self._begin_content()
            elif isinstance(event, TextDelta):
                self._is_content = True
                self._look_for_stop(event.text)
            elif not isinstance(event, ReasoningStart):
                self._is_content = True
                self._begin_text()

    # -- the content: `_written` so far, of which `_num_shown` bytes have been told

    def _begin_content(self) -> None:
        self._written, self._num_shown = bytearray(), 0
        self._is_complete = [self._parser.is_complete]  # behind so many bytes of it
        self._begin_text()

    def _begin_text(self) -> None:
        """A tag or the beginning parts what stands before it from what follows."""
        self._matcher = StopMatcher(self._strings, include_stop_in_output=self._shows_stop)
        self._held_from = None

    def _look_for_stop(self, text: str) -> None:
        """Look for a stop string in text up to where the parser is certain, apart from a character that is not whole."""
        end = whole_characters(self._written[: len(self._written) - self._parser.num_held])
        end -= len(text.encode())
        for character in text:
            start = end if self._held_from is None else self._held_from
            end += len(character.encode())
            start += len(self._matcher.feed(character).encode())
            if self._matcher.matched is None:
                self._held_from = start if start < end else None
            elif self._is_complete[start]:
                self.matched = self._matcher.matched
                del self._written[start:]
                return
            else:
                self._begin_text()

    def _shown(self, is_last: bool = False) -> list[ReplyDelta]:
        if not (self._is_content or is_last):
            return []
        certain = len(self._written) - (self._parser.num_held if self.matched is None else 0)
        end = certain if self._held_from is None or self.matched is not None else self._held_from
        text = self._decoder.decode(self._written[self._num_shown : end], is_last)
        self._num_shown = max(self._num_shown, end)
        if self._has_thought:
            text = text.lstrip()  # white space between reasoning and answer belongs to neither
            self._has_thought = not text
        return [ContentDelta(text)] if text else []


def whole_characters(data: bytes | bytearray) -> int:
    """The bytes before a character that is cut short."""
    for length in range(1, min(4, len(data) + 1)):
        if data[-length] >= 0xC0:
            needed = 2 if data[-length] < 0xE0 else 3 if data[-length] < 0xF0 else 4
            return len(data) - length if length < needed else len(data)
        if data[-length] < 0x80:
            return len(data)
    return len(data)

"""The parser of constrained replies: the automaton that made the masks also says what each byte is.

Grammars name their segments (`Grammar.segment`), so a state and a byte tell in which segments the byte may lie. One: the
byte belongs there, and so do those held back before it. Several, or text that may still turn out to be the beginning of a
mark: it is held back until the next byte decides. What is text or a call to its very end is a call. There is no parser for any
model here, and a chunk may end anywhere.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from ...base.errors import ConstraintError
from ...grammar.segments import TEXT, Segment
from ...runtime.constraint import Constraint, State
from ...vocabulary.vocabulary import Vocabulary
from .arguments import as_json
from .events import (
    ArgumentsDelta,
    Event,
    ParsedCall,
    ParsedReply,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TagDelta,
    TagEnd,
    TagStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)


class UnexpectedOutput(ConstraintError):
    """A reply that does not satisfy its constraint. `at` is the index of the first byte that cannot follow."""

    def __init__(self, at: int, byte: int) -> None:
        self.at = at
        super().__init__(f"byte {at} of the reply ({bytes([byte])!r}) cannot follow what stands before it")


class OutputParser:
    """Follows one reply. Works for every constraint; where a grammar names no segments, all is text.

    >>> parser = OutputParser(compiler.compile(Tools(tools, style="hermes")))
    >>> for chunk in reply: events += parser.feed(chunk)
    >>> events += parser.finish()
    """

    def __init__(self, constraint: Constraint) -> None:
        self._constraint: Constraint = getattr(constraint, "unbudgeted", constraint)
        self._state: State = self._constraint.start()
        self._num_read = 0
        self._held = bytearray()  # read, but not certain what it is
        self._options: list[list[Segment]] = []  # the segments in which each of these bytes may lie
        self._calls: list[Segment] | None = []  # what the bytes that are held are if all are a call; None: they are not
        self._roles = _Roles()

    @property
    def vocabulary(self) -> Vocabulary:
        """Of the constraint that is followed."""
        return self._constraint.vocabulary

    @property
    def is_complete(self) -> bool:
        """Whether the reply satisfies its constraint as it is."""
        return self._constraint.is_accepting(self._state)

    @property
    def num_held(self) -> int:
        """Bytes that were read, but of which it is not certain yet what they are."""
        return len(self._held)

    def feed(self, chunk: bytes | str) -> list[Event]:
        """The events that some text of the reply tells. Raises `UnexpectedOutput`."""
        for byte in chunk.encode() if isinstance(chunk, str) else chunk:
            self._read(byte)
        return self._roles.taken()

    def feed_tokens(self, token_ids: Iterable[int]) -> list[Event]:
        """The events that tokens, `token_ids`, tell, special tokens included; EOS ids are passed over. Raises
        `UnexpectedOutput`."""
        vocabulary = self._constraint.vocabulary
        data = [vocabulary.spellings[i] or b"" for i in token_ids if i not in vocabulary.eos_token_ids]
        return self.feed(b"".join(data))

    def finish(self) -> list[Event]:
        """The events of the end of the reply: text that was held back, and the end of what was open."""
        if self._calls and self._calls[-1].role == "close call" and self.is_complete:
            self._take_calls(self._calls)
        self._roles.finish(bytes(self._held), self.is_complete, _may_be_text(self._options))
        self._hold_after(len(self._held))
        return self._roles.taken()

    def _read(self, byte: int) -> None:
        after, found = self._constraint.step(self._state, byte)
        if after is None:
            raise UnexpectedOutput(self._num_read, byte)
        self._state = after
        self._num_read += 1
        self._held.append(byte)
        segments = [each if isinstance(each, Segment) else TEXT for each in found]
        self._options.append(segments)
        if len(segments) == 1:
            if self._calls and segments[0].role != "text":
                self._take_calls(self._calls)
            certain = len(self._held) - segments[0].held
            self._roles.take(segments[0], bytes(self._held[:certain]))
            self._hold_after(certain)
        elif self._calls is not None:
            others = [each for each in segments if each.role != "text"]
            if len(segments) == 2 and len(others) == 1:
                self._calls.append(others[0])
            else:
                self._calls = None

    def _take_calls(self, segments: list[Segment]) -> None:
        """Take held bytes as the calls that they were, or text."""
        for segment, byte in zip(segments, self._held, strict=False):  # of the last byte nothing may be known yet
            self._roles.take(segment, bytes([byte]))
        self._hold_after(len(segments))

    def _hold_after(self, num_certain: int) -> None:
        """Forget held bytes that are certain now."""
        del self._held[:num_certain]
        del self._options[:num_certain]
        self._calls = None if self._held else []


def _may_be_text(options: list[list[Segment]]) -> bool:
    """Whether all bytes may be text."""
    return all(any(segment.role == "text" for segment in each) for each in options)


def parse_output(constraint: Constraint, reply: bytes | str | Iterable[int]) -> ParsedReply:
    """A whole reply, as text or as token ids, taken apart. Raises `UnexpectedOutput` where it leaves the constraint."""
    parser = OutputParser(constraint)
    events = parser.feed(reply) if isinstance(reply, bytes | str) else parser.feed_tokens(reply)
    events += parser.finish()
    return ParsedReply(
        text="".join(event.text for event in events if isinstance(event, TextDelta)),
        reasoning="".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        calls=tuple(ParsedCall(event.name, event.arguments) for event in events if isinstance(event, ToolCallEnd)),
        tags=tuple((event.begin, event.content) for event in events if isinstance(event, TagEnd)),
        is_complete=parser.is_complete,
    )


class _Roles:
    """Makes events of bytes that are certain and their segments: it knows what is open, and what has been told of it."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._open: tuple[str, str] | None = None  # "call", "tag" or "reasoning", and its owner
        self._closed: tuple[str, str, str] | None = None  # the mark that is being read: role, owner, name
        self._value: Segment | None = None  # the argument that is being read, in a style that writes each by itself
        self._value_text = bytearray()
        self._content: list[str] = []  # of the open call or tag
        self._num_calls = self._num_tags = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def taken(self) -> list[Event]:
        """The events since the last call, neighbouring deltas joined."""
        events, self._events = self._events, []
        return events

    def take(self, segment: Segment, data: bytes) -> None:
        """Bytes that certainly lie in a segment."""
        role, owner = segment.role, segment.owner
        if role.startswith("close "):
            closing = segment.role, segment.owner, segment.name
            if self._closed != closing:  # else it is another byte of the same mark
                self._take_content(segment, data)
                self._close(role.removeprefix("close "), segment)
                self._closed = closing
            return
        self._closed = None
        self._end_value_before(segment)
        if role == "markup" and not owner:
            self._end()
            return
        self._begin(_OPENED_BY[role], owner)
        if role == "value":
            self._value = segment
            self._value_text += data
        elif role != "markup":
            self._delta(self._decoder.decode(data))

    def finish(self, held: bytes, is_complete: bool, is_text: bool) -> None:
        """Take the end of the reply. What was held back belongs to what is open, and behind a mark to the text, if it may be text
        (`is_text`): else it is markup."""
        if held and self._closed is not None and is_text:
            self._begin("text", "")
            self._delta(self._decoder.decode(held))
        elif held and self._closed is None:
            if self._value is not None:
                self._value_text += held
            elif self._open is None or self._open[0] != "call":
                self._begin(*(self._open or ("text", "")))
                self._delta(self._decoder.decode(held))
        if is_complete:
            self._end_value()
            self._end()

    # -- what is open -------------------------------------------------------------------------------------------------

    def _begin(self, kind: str, owner: str) -> None:
        wanted = None if kind == "text" else (kind, owner)
        if wanted == self._open:
            return
        self._end()
        self._open = wanted
        if kind == "reasoning":
            self._events.append(ReasoningStart())
        elif kind == "call":
            self._events.append(ToolCallStart(self._num_calls, owner))
        elif kind == "tag":
            self._events.append(TagStart(self._num_tags, owner))

    def _end(self) -> None:
        if self._open is None:
            return
        kind, owner = self._open
        content = "".join(self._content)
        if kind == "call":
            self._events.append(ToolCallEnd(self._num_calls, owner, content))
            self._num_calls += 1
        elif kind == "tag":
            self._events.append(TagEnd(self._num_tags, owner, content))
            self._num_tags += 1
        else:
            self._events.append(ReasoningEnd())
        self._open = None
        self._content.clear()

    def _close(self, kind: str, segment: Segment) -> None:
        """Take a mark that closes something. What it closes may be empty; then the mark opens it, too."""
        if kind == "value":
            self._begin("call", segment.owner)
            self._value = segment
            self._end_value()
            return
        self._end_value()
        self._begin(kind, segment.owner)
        if kind == "call":
            self._end_arguments(segment)
        self._end()

    def _take_content(self, closing: Segment, data: bytes) -> None:
        """Take what was held back before a mark, of which more than the beginning may have been read."""
        if not closing.mark:
            return
        read = next(size for size in range(len(closing.mark), -1, -1) if data.endswith(closing.mark[:size]))
        content = data[: len(data) - read]
        if content:
            self.take(closing.content, content)

    # -- arguments ------------------------------------------------------------------------------------------------------

    def _end_value_before(self, segment: Segment) -> None:
        value = self._value
        if value is not None and (segment.role, segment.owner, segment.name) != ("value", value.owner, value.name):
            self._end_value()

    def _end_value(self) -> None:
        """Tell the JSON text of an argument that is complete."""
        if self._value is None:
            return
        value = as_json(self._value_text.decode(), self._value.notation)
        self._delta(("," if self._content else "{") + as_json(self._value.name, "bare") + ":" + value)
        self._value = None
        self._value_text.clear()

    def _end_arguments(self, segment: Segment) -> None:
        """Tell the brace behind arguments that were written one by one. JSON arguments have theirs."""
        if segment.notation == "parameters":
            self._delta("}" if self._content else "{}")

    # -- events -------------------------------------------------------------------------------------------------------

    def _delta(self, text: str) -> None:
        if not text:
            return
        last = self._events[-1] if self._events else None
        kind = self._open[0] if self._open else "text"
        if kind in ("call", "tag"):
            self._content.append(text)
        fresh: Event
        if kind == "call":
            fresh = ArgumentsDelta(self._num_calls, _joined(last, ArgumentsDelta, text))
        elif kind == "tag":
            fresh = TagDelta(self._num_tags, _joined(last, TagDelta, text))
        elif kind == "reasoning":
            fresh = ReasoningDelta(_joined(last, ReasoningDelta, text))
        else:
            fresh = TextDelta(_joined(last, TextDelta, text))
        if type(last) is type(fresh):
            self._events.pop()
        self._events.append(fresh)


def _joined(last: Event | None, kind: type, text: str) -> str:
    """A delta with `text` behind that of `last`, which is of the same kind. Two of one kind that touch are of one call
    or tag."""
    return last.text + text if isinstance(last, kind) else text  # type: ignore[union-attr]


_OPENED_BY = {
    "text": "text",
    "reasoning": "reasoning",
    "tag": "tag",
    "arguments": "call",
    "value": "call",
    "markup": "call",
}

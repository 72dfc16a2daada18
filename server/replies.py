"""What a model writes, as the parts of a message: content, reasoning, tool calls. It is the same for streams and for
whole replies, because a whole reply is what the deltas of its stream join to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from ..constraints import Constraint, OutputParser, Reasoning, Tools
from ..constraints.front_ends.tags.events import (
    ArgumentsDelta,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCallStart,
)
from ..constraints.front_ends.tags.events import Event as PartEvent
from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .custom_calls import InputReader
from .deltas import CallDelta, CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from .reasoning import custom_tools, shows_free_text, shows_tags
from .stopping import ContentStop
from .tagged import TaggedReply, whole_characters


class ReplyReader:
    """Follows one output. Structural tags stay in the content, as they were written: only calls and reasoning are taken
    out.

    stop: strings that end the content of a reply with such parts or with a constraint (in other replies the engine looks for
        them). For the engine the reader is an `Ending`, which reads the same tokens.
    stops_inside: whether they do so where the content does not satisfy its constraint yet.
    begun: what the client has written of the reply. Of it only calls are told, which the client reads from their start.
    """

    def __init__(
        self,
        source: Any,
        constraint: Constraint | None,
        stop: Sequence[str] = (),
        shows_stop: bool = False,
        stops_inside: bool = True,
        begun: bytes = b"",
    ) -> None:
        is_tagged = constraint is not None and shows_tags(source) and (stop or isinstance(source, Reasoning))
        self._tagged = TaggedReply(constraint, stop, shows_stop) if is_tagged and constraint is not None else None
        has_parts = constraint is not None and (isinstance(source, Tools | Reasoning) or stop) and not is_tagged
        self._parser = OutputParser(constraint) if has_parts and constraint is not None else None
        self._is_free = shows_free_text(source)
        self._has_calls = False
        self._custom = custom_tools(source)
        self._input: InputReader | None = None  # of the call of a custom tool
        self._is_after_thought = False  # white space between reasoning and answer belongs to neither
        self._stops_inside = stops_inside
        self._ends = Ends(self._parser) if stop and self._parser is not None and not self._is_free else None
        self._stop = ContentStop(stop, shows_stop, self._may_end if self._ends is not None else None) if stop else None
        self._is_cut = False  # whether the stop string has ended the content before it satisfied its constraint
        self._is_marked = isinstance(source, Reasoning) and bool(source.start)  # whether a mark begins the reasoning
        self._num_begun = 0  # bytes of the beginning that may still turn out to be text
        self._of_begun = self._begin(begun) if begun else []  # deltas that are told with the first ones

    @property
    def has_parts(self) -> bool:
        """Whether it reads more than text: calls, reasoning, tags, or stop strings beside a constraint."""
        return self._tagged is not None or self._parser is not None

    @property
    def stop_string(self) -> str | None:
        """The stop string that was found in the content, which ends there; None if there was none."""
        if self._tagged is not None:
            return self._tagged.matched
        return None if self._stop is None else self._stop.matched

    def read(self, event: Event) -> list[ReplyDelta]:
        """The deltas that one event of the engine adds."""
        if self._tagged is not None:
            return self._tagged.take((record.token_id for record in event.tokens), event.is_final)
        if self._parser is None:
            return [ContentDelta(event.text)] if event.text else []
        of_begun, self._of_begun = self._of_begun, []
        return of_begun + self._take(self._parser, (record.token_id for record in event.tokens), event.is_final)

    def _begin(self, begun: bytes) -> list[ReplyDelta]:
        """Read what the client has written, and return its calls."""
        if self._tagged is not None:
            self._tagged.skip(begun)
        if self._parser is None:
            return []
        events = self._parser.feed(begun) if self._ends is None else [each for found in self._ends.feed(begun) for each in found]
        deltas: list[ReplyDelta] = [delta for delta in self._deltas(events) if isinstance(delta, CallStart | CallDelta)]
        self._num_begun = self._parser.num_held
        return deltas

    def ends_after(self, token_id: int) -> bool:
        """Whether this token completes a stop string in the content."""
        if self._tagged is not None:
            self._tagged.take([token_id], is_last=False)
        else:
            assert self._parser is not None, "the engine itself ends outputs without parts"
            self._take(self._parser, [token_id], is_last=False)
        return self.stop_string is not None

    def finish_reason(self, output: RequestOutput) -> str:
        """The engine's reason, or "length" for text of the model's own that max_tokens has cut: a constraint lets such
        text end anywhere."""
        return "length" if output.is_cut and self._is_free and not self._has_calls else output.finish_reason

    def told_stop(self, output: RequestOutput) -> dict[str, Any]:
        """Members of an answer about the stop string that ended it: "stop_reason", and with a constraint "is_complete",
        whether the content satisfies it as it is. None where no stop string did."""
        matched = output.stop_string or self.stop_string
        if matched is None:
            return {}
        return {"stop_reason": matched} | ({} if self._ends is None else {"is_complete": not self._is_cut})

    def _take(self, parser: OutputParser, token_ids: Iterable[int], is_last: bool) -> list[ReplyDelta]:
        if self.stop_string is not None:
            return []
        if self._ends is not None:
            told = [delta for events in self._ends.feed_tokens(token_ids) for delta in self._stopped(events)]
            return told + (list(self._stopped(parser.finish(), is_last)) if is_last else [])
        events = parser.feed_tokens(token_ids)
        if is_last:
            events += parser.finish()
        return list(self._stopped(events, is_last))

    def _new(self, text: str) -> str:
        """The part of a text, of which the beginning may have been held back, that the client has not written itself."""
        data = text.encode()
        skipped, self._num_begun = self._num_begun, max(self._num_begun - len(data), 0)
        return data[skipped:].decode() if skipped else text

    def _stopped(self, events: Iterable[PartEvent], is_last: bool = False) -> Iterable[ReplyDelta]:
        deltas = self._deltas(events)
        return deltas if self._stop is None else self._stop.read(deltas, is_last)

    def _may_end(self, num_bytes: int) -> bool:
        """Whether the content may end so many bytes before what is certain of it."""
        assert self._ends is not None, "asked about content with a constraint"
        self._is_cut = not self._ends.is_complete(num_bytes)
        return self._stops_inside or not self._is_cut

    def _deltas(self, events: Iterable[PartEvent]) -> Iterator[ReplyDelta]:
        for event in events:
            if isinstance(event, ReasoningEnd | ToolCallStart) or (isinstance(event, ReasoningStart) and self._is_marked):
                self._num_begun = 0  # it was a mark that was held back
            if isinstance(event, TextDelta):
                text = self._new(event.text)
                self._is_after_thought &= not event.text.removesuffix(text).strip()
                text = text.lstrip() if self._is_after_thought else text
                if text:
                    self._is_after_thought = False
                    yield ContentDelta(text)
            elif isinstance(event, ReasoningDelta):
                self._is_after_thought = True
                if text := self._new(event.text):
                    yield ThoughtDelta(text)
            elif isinstance(event, ToolCallStart):
                self._has_calls = True
                is_custom = event.name in self._custom
                self._input = InputReader() if is_custom else None
                yield CallStart(event.index, f"call_{uuid4().hex[:24]}", event.name, is_custom)
            elif isinstance(event, ArgumentsDelta):
                text = event.text if self._input is None else self._input.feed(event.text)
                if text:
                    yield CallDelta(event.index, text)


class Ends:
    """Feeds a parser byte by byte, and knows behind which of them the reply was complete."""

    def __init__(self, parser: OutputParser) -> None:
        self._parser, self._data = parser, bytearray()
        self._is_complete = [parser.is_complete]  # behind so many bytes

    def feed_tokens(self, token_ids: Iterable[int]) -> Iterator[list[PartEvent]]:
        """The parser's events of each byte of some tokens."""
        vocabulary = self._parser.vocabulary
        for token_id in token_ids:
            if token_id not in vocabulary.eos_token_ids:
                yield from self.feed(vocabulary.spellings[token_id] or b"")

    def feed(self, data: bytes) -> Iterator[list[PartEvent]]:
        """The parser's events of each byte."""
        for byte in data:
            events = self._parser.feed(bytes([byte]))
            self._data.append(byte)
            self._is_complete.append(self._parser.is_complete)
            yield events

    def is_complete(self, num_bytes: int) -> bool:
        """Whether the reply was complete so many bytes before the last whole character that is certain."""
        certain = whole_characters(self._data[: len(self._data) - self._parser.num_held])
        return self._is_complete[certain - num_bytes]


@dataclass(slots=True)
class Call:
    """A call, as far as it has been told."""

    call_id: str
    name: str
    arguments: str = ""  # of a custom tool, its input
    is_custom: bool = False


@dataclass(slots=True)
class ReplyParts:
    """The parts of a message that the deltas have joined to."""

    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)

    def add(self, delta: ReplyDelta) -> None:
        if isinstance(delta, ContentDelta):
            self.content += delta.text
        elif isinstance(delta, ThoughtDelta):
            self.reasoning += delta.text
        elif isinstance(delta, CallStart):
            self.calls.append(Call(delta.call_id, delta.name, is_custom=delta.is_custom))
        else:
            self.calls[delta.index].arguments += delta.text


def reader_of(plan: Plan) -> ReplyReader:
    """A reader for one output of the plan."""
    request = plan.requests[0]
    reader = request.ending() if request.ending is not None else None
    return reader if isinstance(reader, ReplyReader) else ReplyReader(plan.choice.source, plan.constraint, begun=request.begun)

"""What a model writes, as the parts of a message: content, reasoning, tool calls. The same for streams and for whole replies,
because a whole reply is what the deltas of its stream join to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from ..constraints import Constraint, OutputParser, Reasoning, Tools
from ..constraints.tags.events import ArgumentsDelta, ReasoningDelta, TextDelta, ToolCallStart
from ..constraints.tags.events import Event as PartEvent
from ..engine.output import Event


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """Text of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A tool is called."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """JSON text of a call's arguments."""

    index: int
    text: str


ReplyDelta: TypeAlias = ContentDelta | ThoughtDelta | CallStart | CallDelta


class ReplyReader:
    """Follows one output. Structural tags stay in the content, as they were written: only calls and reasoning are taken out."""

    def __init__(self, source: Any, constraint: Constraint | None) -> None:
        self._parser = OutputParser(constraint) if constraint is not None and isinstance(source, Tools | Reasoning) else None
        self._is_after_thought = False  # white space between reasoning and answer belongs to neither

    @property
    def takes_apart(self) -> bool:
        """Whether anything is taken out of the text."""
        return self._parser is not None

    def read(self, event: Event) -> list[ReplyDelta]:
        """What one event of the engine adds."""
        if self._parser is None:
            return [ContentDelta(event.text)] if event.text else []
        events = self._parser.feed_tokens(record.token_id for record in event.tokens)
        if event.is_final:
            events += self._parser.finish()
        return list(self._deltas(events))

    def _deltas(self, events: Iterable[PartEvent]) -> Iterator[ReplyDelta]:
        for event in events:
            if isinstance(event, TextDelta):
                text = event.text.lstrip() if self._is_after_thought else event.text
                if text:
                    self._is_after_thought = False
                    yield ContentDelta(text)
            elif isinstance(event, ReasoningDelta):
                self._is_after_thought = True
                yield ThoughtDelta(event.text)
            elif isinstance(event, ToolCallStart):
                yield CallStart(event.index, f"call_{uuid4().hex[:24]}", event.name)
            elif isinstance(event, ArgumentsDelta):
                yield CallDelta(event.index, event.text)


@dataclass(slots=True)
class Call:
    """A call so far."""

    call_id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class ReplyParts:
    """What the deltas have joined to."""

    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)

    def add(self, delta: ReplyDelta) -> None:
        if isinstance(delta, ContentDelta):
            self.content += delta.text
        elif isinstance(delta, ThoughtDelta):
            self.reasoning += delta.text
        elif isinstance(delta, CallStart):
            self.calls.append(Call(delta.call_id, delta.name))
        else:
            self.calls[delta.index].arguments += delta.text

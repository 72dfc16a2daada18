"""What a model writes, as the parts of a message: content, reasoning, tool calls. It is the same for streams and for
whole replies, because a whole reply is what the deltas of its stream join to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from ..constraints import Constraint, OutputParser, Reasoning, Tools
from ..constraints.front_ends.tags.events import ArgumentsDelta, ReasoningDelta, TextDelta, ToolCallStart
from ..constraints.front_ends.tags.events import Event as PartEvent
from ..engine.requests.output import Event, RequestOutput
from ..planning import Plan
from .deltas import CallDelta, CallStart, ContentDelta, ReplyDelta, ThoughtDelta
from .reasoning import shows_free_text, shows_tags
from .stopping import ContentStop
from .tagged import TaggedReply


class ReplyReader:
    """Follows one output. Structural tags stay in the content, as they were written: only calls and reasoning are taken
    out.

    stop: strings that end the content of a reply with such parts (in other replies the engine looks for them). For the
    engine the reader is an `Ending`, which reads the same tokens.
    """

    def __init__(self, source: Any, constraint: Constraint | None, stop: Sequence[str] = (), shows_stop: bool = False) -> None:
        is_tagged = constraint is not None and shows_tags(source) and (stop or isinstance(source, Reasoning))
        self._tagged = TaggedReply(constraint, stop, shows_stop) if is_tagged and constraint is not None else None
        has_parts = constraint is not None and isinstance(source, Tools | Reasoning) and not is_tagged
        self._parser = OutputParser(constraint) if has_parts and constraint is not None else None
        self._is_free = shows_free_text(source)
        self._has_calls = False
        self._is_after_thought = False  # white space between reasoning and answer belongs to neither
        self._stop = ContentStop(stop, shows_stop) if stop else None

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
        return self._take(self._parser, (record.token_id for record in event.tokens), event.is_final)

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

    def _take(self, parser: OutputParser, token_ids: Iterable[int], is_last: bool) -> list[ReplyDelta]:
        if self.stop_string is not None:
            return []
        events = parser.feed_tokens(token_ids)
        if is_last:
            events += parser.finish()
        deltas = self._deltas(events)
        return list(deltas if self._stop is None else self._stop.read(deltas, is_last))

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
                self._has_calls = True
                yield CallStart(event.index, f"call_{uuid4().hex[:24]}", event.name)
            elif isinstance(event, ArgumentsDelta):
                yield CallDelta(event.index, event.text)


@dataclass(slots=True)
class Call:
    """A call, as far as it has been told."""

    call_id: str
    name: str
    arguments: str = ""


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
            self.calls.append(Call(delta.call_id, delta.name))
        else:
            self.calls[delta.index].arguments += delta.text


def reader_of(plan: Plan) -> ReplyReader:
    """A reader for one output of the plan."""
    reader = plan.requests[0].ending() if plan.requests[0].ending is not None else None
    return reader if isinstance(reader, ReplyReader) else ReplyReader(plan.choice.source, plan.constraint)

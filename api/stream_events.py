"""Makes the typed events of one stream of the engine's events."""

from __future__ import annotations

from collections.abc import Iterator

from .constraints import OutputParser, Reasoning, StructuralTag, Tools
from .engine.requests.output import Event as EngineEvent
from .events import Delta, Done, Event
from .json_events import JsonEvents
from .planning import Plan


class StreamEvents:
    """Follows one request; the last event is `Done`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._json = JsonEvents() if plan.choice.is_json else None
        has_parts = isinstance(plan.choice.source, Tools | StructuralTag | Reasoning)
        self._parser = OutputParser(plan.constraint) if has_parts else None
        self.is_done = False

    def feed(self, event: EngineEvent) -> Iterator[Event]:
        """The typed events of one engine event."""
        if self._parser is not None:
            yield from self._parser.feed_tokens(record.token_id for record in event.tokens)
        elif event.text:
            yield from [Delta((), event.text)] if self._json is None else self._json.feed(event.text)
        if event.output is not None:
            output = self._plan.output(event.output)
            if self._json is not None and output.is_complete:
                yield from self._json.finish()
            if self._parser is not None:
                yield from self._parser.finish()
            self.is_done = True
            yield Done(output)

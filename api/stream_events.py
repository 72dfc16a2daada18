"""Makes the typed events of one stream of the engine's events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .constraints import OutputParser, Reasoning, StructuralTag, Tools
from .engine.requests.output import Event as EngineEvent
from .events import Delta, Done, Event, FieldClosed
from .field_details import FieldDetails, FieldReader, Path
from .json_events import JsonEvents
from .planning import Plan


class StreamEvents:
    """Follows one request; the last event is `Done`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._json = JsonEvents() if plan.choice.is_json else None
        has_parts = isinstance(plan.choice.source, Tools | StructuralTag | Reasoning)
        self._parser = OutputParser(plan.constraint) if has_parts else None
        request = plan.requests[0]
        wants_details = self._json is not None and request.sampling.field_details
        self._fields = FieldReader(plan.constraint, plan.constraint.vocabulary, request.begun) if wants_details else None
        self._details: dict[Path, FieldDetails] = {}  # of fields that have not been told of: text may lag behind tokens
        self.is_done = False

    def feed(self, event: EngineEvent) -> Iterator[Event]:
        """The typed events of one engine event."""
        if self._fields is not None:
            self._keep([details for record in event.tokens for details in self._fields.read(record)])
        if self._parser is not None:
            yield from self._parser.feed_tokens(record.token_id for record in event.tokens)
        elif event.text:
            yield from [Delta((), event.text)] if self._json is None else map(self._detailed, self._json.feed(event.text))
        if event.output is not None:
            output = self._plan.output(event.output)
            if self._json is not None and output.is_complete:
                self._keep([] if self._fields is None else self._fields.finish())
                yield from map(self._detailed, self._json.finish())
            if self._parser is not None:
                yield from self._parser.finish()
            self.is_done = True
            yield Done(output)

    def _keep(self, details: list[FieldDetails]) -> None:
        self._details |= {each.path: each for each in details}

    def _detailed(self, event: Event) -> Event:
        """The event, with the details of the field that it closes."""
        return replace(event, details=self._details.pop(event.path, None)) if isinstance(event, FieldClosed) else event

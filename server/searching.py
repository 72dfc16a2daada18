"""Beam search over HTTP: what vLLM's users ask for, and the events of a search's outputs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from pydantic import Field

from ..engine.requests.output import Event
from ..engine.search.beams import BeamSearch
from ..planning import Plan
from .body import Body
from .errors import ApiError


class SearchParameters(Body):
    """Part of the request bodies whose outputs may be searched for."""

    use_beam_search: bool | None = Field(
        None, description="Whether the n outputs are those that beam search finds most probable, with best_of beams, or n."
    )
    length_penalty: float | None = Field(
        None, ge=-100, le=100, description="With use_beam_search: outputs compare by log-probability over length to this power."
    )
    early_stopping: bool | str | None = Field(
        None, description="With use_beam_search: whether as many outputs as beams are enough; never: until none can get better."
    )

    def note_unsearched(self) -> None:
        """Note what has no effect where nothing is searched."""
        asked = {"length_penalty": self.length_penalty not in (None, 1.0), "early_stopping": bool(self.early_stopping)}
        self.ignored.extend(name for name, is_asked in asked.items() if is_asked and not self.use_beam_search)


def search_of(body: SearchParameters, num_wanted: int, best_of: int | None) -> BeamSearch | None:
    """The search that is asked for, None for none."""
    if not body.use_beam_search:
        return None
    penalty = 1.0 if body.length_penalty is None else body.length_penalty
    return BeamSearch(
        width=max(best_of or num_wanted, num_wanted),
        num_wanted=num_wanted,
        length_penalty=penalty,
        early_stopping=body.early_stopping or False,  # type: ignore[arg-type]  # it refuses other words
    )


def searched(plan: Plan, search: BeamSearch | None) -> Plan:
    """The plan of one request as that of a search for its outputs."""
    if search is None:
        return plan
    return replace(plan, requests=plan.requests[:1] * search.num_wanted, num_wanted=search.num_wanted, search=search)


async def spread(answers: AsyncIterator[tuple[int, Event]], count: int) -> AsyncIterator[tuple[int, Event]]:
    """The events of searches, each of which gives `count` outputs with its last event, as those of the outputs."""
    async for index, event in answers:
        if event.output is None:
            yield index * count, event
            continue
        found = (event.output, *event.output.alternatives)
        if event.output.finish_reason not in ("error", "constraint_limit") and len(found) < count:
            message = f"use_beam_search: {count} outputs are wanted, and the constraint has left {len(found)}; ask for a smaller n"
            raise ApiError(400, message, param="n", code="too_few_outputs")
        yield index * count, event
        for place, output in enumerate(found[1:count], 1):
            yield index * count + place, Event(event.request_id, output.records, output.text, output)

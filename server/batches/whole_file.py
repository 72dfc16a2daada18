"""A file of requests, answered by a model of this process without a server."""

from __future__ import annotations

from collections.abc import Callable
from itertools import filterfalse
from pathlib import Path

from ...llm import LLM
from ..app import create_app
from ..client import Caller
from ..settings import ServerSettings
from .asking import asking
from .lines import BatchLine, Bounds, checked_ids, id_digest, read_lines
from .results import results_in
from .runner import Counts, Runner


async def answer_file(
    llm: LLM,
    settings: ServerSettings,
    model_name: str,
    source: Path,
    target: Path,
    *,
    at_once: int,
    retries: int = 2,
    retries_failed: bool = False,
    watch: Callable[[Counts], None] = lambda _: None,
) -> Counts:
    """Answer each request of `source` that has no answer in `target` yet, which then has one line for each.

    at_once: requests under way at a time. retries: of one that fails by no fault of its own. retries_failed: answers in `target`
    that are errors are asked once more. watch: is told after every answer. Raises UsageError for a file that is not what it
    should be, naming the lines; OSError.
    """
    bounds = Bounds(line_bytes=settings.max_body_bytes)
    requested = checked_ids(source, bounds)
    app = create_app(llm, settings, model_name=model_name)
    with results_in(target, requested, retries_failed=retries_failed) as results:
        counts = Counts(len(requested), completed=len(results.answered) - results.num_failed, failed=results.num_failed)
        watch(counts)

        def is_answered(line: BatchLine) -> bool:
            return id_digest(line.custom_id) in results.answered

        async with app.router.lifespan_context(app), asking(app, Caller()) as ask:
            runner = Runner(ask, results.write, counts, at_once=at_once, retries=retries, watch=watch)
            await runner.run(filterfalse(is_answered, read_lines(source, bounds)))
    return counts

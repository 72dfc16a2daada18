"""Constraints are compiled here, away from the event loop and from the engine: each once, a few at a time.

Whoever asks for a constraint that is being compiled waits for it without holding a thread, so a slow schema that many
clients send keeps one thread busy and nobody else waiting. The first mask is computed here, too.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from ..constraints import Compiler, Constraint, Source
from .metrics import Metrics


class ConstraintCompiler:
    """Compiles constraints for one event loop."""

    def __init__(self, compiler: Compiler, num_threads: int, metrics: Metrics) -> None:
        self._compiler, self._metrics = compiler, metrics
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="compile")
        self._running: dict[Source, asyncio.Future[Constraint]] = {}

    async def compile(self, source: Source) -> Constraint:
        """The compiled constraint. Raises ConstraintError."""
        self._metrics.constraint_queries.inc()
        compiling = self._running.get(source)
        if compiling is None:
            compiling = asyncio.get_running_loop().run_in_executor(self._pool, self._compile, source)
            self._running[source] = compiling
            compiling.add_done_callback(lambda _: self._running.pop(source, None))
        else:
            self._metrics.constraint_hits.inc()
        return await asyncio.shield(compiling)  # one client that goes does not take the others' constraint with it

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _compile(self, source: Source) -> Constraint:
        if self._compiler.knows(source):
            self._metrics.constraint_hits.inc()
            return self._compiler.compile(source)
        started = time.perf_counter()
        try:
            constraint = self._compiler.compile(source)
        except Exception:
            self._metrics.constraint_errors.inc()
            raise
        constraint.min_tokens(constraint.start())
        constraint.mask(constraint.start())
        self._metrics.compile_seconds.observe(time.perf_counter() - started)
        return constraint

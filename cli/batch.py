"""`maskwright batch`: a file of requests in, a file of answers out, one line for each."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..errors import UsageError
from ..model_folder import EMBEDDED
from .known_errors import not_installed
from .model_options import (
    DeviceOption,
    DownloadOption,
    DtypeOption,
    ModelOption,
    RevisionOption,
    engine_options,
    engine_parameters,
    load_model,
)
from .options import given_options, option_parameters, with_parameters
from .show import notices, stopwatch

try:
    from ..server.batches.lines import Bounds, checked_ids
    from ..server.batches.runner import Counts
    from ..server.batches.whole_file import answer_file
    from ..server.settings import ServerSettings
except ModuleNotFoundError as error:
    raise not_installed("batch", error) from error

REQUESTS = "Requests"
SETTINGS = (  # of the server that make sense without one
    "served_model_name", "any_model", "lora_modules", "tool_style", "max_body_bytes", "max_n", "max_tokens", "compile_seconds",
    "constraint_cache_bytes", "compile_processes", "compile_memory_bytes", "request_seconds",
)  # fmt: skip
TOLD_SECONDS = 30.0  # where there is no terminal


def batch(
    source: Annotated[Path, typer.Argument(help="A file of requests, as OpenAI's batches have it: one line of JSON each.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of answers. What is answered there is not asked again.")],
    at_once: Annotated[int | None, typer.Option(help="Requests under way at a time; else twice --max-sequences.")] = None,
    retries: Annotated[int, typer.Option(help="Of a request that fails by no fault of its own.")] = 2,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what was answered by an error.")] = False,
    model: ModelOption = EMBEDDED,
    revision: RevisionOption = None,
    download: DownloadOption = False,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    **options: Any,
) -> None:
    """Answer a file of requests. After an interruption the same command goes on.

    A request is {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}}; its answer has the same
    custom_id. Answers come in the order in which they are ready. The exit code is 1 if some are errors.
    """
    if (at_once is not None and at_once < 1) or retries < 0:
        raise UsageError("--at-once is at least 1, and --retries at least 0")
    settings = ServerSettings(**given_options(ServerSettings, {name: options.get(name) for name in SETTINGS}))
    engine = engine_options(options) | settings.model_options
    with _readable(source):
        checked_ids(source, Bounds(line_bytes=settings.max_body_bytes))  # what is wrong is told before a model is loaded
    llm = load_model(model, device, dtype, revision=revision, download=download, **engine)
    with stopwatch() as seconds, _progress() as watch, _readable(source):
        counts = _run(
            answer_file(
                llm,
                settings,
                str(model),
                source,
                output,
                at_once=at_once or 2 * llm.config.max_sequences,
                retries=retries,
                retries_failed=retry_failed,
                watch=watch,
            )
        )
    _show(counts, seconds())
    if counts.failed:
        raise typer.Exit(1)  # incomplete


def command() -> Any:
    """The command with one option for each field of EngineConfig and EngineFeatures, and for some of ServerSettings."""
    app = typer.Typer(add_completion=False)
    own = [each for each in option_parameters(ServerSettings, REQUESTS, shows_defaults=True) if each.name in SETTINGS]
    app.command()(with_parameters(batch, [*own, *engine_parameters()]))
    return typer.main.get_command(app)


def _run(work: Any) -> Counts:
    """The result of a coroutine, which SIGTERM interrupts as Ctrl-C does. Raises KeyboardInterrupt."""

    async def interruptible() -> Counts:
        task = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{error.filename or source}: {error.strerror or error}") from None


@contextmanager
def _progress() -> Iterator[Callable[[Counts], None]]:
    """A bar with the rate and what is left, or without a terminal a line now and then."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with stopwatch() as seconds, Progress(*columns, console=notices, transient=True, disable=not notices.is_terminal) as bar:
        task = bar.add_task("", total=None, rate="")
        first: int | None = None  # answers that were there before
        told = 0.0

        def watch(counts: Counts) -> None:
            nonlocal first, told
            first = counts.answered if first is None else first
            elapsed = seconds()
            rate = (counts.answered - first) / elapsed if elapsed else 0.0
            bar.update(task, total=counts.total, completed=counts.answered, rate=_rate(counts, rate, elapsed))
            if not notices.is_terminal and elapsed - told >= TOLD_SECONDS:
                told = elapsed
                left = f", {(counts.total - counts.answered) / rate:,.0f} s left" if rate else ""
                _say(f"{counts.answered:,} of {counts.total:,} answered, {_rate(counts, rate, elapsed)}{left}")

        yield watch


def _rate(counts: Counts, requests_a_second: float, seconds: float) -> str:
    tokens = counts.output_tokens / seconds if seconds else 0.0
    return f"{requests_a_second:,.1f} requests and {tokens:,.0f} tokens a second"


def _show(counts: Counts, seconds: float) -> None:
    _say(f"{counts.completed:,} answered, {counts.failed:,} failed, {counts.output_tokens:,} tokens in {seconds:,.1f} s")
    for code, count in counts.errors.most_common():
        _say(f"{count:,} times {code}, first {counts.first_errors[code]}")
    for code, count in counts.retries.most_common():
        _say(f"{count:,} times asked again after {code}")


def _say(line: str) -> None:
    notices.print(line, markup=False, soft_wrap=True)

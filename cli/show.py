"""What the command line shows beside the output itself: colours, progress and timing, all but the colours on stderr."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.pretty import Pretty
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..constraints import Constraint
from ..engine.footprint import Footprint
from ..field_details import path_text
from ..outputs import GenerationOutput
from ..pieces import TokenPiece

FORCED_STYLE, FREE_STYLE = "grey58", "bold green"

LONG_SECONDS = 3.0  # a step that takes longer is told where there is no terminal
notices = Console(stderr=True, highlight=False)


@contextmanager
def waiting(says_all: bool = False) -> Iterator[Callable[[str], None]]:
    """Tell what is going on: on a terminal in one line that changes, else a line for each step that takes long, or for all."""
    if notices.is_terminal:
        with notices.status("") as status:
            yield status.update
        return
    timers = list[threading.Timer]()

    def say(line: str) -> None:
        for timer in timers:
            timer.cancel()
        if says_all:
            _say(line)
        else:
            timers.append(threading.Timer(LONG_SECONDS, _say, [line]))
            timers[-1].daemon = True
            timers[-1].start()

    try:
        yield say
    finally:
        for timer in timers:
            timer.cancel()


def _say(line: str) -> None:
    notices.print(line, markup=False, soft_wrap=True)


def show_prompt(prompt: str) -> None:
    notices.print(Text(prompt, style="italic"))


def show_value(value: Any) -> None:
    """The parsed output, unless it is just the text again."""
    if not isinstance(value, str):
        notices.print(Pretty(value))


def show_piece(console: Console, piece: TokenPiece) -> None:
    """One token, in the colour of its freedom."""
    console.print(Text(piece.text, style=FORCED_STYLE if piece.is_forced else FREE_STYLE), end="", soft_wrap=True)


def show_fields(outputs: Iterable[GenerationOutput]) -> None:
    """What the constraint did to each value, where that was asked for: a table, strained values marked."""
    for output in outputs:
        if output.records is None:
            continue
        table = Table("value", "the model alone", "under the mask", "kept mass", box=None)
        for path, details in output.fields.items():
            style, mark = ("bold red", " strained") if details.is_strained else ("", "")
            numbers = (details.probability, details.constrained_probability, details.kept_mass)
            table.add_row(Text(path_text(path) + mark, style=style), *(f"{number:.3g}" for number in numbers))
        notices.print(table)


def show_legend(pieces: Sequence[TokenPiece]) -> None:
    """How many tokens the constraint wrote by itself."""
    num_forced = sum(piece.is_forced for piece in pieces)
    legend = Text(f"{len(pieces)} tokens: ", style="dim")
    legend.append(f"{num_forced} forced by the constraint", style=FORCED_STYLE)
    legend.append(", ")
    legend.append(f"{len(pieces) - num_forced} chosen by the model", style=FREE_STYLE)
    notices.print(legend)


def show_remarks(constraints: Iterable[Constraint | None]) -> None:
    """What of constraints is not enforced, or read in another way than it is written."""
    for remark in dict.fromkeys(each for one in constraints if one is not None for each in (*one.residue, *one.notes)):
        _say(remark)


def show_loops(outputs: Iterable[GenerationOutput]) -> None:
    """In which values the model repeated itself until they were ended."""
    for loop in (loop for output in outputs for loop in output.loops):
        _say(f"the model repeated {loop.text!r} {loop.count} times in {loop.path}, which was ended there (--loop-bound)")


def show_timing(num_tokens: int, seconds: float, load_seconds: float, footprint: Footprint) -> None:
    rate = num_tokens / seconds if seconds else 0.0
    notices.print(f"{num_tokens} tokens in {seconds:.2f} s ({rate:.0f} a second); ready after {load_seconds:.1f} s", style="dim")
    weights, cache = footprint.weight_bytes / 1e6, footprint.cache_bytes / 1e6
    host = footprint.host_weight_bytes / 1e6
    streamed = f", {host:.0f} MB of weights in host memory" if host else ""
    notices.print(f"{weights:.0f} MB of weights, {cache:.0f} MB of KV cache{streamed}", style="dim")


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Seconds since the block was entered."""
    start = time.perf_counter()
    yield lambda: time.perf_counter() - start


@contextmanager
def prompt_progress(total: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over prompts, where there is a terminal to draw it."""
    columns = (TextColumn("prompts"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notices, transient=True, disable=not notices.is_terminal) as bar:
        task = bar.add_task("prompts", total=total)
        yield lambda finished, _: bar.update(task, completed=finished)

"""Parts in processes of their own: no exception, broken device or kernel that hangs in one of them spoils another."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cases import BEGUN, BROKEN, FAILED, Line, behind_the_last, read_lines

START = 30.0  # seconds that a process may take to begin and to end, beside its measurements
MOST_STARTS = 5


def measured_apart(command: Callable[[int, float], Sequence[str]], part: str, out: Path, seconds: float) -> list[Line]:
    """The figures of a part, and a line for each thing that went wrong.

    command(first, seconds): what measures from case `first` on and appends to `out`.
    """
    deadline, first, problems = time.monotonic() + seconds, 0, list[Line]()
    for _ in range(MOST_STARTS):
        left = deadline - time.monotonic()
        status = run_for(command(first, left), left + START)
        lines = read_lines(out)
        if status == 0:
            break
        if status != BROKEN:  # which has told why
            said = "it did not end in time" if status is None else f"it ended with status {status}"
            problems.append({"what": FAILED, "part": part, "case": behind_the_last(lines) - 1, "error": said})
        if behind_the_last(lines) == first or time.monotonic() > deadline:
            break
        first = behind_the_last(lines)
    return [line for line in lines if line["what"] != BEGUN] + problems


def run_for(command: Sequence[str], seconds: float) -> int | None:
    """The exit status, or None for a process that had to be killed."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return None

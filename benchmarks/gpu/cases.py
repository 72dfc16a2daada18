"""Measurements one by one: each guarded, each kept at once, none begun after the time is up.

A case that raises costs its own line. One that breaks the device (an illegal address: CUDA then refuses everything in this process)
ends the process, and `run.py` goes on behind it in another one.
"""

from __future__ import annotations

import gc
import json
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

Line = dict[str, Any]
BROKEN = 3  # exit status of a process whose device does not answer any more
BEGUN, FAILED, SKIPPED = "begun", "failed", "skipped"  # "what" of lines that are no figures


class Case(NamedTuple):
    """What is measured, and the call that does it. Nothing is allocated before the call."""

    what: Line
    measure: Callable[[], Iterator[Line]]


def measure_cases(cases: Iterable[Case], out: Path, *, first: int = 0, seconds: float = float("inf")) -> None:
    """Appends the lines of all cases from number `first` on to a file of one JSON object a line.

    Raises SystemExit with BROKEN when a case has broken the device.
    """
    deadline = time.monotonic() + seconds
    skipped = 0
    with out.open("a", encoding="utf-8") as file:
        file.write("\n")  # ends the line of a process that died while writing it

        def write(line: Line, *, is_shown: bool = True) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()
            if is_shown:
                print("  ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in line.values()), flush=True)

        for number, case in enumerate(cases):
            if number < first:
                continue
            if time.monotonic() > deadline:
                skipped += 1
                continue
            write({"what": BEGUN, "case": number}, is_shown=False)
            try:
                for line in case.measure():
                    write({**case.what, **line})
            except Exception as error:
                said = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
                where = traceback.extract_tb(error.__traceback__)[-1]
                write({"what": FAILED, "of": case.what, "error": said, "at": f"{Path(where.filename).name}:{where.lineno}"})
                if not answers():
                    raise SystemExit(BROKEN) from error
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # what a case may take is asked of the device
        if skipped:
            write({"what": SKIPPED, "cases": skipped, "reason": f"the time was up: {seconds:.0f} s"})


def answers() -> bool:
    """Whether the device still does what it is told."""
    if not torch.cuda.is_available():
        return True
    try:
        torch.cuda.empty_cache()
        torch.zeros(1, device="cuda").item()
    except RuntimeError:
        return False
    return True


def read_lines(path: Path) -> list[Line]:
    """What was kept, whole lines only: a process may have died while writing one."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def behind_the_last(lines: Iterable[Line]) -> int:
    """Number of the case behind the last one that was begun."""
    return max((line["case"] + 1 for line in lines if line["what"] == BEGUN), default=0)

"""A run of a benchmark as a value and as a file: cases with their figures, and what they were measured on."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from ...errors import UsageError

FORMAT = 1
IS_BETTER_LOW: Mapping[str, bool] = MappingProxyType(  # by the ending of a figure's name, which is its unit
    {"_ms": True, "_us": True, "_s": True, "_per_s": False, "_share": False, "_lost": True, "_schemas": True}
)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table. Names of figures end with their unit: first_token_ms, tokens_per_s, right_share."""

    name: str
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class Run:
    """What a benchmark has found."""

    benchmark: str
    model: str
    cases: tuple[Case, ...]
    options: dict[str, Any] = field(default_factory=dict)  # that were given
    note: str = ""
    machine: str = ""
    date: str = ""
    version: str = ""
    format: int = FORMAT

    def figures(self) -> list[str]:
        """The names of all figures, in the order in which they first come."""
        return list(dict.fromkeys(name for case in self.cases for name in case.figures))


def run_of(benchmark: str, model: str, cases: list[Case], options: dict[str, Any], note: str, device: str) -> Run:
    """A run that was made here, now."""
    machine = f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    if device.startswith("cuda"):
        machine = f"{torch.cuda.get_device_name(torch.device(device))}, {machine}"
    return Run(benchmark, model, tuple(cases), options, note, machine, date.today().isoformat(), version("maskwright"))


def save_run(run: Run, path: Path) -> None:
    """Write a run as JSON. Raises UsageError where that cannot be done."""
    try:
        path.write_text(as_json(run) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror or error}") from None


def as_json(run: Run) -> str:
    return json.dumps(asdict(run), indent=1, default=str)


def load_run(path: Path, benchmark: str) -> Run:
    """A run that was saved. Raises UsageError for a file that is none, or of another benchmark."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cases = [Case(each["name"], {name: float(value) for name, value in each["figures"].items()}) for each in found["cases"]]
        run = Run(**{**found, "cases": tuple(cases)})
    except OSError as error:
        raise UsageError(f"--compare {path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"--compare {path}: this is no run of maskwright bench ({type(error).__name__}: {error})") from None
    if run.format != FORMAT or run.benchmark != benchmark:
        raise UsageError(f"--compare {path}: it is a run of {run.benchmark} in format {run.format}, not of {benchmark} in {FORMAT}")
    return run


def change(figure: str, now: float, before: float) -> tuple[float, bool | None]:
    """(now over before less 1, whether that is better; None where it is neither)"""
    if not before:
        return 0.0, None
    ending = max((ending for ending in IS_BETTER_LOW if figure.endswith(ending)), key=len, default="")
    relative = now / before - 1
    return relative, None if not ending or not relative else (relative < 0) == IS_BETTER_LOW[ending]

"""Answers as a table, and as JSON with the versions of what answered."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rich.table import Table
from rich.text import Text

from .protocol import Backend
from .running import REFUSED, RIGHT, WRONG, Answer

STYLES = {RIGHT: "green", REFUSED: "yellow", WRONG: "bold red"}


def table(answers: Mapping[str, Sequence[Answer]]) -> Table:
    """A line for each suite, three columns for each backend, by its name: right, refused, wrong."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    made.add_column("suite")
    made.add_column("cases", justify="right")
    for name in answers:
        for verdict in STYLES:
            made.add_column(f"{name if verdict == RIGHT else ''}\n{verdict}", justify="right")
    suites = list(dict.fromkeys(one.suite for found in answers.values() for one in found))
    for suite in [*suites, ""]:
        cells: list[Text | str] = [suite or "all"]
        for number, found in enumerate(answers.values()):
            of_suite = [one.verdict for one in found if suite in ("", one.suite)]
            cells += [str(len(of_suite))] if number == 0 else []
            cells += [_cell(of_suite.count(verdict), style) for verdict, style in STYLES.items()]
        made.add_row(*cells, style="bold" if not suite else "")
    return made


def _cell(count: int, style: str) -> Text:
    return Text(str(count), style) if count else Text("-", "dim")


def details(answers: Sequence[Answer]) -> list[str]:
    """A line for each case that is not right."""
    return [f"{one.verdict:8}{one.suite}/{one.id}: {one.why}" for one in answers if one.verdict != RIGHT]


def as_json(answers: Mapping[str, Sequence[Answer]], backends: Mapping[str, Backend]) -> dict[str, Any]:
    """All of it; `backends` has those that answered, by the names of `answers`."""
    return {
        "suite": {"name": "maskwright conformance", "version": version("maskwright")},
        "python": platform.python_version(),
        "backends": [
            {
                "name": backends[name].name,
                "version": backends[name].version,
                **{verdict: sum(one.verdict == verdict for one in found) for verdict in STYLES},
                "answers": [{key: value for key, value in asdict(one).items() if value} for one in found],
            }
            for name, found in answers.items()
        ],
    }

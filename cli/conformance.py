"""`maskwright conformance`: what engines of constrained decoding get right, refuse, and get wrong."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.status import Status

from ..conformance.cases import SUITES, load
from ..conformance.report import as_json, details, table
from ..conformance.running import BACKENDS, SECONDS, WRONG, Answer, find_backend, run
from .show import notices

WRONG_CODE = 1


def conformance(
    backend: Annotated[
        list[str], typer.Option(metavar="NAME|MODULE:CLASS", help=f"{', '.join(BACKENDS)}, or a class of yours; repeat the option.")
    ],
    suite: Annotated[list[str] | None, typer.Option(help=f"{', '.join(SUITES)}; repeat the option. All by default.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all answers there.")] = None,
    seconds: Annotated[float, typer.Option(help="Processor time that a case may take.")] = SECONDS,
    show_all: Annotated[bool, typer.Option("--all", help="Show every case that is refused or wrong.")] = False,
) -> None:
    """Ask backends about schemas, patterns, grammars and tags with known verdicts; dead ends, rollback, endings, budgets.

    Exit code 0: nothing is wrong (refused may be what a backend does not offer). 1: something is. 2: the input cannot be read.
    """
    suites = list(dict.fromkeys(suite or SUITES))
    count = sum(len(load(name)) for name in suites)
    backends = {name: find_backend(name) for name in dict.fromkeys(backend)}
    answers: dict[str, list[Answer]] = {}
    for name in backends:
        with notices.status("") as status:
            answers[name] = run(name, suites, seconds, partial(_tell, status, name, count))
    console = Console(highlight=False)
    console.print(table({f"{backends[name].name} {backends[name].version}": found for name, found in answers.items()}))
    if show_all:
        for name, found in answers.items():
            console.print(f"\n{name}", *details(found), sep="\n", markup=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(answers, backends), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if any(one.verdict == WRONG for found in answers.values() for one in found):
        raise typer.Exit(WRONG_CODE)


def _tell(status: Status, name: str, count: int, done: int) -> None:
    status.update(f"{name}: {done} of {count} cases")


def command() -> Any:
    """The command, for the command line."""
    app = typer.Typer(add_completion=False)
    app.command("conformance", no_args_is_help=True)(conformance)
    return typer.main.get_command(app)

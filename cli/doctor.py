"""`maskwright doctor`: a line for each thing that has to work here, and what to do where it does not."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..foundation.diagnosis import Finding, Verdict
from .checks import CHECKS, Subject

FAILED_CODE = 1
STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}


def doctor(
    model: Annotated[str, typer.Option("--model", "-m", help="The model that has to load.")] = "embedded",
    host: Annotated[str, typer.Option(help="The address for `maskwright serve`.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port for `maskwright serve`.")] = 8000,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Look whether everything that is needed works here.

    Exit code 0: all works, perhaps slower than it could (warn). 1: something does not work (fail).
    """
    subject, findings, console = Subject(model, host, port), list[Finding](), Console(highlight=False)
    for check in CHECKS:
        for finding in check.findings(subject):
            findings.append(finding)
            if not as_json:
                _show(console, finding)
    worst = max((finding.verdict for finding in findings), key=list(Verdict).index)
    if as_json:
        print(json.dumps({"verdict": worst, "checks": [finding.as_json() for finding in findings]}, indent=1))
    else:
        counts = Counter(finding.verdict for finding in findings)
        console.print(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    if worst is Verdict.FAIL:
        raise typer.Exit(FAILED_CODE)


def command() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(doctor)
    return typer.main.get_command(app)


def _show(console: Console, finding: Finding) -> None:
    line = Text.assemble((f"{finding.verdict:<5}", STYLES[finding.verdict]), f"{finding.name:<12}", finding.found)
    console.print(line, soft_wrap=True)
    if finding.advice:
        console.print(Text(f"{'':17}-> {finding.advice}", style="bold"), soft_wrap=True)

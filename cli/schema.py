"""`maskwright schema check`: what becomes of each keyword of a JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..constraints import Compiler, GrammarSyntaxError, JsonSchema, Vocabulary, warm_up
from ..constraints.front_ends.json_schema.report import EXACT, NOTE, REFUSED, Finding, Report, report
from ..errors import UsageError
from .inputs import schema_source
from .show import notices

REFUSED_CODE = 1
STYLES = {EXACT: "green", REFUSED: "bold red", NOTE: "yellow"}
MAX_PATHS = 3  # shown of one keyword, without --all


def check(
    file: Annotated[str, typer.Argument(metavar="FILE.json|{...}|MODULE:CLASS", help="A JSON Schema, or a type.")],
    property_order: Annotated[str, typer.Option(help="declared or any.")] = "declared",
    formats: Annotated[str, typer.Option(help="assert or annotation.")] = "assert",
    draft: Annotated[str | None, typer.Option(help="4, 6, 7, 2019-09 or 2020-12; else what $schema says.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show every path.")] = False,
) -> None:
    """Tell for each keyword whether it is enforced exactly, refused, or taken with a remark.

    Exit code 0: all is exact. 1: something is refused. 2: the input cannot be read.
    """
    try:
        source = JsonSchema(schema_source(file, "FILE"), property_order=property_order, formats=formats, draft=draft)
    except GrammarSyntaxError as error:
        raise UsageError(f"FILE {file}: {error}") from None
    with notices.status("") as status:
        warm_up(report=status.update)
        result = report(source, Compiler(_byte_vocabulary()))
    if as_json:
        print(json.dumps(result.as_json(), indent=1, ensure_ascii=False))
    else:
        _show(result, file, None if show_all else MAX_PATHS)
    if not result.is_exact:
        raise typer.Exit(REFUSED_CODE)


def command() -> Any:
    """The group of commands about schemas."""
    app = typer.Typer(add_completion=False, no_args_is_help=True)
    app.command("check")(check)

    @app.callback()
    def schema() -> None:
        """Look into JSON Schemas."""

    return typer.main.get_command(app)


def _byte_vocabulary() -> Vocabulary:
    """The smallest vocabulary that spells everything: verdicts do not depend on the vocabulary."""
    return Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


def _show(result: Report, file: str, most: int | None) -> None:
    console = Console(highlight=False, soft_wrap=False)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("verdict", "keyword", "where", "why"):
        table.add_column(heading, overflow="fold")
    for verdict in (REFUSED, NOTE, EXACT):
        for (keyword, reason), paths in _grouped(result.of(verdict)).items():
            table.add_row(Text(verdict, STYLES[verdict]), Text(keyword), Text(_listed(paths, most)), Text(reason))
    if table.row_count:
        console.print(table)
    console.print(_summary(result, file), soft_wrap=True)


def _grouped(findings: list[Finding]) -> dict[tuple[str, str], list[str]]:
    """Paths by keyword and reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        groups.setdefault((finding.keyword, finding.reason), []).append(finding.path)
    return groups


def _listed(paths: list[str], most: int | None) -> str:
    shown = paths if most is None or len(paths) <= most + 1 else paths[:most]
    more = f"\n... and {len(paths) - len(shown)} more" if len(shown) < len(paths) else ""
    return "\n".join(shown) + more


def _summary(result: Report, file: str) -> Text:
    if result.failure:
        return Text.assemble((f"{file}: ", ""), ("cannot be compiled: ", STYLES[REFUSED]), result.failure)
    counts = f"{len(result.of(EXACT))} exact, {len(result.of(REFUSED))} refused, {len(result.of(NOTE))} with a note"
    verdict = ("exact", STYLES[EXACT]) if result.is_exact else ("not exact", STYLES[REFUSED])
    return Text.assemble(f"{file} (draft {result.draft}): ", verdict, f": {counts}")

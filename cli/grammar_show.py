"""How the findings, suites and explanations of `maskwright grammar` look on the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..constraints.lab.check import Check
from ..constraints.lab.cost import Cost
from ..constraints.lab.explain import TextExplanation, TokenExplanation
from ..constraints.lab.findings import ERROR, LEVELS, NOTE, WARNING
from ..constraints.lab.suite import ACCEPT, PREFIX, REJECT, Result, Suite

STYLES = {ERROR: "bold red", WARNING: "yellow", NOTE: "cyan"}
GOOD, BAD = "green", "bold red"
_CONTEXT = 30  # characters shown on either side of a byte that fails


def _console() -> Console:
    """A console that writes to what is standard output now; so it is made when it is needed."""
    return Console(highlight=False)


def grammar_list(descriptions: Mapping[str, str]) -> None:
    table = _table("grammar", "what it accepts")
    for name, description in descriptions.items():
        table.add_row(Text(name, "bold"), Text(description))
    _console().print(table)


def check(result: Check, tokenizer: str) -> None:
    console = _console()
    console.print(_headline(result), soft_wrap=True)
    if result.findings:
        table = _table("", "line", "what")
        for finding in result.findings:
            what = Text(f"{finding.code}: ", "bold").append(Text(finding.message, "not bold"))
            for detail in finding.details:
                what.append(f"\n    {detail}", "dim not bold")
            table.add_row(Text(finding.level, STYLES[finding.level]), Text(str(finding.line or "")), what)
        console.print(table)
    if result.cost is not None:
        console.print(_cost(result.cost, tokenizer), soft_wrap=True)


def _headline(result: Check) -> Text:
    counts = [(len(result.of(level)), level) for level in LEVELS]
    said = ", ".join(f"{count} {level}{'s' if count != 1 else ''}" for count, level in counts if count) or "nothing found"
    rules = f", {result.num_rules} rules" if result.num_rules else ""
    verdict = ("ok", GOOD) if result.is_clean else ("not ok", BAD)
    return Text.assemble((result.file.name, "bold"), f" ({result.file.language}{rules}): ", verdict, f": {said}")


def _cost(cost: Cost, tokenizer: str) -> Text:
    lines = [
        f"cost with the tokenizer {tokenizer} ({cost.vocabulary:,} tokens): compiled in {cost.compile_ms:.1f} ms; "
        f"{cost.least_tokens} token{'s' if cost.least_tokens != 1 else ''} at least",
        f"  {cost.steps} steps through random texts: {cost.states:,} states, {cost.rows:,} mask rows, {cost.kilobytes:,} KiB; "
        f"a new mask takes {cost.mask_us_median:.1f} µs (median), {cost.mask_us_most:.0f} µs (most)",
        f"  such as {', '.join(repr(_cut(sample, 40)) for sample in dict.fromkeys(cost.samples))}",
    ]
    return Text("\n".join(lines), "dim")


def suites(runs: Sequence[tuple[Suite, Sequence[Result]]]) -> None:
    console = _console()
    table = _table("suite", "accept", "reject", "prefix", "failed", "ms")
    for column in table.columns[1:]:
        column.justify = "right"
    for suite, results in runs:
        counts = [sum(result.case.wanted == wanted for result in results) for wanted in (ACCEPT, REJECT, PREFIX)]
        failed = sum(not result.passed for result in results)
        milliseconds = 1e3 * sum(result.seconds for result in results)
        shown = [Text(str(count) if count else "") for count in counts]
        verdict = Text(str(failed), BAD if failed else GOOD)
        table.add_row(Text(_nearby(suite.path)), *shown, verdict, Text(f"{milliseconds:.1f}", "dim"))
    console.print(table)
    for suite, results in runs:
        failed_for: dict[str, list[str]] = {}
        for result in results:
            if result.reason is not None:
                failed_for.setdefault(result.reason, []).append(result.case.label)
        for reason, labels in failed_for.items():
            is_about_all = reason.startswith(f"{suite.grammar.name} does not compile")
            for label in [f"all {len(labels)} strings"] if is_about_all else labels:
                console.print(Text.assemble(("failed ", BAD), f"{_nearby(suite.path)}: {label}: {reason}"), soft_wrap=True)
    passed = sum(result.passed for _, results in runs for result in results)
    total = sum(len(results) for _, results in runs)
    said = f"{passed} of {total} strings in {len(runs)} suites are as they should be"
    console.print(Text(said, GOOD if passed == total else BAD))


def text_explanation(found: TextExplanation) -> None:
    console = _console()
    if found.accepted:
        console.print(Text("accepted", GOOD))
        return
    console.print(Text(str(found), BAD if found.fails_at is not None else "yellow"), soft_wrap=True)
    console.print(_pointer(found), soft_wrap=True)
    if found.wanted:
        console.print("what the rules of the grammar were about to read there:")
        for what, rule, line in found.wanted[:12]:
            console.print(Text.assemble("  ", (what, "bold"), f" in {rule} (line {line})"), soft_wrap=True)
    if found.rules:
        path = " > ".join(f"{rule} (from character {at})" for rule, _, at in found.rules)
        console.print(Text(f"inside {path}", "dim"), soft_wrap=True)


def _pointer(found: TextExplanation) -> Text:
    """The line of the text with a mark below where it fails."""
    read = found.text[: found.fails_at].decode("utf-8", "replace")
    before = read.rpartition("\n")[2][-_CONTEXT:]
    behind = found.text[len(found.text) if found.fails_at is None else found.fails_at :].decode("utf-8", "replace")
    line = before + behind.partition("\n")[0][:_CONTEXT]
    shown = "".join(char if char.isprintable() else "·" for char in line)
    return Text.assemble("  ", shown, "\n  ", " " * len(before), ("^", BAD))


def token_explanation(found: TokenExplanation) -> None:
    _console().print(Text(str(found), GOOD if found.token.allowed else "yellow"), soft_wrap=True)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _nearby(path: Path) -> str:
    """A path as short as it can be written from here."""
    return min(str(path), os.path.relpath(path), key=len)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."

"""How much of JSON Schema each engine enforces exactly: the official test suite and MaskBench, values against verdicts.

    python benchmarks/schema_coverage.py --suite FOLDER --schemas FILE.jsonl[.xz] [--sample 500] [--jobs 2] [--output results.json]

Every value is given as its canonical text (compact, numbers that are integers written as such). A schema is *right* when all its
valid values are accepted and all its invalid ones rejected, *wrong* when not, *refused* when the engine says that it does not take
it. On the suite keys may stand in any order and formats are annotations; on MaskBench formats are asserted, and keys stand in
declared order, except that a valid value which is rejected so is tried again with keys in any order (`--order any`: all of them).
A schema that takes more than `--seconds` of processor time is stopped and counted as timed out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import lzma
import platform
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from acceptors import ACCEPTORS, Acceptor, Accepts, Declined, Question
from engines import percentiles
from result_files import chosen, count, errors_as_messages, require_engines, result_file, size, there
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from workers import Failure, run_all

from maskwright.constraints.base.errors import ConstraintLimit
from maskwright.constraints.front_ends.json_schema.documents.values import (
    dump_json,
    parse_json,
    scalar_text,
    string_text,
)

DRAFTS = {"draft4": "4", "draft6": "6", "draft7": "7", "draft2019-09": "2019-09", "draft2020-12": "2020-12"}
REMOTES = "http://localhost:1234/"
VERDICTS = ("right", "wrong", "refused", "malformed", "timed out", "hung", "crashed")


@dataclass(frozen=True)
class Value:
    """A value and whether the schema admits it. `text` is None beyond 300 digits, where texts are not promised."""

    text: str | None
    valid: bool
    description: str


@dataclass(frozen=True)
class Case:
    """A schema with its values; `draft` None reads `$schema`."""

    name: str
    section: str  # row of the table
    schema: str
    draft: str | None
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Setting:
    """How all cases of a collection are asked. `orders`: what is tried one after the other for a valid value."""

    orders: tuple[str, ...]
    formats: str
    resources: tuple[tuple[str, str], ...] = ()


@dataclass
class Outcome:
    """What an engine made of a case. `accepted` is None for values that were not asked."""

    verdict: str
    keyword: str = ""
    reason: str = ""
    accepted: list[bool | None] = field(default_factory=list)
    compile_us: float = 0.0
    seconds: float = 0.0


# -- cases --------------------------------------------------------------------------------------------------------------


def read_suite(folder: Path, drafts: Sequence[str], files: Sequence[str], optional: bool) -> list[Case]:
    """The required tests, or the optional ones without those of formats; a case is a group."""
    cases = []
    for draft in drafts:
        for path in sorted((folder / "tests" / draft / ("optional" if optional else "")).glob("*.json")):
            if files and path.stem not in files:
                continue
            for group in parse_json(path.read_text()):
                schema = group["schema"]
                named = isinstance(schema, dict) and "$schema" in schema
                values = tuple(_value(test["data"], test["valid"], test["description"]) for test in group["tests"])
                name = f"{path.stem}: {group['description']}"
                cases.append(Case(name, draft, dump_json(schema), None if named else DRAFTS[draft], values))
    return cases


def read_remotes(folder: Path) -> tuple[tuple[str, str], ...]:
    paths = sorted((folder / "remotes").rglob("*.json"))
    return tuple((REMOTES + path.relative_to(folder / "remotes").as_posix(), path.read_text()) for path in paths)


def read_schemas(path: Path) -> list[Case]:
    """All schemas of a file in the form of MaskBench."""
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
    cases = []
    for line in text.split("\n"):
        if line:
            case = parse_json(line)
            values = (
                _value(test["data"], test["valid"], test.get("rust_error") or test["description"])
                for test in case["tests"]
            )
            cases.append(Case(case["name"], "MaskBench", dump_json(case["schema"]), None, tuple(values)))
    return cases


def canonical_text(value: Any) -> str:
    """The one compact text of a value, with its keys in the order they have. Raises `ConstraintLimit` beyond 300 digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{string_text(key)}:{canonical_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    return scalar_text(value)


def _value(data: Any, valid: bool, description: str) -> Value:
    try:
        text = canonical_text(data)
    except ConstraintLimit:
        text = None
    return Value(text, valid, description)


# -- judging ------------------------------------------------------------------------------------------------------------


def judge(acceptor: Acceptor, case: Case, setting: Setting) -> Outcome:
    """Ask an engine about a case. What it raises is part of the outcome."""
    begun = time.perf_counter()
    outcome = Outcome("right")
    try:
        _judge(acceptor, case, setting, outcome)
    except Declined as declined:
        outcome.verdict, outcome.keyword, outcome.reason = declined.kind, declined.keyword, declined.reason
    except Exception as error:
        outcome.verdict, outcome.keyword, outcome.reason = (
            "crashed",
            type(error).__name__,
            f"{type(error).__name__}: {error}"[:500],
        )
    else:
        wrong = any(
            got is not None and got != value.valid for got, value in zip(outcome.accepted, case.values, strict=True)
        )
        outcome.verdict = "wrong" if wrong else "right"
    outcome.seconds = time.perf_counter() - begun
    return outcome


def _judge(acceptor: Acceptor, case: Case, setting: Setting, outcome: Outcome) -> None:
    def compiled(order: str) -> Accepts:
        return acceptor.compile(Question(case.schema, case.draft, order, setting.formats, setting.resources))

    begun = time.thread_time_ns()
    makers = {setting.orders[0]: compiled(setting.orders[0])}
    outcome.compile_us = (time.thread_time_ns() - begun) / 1e3
    for value in case.values:
        accepted = None
        for order in setting.orders:
            if value.text is None or accepted or (accepted is False and not value.valid):
                break
            makers[order] = makers.get(order) or compiled(order)
            accepted = makers[order](value.text)
        outcome.accepted.append(accepted)


def any_order_is_built(acceptor: Acceptor) -> bool:
    try:
        acceptor.compile(Question('{"type":"null"}', None, "any", "assert"))
    except Declined:
        return False
    return True


# -- figures ------------------------------------------------------------------------------------------------------------


def summarise(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts by case and by value; causes of refusals; wrong values; times of compiling."""
    by_case = Counter(outcome.verdict for outcome in outcomes)
    values: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = {verdict: Counter() for verdict in VERDICTS[2:]}
    for case, outcome in zip(cases, outcomes, strict=True):
        if outcome.verdict in causes:
            values[outcome.verdict] += len(case.values)
            causes[outcome.verdict][outcome.keyword or outcome.reason] += 1
            continue
        for value, accepted in zip(case.values, outcome.accepted, strict=True):
            values[_verdict_of(value, accepted)] += 1
    judged = [outcome.compile_us for outcome in outcomes if outcome.compile_us]
    return {
        "cases": {"total": len(cases), **{verdict: by_case[verdict] for verdict in VERDICTS}},
        "values": {"total": sum(len(case.values) for case in cases), **values},
        "causes": {verdict: dict(counter.most_common()) for verdict, counter in causes.items() if counter},
        "compile_us": percentiles(judged),
    }


def _verdict_of(value: Value, accepted: bool | None) -> str:
    if accepted is None:
        return "beyond 300 digits"
    return "right" if accepted == value.valid else "invalid accepted" if accepted else "valid rejected"


def wrong_values(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Every value that an engine judges otherwise than the data."""
    return [
        {
            "section": case.section,
            "name": case.name,
            "value": value.description,
            "text": value.text,
            "error": _verdict_of(value, got),
        }
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome.verdict == "wrong"
        for value, got in zip(case.values, outcome.accepted, strict=True)
        if got is not None and got != value.valid
    ]  # fmt: skip


def second_opinion(wrong: Sequence[dict[str, Any]], cases: Sequence[Case]) -> None:
    """Adds to each wrong value of a schema what jsonschema-rs says about it, formats asserted."""
    try:
        import jsonschema_rs
    except ImportError:
        return
    schemas = {case.name: case.schema for case in cases}
    for one in wrong:
        try:
            validator = jsonschema_rs.validator_for(json.loads(schemas[one["name"]]), validate_formats=True)
            one["jsonschema-rs"] = "valid" if validator.is_valid(json.loads(one["text"])) else "invalid"
        except ValueError as error:
            one["jsonschema-rs"] = f"no opinion: {str(error)[:80]}"


# -- printing -----------------------------------------------------------------------------------------------------------


def print_table(console: Console, title: str, caption: str, rows: Sequence[tuple[str, dict[str, Any]]]) -> None:
    table = Table(title=title, caption=caption)
    schemas, values = ("groups", "tests") if "suite" in title else ("schemas", "values")
    for heading in ("", schemas, "right", "wrong", "refused", "other", "%", values, "right", "inv. accepted", "valid rejected",
                    "refused", "compile p50 us", "p99", "max"):  # fmt: skip
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, summary in rows:
        by_case, by_value, times = summary["cases"], summary["values"], summary["compile_us"]
        other = sum(by_case[verdict] for verdict in VERDICTS[3:])
        cells = [by_case["total"], by_case["right"], by_case["wrong"], by_case["refused"], other]
        share = f"{100 * by_case['right'] / max(by_case['total'], 1):.1f}"
        counts = [by_value.get(key, 0) for key in ("total", "right", "invalid accepted", "valid rejected", "refused")]
        numbers = [f"{times[key]:,.0f}" for key in ("p50", "p99", "max")]
        table.add_row(name, *map(str, cells), share, *map(str, counts), *numbers)
    console.print(table)


def print_causes(console: Console, name: str, summary: dict[str, Any], most: int) -> None:
    for verdict, counter in summary["causes"].items():
        shown = ", ".join(f"{escape(keyword)} {count}" for keyword, count in list(counter.items())[:most])
        more = f", and {len(counter) - most} more" if len(counter) > most else ""
        console.print(f"[bold]{name}, {verdict}:[/bold] {shown}{more}", highlight=False)


def print_cases(
    console: Console, name: str, cases: Sequence[Case], outcomes: Sequence[Outcome], verdicts: Sequence[str]
) -> None:
    """The cases of some verdicts, a line each."""
    for case, outcome in zip(cases, outcomes, strict=True):
        if outcome.verdict in verdicts:
            line = f"{name} {case.section} {case.name}: {outcome.verdict}: {outcome.reason}"
            console.print(escape(line), highlight=False, soft_wrap=True)


def print_wrong(console: Console, name: str, wrong: Sequence[dict[str, Any]]) -> None:
    for one in wrong:
        opinion = f" (jsonschema-rs: {one['jsonschema-rs']})" if "jsonschema-rs" in one else ""
        text = one["text"] if len(one["text"]) < 160 else one["text"][:157] + "..."
        line = f"{name} {one['section']} {one['name']}: {one['error']}{opinion}: {one['value']!r}: {text}"
        console.print(escape(line), highlight=False, soft_wrap=True)


# -- the run ------------------------------------------------------------------------------------------------------------


def measure(
    acceptor: Acceptor, cases: Sequence[Case], setting: Setting, arguments: argparse.Namespace
) -> list[Outcome]:
    outcomes: list[Outcome] = [Outcome("crashed")] * len(cases)
    for index, result in run_all(lambda case: judge(acceptor, case, setting), cases, arguments.jobs, arguments.seconds):
        outcomes[index] = Outcome(result.kind, reason=result.reason) if isinstance(result, Failure) else result
    return outcomes


def orders_of(acceptor: Acceptor, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The wanted orders of keys without "any" where the engine has no such option."""
    orders = wanted if any_order_is_built(acceptor) else tuple(order for order in wanted if order != "any")
    return orders or ("declared",)


def report(
    console: Console,
    title: str,
    cases: Sequence[Case],
    wanted: Setting,
    engines: dict[str, Acceptor],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Measure one collection with all engines and print it; the figures as JSON."""
    sections = list(dict.fromkeys(case.section for case in chosen(cases, "--names, --files or --sample")))
    results: dict[str, Any] = {}
    for acceptor in engines.values():
        setting = dataclasses.replace(wanted, orders=orders_of(acceptor, wanted.orders))
        begun = time.perf_counter()
        outcomes = measure(acceptor, cases, setting, arguments)
        rows, name = [], acceptor.name
        for section in [*sections, *(["all"] if len(sections) > 1 else [])]:
            of_section = [
                (case, got) for case, got in zip(cases, outcomes, strict=True) if section in ("all", case.section)
            ]
            rows.append((section, summarise([case for case, _ in of_section], [got for _, got in of_section])))
        wrong = wrong_values(cases, outcomes)
        if title == "MaskBench":
            second_opinion(wrong, cases)
        caption = (
            f"keys {', then '.join(setting.orders)}; formats {setting.formats}; {time.perf_counter() - begun:.0f} s"
        )
        if setting.orders != wanted.orders:
            caption += f" (this engine has no property_order='any': asked for {' and '.join(wanted.orders)})"
        print_table(console, f"{title}: {name}", caption, rows)
        print_causes(console, name, rows[-1][1], 60 if arguments.list else 12)
        if arguments.list_wrong:
            print_wrong(console, name, wrong)
        print_cases(console, name, cases, outcomes, arguments.list)
        results[name] = {
            "setting": {"orders": setting.orders, "formats": setting.formats},
            "summaries": dict(rows),
            "wrong": wrong,
            "outcomes": [
                {"section": case.section, "name": case.name, "verdict": got.verdict, "keyword": got.keyword,
                 "reason": got.reason[:300], "compile_us": round(got.compile_us), "seconds": round(got.seconds, 3)}
                for case, got in zip(cases, outcomes, strict=True)
            ],
        }  # fmt: skip
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", type=there, help="folder of the official JSON-Schema-Test-Suite")
    parser.add_argument("--schemas", type=there, help="JSON lines in the form of MaskBench, .xz allowed")
    parser.add_argument("--drafts", nargs="+", default=list(DRAFTS), choices=list(DRAFTS))
    parser.add_argument("--files", nargs="+", default=[], help="only these files of the suite, such as ref dynamicRef")
    parser.add_argument(
        "--optional", action="store_true", help="the suite's optional tests instead of the required ones"
    )
    parser.add_argument("--names", nargs="+", default=[], help="only schemas whose name contains one of these")
    parser.add_argument("--sample", type=count, help="this many schemas, chosen at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", default=["maskwright"], choices=list(ACCEPTORS))
    parser.add_argument("--order", choices=("both", "declared", "any"), default="both", help="of keys, on MaskBench")
    parser.add_argument("--jobs", type=count, default=2, help="processes")
    parser.add_argument("--seconds", type=size, default=2.0, help="processor time for one schema and its values")
    parser.add_argument("--list-wrong", action="store_true", help="print every value that is judged wrongly")
    parser.add_argument(
        "--list", nargs="+", default=[], choices=VERDICTS[2:], help="print the schemas of these verdicts"
    )
    parser.add_argument("--output", type=result_file, help="write everything here as JSON")
    arguments = parser.parse_args()
    if not arguments.suite and not arguments.schemas:
        parser.error("give --suite, --schemas, or both")
    require_engines(arguments.engines, option="--engines")
    console = Console(width=170)
    engines = {key: ACCEPTORS[key]() for key in arguments.engines}
    about = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine(),
             "python": platform.python_version(), "sample": arguments.sample, "seed": arguments.seed,
             "seconds": arguments.seconds}  # fmt: skip
    results: dict[str, Any] = {"about": about}
    if arguments.suite:
        cases = read_suite(arguments.suite, arguments.drafts, arguments.files, arguments.optional)
        setting = Setting(("any",), "annotate", read_remotes(arguments.suite))
        results["suite"] = report(console, "official suite", cases, setting, engines, arguments)
    if arguments.schemas:
        cases = read_schemas(arguments.schemas)
        cases = [case for case in cases if not arguments.names or any(name in case.name for name in arguments.names)]
        if arguments.sample is not None:
            random.Random(arguments.seed).shuffle(cases)
            cases = cases[: arguments.sample]
        setting = Setting(("declared", "any") if arguments.order == "both" else (arguments.order,), "assert")
        results["maskbench"] = report(console, "MaskBench", cases, setting, engines, arguments)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()

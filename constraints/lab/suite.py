"""Suites of strings that a grammar must accept or reject: `NAME.test.yaml` or `NAME.jsonl` beside the grammar.

    grammar: dates.gbnf        # only where the grammar is not NAME with one of the known endings
    start: date                # only where it does not begin with its usual rule
    accept: ["2024-02-29"]
    reject: ["2023-02-29"]
    prefix: ["2024-"]          # texts that can be completed

A line of JSONL is one such mapping, or one case: {"text": "2024-02-29", "accept": true, "name": "leap year"}.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import ConstraintError
from ..runtime.compiler import Compiler
from ..runtime.constraint import Constraint
from .explain import explain_text
from .grammar_file import GrammarFile, endings

SUITE_ENDINGS = (".test.yaml", ".test.yml", ".jsonl")
ACCEPT, REJECT, PREFIX = "accept", "reject", "prefix"
_KEYS = {"grammar", "start", "language", "description", ACCEPT, REJECT, PREFIX}
_CASE_KEYS = {"text", "accept", "name"}


class SuiteError(ConstraintError):
    """A suite that cannot be read. The message names the file."""


@dataclass(frozen=True, slots=True)
class Case:
    """One text and what must become of it: ACCEPT, REJECT or PREFIX."""

    text: str
    wanted: str
    name: str | None = None

    @property
    def label(self) -> str:
        return self.name or f"{self.wanted} {self.text!r}"


@dataclass(frozen=True)
class Suite:
    """The cases of one grammar; `path` is where they were read."""

    path: Path
    grammar: GrammarFile
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one case. reason: why it failed, None when it passed."""

    case: Case
    reason: str | None
    seconds: float

    @property
    def passed(self) -> bool:
        return self.reason is None


def read_suites(path: Path, grammar: Path | None = None) -> list[Suite]:
    """The suites in a file; a file of JSONL may have several. grammar: the grammar's file instead of the one that belongs to it.

    Raises SuiteError, and ConstraintError for a grammar whose language is not known.
    """
    text = _read(path)
    if path.name.endswith(".jsonl"):
        return list(_from_lines(path, text, grammar))
    return [_suite(path, _yaml(path, text), grammar)]


def grammar_beside(path: Path) -> Path | None:
    """The grammar that a suite belongs to by its name, where there is one."""
    stem = next((path.name.removesuffix(ending) for ending in SUITE_ENDINGS if path.name.endswith(ending)), path.stem)
    return next((beside for ending in endings() if (beside := path.with_name(stem + ending)).is_file()), None)


def suite_beside(grammar: Path) -> Path | None:
    """The suite that belongs to a grammar by its name, where there is one."""
    return next((beside for ending in SUITE_ENDINGS if (beside := grammar.with_name(grammar.stem + ending)).is_file()), None)


def run_case(constraint: Constraint, case: Case) -> Result:
    """Checks one text."""
    begun = time.perf_counter()
    data = case.text.encode("utf-8", "surrogatepass")
    after = constraint.advance_bytes(constraint.start(), data)
    found = after is not None and (case.wanted == PREFIX or constraint.is_accepting(after))
    reason = None
    if found and case.wanted == REJECT:
        reason = "accepted, but must be rejected"
    elif not found and case.wanted != REJECT:
        reason = str(explain_text(constraint, data, None))
    return Result(case, reason, time.perf_counter() - begun)


def run_suite(suite: Suite, compiler: Compiler) -> list[Result]:
    """Checks all texts of a suite. When the grammar does not compile, all fail for that reason."""
    try:
        constraint = compiler.compile(suite.grammar.source)
    except ConstraintError as error:
        error.show_in(suite.grammar.text)
        reason = f"{suite.grammar.name} does not compile: {error}"
        return [Result(case, reason, 0.0) for case in suite.cases]
    return [run_case(constraint, case) for case in suite.cases]


# -- reading --------------------------------------------------------------------------------------------------------------


def _from_lines(path: Path, text: str, grammar: Path | None) -> Iterator[Suite]:
    """The suites of a file of JSONL; cases in a row are one suite."""
    cases: list[Case] = []
    suites: list[Suite] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise SuiteError(f"{path}, line {number}: no JSON: {error}") from None
        if isinstance(record, dict) and "text" in record:
            cases.append(_case(f"{path}, line {number}", record))
        else:
            suites.append(_suite(path, record, grammar, f"{path}, line {number}"))
    if cases:
        yield Suite(path, _grammar_file(path, {}, grammar), tuple(cases))
    yield from suites


def _case(where: str, record: Mapping[str, Any]) -> Case:
    _check_keys(where, record, _CASE_KEYS)
    accept, name = record.get("accept"), record.get("name")
    if not isinstance(record["text"], str) or not isinstance(accept, bool) or not isinstance(name, str | None):
        raise SuiteError(f'{where}: a case is {{"text": a string, "accept": true or false, "name": a string}}')
    return Case(record["text"], ACCEPT if accept else REJECT, name)


def _yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise SuiteError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SuiteError(f"{path}: nested too deep") from None


def _suite(path: Path, record: Any, grammar: Path | None, where: str | None = None) -> Suite:
    where = where or str(path)
    if not isinstance(record, dict):
        raise SuiteError(f"{where}: a suite is a mapping with the lists accept and reject")
    _check_keys(where, record, _KEYS)
    cases = [Case(text, wanted) for wanted in (ACCEPT, REJECT, PREFIX) for text in _texts(where, record, wanted)]
    if not cases:
        raise SuiteError(f"{where}: there are no strings in it, under accept, reject or prefix")
    return Suite(path, _grammar_file(path, record, grammar), tuple(cases))


def _texts(where: str, record: Mapping[str, Any], wanted: str) -> list[str]:
    texts = record.get(wanted) or []
    if not isinstance(texts, list):
        raise SuiteError(f"{where}: {wanted} is a list of strings")
    for text in texts:
        if not isinstance(text, str):
            raise SuiteError(f"{where}: {wanted} is a list of strings, and {text!r} is none; put it in quotes")
    return texts


def _check_keys(where: str, record: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = next((key for key in record if key not in known), None)
    if unknown is not None:
        raise SuiteError(f"{where}: there is no key {unknown!r}, expected {', '.join(sorted(known))}")


def _grammar_file(path: Path, record: Mapping[str, Any], given: Path | None) -> GrammarFile:
    options = {key: record.get(key) for key in ("grammar", "language", "start")}
    for key, value in options.items():
        if not isinstance(value, str | None):
            raise SuiteError(f"{path}: {key} is a string, not {value!r}")
    found = given or (path.parent / options["grammar"] if options["grammar"] else grammar_beside(path))
    if found is None:
        known = " ".join(endings())
        raise SuiteError(f"{path}: no grammar of that name beside it (with one of {known}), and no key grammar:")
    return GrammarFile.named(str(found), _read(found), options["language"], options["start"])


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None

"""Every grammar that ships: its strings, its description, what the check finds, and random texts against an independent reader."""

from __future__ import annotations

import ast
import ipaddress
import json
import random
import tomllib
import uuid
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from maskwright import grammars
from maskwright.constraints import Compiler
from maskwright.constraints.lab.check import check
from maskwright.constraints.lab.cost import sample
from maskwright.constraints.lab.grammar_file import GrammarFile
from maskwright.constraints.lab.language import byte_compiler
from maskwright.constraints.lab.suite import ACCEPT, REJECT, SUITE_ENDINGS, read_suites, run_suite

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
FILES = sorted([*FOLDER.glob("*.gbnf"), *FOLDER.glob("*.lark")])
STEPS = 8_000  # of the search for ambiguity: a tenth of a second


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_strings(path: Path) -> None:
    (suite,) = read_suites(path.with_name(f"{path.stem}.test.yaml"))
    wanted = [case.wanted for case in suite.cases]
    assert wanted.count(ACCEPT) >= 4 and wanted.count(REJECT) >= 8
    assert [(result.case.label, result.reason) for result in run_suite(suite, byte_compiler()) if not result.passed] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_check_finds_nothing_but_notes(path: Path) -> None:
    file = GrammarFile.named(path.name, path.read_text(encoding="utf-8"))
    found = check(file, byte_compiler(), steps=STEPS)
    assert [finding for finding in found.findings if finding.level != "note"] == []
    assert {finding.code for finding in found.findings} <= {"ambiguity"}
    assert found.cost is not None and found.cost.states < 20_000


def test_every_grammar_has_strings_and_every_list_of_strings_a_grammar() -> None:
    stems = {path.name.removesuffix(ending) for ending in SUITE_ENDINGS for path in FOLDER.glob(f"*{ending}")}
    assert {path.stem for path in FILES} == stems == set(grammars.names())
    assert len(stems) >= 25


def test_grammars_are_found_by_name() -> None:
    constraint = Compiler(byte_compiler().vocabulary).compile(grammars.load("semver"))
    assert constraint.accepts("1.2.3-rc.1") and not constraint.accepts("1.2")
    assert grammars.load("sql-select") == grammars.load("sql-select")
    assert grammars.text("json").startswith("# JSON texts")
    for name in grammars.names():
        assert 20 < len(grammars.description(name)) < 220
    with pytest.raises(KeyError, match="there is no grammar 'sql', but arithmetic, c-like"):
        grammars.load("sql")


def test_the_table_of_the_readme_is_complete() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in grammars.names():
        assert f"| [`{name}`](" in text and grammars.description(name).replace("|", "\\|") in text, name


# -- random texts --------------------------------------------------------------------------------------------------------



def _durations(text: str) -> None:
    assert text[0] == "P" and text[-1].isalpha() and any(char.isdigit() for char in text)


def _address(text: str) -> None:
    ipaddress.ip_address(text)


def _toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # what the header says is not checked: definitions that come twice
        if not any(word in str(error) for word in ("Cannot", "Duplicate", "overwrite", "mutate", "twice", "declare")):
            raise


def _url(text: str) -> None:
    assert urlsplit(text).scheme == text.partition(":")[0].lower()


READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "json-lines": lambda text: [json.loads(line) for line in text.split("\n") if line.strip()],
    "iso-date": date.fromisoformat,
    "iso-timestamp": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
    "iso-duration": _durations,
    "ip-address": _address,
    "uuid": uuid.UUID,
    "python-expression": lambda text: ast.parse(text, mode="eval"),
    "python-statements": ast.parse,
    "toml": _toml,
    "url": _url,
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", READERS)
def test_random_texts_are_read_by_others(name: str) -> None:
    constraint = byte_compiler().compile(grammars.load(name))
    for seed in range(25):
        text = sample(constraint, random.Random(seed), 60).decode()
        if "\0" not in text:
            READERS[name](text)

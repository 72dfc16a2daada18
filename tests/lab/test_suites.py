"""Suites of strings: reading them, running them, JUnit's XML, the pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree as etree

import pytest

from maskwright.constraints import ConstraintError
from maskwright.constraints.lab.junit import junit
from maskwright.constraints.lab.language import byte_compiler
from maskwright.constraints.lab.suite import SuiteError, grammar_beside, read_suites, run_suite, suite_beside

pytest_plugins = ["pytester"]

SWITCH = 'root ::= "on" | "off"\n'
SUITE = 'accept: ["on", "off"]\nreject: ["", "o", "on "]\nprefix: ["of"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "switch.gbnf").write_text(SWITCH)
    (tmp_path / "switch.test.yaml").write_text(SUITE)
    return tmp_path


def outcomes(path: Path, grammar: Path | None = None) -> list[tuple[str, bool]]:
    return [
        (result.case.label, result.passed)
        for suite in read_suites(path, grammar)
        for result in run_suite(suite, byte_compiler())
    ]


def test_a_suite_belongs_to_the_grammar_of_its_name(folder: Path) -> None:
    path = folder / "switch.test.yaml"
    assert grammar_beside(path) == folder / "switch.gbnf" and suite_beside(folder / "switch.gbnf") == path
    assert suite_beside(folder / "other.gbnf") is None
    assert [passed for _, passed in outcomes(path)] == [True] * 6


def test_failures_say_why(folder: Path) -> None:
    path = folder / "switch.test.yaml"
    path.write_text('accept: ["up", "o"]\nreject: ["on"]\nprefix: ["x"]\n')
    (suite,) = read_suites(path)
    reasons = [result.reason or "" for result in run_suite(suite, byte_compiler())]
    assert reasons[0].startswith("fails at byte 0 (line 1, column 1)") and 'expected "o"' in reasons[0]
    assert reasons[1].startswith("incomplete") and reasons[2] == "accepted, but must be rejected" and "byte 0" in reasons[3]


def test_other_grammars_and_jsonl(folder: Path) -> None:
    other = folder / "other.test.yaml"
    other.write_text("grammar: switch.gbnf\nstart: root\naccept: ['on']\n")
    assert outcomes(other) == [("accept 'on'", True)]
    lines = folder / "cases.jsonl"
    lines.write_text('{"text": "on", "accept": true, "name": "plain"}\n\n{"text": "up", "accept": true}\n')
    assert outcomes(lines, folder / "switch.gbnf") == [("plain", True), ("accept 'up'", False)]
    lines.write_text('{"grammar": "switch.gbnf", "accept": ["on"], "reject": ["off"]}\n')
    assert outcomes(lines) == [("accept 'on'", True), ("reject 'off'", False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accept: [1]", "1 is none; put it in quotes"),
        ("accept: on", "accept is a list of strings"),
        ("accepts: ['on']", "there is no key 'accepts', expected accept"),
        ("{}", "there are no strings in it"),
        ("- on", "a suite is a mapping"),
        ("accept: ['on'", "no YAML"),
        ("grammar: none.gbnf\naccept: ['on']", "none.gbnf: No such file"),
        ("grammar: 1\naccept: ['on']", "grammar is a string, not 1"),
        ("&a [" * 2000, "other.test.yaml"),
    ],
)
def test_suites_that_cannot_be_read(folder: Path, text: str, message: str) -> None:
    path = folder / "other.test.yaml"
    path.write_text(text)
    with pytest.raises(SuiteError) as caught:
        read_suites(path, folder / "switch.gbnf" if "grammar" not in text else None)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_suite_without_a_grammar(folder: Path) -> None:
    (folder / "lost.test.yaml").write_text(SUITE)
    with pytest.raises(ConstraintError, match="no grammar of that name beside it"):
        read_suites(folder / "lost.test.yaml")
    with pytest.raises(SuiteError, match="line 2: no JSON"):
        (folder / "lost.jsonl").write_text('{"text": "a", "accept": true}\n{')
        read_suites(folder / "lost.jsonl", folder / "switch.gbnf")


def test_junit_is_valid_xml_whatever_the_strings_are(folder: Path) -> None:
    path = folder / "switch.test.yaml"
    path.write_text('accept: ["on", "\\u0001<&]]>", "\\U0001F600"]\nreject: ["off"]\n')
    (suite,) = read_suites(path)
    root = etree.fromstring(junit([(suite, run_suite(suite, byte_compiler()))]))
    (node,) = root
    assert node.attrib["tests"] == "4" and node.attrib["failures"] == "3"
    assert len(node.findall("testcase")) == 4 and len(node.findall("testcase/failure")) == 3
    assert "must be rejected" in node.findall("testcase/failure")[-1].attrib["message"]


# -- pytest ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plugin(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder to run pytest in. The plugin is named where its entry point is not installed."""
    known = [point.value for point in entry_points(group="pytest11")]
    if "maskwright.pytest_plugin" not in known:
        pytester.makeconftest('pytest_plugins = ["maskwright.pytest_plugin"]')
    return pytester


def write(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        stem, _, ending = name.partition("__")
        (pytester.path / f"{stem}.{ending.replace('_', '.')}").write_text(text)


def test_the_plugin_collects_strings(plugin: pytest.Pytester) -> None:
    write(plugin, switch__gbnf=SWITCH, switch__test_yaml=SUITE, other__test_yaml="grammar: switch.gbnf\naccept: ['on', 'up']\n")
    result = plugin.inline_run("-p", "no:cacheprovider")
    passed, _, failed = result.listoutcomes()
    assert len(passed) == 7 and len(failed) == 1
    assert failed[0].nodeid == "other.test.yaml::accept 'up'"
    assert "'up' must be accepted: fails at byte 0" in str(failed[0].longrepr)


def test_the_plugin_leaves_other_files_alone(plugin: pytest.Pytester) -> None:
    write(plugin, lost__test_yaml=SUITE, values__yaml="a: 1\n", broken__test_yml="accept: [")
    assert plugin.inline_run("-p", "no:cacheprovider").listoutcomes() == ([], [], [])


def test_the_plugin_tells_what_cannot_be_read(plugin: pytest.Pytester) -> None:
    write(plugin, switch__gbnf=SWITCH, switch__test_yaml="accepts: ['on']\n", bad__gbnf='root ::= "a', bad__test_yaml="accept: ['a']\n")
    result = plugin.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*there is no key 'accepts'*"])
    result = plugin.runpytest_inprocess("-p", "no:cacheprovider", "bad.test.yaml")
    result.stdout.fnmatch_lines(["*a string that is never closed*"])


def test_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, maskwright.pytest_plugin; print([m for m in ('numpy', 'numba', 'torch', 'yaml', 'lark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

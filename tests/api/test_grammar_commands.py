"""`maskwright grammar`: results on stdout, exit codes that a script can use, one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as etree

import pytest

from maskwright.cli import run


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    (tmp_path / "switch.gbnf").write_text('root ::= "on" | "off"\n')
    (tmp_path / "switch.test.yaml").write_text('accept: ["on"]\nreject: ["up"]\n')
    (tmp_path / "faulty.gbnf").write_text('root ::= "a" | [a-c]\ndead ::= "x"\n')
    (tmp_path / "broken.gbnf").write_text('root ::= "a" |\n  ("b"\n')
    (tmp_path / "schema.json").write_text('{"type": "boolean"}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["grammar", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_list(cli: Any) -> None:
    code, out, _ = cli("list")
    assert code == 0 and "sql-select" in out and "SQL queries" in out
    assert len(json.loads(cli("list", "--json")[1])) >= 25


def test_check(cli: Any) -> None:
    code, out, _ = cli("check", "switch.gbnf", "schema.json")
    assert code == 0 and "switch.gbnf (gbnf, 1 rules): ok: nothing found" in out and "2,048 tokens" in out
    code, out, _ = cli("check", "faulty.gbnf", "semver", "--steps", "1000")
    assert code == 1 and "dead is never reached" in out and "derives \"a\" in two ways" in out
    code, out, _ = cli("check", "faulty.gbnf", "--json")
    (found,) = json.loads(out)
    assert code == 1 and {one["code"] for one in found["findings"]} == {"dead rule", "unreachable alternative", "ambiguity"}
    assert found["cost"]["vocabulary"] == 2048 and found["findings"][0]["line"] in (1, 2)


def test_test(cli: Any, tmp_path: Path) -> None:
    code, out, _ = cli("test", "--junit", "out.xml")
    assert code == 0 and "2 of 2 strings in 1 suites" in out
    assert etree.parse(tmp_path / "out.xml").getroot()[0].attrib["tests"] == "2"
    (tmp_path / "switch.test.yaml").write_text('accept: ["up"]\n')
    code, out, _ = cli("test", "switch.gbnf")
    assert code == 1 and "failed switch.test.yaml: accept 'up': fails at byte 0" in out
    assert cli("test", "semver")[0] == 0


def test_draw(cli: Any, tmp_path: Path) -> None:
    code, out, _ = cli("draw", "switch.gbnf")
    assert code == 0 and etree.fromstring(out).tag.endswith("svg")
    assert cli("draw", "switch.gbnf", "-o", "x.html")[0] == 0 and "<h1>Rules of switch.gbnf</h1>" in (tmp_path / "x.html").read_text()
    assert cli("draw", "schema.json", "--text", "true", "-o", "x.svg")[0] == 0 and "state 0" in (tmp_path / "x.svg").read_text()


def test_explain(cli: Any) -> None:
    assert cli("explain", "switch.gbnf", "off")[:2] == (0, "accepted\n")
    code, out, _ = cli("explain", "json", '{"a": [1, tru]}')
    assert code == 1
    assert "fails at byte 13 (line 1, column 14): b']' cannot stand there; expected \"e\"" in out
    assert '"e" in value (line 7)' in out and "inside root (from character 0) > value" in out
    code, out, _ = cli("explain", "switch.gbnf", "o")
    assert code == 1 and "incomplete" in out and 'expected "ff" or "n"' in out


def test_explain_a_token(cli: Any) -> None:
    code, out, _ = cli("explain", "json", '{"a": [1', "--token", "}")
    assert code == 1 and "'}' is masked: b'}' cannot stand there; expected [" in out and "nearest legal tokens" in out
    code, out, _ = cli("explain", "json", '{"a": [1', "--token", "]")
    assert code == 0 and "is allowed" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "none.gbnf"], "GRAMMAR none.gbnf: there is no such file, nor a grammar of that name (arithmetic"),
        (["check", "switch.gbnf", "--language", "yacc"], "there is no language 'yacc'"),
        (["check", "switch.gbnf", "--tokenizer", "nowhere"], "--tokenizer nowhere: there is no such folder"),
        (["check", "switch.test.yaml"], "the ending of switch.test.yaml says no language"),
        (["test", "nowhere"], "PATH nowhere: there is no such file or folder"),
        (["test", "faulty.gbnf"], "there is no suite beside it, such as faulty.test.yaml"),
        (["draw", "switch.gbnf", "-o", "x.png"], "a name that ends in .svg or .html is needed"),
        (["draw", "schema.json"], "a schema has no rules to draw"),
        (["explain", "switch.gbnf"], "give either a text or --text-file"),
        (["explain", "switch.gbnf", "o", "--token", "no such token"], "there is no token with this text"),
        (["explain", "switch.gbnf", "o", "--token", "99999"], "the vocabulary has 2048 tokens"),
    ],
)
def test_what_is_wrong_is_one_line(cli: Any, arguments: list[str], message: str) -> None:
    code, out, err = cli(*arguments)
    assert code == 2 and out == "" and message in err and err.count("\n") == 1


def test_a_grammar_that_cannot_be_read_is_shown_with_the_place(cli: Any, tmp_path: Path) -> None:
    place = "syntax: line 2, column 7: unexpected this new line, expected )"
    code, out, _ = cli("check", "broken.gbnf", "switch.gbnf")
    assert code == 1 and place in out and "switch.gbnf (gbnf, 1 rules): ok" in out
    (source, caret) = (line.strip("│ ") for line in out.splitlines() if line.strip() in ('("b"', "^"))
    assert (source, caret) == ('("b"', "^")
    (found,) = json.loads(cli("check", "broken.gbnf", "--json")[1])
    assert found["findings"][0]["line"] == 2 and found["findings"][0]["code"] == "syntax" and not found["clean"]
    (tmp_path / "bad.json").write_text('{"type": "object",,}')
    code, out, _ = cli("check", "bad.json")
    assert code == 1 and '{"type": "object",,}' in out and "^" in out
    for arguments in (["draw", "broken.gbnf"], ["explain", "broken.gbnf", "a"]):
        code, out, err = cli(*arguments)
        lines = err.splitlines()
        assert code == 2 and out == "" and len(lines) == 3 and "expected" in lines[0]
        assert lines[1:] == ['      ("b"', "          ^"]


def test_a_suite_whose_grammar_cannot_be_read_fails_beside_the_others(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.test.yaml").write_text('accept: ["b", "a"]\nreject: ["c"]\n')
    code, out, _ = cli("test", ".", "--junit", "results.xml")
    assert code == 1 and "broken.test.yaml: all 3 strings: broken.gbnf does not compile: line 2" in out and "2 of 5 strings in 2" in out
    failures = etree.parse(tmp_path / "results.xml").getroot().findall(".//failure")
    assert len(failures) == 3 and all("expected" in (failure.text or "") for failure in failures)


def test_grammars_of_lark_are_known_by_name_elsewhere(cli: Any) -> None:
    from maskwright.cli.inputs import read_grammar
    from maskwright.constraint_choice import choose
    from maskwright.constraints import Gbnf, Lark

    assert isinstance(choose({"grammar": read_grammar("sql-select")}).source, Lark)
    assert isinstance(choose({"grammar": read_grammar("json")}).source, Gbnf)

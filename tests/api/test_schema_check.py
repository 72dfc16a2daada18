"""`maskwright schema check`: verdicts on stdout, an exit code that a script can use, one line for what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maskwright.cli import run

EXACT = {"type": "integer", "maximum": 3, "title": "t"}
MIXED = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "text": {"type": "string", "pattern": "(a)\\1"},
        "code": {"format": "zip", "prefixItems": []},
        "other: one": {"$ref": "#/definitions/used", "x-own": 1},
    },
    "definitions": {"used": {"type": "null"}, "unused": {"pattern": "(a)\\1"}},
}


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(content: Any, *options: str) -> tuple[int, str, str]:
        path = tmp_path / "schema.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        code = run(["schema", "check", str(path), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def verdicts(out: str) -> dict[tuple[str, str], str]:
    return {(one["path"], one["keyword"]): one["verdict"] for one in json.loads(out)["findings"]}


def test_an_exact_schema(check: Any) -> None:
    code, out, err = check(EXACT)
    assert code == 0 and err == ""
    assert "(draft 2020-12): exact: 2 exact, 0 refused, 0 with a note" in out.replace("\n", "")


def test_each_keyword_has_a_verdict(check: Any) -> None:
    code, out, _ = check(MIXED, "--json")
    assert code == 1
    assert json.loads(out)["draft"] == "7" and not json.loads(out)["exact"]
    assert verdicts(out) == {
        ("#", "type"): "exact",
        ("#", "properties"): "exact",
        ("#/properties/text", "type"): "exact",
        ("#/properties/text", "pattern"): "refused",
        ("#/properties/code", "format"): "note",
        ("#/properties/code", "prefixItems"): "note",
        ("#/properties/other: one", "$ref"): "exact",
        ("#/properties/other: one", "x-own"): "note",
        ("#/definitions/used", "type"): "exact",
    }


def test_the_table_names_paths_and_reasons(check: Any) -> None:
    code, out, _ = check(MIXED)
    assert code == 1
    assert "#/properties/text" in out and "format 'zip' is not known" in out and "not exact: 5 exact, 1 refused" in out


def test_many_paths_are_cut_short(check: Any) -> None:
    many = {"properties": {f"p{i}": {"type": "null"} for i in range(9)}}
    assert "and 6 more" in check(many)[1]
    assert "#/properties/p8" in check(many, "--all")[1]


def test_options_are_those_of_the_compiler(check: Any) -> None:
    formats = {"format": "ipv4"}
    assert verdicts(check(formats, "--json")[1]) == {("#", "format"): "exact"}
    assert verdicts(check(formats, "--json", "--formats", "annotation")[1]) == {("#", "format"): "note"}
    assert verdicts(check({"const": 1}, "--json", "--draft", "4")[1]) == {("#", "const"): "note"}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"items": {"$ref": "#/no"}}, "at #/items '$ref'"),
        ({"type": "nothing"}, "there is no type 'nothing'"),
        ({"type": "integer", "enum": ["a"]}, "no value satisfies"),
        (7, "a schema is an object or a boolean, not 7"),
        ({"$schema": "http://own/draft"}, "no draft 'http://own/draft' is known"),
    ],
)
def test_a_schema_that_cannot_be_compiled(check: Any, schema: Any, message: str) -> None:
    code, out, _ = check(schema)
    assert code == 1 and "cannot be compiled" in out and message in out.replace("\n", " ")
    assert json.loads(check(schema, "--json")[1])["failure"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"\xff", [], "not UTF-8"),
        ("{}".encode("utf-16"), [], "this is UTF-16 text; save it as UTF-8"),
        (b'{"type":\n}', [], "line 2, column 1: not JSON"),
        (EXACT, ["--draft", "9"], "no draft '9'"),
        (EXACT, ["--formats", "no"], "formats"),
        (EXACT, ["--no-such-option"], "No such option"),
    ],
)
def test_unreadable_input_is_one_line(check: Any, content: Any, options: list[str], message: str) -> None:
    code, out, err = check(content, *options)
    assert code == 2 and out == "" and message in err and err.count("\n") == 1


def test_a_byte_order_mark_is_read_over(check: Any) -> None:
    assert check(b"\xef\xbb\xbf" + json.dumps(EXACT).encode()) == check(json.dumps(EXACT).encode())


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "check", "none.json"]) == 2
    assert capsys.readouterr().err == "maskwright: FILE none.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ('{"type": "null"}', 0, "exact: 1 exact"),
        ("true", 0, "exact: 0 exact"),
        ("false", 1, "no value satisfies the schema"),
        ("[1]", 1, "a schema is an object or a boolean"),
        ("[1", 2, "not JSON"),
        ("", 2, "FILE: it is empty; give a file, a schema or MODULE:CLASS"),
    ],
)
def test_a_schema_may_be_written_in_place_of_a_file(capsys: pytest.CaptureFixture[str], written: str, code: int, message: str) -> None:
    assert run(["schema", "check", written]) == code
    captured = capsys.readouterr()
    assert message in (captured.out + captured.err).replace("\n", " ")

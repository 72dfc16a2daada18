"""The command line: results on stdout, one clear line on stderr and exit code 2 for whatever is wrong."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from maskwright.cli import run

SCHEMAS = '''
from typing import Literal
from pydantic import BaseModel, field_validator

class Person(BaseModel):
    name: Literal["Ada", "Bob"]
    age: Literal[36, 37]

class Picky(BaseModel):
    on: bool

    @field_validator("on")
    @classmethod
    def never(cls, value: bool) -> bool:
        raise ValueError("not today")

def switch(on: bool) -> str:
    return f"switched {on}"

def broken(on: bool) -> str:
    raise RuntimeError("no light")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with files to name on the command line."""
    name = f"schemas_{tmp_path.name.replace('-', '_')}"  # a module of its own for every test
    (tmp_path / f"{name}.py").write_text(SCHEMAS)
    (tmp_path / "schema.json").write_text('{"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}')
    (tmp_path / "broken.json").write_text('{"type": "array",\n}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "types.py").write_text("import this")
    (tmp_path / "unsupported.json").write_text('{"type": "array", "items": {"uniqueItems": "?", "type": "nothing"}}')
    (tmp_path / "light.gbnf").write_text('root ::= "on" | "off"')
    (tmp_path / "broken.gbnf").write_text('root ::= "on" |\n  ("off"')
    (tmp_path / "prompts.txt").write_text("one\n\ntwo\nthree\n")
    (tmp_path / "empty.txt").write_text("\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def module(folder: Path) -> str:
    return next(folder.glob("schemas_*.py")).stem


@pytest.fixture
def cli(folder: Path, model_folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run([arguments[0], "--model", str(model_folder), *arguments[1:]])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_type_is_filled(cli: Any, module: str) -> None:
    for name in (f"{module}:Person", f"{module}.py:Person"):
        code, out, _ = cli("generate", "--schema", name, "Who?")
        assert code == 0
        assert json.loads(out).keys() == {"name", "age"}


def test_a_json_schema_is_filled(cli: Any) -> None:
    code, out, _ = cli("generate", "--schema", "schema.json", "x")
    assert code == 0 and {*json.loads(out)} <= {True, False}


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--regex", "[ab]{3}"], "[ab]{3}"),
        (["--grammar", "light.gbnf"], "on|off"),
        (["--grammar", "iso-date"], r"\d{4}-\d\d-\d\d"),
        (["--choice", "left", "--choice", "right"], "left|right"),
        (["--schema", '{"enum": [7]}'], "7"),
        (["--choice", "left", "--no-stream"], "left"),
        (["--regex", "[a-c]{2}", "--temperature", "2", "--seed", "1"], "[a-c]{2}"),
    ],
)
def test_other_constraints(cli: Any, options: list[str], pattern: str) -> None:
    code, out, _ = cli("generate", *options, "x")
    assert code == 0 and re.fullmatch(pattern, out.removesuffix("\n"))


def test_a_compiled_constraint(cli: Any, folder: Path) -> None:
    code, out, err = cli("compile", "light", "--grammar", "light.gbnf")
    assert (code, out) == (0, "") and "light: " in err and (folder / "light").is_file()
    code, out, _ = cli("generate", "--compiled", "light", "x")
    assert code == 0 and out in ("on\n", "off\n")
    (folder / "light").write_bytes((folder / "light").read_bytes()[:-1])
    for arguments, message in (
        (("generate", "--compiled", "light", "x"), "cut short"),
        (("generate", "--compiled", "nothing", "x"), "--compiled nothing: No such file"),
        (("generate", "--compiled", "light", "--regex", "a", "x"), "--compiled and --regex"),
        (("compile", "light"), "nothing to compile"),
        (("compile", "no/folder", "--regex", "a"), "no/folder: No such file"),
    ):
        code, out, err = cli(*arguments)
        assert (code, out) == (2, "") and message in err, err


def test_a_prompt_may_begin_with_a_dash(cli: Any) -> None:
    assert cli("generate", "--choice", "a", "--", "--regex")[:2] == (0, "a\n")


def test_a_prompt_may_be_piped_in(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    assert cli("generate", "--choice", "a")[:2] == (0, "a\n")


def test_a_file_of_prompts_gives_a_line_of_json_for_each(cli: Any, folder: Path) -> None:
    assert cli("generate", "--schema", "schema.json", "--prompt-file", "prompts.txt", "--output", "out.jsonl")[:2] == (0, "")
    records = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [record["prompt"] for record in records] == ["one", "two", "three"]
    assert all(isinstance(record["output"], list) and record["finish_reason"] == "stop" for record in records)


def test_what_is_read_in_another_way_is_told_on_stderr(cli: Any) -> None:
    code, out, err = cli("generate", "--schema", '{"type": "boolean", "patern": "a"}', "x")
    assert code == 0 and out in ("true\n", "false\n") and "#: 'patern' is not a keyword of JSON Schema" in err


def test_loops_that_were_ended_are_told_on_stderr(cli: Any, folder: Path) -> None:
    (folder / "text.json").write_text('{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}')
    repeats = ("--schema", "text.json", "--greedy", "--logit-bias", "70=50", "--max-tokens", "200")
    for bound in (10, 32):
        code, out, err = cli("generate", *repeats, *(() if bound == 32 else ("--loop-bound", "10")), "x")
        assert code == 0 and json.loads(out)["a"] == "g" * bound
        assert f"the model repeated 'g' {bound} times in #/a, which was ended there (--loop-bound)" in " ".join(err.split())
    code, out, err = cli("generate", *repeats, "--loop-bound", "0", "x")
    assert code == 0 and len(json.loads(out)["a"]) > 60 and "repeated" not in err
    (folder / "one.txt").write_text("x")
    _, out, err = cli("generate", *repeats, "--prompt-file", "one.txt")
    assert json.loads(out)["loops"][0] | {"start": 0} == {"path": "#/a", "text": "g", "count": 32, "start": 0} and "repeated" in err
    assert cli("generate", "--greedy", "--loop-bound", "8", "x")[0] == 2


def test_the_mask_is_shown(cli: Any, module: str) -> None:
    code, out, err = cli("generate", "--schema", f"{module}:Person", "--show-mask", "--timing", "Who?")
    assert code == 0 and json.loads(out).keys() == {"name", "age"}
    assert "Who?" in err and "forced by the constraint" in err and "Person(" in err and "tokens in" in err


def test_a_conversation(cli: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nagain\n\nnot this\n"))
    code, out, _ = cli("chat", "--tool", f"{module}:switch", "--tool-choice", "required", "--max-tokens", "60")
    lines = out.splitlines()
    assert code == 0 and json.loads(lines[0])["name"] == "switch" and lines[1].startswith('switch -> "switched ')
    assert 2 <= out.count('switch -> "switched ') < len(lines) / 2  # both turns begin with a call, and the model answers its result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "--schema", "none.json", "x"], "--schema none.json: No such file"),
        (["generate", "--schema", "broken.json", "x"], "--schema broken.json: not JSON: .* at line 2, column 1"),
        (["generate", "--schema", "unsupported.json", "x"], "#/items"),
        (["generate", "--schema", "no_module:Person", "x"], 'no module "no_module"'),
        (["generate", "--schema", "none.py:Person", "x"], "--schema none.py:Person: there is no such file"),
        (["generate", "--schema", "json:Person", "x"], 'json has no "Person"'),
        (["generate", "--regex", "a(", "x"], "a\\(|column|position"),
        (["generate", "--grammar", "none.gbnf", "x"], "--grammar none.gbnf: there is no such file"),
        (["generate", "--grammar", "broken.gbnf", "x"], "line 2"),
        (["generate", "--regex", "a", "--choice", "b", "x"], "regex= and choice= contradict"),
        (["generate", "--prompt-file", "prompts.txt", "x"], "--prompt-file contradict"),
        (["generate", "--prompt-file", "none.txt"], "--prompt-file none.txt: No such file"),
        (["generate", "--prompt-file", "empty.txt"], "there is no prompt in it"),
        (["generate", "--show-mask", "--prompt-file", "prompts.txt"], "--show-mask colours one prompt"),
        (["generate", "--output", "no/such/folder.txt", "x"], "--output no/such/folder.txt: No such file"),
        (["generate", ""], "the prompt is empty"),
        (["generate", "--temperature", "-1", "x"], "temperature must be a number >= 0, got -1.0"),
        (["generate", "--temperature", "warm", "x"], "temperature"),
        (["generate", "--logit-bias", "seven", "x"], "--logit-bias seven: expected int or str=value"),
        (["generate", "--hotness", "1", "x"], "No such option.*--hotness"),
        (["generate", "x", "y"], "unexpected extra argument"),
        (["generate", "x" * 600], "prompt has 600 tokens"),
        (["generate", "--regex", "[ab]{30}", "--max-tokens", "3", "x"], "max_tokens"),
        (["generate", "--dtype", "float8", "x"], "float8"),
        (["generate", "--device", "abacus", "x"], "abacus"),
        (["chat", "--tool", "json:swtich"], 'json has no "swtich"'),
        (["chat", "--tool", "tools.py"], "--tool tools.py: what is meant is written MODULE:NAME or FILE.py:NAME"),
        (["chat", "--tool", "json:__all__"], "a tool is a function or a definition, not list"),
        (["generate", "--schema", "list.json", "x"], "--schema list.json: a schema is an object or a boolean, not list"),
        (["generate", "--schema", '{"type": "integer"', "x"], '--schema {"type": "integer": not JSON: .* line 1, column 19'),
        (["generate", "--schema", "types.py", "x"], "--schema types.py: not JSON: .*; a class in it is types.py:CLASS"),
        (["generate", "--schema", "", "x"], "--schema: it is empty"),
        (["generate", "--schema", "[]", "x"], "a schema is an object or a boolean, not list"),
        (["generate", "\udcff"], r"the prompt is not Unicode: U\+DCFF in it"),
        (["serv"], "No such command.*serv"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(cli: Any, arguments: list[str], message: str) -> None:
    code, _, err = cli(*arguments)
    assert code == 2
    line, *place = err.splitlines()
    assert not place or (len(place) == 2 and place[1].strip() == "^")  # a line of a source, and a caret below it
    assert line.startswith("maskwright: ") and re.search(message, line), line


@pytest.mark.parametrize("name", ["./nowhere", "nobody/nothing"])
def test_a_model_that_does_not_exist_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["generate", "--model", name, "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f'maskwright: model "{name}": there is no such folder')


def test_a_rejected_output_is_shown_and_exit_code_1(cli: Any, module: str) -> None:
    code, out, err = cli("generate", "--schema", f"{module}:Picky", "x")
    assert code == 1
    assert json.loads(out).keys() == {"on"}
    assert re.fullmatch("maskwright: .*on: Value error, not today\n", err)


def test_a_failing_tool_is_named(cli: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n"))
    code, _, err = cli("chat", "--tool", f"{module}:broken", "--tool-choice", "broken")
    assert code == 2 and 'the tool "broken" failed: RuntimeError: no light' in err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    assert run(["generate", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--schema", "--regex", "--grammar", "--choice", "--prompt-file", "--show-mask", "--model", "--top-p", "--seed"):
        assert option in shown


@pytest.mark.parametrize("arguments", ["-h", "help", "schema check -h", "help schema check"])
def test_help_is_had_as_people_ask_for_it(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments.split()) == 0
    command = " ".join(word for word in arguments.split() if word.isalpha() and word != "help")
    assert f"Usage: maskwright {command}".strip() in capsys.readouterr().out


def test_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("generate", "chat", "serve", "compile", "schema", "grammar", "doctor"))


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"maskwright \d+\.\d+\.\d+\n", capsys.readouterr().out)


class Unread(io.TextIOBase):
    """Standard output whose reader has gone, or for which there is no room: at the first text, or only when it is flushed."""

    def __init__(self, error: OSError, at_end: bool) -> None:
        self._error, self._at_end, self._file = error, at_end, os.open(os.devnull, os.O_WRONLY)

    def fileno(self) -> int:
        return self._file

    def write(self, text: str) -> int:
        if not self._at_end:
            raise self._error
        return len(text)

    def flush(self) -> None:
        if self._at_end:
            raise self._error


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "maskwright: the output cannot be written: No space left on device\n"),
    ],
)
def test_an_output_that_nobody_reads_or_that_has_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, at_end: bool, error: OSError, code: int, said: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Unread(error, at_end))
        try:
            found: Any = run(["grammar", "list"])
        except SystemExit as end:  # typer's own answer to a pipe that is closed within a command
            found = end.code
    assert (found, capsys.readouterr().err) == (code, said)


def test_a_chat_begins_with_its_prompt(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert cli("chat", "-p", "hello", "--choice", "yes")[:2] == (0, "yes\n")


def test_streams_that_the_shell_has_closed(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert cli("generate", "-n", "3")[::2] == (2, "maskwright: the prompt is empty\n")
    assert cli("chat")[0] == 0
    monkeypatch.setattr("sys.stdout", None)
    assert cli("generate", "-n", "3", "x")[0] == 0


@pytest.mark.parametrize("command", [["generate"], ["chat"], ["generate", "--schema", "-", "x"]])
def test_standard_input_that_is_no_text(cli: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8"))
    code, _, err = cli(*command)
    assert code == 2 and err == "maskwright: standard input: not utf-8 text (invalid start byte at byte 0)\n"


@pytest.mark.parametrize(
    ("command", "piped", "pattern"),
    [
        (["generate", "--schema", "-", "x"], '\ufeff{"const": 7}', "7\n"),
        (["generate", "--grammar", "-", "x"], 'root ::= "yes"', "yes\n"),
        (["generate", "--choice", "no", "--output", "-"], "a", "no\\n"),
        (["schema", "check", "-"], '{"type": "string"}', "(?s).*exact.*"),
        (["schema", "check", '{"type": "string"}'], "", "(?s).*exact.*"),
        (["generate", "--schema", "true", "-n", "20", "x"], "", ".+\n"),
        (["generate", "--prompt-file", "-", "--choice", "yes"], "a\n\nb\n", '{"prompt": "a", "output": "yes".*}\n{"prompt": "b".*}\n'),
    ],
)
def test_a_dash_stands_for_standard_input(
    model_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str], piped: str, pattern: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(piped))
    model = ["--model", str(model_folder)] if command[0] == "generate" else []
    code, found = run([*command, *model]), capsys.readouterr()
    assert code == 0 and re.fullmatch(pattern, found.out), found

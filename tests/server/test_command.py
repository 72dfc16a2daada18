"""`maskwright serve` as a command."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from maskwright.cli import run
from maskwright.cli.show import waiting
from maskwright.errors import UsageError
from maskwright.server.settings import ServerSettings


def test_without_the_extra_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['fastapi'] = None; from maskwright.cli import run; sys.exit(run(['serve']))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ['maskwright: serve needs fastapi, which is not installed; pip install "maskwright[server]"']


def test_help_lists_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--host", "--port", "--api-key", "--model", "--max-model-len", "--prefix-cache"):
        assert option in shown


@pytest.mark.parametrize("wrong", [{"max_n": 0}, {"port": -1}, {"api_key": ("",)}, {"compile_seconds": 0.0}], ids=str)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        ServerSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "port is at most 65535, not 70000"),
        (["--host", "192.0.2.1", "--port", "0"], "--host 192.0.2.1: this machine does not have that address"),
        (["--tool-style", "hermse"], 'unknown tool_style "hermse"; did you mean hermes'),
        (["--prompt-style", "loud"], 'prompt_style="loud" is not one of auto, plain, chat, task'),
        (["--ssl-certfile", "nowhere.pem"], "--ssl-certfile nowhere.pem: no certificate and key in PEM"),
        (["--api-key", "schlüssel"], "an API key is made of visible ASCII characters"),
    ],
)
def test_what_is_wrong_is_told_before_a_model_is_loaded(
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("maskwright.cli.serve.load_model", lambda *_, **__: pytest.fail("a model is loaded"))
    assert run(["serve", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_port_in_use_is_told_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("maskwright.cli.serve.load_model", lambda *_, **__: pytest.fail("a model is loaded"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert run(["serve", "--port", str(port)]) == 2
    assert f"--port {port}: another program listens on port {port} of 127.0.0.1" in capsys.readouterr().err


def test_help_shows_defaults(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERMINAL_WIDTH", "300")
    assert run(["serve", "--help"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "--" in line]
    for option, default in (("--host", "127.0.0.1"), ("--port", "8000"), ("--max-open", "1024"), ("--client-grammars", "on"), ("--policy", "fcfs")):
        (line,) = [line for line in lines if f" {option} " in line or f" {option}," in line or f" {option}-" in line.replace("/", " ")][:1]
        assert f"[default: ({default})]" in line, line


def test_each_step_of_a_start_is_told_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting(says_all=True) as say:
        say("compiling ...")
        say("loading ...")
    assert capsys.readouterr().err.splitlines() == ["compiling ...", "loading ..."]


def test_steps_of_a_command_are_told_when_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    both = threading.Event()

    def hear(line: str) -> None:
        told.append(line)
        both.set()

    monkeypatch.setattr("maskwright.cli.show._say", hear)
    with waiting() as say:
        say("quick")
        monkeypatch.setattr("maskwright.cli.show.LONG_SECONDS", 0.0)
        say("slow")
        assert both.wait(60)
    assert told == ["slow"]

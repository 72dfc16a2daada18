"""`maskwright serve` as a command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maskwright.cli import run
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

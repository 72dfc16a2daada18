"""`maskwright doctor`: a verdict on each thing, what to do about it, and an exit status."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwright.cli import checks, run
from maskwright.cli.checks import Check, Subject, judge_cache, judge_native, judge_threads
from maskwright.engine.device.threads import usable_cores
from maskwright.foundation.diagnosis import Verdict

SUBJECT = Subject("embedded", "127.0.0.1", 0)


def test_all_is_looked_at(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--json", "-m", str(model_folder), "--port", "0"])
    report = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in report["checks"] if each["name"] != "packages"] == [
        "maskwright", "device", "threads", "cache", "native", "model", "port",
    ]  # fmt: skip
    assert all(each.keys() == {"name", "verdict", "found", "advice"} for each in report["checks"])
    assert all(bool(each["advice"]) == (each["verdict"] != "ok") for each in report["checks"])
    by_name = {each["name"]: each for each in report["checks"]}
    assert by_name["model"]["verdict"] == "ok" and "answers 'o" in by_name["model"]["found"]
    assert code == (report["verdict"] == "fail") and report["verdict"] in ("ok", "warn", "fail")


def test_lines_for_people(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def sound(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
        yield Verdict.OK, "as it should be", ""
        yield Verdict.WARN, "slow", "buy another"

    def broken(_: Subject) -> Iterator[tuple[Verdict, str, str]]:
        raise OSError("libcuda.so.1:\n no such file")
        yield

    monkeypatch.setattr("maskwright.cli.doctor.CHECKS", (Check("first", sound), Check("second", broken)))
    assert run(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["ok", "first", "as", "it", "should", "be"], ["warn", "first", "slow"], ["->", "buy", "another"],
    ]  # fmt: skip
    assert lines[3].split()[:2] == ["fail", "second"] and "OSError: libcuda.so.1: no such file" in lines[3]
    assert lines[-1] == "1 ok, 1 warn, 1 fail"
    monkeypatch.setattr("maskwright.cli.doctor.CHECKS", (Check("first", sound),))
    assert run(["doctor"]) == 0


def test_a_model_that_does_not_load_fails(capsys: pytest.CaptureFixture[str]) -> None:
    (finding,) = _look("model", Subject("./nowhere", "127.0.0.1", 0))
    assert finding[0] is Verdict.FAIL and 'model "./nowhere": there is no such folder' in finding[1]
    assert "pip" not in finding[2]  # nothing is wrong with what is installed


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ((verdict, found, advice),) = _look("port", Subject("embedded", "127.0.0.1", port))
    assert verdict is Verdict.WARN and f"another program listens on port {port}" in found and "--port 0" in advice


def test_packages_that_are_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["numpy>=2.0", "nothing-of-that-name>=1; python_version >= '3'", "torch<1", 'server-thing>=3; extra == "server"']
    monkeypatch.setattr(checks, "requires", lambda _: needed)
    first, second = _look("packages", SUBJECT)
    assert first[0] is Verdict.FAIL and "nothing-of-that-name" in first[1] and "torch<1" in first[1] and "numpy" not in first[1]
    assert second[0] is Verdict.WARN and "server-thing" in second[1] and "maskwright[server]" in second[2]


@pytest.mark.parametrize(
    ("folder", "is_writable", "kept", "verdict"),
    [("a", True, 36, "ok"), ("a", False, 36, "ok"), ("a", True, 0, "warn"), ("a", False, 3, "fail")],
)
def test_the_cache_of_compiled_code(folder: str, is_writable: bool, kept: int, verdict: str) -> None:
    assert judge_cache(Path(folder), is_writable, kept)[0] == verdict


def test_threads_and_machine_code(tmp_path: Path) -> None:
    assert judge_threads("", 2, 2.0)[0] is Verdict.OK and judge_threads("", 1, 0.5)[0] is Verdict.OK
    assert judge_threads("", 8, 2.5)[0] is Verdict.WARN and "--threads 2" in judge_threads("", 8, 2.5)[2]
    assert judge_native("store.py")[0] is Verdict.WARN and judge_native("store.cpython-312.so")[0] is Verdict.OK
    unlimited = usable_cores(tmp_path / "none")
    quota = tmp_path / "cpu.max"
    for text, expected in (("50000 100000", 0.5), ("max 100000", unlimited), ("nonsense", unlimited)):
        quota.write_text(text)
        assert usable_cores(quota) == min(expected, unlimited)


def _look(name: str, subject: Subject) -> list[tuple[Any, str, str]]:
    check = next(check for check in checks.CHECKS if check.name == name)
    return [(finding.verdict, finding.found, finding.advice) for finding in check.findings(subject)]

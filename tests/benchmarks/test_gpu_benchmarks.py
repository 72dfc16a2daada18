"""The GPU benchmarks run, on tiny shapes, wherever tests run: in Triton's interpreter if there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"

pytest.importorskip("triton")


def test_every_case_is_timed_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [sys.executable, "-W", "ignore", str(SCRIPTS / "run.py"), "--smoke", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["machine"]["torch"] and result["copy_bytes_per_second"] > 0
    what = [line["what"] for line in result["lines"]]
    assert {"sampler", "automaton step", "mask rows of an automaton"} == set(what)
    assert {line["by"] for line in result["lines"] if line["what"] == "sampler"} >= {"maskwright", "torch"}
    assert all(line["us"] > 0 for line in result["lines"])

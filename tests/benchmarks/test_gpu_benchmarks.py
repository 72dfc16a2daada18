"""The GPU benchmarks run, on tiny shapes, wherever tests run: in Triton's interpreter if there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"

pytest.importorskip("triton")


def test_every_part_is_measured_kept_and_plotted(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [sys.executable, "-W", "ignore", str(SCRIPTS / "run.py"), "--smoke", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["machine"]["torch"] and result["machine"]["date"] and result["copy_gigabytes_per_second"] > 0
    lines = result["lines"]
    assert {"sampler", "automaton step", "mask rows of an automaton", "step", "decode"} == {line["what"] for line in lines}
    assert {line["by"] for line in lines if line["what"] == "sampler"} >= {"maskwright", "torch"}
    assert all(line["us"] > 0 for line in lines)
    steps = {(line["model"], line["by"], line["kv"]) for line in lines if line["what"] == "decode" and line["share_of_floor"] > 0}
    assert len(steps) == 2 * 2 * 2, "two shapes, kernels and plain PyTorch, a cache of the weights' numbers and one of fp8"
    verdicts = [bar["verdict"] for bar in result["bars"]]
    assert "not measured" in verdicts and len([line for line in done.stdout.splitlines() if line.startswith(tuple(verdicts))]) == 7
    plots = sorted(path.name for path in tmp_path.glob("*.svg"))
    if find_spec("matplotlib"):
        assert plots == ["result-attention.svg", "result-sampler.svg", "result-steps.svg"]
    else:
        assert plots == [] and "matplotlib" in done.stdout
    plain, windowed = result["attention"]
    assert plain["decode"][0]["share_of_copy_bandwidth"] > 0
    assert [entry["queries"] for entry in plain["prefill"]] == [40, 8]
    assert isinstance(plain["decode"][0]["sdpa_microseconds"], float) and isinstance(plain["decode"][0]["flex_microseconds"], float)
    assert windowed["decode"][0]["sdpa_microseconds"].startswith("none: ")

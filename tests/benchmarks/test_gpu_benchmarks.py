"""The GPU benchmarks run, on tiny shapes, wherever tests run: in Triton's interpreter if there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"

pytest.importorskip("triton")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The modules `cases` and `children`."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module("cases"), import_module("children")
    for name in ("cases", "children"):
        del sys.modules[name]


@pytest.mark.slow
def test_every_part_is_measured_kept_and_plotted(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [sys.executable, "-W", "ignore", str(SCRIPTS / "run.py"), "--smoke", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["machine"]["torch"] and result["machine"]["date"] and result["copy_gigabytes_per_second"] > 0
    lines = {what: [line for line in result["lines"] if line["what"] == what] for what in {line["what"] for line in result["lines"]}}
    assert lines.keys() == {
        "tests", "sampler", "automaton step", "mask rows of an automaton", "step", "attention check", "decode attention",
        "prefill attention", "product", "decode",
    }, lines.get("failed")  # fmt: skip
    assert lines["tests"][0]["status"] == 0 and "passed" in lines["tests"][0]["summary"]
    assert {line["by"] for line in lines["sampler"]} >= {"maskwright", "torch"}
    assert all(line["us"] > 0 for line in result["lines"] if "us" in line)
    steps = {(line["model"], line["by"], line["kv"]) for line in lines["decode"] if line["share_of_floor"] > 0}
    assert len(steps) == 2 * 2 * 2, "two shapes, kernels and plain PyTorch, a cache of the weights' numbers and one of fp8"
    products = {(line["weights"], line["rows"]) for line in lines["product"] if line["gigabytes_per_second"] > 0}
    assert {("bfloat16", 20), ("Q3_K", 20), ("uint8 1xrow", 1), ("float8 1xrow, inputs in float8", 1)} <= products
    verdicts = [bar["verdict"] for bar in result["bars"]]
    assert "not measured" in verdicts and len([line for line in done.stdout.splitlines() if line.startswith(tuple(verdicts))]) == 8
    plots = sorted(path.name for path in tmp_path.glob("*.svg"))
    if find_spec("matplotlib"):
        assert plots == ["result-attention.svg", "result-sampler.svg", "result-steps.svg"]
    else:
        assert plots == [] and "matplotlib" in done.stdout
    plain, windowed = lines["decode attention"]
    assert plain["share_of_copy_bandwidth"] > 0
    assert isinstance(plain["sdpa_microseconds"], float) and isinstance(plain["flex_microseconds"], float)
    assert windowed["sdpa_microseconds"].startswith("none: ")
    assert [line["queries"] for line in lines["prefill attention"] if not line["model"]["window"]] == [40, 8]


def test_a_case_that_fails_costs_its_own_line(tmp_path: Path, scripts: tuple[ModuleType, ModuleType]) -> None:
    cases, _ = scripts

    def measure(number: int) -> Iterator[dict[str, int]]:
        yield {"half": number}
        if number == 1:
            raise RuntimeError("out of memory\nand more")
        yield {"whole": number}

    def numbered() -> Iterator[object]:
        return (cases.Case({"what": "number"}, lambda n=n: measure(n)) for n in range(4))

    out = tmp_path / "lines.jsonl"
    cases.measure_cases(numbered(), out, first=1)
    lines = [line for line in cases.read_lines(out) if line["what"] != cases.BEGUN]
    assert [line.get("whole") for line in lines] == [None, None, None, 2, None, 3]
    assert lines[1]["what"] == cases.FAILED and lines[1]["error"] == "RuntimeError: out of memory"
    assert cases.behind_the_last(cases.read_lines(out)) == 4
    late = tmp_path / "late.jsonl"
    cases.measure_cases(numbered(), late, seconds=-1)
    assert [(line["what"], line["cases"]) for line in cases.read_lines(late)] == [(cases.SKIPPED, 4)]


DYING = """
import json, os, sys
first, out = int(sys.argv[1]), open(sys.argv[2], "a")
out.write("\\n")
for case in range(first, 4):
    out.write(json.dumps({"what": "begun", "case": case}) + "\\n")
    out.flush()
    if case == 1:
        out.write('{"what": "half a li')
        out.flush()
        os._exit(9)
    out.write(json.dumps({"what": "figure", "of": case}) + "\\n")
"""


def test_a_process_that_dies_is_gone_on_with_behind_the_case(tmp_path: Path, scripts: tuple[ModuleType, ModuleType]) -> None:
    _, children = scripts
    out = tmp_path / "lines.jsonl"
    script = tmp_path / "dying.py"
    script.write_text(DYING)
    lines = children.measured_apart(lambda first, left: [sys.executable, str(script), str(first), str(out)], "part", out, 600)
    assert [line["of"] for line in lines if line["what"] == "figure"] == [0, 2, 3]
    (failed,) = [line for line in lines if line["what"] == "failed"]
    assert failed["case"] == 1 and "status 9" in failed["error"]


def test_a_process_that_hangs_is_ended(scripts: tuple[ModuleType, ModuleType]) -> None:
    _, children = scripts
    assert children.run_for([sys.executable, "-c", "import threading; threading.Event().wait()"], 0.2) is None

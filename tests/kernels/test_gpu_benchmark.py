"""The GPU benchmark runs: tiny shapes, in the interpreter without a GPU. Its figures mean nothing here."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
FOLDER = Path(__file__).parents[2] / "benchmarks" / "gpu"


def test_attention_is_measured_and_kept_with_where_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("attention_benchmark", FOLDER / "attention.py")
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "attention_benchmark", benchmark)
    spec.loader.exec_module(benchmark)
    results = json.loads(benchmark.main(["--smoke", "--out", str(tmp_path / "results.json")]).read_text())
    assert results["machine"]["torch"] and results["machine"]["device"]
    plain, windowed = results["models"]
    assert plain["decode"][0]["share_of_copy_bandwidth"] > 0
    assert isinstance(plain["decode"][0]["sdpa_microseconds"], float)
    assert [entry["queries"] for entry in plain["prefill"]] == [40, 8]
    assert windowed["decode"][0]["sdpa_microseconds"].startswith("none: ")

"""`maskwright bench`: every benchmark measures what it says, its runs are kept, compared and drawn; traces name the parts of a step."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from maskwright import LLM, UsageError
from maskwright.cli import run
from maskwright.cli.bench import quality, timing
from maskwright.cli.bench.command import BENCHES
from maskwright.cli.bench.report import plot, table_of
from maskwright.cli.bench.runs import Case, Run, change, load_run, run_of, save_run
from maskwright.engine.device import profiling
from maskwright.engine.device.profiling import span

FIRST = Run("latency", "m", (Case("one", {"first_token_p50_ms": 10.0, "output_tokens_per_s": 100.0}), Case("two", {"whole_ms": 5.0})), date="2026-01-02", note="quiet")


@pytest.fixture(scope="module")
def model(model_folder: Path) -> list[str]:
    return ["-m", str(model_folder), "--max-model-len", "512"]


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, float]]:
    return {case["name"]: case["figures"] for case in json.loads(capsys.readouterr().out)["cases"]}


def test_decode_and_prefill_and_latency(model: list[str], capsys: Any) -> None:
    small = ["--repeats", "1", "--length", "9", "--json"]
    assert run(["bench", "decode", *model, *small, "--batch", "2", "--tokens", "5"]) == 0
    ((name, figures),) = found(capsys).items()
    assert name == "2 sequences of 9 tokens" and figures["step_p50_ms"] > 0
    assert figures["output_tokens_per_s"] == pytest.approx(2 / figures["step_p50_ms"] * 1e3)
    assert run(["bench", "prefill", *model, *small, "--length", "30"]) == 0
    cases = found(capsys)
    assert list(cases) == ["9 tokens", "30 tokens"]
    assert all(figures["prompt_tokens_per_s"] == pytest.approx(int(name.split()[0]) / figures["prefill_ms"] * 1e3) for name, figures in cases.items())
    assert run(["bench", "latency", *model, *small, "--batch", "1", "--batch", "3", "--tokens", "4"]) == 0
    cases = found(capsys)
    assert list(cases) == ["1 x 9 + 4 tokens", "3 x 9 + 4 tokens"]
    assert all(figures["whole_ms"] >= figures["first_token_p50_ms"] > 0 for figures in cases.values())


def test_throughput_is_free_and_under_schemas(model: list[str], capsys: Any) -> None:
    assert run(["bench", "throughput", *model, "--repeats", "1", "--batch", "2", "--length", "8", "--tokens", "4", "--json"]) == 0
    cases = found(capsys)
    assert list(cases) == ["free, 2 x 8 + 4 tokens", "schemas, 2 extractions"]
    free = cases["free, 2 x 8 + 4 tokens"]
    assert free["output_tokens_per_s"] == pytest.approx(4 * free["requests_per_s"]) and free["all_tokens_per_s"] == pytest.approx(12 * free["requests_per_s"])


def test_masks_and_answers(model: list[str], capsys: Any, tmp_path: Path) -> None:
    assert run(["bench", "masks", *model, "--count", "3", "--json"]) == 0
    ((name, figures),) = found(capsys).items()
    assert name == "3 schemas" and figures["refused_schemas"] == 0
    assert min(figures[f"{kind}_mask_p50_us"] for kind in ("first", "known")) > 0
    lines = [{"schema": {"type": "integer"}, "tests": [{"valid": True, "data": 42}]}, {"schema": {"format": "no-such-format", "type": "string"}, "tests": []}]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run(["bench", "masks", *model, "--schemas", str(tmp_path / "some.jsonl"), "--json"]) == 0
    assert sum(case["refused_schemas"] for case in found(capsys).values()) <= 1
    assert run(["bench", "answers", *model, "--count", "2", "--json"]) == 0
    cases = found(capsys)
    assert list(cases) == [f"{kind}, {setting}" for kind in ("extraction", "classification") for setting in ("free", "schema")]
    assert cases["classification, schema"]["right_fields_share"] in (0.0, 0.5, 1.0)


def test_answers_are_read_out_of_replies() -> None:
    assert quality._object('Sure: {"a": {"b": 1}} and {"c": 2}') == {"a": {"b": 1}}
    assert quality._object("{no} [1]") is None and quality._object("") is None


def test_serve(model: list[str], capsys: Any) -> None:
    pytest.importorskip("uvicorn")
    assert run(["bench", "serve", *model, "--rate", "20", "--seconds", "0.3", "--tokens", "3", "--json"]) == 0
    ((name, figures),) = found(capsys).items()
    assert name == "20 requests a second, 50% JSON" and figures["requests_lost"] == 0 and figures["first_text_p50_ms"] > 0
    assert run(["bench", "serve", "--url", "http://127.0.0.1:1", "--seconds", "0", "--rate", "1"]) == 2
    assert "no model is served at" in " ".join(capsys.readouterr().err.split())


def test_options_of_the_engine_and_plugins_are_taken(model: list[str], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "ideas.py").write_text("from maskwright.extending import POLICIES\nPOLICIES.register('bench-last', lambda arrival: (-arrival.number,))\n")
    asked = ["--plugin", str(tmp_path / "ideas.py"), "--policy", "bench-last", "--repeats", "1", "--length", "8", "--json"]
    assert run(["bench", "prefill", *model, *asked]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["policy"] == "bench-last"
    assert run(["bench", "prefill", *model, "--length", "600"]) == 2
    assert "longer than max_model_len, 512" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", BENCHES)
def test_what_is_wrong_is_told_before_a_model_is_loaded(name: str, tmp_path: Path, capsys: Any) -> None:
    for arguments, said in (
        (["--out", "/nowhere/run.json"], "there is no such folder"),
        (["--compare", str(tmp_path / "none.json")], "No such file"),
        (["--policy", "shortes"], "policy must be one of"),
    ):
        assert run(["bench", name, "-m", "/nowhere/model", *arguments]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


# ---- runs


def test_runs_are_kept_and_compared(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "run.json"
    save_run(FIRST, path)
    assert load_run(path, "latency") == FIRST
    for text, said in (("{}", "this is no run"), ("[1]", "this is no run"), ("nothing", "this is no run")):
        path.write_text(text)
        with pytest.raises(UsageError, match=said):
            load_run(path, "latency")
    save_run(FIRST, path)
    with pytest.raises(UsageError, match="a run of latency in format 1, not of decode"):
        load_run(path, "decode")
    now = replace(FIRST, cases=(Case("one", {"first_token_p50_ms": 5.0, "output_tokens_per_s": 50.0}), Case("three", {"whole_ms": 1.0})))
    table = table_of(now, FIRST)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells == [["one", "three"], ["5 (-50%)", "-"], ["50 (-50%)", "-"], ["-", "1"]]
    styles = [next(iter(column.cells)).spans[0].style for column in table.columns[1:3]]  # type: ignore[union-attr]
    assert styles == ["green", "red"]
    assert "2026-01-02 (quiet)" in str(table.caption)


@pytest.mark.parametrize(
    ("figure", "now", "before", "expected"),
    [
        ("whole_ms", 1.0, 2.0, (-0.5, True)),
        ("tokens_per_s", 1.0, 2.0, (-0.5, False)),
        ("whole_s", 3.0, 2.0, (0.5, False)),
        ("right_fields_share", 3.0, 2.0, (0.5, True)),
        ("output_tokens", 3.0, 2.0, (0.5, None)),
        ("whole_ms", 2.0, 2.0, (0.0, None)),
        ("whole_ms", 2.0, 0.0, (0.0, None)),
    ],
)
def test_what_is_better_follows_from_the_unit(figure: str, now: float, before: float, expected: tuple[float, bool | None]) -> None:
    assert change(figure, now, before) == expected


def test_runs_are_drawn(tmp_path: Path) -> None:
    if find_spec("matplotlib") is None:
        with pytest.raises(UsageError, match="--plot needs matplotlib"):
            plot(FIRST, tmp_path / "run.svg")
        return
    plot(FIRST, tmp_path / "run.svg", replace(FIRST, note="before"))
    drawn = (tmp_path / "run.svg").read_text()
    assert drawn.startswith("<?xml") and len(drawn) > 2000
    with pytest.raises(UsageError, match="--plot"):
        plot(FIRST, tmp_path / "run.nonsense")


def test_a_run_says_where_it_was_made(llm: LLM) -> None:
    made = run_of("decode", "m", [], {"a": 1}, "busy", "cpu")
    assert "torch" in made.machine and made.version and made.date and made.note == "busy"


def test_an_error_of_a_request_ends_the_benchmark(model_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")

    def broken(token_ids: list[int], logits: Any) -> Any:
        raise RuntimeError("no")

    other = LLM(model_folder, logits_processors=[broken])
    with pytest.raises(UsageError, match="a request of the benchmark failed: StageFailure"):
        timing.warm_up(other, 8, 0.0)
    assert not other.driver.is_busy


# ---- traces


@pytest.mark.parametrize("loop", [[], ["--overlap"]], ids=str)
def test_a_trace_names_the_parts_of_a_step(loop: list[str], model_folder: Path, tmp_path: Path, capsys: Any) -> None:
    assert run(["generate", "-m", str(model_folder), "--regex", "[a-z]{4}", "--profile", str(tmp_path / "traced"), *loop, "a"]) == 0
    events = json.loads((tmp_path / "traced" / "trace.json").read_text())["traceEvents"]
    names = {event["name"] for event in events}
    assert names >= {"maskwright: plan", "maskwright: forward", "maskwright: sample"}
    assert (tmp_path / "traced" / "operators.txt").read_text()


def test_spans_are_nothing_where_nothing_is_profiled(llm: LLM, tmp_path: Path) -> None:
    assert span("forward") is span("sample")
    with llm.profile(tmp_path / "traced"), span("mine"):
        assert span("forward") is not span("forward")
    assert span("forward") is span("sample")
    assert '"maskwright: mine"' in (tmp_path / "traced" / "trace.json").read_text()


def test_a_trace_is_written_of_what_was_interrupted(llm: LLM, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), llm.profile(tmp_path / "traced"), span("mine"):
        raise KeyboardInterrupt
    assert '"maskwright: mine"' in (tmp_path / "traced" / "trace.json").read_text() and span("a") is span("b")


def test_a_profile_that_cannot_be_is_refused_before_anything_runs(llm: LLM, model_folder: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "trace.json").mkdir(parents=True)
    for folder in ("file", "file/below", "taken"):
        with pytest.raises(UsageError, match="nothing can be written"), llm.profile(tmp_path / folder):
            raise AssertionError("it ran")
    assert run(["generate", "-m", str(model_folder), "--profile", str(tmp_path / "file"), "a"]) != 0
    assert "nothing can be written" in capsys.readouterr().err
    with llm.profile(tmp_path / "traced"), pytest.raises(UsageError, match="one profile at a time"), llm.profile(tmp_path / "other"):
        raise AssertionError("it ran")
    assert not (tmp_path / "other").exists() and (tmp_path / "traced" / "trace.json").read_text()


def test_parts_are_nvtx_ranges_beside_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opened once and closed once, inside of one another, also where a step fails."""
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", told.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: told.append("end"))
    monkeypatch.setattr(profiling, "_is_on", True)
    with pytest.raises(RuntimeError), profiling.span("step"):
        with profiling.span("forward"):
            told.append("kernel")
        raise RuntimeError("a step fails")
    assert told == ["maskwright: step", "maskwright: forward", "kernel", "end", "end"]
    monkeypatch.setattr(profiling, "_is_on", False)
    with profiling.span("step"):
        assert len(told) == 5, "nothing is told where nothing is profiled"


@pytest.mark.parametrize("before", [False, True])
def test_tables_fit_a_narrow_terminal(before: bool) -> None:
    """Of two figures whose names begin alike it is seen which is which."""
    figures = {f"{what}_{which}_ms": 12345.6 for what in ("compile", "first_mask", "between") for which in ("p50", "p99")} | {"refused": 0.0}
    run_ = run_of("masks", "m", [Case("2 requests a second, 50% JSON", figures)], {}, "", "cpu")
    console = Console(width=80, record=True)
    console.print(table_of(run_, run_ if before else None))
    told = console.export_text()
    assert "\u2026" not in told and told.count("p50") == told.count("p99") == 3


def test_no_prompt_begins_as_one_of_another_case(llm: LLM) -> None:
    """Else its beginning would be known, and the time that it takes too short."""
    cases = [(count, length, seed) for count in (1, 2, 4) for length in (16, 32, 64) for seed in (-1, 0, 1)]
    made = [text for case in cases for text in timing.prompts(llm, *case)]
    assert len({tuple(text[:4]) for text in made}) == len(made)
    assert timing.prompts(llm, 2, 16, 0) == timing.prompts(llm, 2, 16, 0)

"""Decode steps that are captured once and replayed, sampler and constraint states with them, take the tokens of the plain loop.

Where there is no GPU a stand-in captures (`recorded.py`), which repeats operations on the same tensors. On a GPU the same tests
capture CUDA graphs.
"""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
import torch

from maskwright.engine.device.graphs import CudaCapture, StepGraphs
from maskwright.engine.errors import ConfigError
from maskwright.engine.features import EngineFeatures
from maskwright.engine.loops import choice
from maskwright.engine.loops.multi_step import BUCKETS, bucket_of
from maskwright.kernels.sampler import compiled

from .conftest import run_all, tiny_vocabulary
from .recorded import RecordedCapture
from .test_pipeline import counted_visits, request, summaries

VOCABULARY = tiny_vocabulary()
HAS_GPU = torch.cuda.is_available()
ON_GPU = pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
CAPTURED = [0, 2, 1] if HAS_GPU else [0, 2]  # samplings: top-p of the plain PyTorch sampler asks the device


@pytest.fixture
def captures(monkeypatch) -> RecordedCapture:
    capture = RecordedCapture()
    monkeypatch.setattr(choice, "capture_for", lambda device: CudaCapture(device) if HAS_GPU else capture)
    if not HAS_GPU:
        monkeypatch.setattr(compiled, "loaded", lambda: None)  # operations of PyTorch alone can be noted
    return capture


def runs(kinds=(0, 1, 2), samplings=CAPTURED, max_tokens: int = 40):
    requests = [request(kind, sampling, 6 + 5 * kind, length=3 + 2 * kind, max_tokens=max_tokens) for kind in kinds for sampling in samplings]
    return [replace(each, sampling=replace(each.sampling, min_tokens=0, stop_token_ids=())) for each in requests]


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("overlap", [False, True])
def test_captured_steps_take_the_same_tokens(steps, overlap, captures, tiny_model, make_engine):
    folder, device = tiny_model("llama").folder, "cuda" if HAS_GPU else "cpu"
    engine = make_engine(folder, device=device, automaton="device", cuda_graphs=True, steps_per_visit=steps, overlap=overlap)
    visits = counted_visits(engine)
    arrivals = {0: runs(), 9: runs(kinds=(0, 3), samplings=[0, 2])}
    assert summaries(run_all(engine, arrivals)) == summaries(run_all(make_engine(folder, device=device), arrivals))
    assert len(visits) > 8 and len(engine._pipeline._visits._graphs) >= 1
    if not HAS_GPU:
        assert sum(step.num_replays for step in captures.steps) > len(captures.steps)


@pytest.mark.parametrize("name", ["mistral-sliding", "gemma2", "cohere2", "deepseek-v3", "mixtral"])
def test_other_families_are_captured_too(name, captures, tiny_model, make_engine):
    folder, device = tiny_model(name).folder, "cuda" if HAS_GPU else "cpu"
    if name in ("mixtral", "deepseek-v3") and not HAS_GPU:
        pytest.skip("experts in plain PyTorch ask the device how many tokens each has")
    engine = make_engine(folder, device=device, automaton="device", cuda_graphs=True, steps_per_visit=3)
    plain = run_all(make_engine(folder, device=device), {0: runs(kinds=(0, 1), samplings=[0])})
    assert summaries(run_all(engine, {0: runs(kinds=(0, 1), samplings=[0])})) == summaries(plain)
    assert len(engine._pipeline._visits._graphs) >= 1


def test_biased_rows_are_not_captured(captures, tiny_model, make_engine):
    engine = make_engine(tiny_model("llama").folder, automaton="device", cuda_graphs=True, steps_per_visit=3)
    visits = counted_visits(engine)
    run_all(engine, {0: runs(kinds=(0, 1), samplings=[4])})
    assert visits and not len(engine._pipeline._visits._graphs)


def test_a_step_is_captured_when_it_comes_again():
    counts = {"done": 0, "captured": 0}

    def step() -> None:
        counts["done"] += 1

    class Counted:
        def __init__(self, step) -> None:
            counts["captured"] += 1

        def replay(self) -> None:
            counts["done"] += 100

    graphs = StepGraphs(Counted)
    for _ in range(3):
        graphs.run("a", step)
    graphs.run("b", step)
    assert counts == {"done": 202, "captured": 1} and len(graphs) == 1


def test_what_cannot_be_captured_runs_as_it_is(caplog):
    done = []

    def refuse(step):
        raise RuntimeError("operation not permitted when stream is capturing")

    graphs = StepGraphs(refuse)
    for _ in range(4):
        graphs.run("a", lambda: done.append(1))
    assert len(done) == 4 and not len(graphs) and caplog.text.count("not permitted") == 1


def test_what_asks_the_device_cannot_be_captured():
    with pytest.raises(RuntimeError, match="waits for the device"):
        RecordedCapture()(lambda: torch.ones(3).sum().item())


def test_the_stand_in_notes_without_doing_and_repeats_what_it_noted():
    counter, out = torch.zeros(2), torch.zeros(2)
    step = RecordedCapture()(lambda: (counter.add_(1), out.copy_(counter * 2)))
    assert counter.tolist() == [0, 0]
    gc.collect()
    for count in (1, 2, 3):
        step.replay()
        assert (counter.tolist(), out.tolist()) == ([count, count], [2 * count, 2 * count])


def test_buckets_have_room():
    for num_rows in range(1, 300):
        bucket = bucket_of(num_rows)
        assert bucket >= num_rows and bucket - num_rows <= max(32, num_rows)
    assert list(BUCKETS) == sorted(BUCKETS)


@pytest.mark.skipif(HAS_GPU, reason="where there is a GPU they are captured")
def test_graphs_without_a_gpu_are_refused(tiny_model, make_engine):
    with pytest.raises(ConfigError, match="needs a GPU"):
        make_engine(tiny_model("llama").folder, automaton="device", cuda_graphs=True)


@pytest.mark.parametrize("options", [{"steps_per_visit": 2}, {"cuda_graphs": True}])
def test_what_needs_the_devices_automaton_says_so(options):
    with pytest.raises(ConfigError, match='automaton="device"'):
        EngineFeatures(**options)


@ON_GPU
def test_a_cuda_graph_is_really_replayed(captures, tiny_model, make_engine):
    """With graphs the host launches no kernel of a step itself."""
    engine = make_engine(tiny_model("llama").folder, device="cuda", automaton="device", cuda_graphs=True, steps_per_visit=4)
    run_all(engine, {0: runs(samplings=[0])})
    replays = engine._pipeline._visits._graphs._replays
    assert replays and all(isinstance(replay, torch.cuda.CUDAGraph) for replay in replays.values())

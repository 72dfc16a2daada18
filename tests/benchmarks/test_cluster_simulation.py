"""The simulation of a cluster: nothing is lost in it, its time is that of the formula, and policies differ as they should."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL: dict[str, Any] = {"replicas": 6, "requests": 1500, "schemas": 60, "failures": 3, "boot_seconds": 1.0, "cache_tokens": 40_000}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module("cluster_simulation")
    del sys.modules["cluster_simulation"]


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "seconds to simulate"}


def test_every_request_ends_once_and_runs_repeat(cluster: ModuleType) -> None:
    for name in cluster.POLICIES:
        one, other = (cluster.Simulation(cluster.Settings(**SMALL), name) for _ in range(2))
        assert untimed(one.run()) == untimed(other.run())
        assert len(one.whole_seconds) + one.counts["broken"] == SMALL["requests"] and one.counts["open"] == 0
        assert not any(each.active or each.queue or each.ends or each.num_held for each in one.replicas.values())


def test_tokens_are_those_of_the_trace(cluster: ModuleType) -> None:
    settings = cluster.Settings(**SMALL | {"failures": 0})
    for name in ("prefix", "random"):
        simulation = cluster.Simulation(settings, name)
        simulation.run()
        requests = list(cluster.Trace(settings))
        prompts, outputs = sum(each.num_prompt for each in requests), sum(each.num_outputs - 1 for each in requests)
        assert simulation.counts["prompt tokens"] == prompts
        assert simulation.counts["step tokens"] == prompts - simulation.counts["cached tokens"] + outputs
        holders = {fact: sum(fact in each.cache for each in simulation.replicas.values()) for fact in simulation._holders}
        assert holders == dict(simulation._holders)


def test_steps_taken_at_once_are_those_taken_one_by_one(cluster: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for crowded in ({}, {"cache_tokens": 4_000}, {"max_batch_tokens": 40, "max_sequences": 12}):
        settings = cluster.Settings(**SMALL | crowded)
        for name in ("prefix", "least_loaded"):
            at_once = cluster.Simulation(settings, name)
            row = at_once.run()
            with monkeypatch.context() as patched:
                patched.setattr(cluster.Simulation, "_num_alike", lambda self, replica: 1)
                one_by_one = cluster.Simulation(settings, name)
                assert untimed(one_by_one.run()) == untimed(row)
            assert at_once.whole_seconds == pytest.approx(one_by_one.whole_seconds)
            assert at_once._num_events < one_by_one._num_events / 2


def test_a_request_alone_takes_what_the_formula_says(cluster: ModuleType) -> None:
    settings = cluster.Settings(replicas=1, requests=5, schemas=5, failures=0, load=1e-6, compile_ms=30.0, max_batch_tokens=100)
    simulation = cluster.Simulation(settings, "random")
    simulation.run()
    known, compiled = set[int](), set[int]()
    for request, first, whole in zip(cluster.Trace(settings), simulation.first_seconds, simulation.whole_seconds, strict=True):
        left = request.num_prompt
        for fact, tokens in request.segments:
            if fact not in known:
                break
            left -= tokens
        steps = -(-left // settings.max_batch_tokens)
        wanted = steps * settings.step_ms / 1e3 + left * settings.token_us / 1e6 + 0.03 * (request.key.constraint not in compiled)
        assert first == pytest.approx(wanted)
        assert whole == pytest.approx(wanted + (request.num_outputs - 1) * (settings.step_ms / 1e3 + settings.token_us / 1e6))
        known |= {fact for fact, _ in request.segments}
        compiled.add(request.key.constraint)


def test_affinity_finds_more_and_computes_less(cluster: ModuleType) -> None:
    found = dict(cluster.results(cluster.Settings(**SMALL), list(cluster.POLICIES)))
    best = found.pop("prefix")
    for row in found.values():
        assert best["prefix hit rate"] > 1.3 * row["prefix hit rate"]
        assert best["constraints compiled"] < row["constraints compiled"] and best["computed tokens"] < row["computed tokens"]

"""Small parts of a cluster: metrics of many, how many replicas there should be, adapters that take turns, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from maskwright.cli import run
from maskwright.engine.errors import AdapterInUse
from maskwright.errors import UsageError
from maskwright.server.cluster.adapters import AdapterPool
from maskwright.server.cluster.exposition import merged
from maskwright.server.cluster.pressure import wanted_replicas
from maskwright.server.cluster.settings import ClusterSettings, refuse_unserved
from maskwright.server.settings import ServerSettings


def page(value: float, label: str) -> str:
    registry = CollectorRegistry()
    Gauge("plain", 'A "plain" one', registry=registry).set(value)
    Counter("a:counted", "Counted", ["name"], registry=registry).labels(label).inc(value)
    Histogram("seconds", "Times", ["name"], registry=registry).labels(label).observe(value)
    return generate_latest(registry).decode()


def samples(text: str) -> set[Any]:
    return {(each.name, frozenset(each.labels.items()), each.value) for family in text_string_to_metric_families(text) for each in family.samples}


@given(st.dictionaries(st.text(max_size=5), st.tuples(st.floats(0, 9), st.text(max_size=5)), max_size=4))
def test_each_sample_says_whose_it_is(owners: dict[str, tuple[float, str]]) -> None:
    pages = {owner: page(*value) for owner, value in owners.items()}
    together = merged(pages)
    assert samples(together) == {
        (name, labels | {("replica", owner)}, value) for owner, text in pages.items() for name, labels, value in samples(text)
    }
    helps = [line for line in together.split("\n") if line.startswith("# HELP")]
    assert len(helps) == len(set(helps))


@given(st.floats(0, 1e4), st.lists(st.floats(0, 1), max_size=8), st.floats(1, 99), st.floats(0.1, 1))
def test_there_are_as_many_replicas_as_keep_both_targets(num_open: float, usage: list[float], target_open: float, target_kv: float) -> None:
    wanted = wanted_replicas(num_open, usage, target_open, target_kv)
    assert num_open / wanted <= target_open * (1 + 1e-5) and sum(usage) / wanted <= target_kv * (1 + 1e-5)
    fewer = wanted - 1
    assert fewer == 0 or num_open / fewer > target_open or sum(usage) / fewer > target_kv


def test_adapters_take_turns_and_those_in_use_stay() -> None:
    events: list[str] = []
    busy = {"elsewhere"}

    async def load(name: str, path: Path) -> None:
        events.append(f"+{name}")

    async def unload(name: str) -> None:
        if name in busy:
            raise AdapterInUse(name, 1)
        events.append(f"-{name}")

    async def scene() -> None:
        pool = AdapterPool({name: Path(name) for name in ("a", "b", "c", "elsewhere")}, 2, load, unload)
        async with pool.holding(None), pool.holding("no adapter"), pool.holding("a"):
            async with pool.holding("a"), pool.holding("b"):
                waiting = asyncio.create_task(_hold(pool, "c"))
                await asyncio.sleep(0)
                assert not waiting.done() and events == ["+a", "+b"]
            await waiting
        assert events == ["+a", "+b", "-b", "+c"] and pool.loaded == ["a", "c"]
        await _hold(pool, "elsewhere")
        assert events[-2:] == ["-a", "+elsewhere"]
        await _hold(pool, "c")
        await _hold(pool, "b")  # the one that was used least recently is in use by others
        assert events[-2:] == ["-c", "+b"]

    asyncio.run(scene())


async def _hold(pool: AdapterPool, name: str) -> None:
    async with pool.holding(name):
        assert name in pool.loaded


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3)), max_size=12), st.integers(1, 3))
def test_whoever_holds_an_adapter_has_it(wanted: list[tuple[str, int]], max_loaded: int) -> None:
    loaded: set[str] = set()

    async def load(name: str, path: Path) -> None:
        await asyncio.sleep(0)
        loaded.add(name)
        assert len(loaded) <= max_loaded

    async def unload(name: str) -> None:
        loaded.remove(name)

    async def use(pool: AdapterPool, name: str, turns: int) -> None:
        async with pool.holding(name):
            for _ in range(turns):
                assert name in loaded
                await asyncio.sleep(0)

    async def scene() -> None:
        pool = AdapterPool({name: Path(name) for name in "abcde"}, max_loaded, load, unload)
        await asyncio.gather(*(use(pool, *each) for each in wanted))
        assert set(pool.loaded) == loaded

    asyncio.run(scene())


@pytest.mark.parametrize("wrong", [{"replicas": 0}, {"max_replicas": 0}, {"router": "x"}, {"target_kv": 0.0}, {"max_retries": -1}, {"replica_cpus": -1.0}], ids=str)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ClusterSettings(**wrong)


def test_what_has_no_effect_in_a_cluster_is_refused_by_name() -> None:
    refuse_unserved(ServerSettings(api_key=("k",), port=9000))
    with pytest.raises(UsageError, match=r"^batch_folder is not served on Ray: .* run a server beside"):
        refuse_unserved(ServerSettings(batch_folder=Path("x")))
    with pytest.raises(UsageError, match=r"^log_format is not served on Ray"):
        refuse_unserved(ServerSettings(log_format="json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--replicas", "2"], "--replicas is about several engines: it needs --ray"),
        (["--ray", "--router", "prefx"], 'unknown router "prefx"; did you mean prefix?'),
    ],
)
def test_the_command_line_says_what_is_wrong(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    assert run(["serve", "--ray"]) == 2
    assert 'serve --ray needs ray, which is not installed; pip install "maskwright[ray]"' in " ".join(capsys.readouterr().err.split())

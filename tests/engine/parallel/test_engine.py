"""Engines on several ranks give every token that one device gives: shared prefixes, preemption, guesses, adapters, all families."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maskwright.engine import EngineConfig, EngineFeatures
from maskwright.engine.attention.methods import METHODS
from maskwright.engine.errors import ConfigError, SessionError
from maskwright.engine.loader import load
from maskwright.engine.requests.request import Request
from maskwright.engine.sessions.sessions import Sessions
from maskwright.sampling import SamplingParams

from ..adapters import making
from ..conftest import run_all, save_tiny_model
from ..models.test_linear import FAMILIES
from .ranks import shared_engine

pytestmark = pytest.mark.slow

SYSTEM = tuple(3 + place * 11 % 90 for place in range(14))


def request(*tail: int, max_tokens: int = 14, **sampling) -> Request:
    options = {"temperature": 0.0, "ignore_eos": True, **sampling}
    return Request(prompt_token_ids=(*SYSTEM, *tail, *tail, *tail), sampling=SamplingParams(max_tokens=max_tokens, **options))


def tokens(outputs: dict) -> list[tuple[int, ...]]:
    return [outputs[place].token_ids for place in sorted(outputs)]


@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_are_those_of_one_device(name: str, tmp_path: Path, make_engine) -> None:
    """With a cache that is too small for all, host memory for what it has no room for, and guesses, where the family can."""
    folder, is_state = save_tiny_model(tmp_path / "folder", *FAMILIES[name]).folder, name.startswith("mamba")
    arrivals = {step: [request(step, 2 * step, max_tokens=24, temperature=step / 4, seed=step)] for step in range(6)}
    expected = tokens(run_all(make_engine(folder, **({"block_size": 88} if is_state else {}), max_model_len=88), arrivals))
    tight = {"num_blocks": 3} if is_state else {"num_blocks": 22, "num_host_blocks": 40, "speculation": "lookup"}
    engine = shared_engine(folder, 2, tmp_path / "meeting", **({"block_size": 88} if is_state else {}), max_model_len=88, **tight)
    assert tokens(run_all(engine, arrivals)) == expected
    statistics = engine.statistics
    if not is_state:
        assert statistics.num_preemptions > 0 and statistics.num_cached_tokens > 0 and statistics.num_saved > 0
    engine.close()


def test_four_ranks_share_a_head_of_keys(tmp_path: Path, make_engine) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {"num_key_value_heads": 1}).folder
    arrivals = {0: [request(5), request(5, 9), request(9)], 3: [request(5, 9, 1)]}
    engine = shared_engine(folder, 4, tmp_path / "meeting")
    assert tokens(run_all(engine, arrivals)) == tokens(run_all(make_engine(folder), arrivals))
    engine.close()


@pytest.mark.parametrize("name", ["llama", "phi3", "cohere", "mixtral", "deepseek-v3", "mamba-plain"])
def test_requests_with_adapters(name: str, tmp_path: Path) -> None:
    tiny = save_tiny_model(tmp_path / "folder", *FAMILIES[name])
    wanted = {"mixtral": making.ATTENTION, "deepseek-v3": ["q_a_proj", "q_b_proj", "o_proj"], "mamba-plain": ["in_proj"]}
    wanted |= {"llama": [*making.ATTENTION, "up_proj", "down_proj", "lm_head"], "phi3": ["qkv_proj", "gate_up_proj", "down_proj"]}
    adapters = {}
    for seed, adapter in enumerate(("one", "two")):
        making.peft_adapter(tiny, tmp_path / adapter, seed, target_modules=wanted.get(name, making.ATTENTION))
        adapters[adapter] = tmp_path / adapter
    sizes = {"block_size": 128} if name.startswith("mamba") else {}
    requests = [making.request([5, 6, 7], adapter) for adapter in ("one", "two", None, "one")]
    alone = making.make_engine(tiny.folder, adapters, **sizes)
    expected = tokens(run_all(alone, {0: requests}))
    engine = shared_engine(tiny.folder, 2, tmp_path / "meeting", **sizes)
    for adapter, path in adapters.items():
        engine.load_adapter(adapter, engine.registry.read(path))
    assert tokens(run_all(engine, {0: requests})) == expected and len({*expected}) == 3
    engine.unload_adapter("one")
    engine.load_adapter("again", engine.registry.read(adapters["one"]))
    assert tokens(run_all(engine, {0: [making.request([5, 6, 7], "again")]})) == expected[:1]
    engine.close()


def test_sessions_are_computed_again(tmp_path: Path, make_engine) -> None:
    folder = save_tiny_model(tmp_path / "folder", *FAMILIES["llama"]).folder
    one, two = make_engine(folder), shared_engine(folder, 2, tmp_path / "meeting")
    of_one, of_two = (Sessions(engine, lambda: "model") for engine in (one, two))
    number = one.add_request(request(5))
    expected = tokens(run_all(make_engine(folder), {0: [request(5)]}))[0]
    one.step(), one.step()
    snapshot = of_one.snapshot(number)
    with pytest.raises(SessionError, match=r'of which each rank of this engine has a part; resume it with cache="recompute"'):
        of_two.resume(snapshot)
    resumed = of_two.resume(snapshot, cache="recompute")
    two.step()
    again = of_two.snapshot(resumed)
    assert again.cache is None
    outputs = {}
    while two.has_work:
        outputs |= {event.request_id: event.output for event in two.step() if event.output is not None}
    assert outputs[resumed].token_ids == expected
    two.close()


def test_what_does_not_go_together_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *FAMILIES["llama"]).folder
    config = EngineConfig(model=folder, device="cpu", tensor_parallel=2)
    with pytest.raises(ConfigError, match=r'automaton="device" takes steps of which the host does not know yet'):
        load(config, EngineFeatures(automaton="device"))
    with METHODS.registered("own", METHODS["naive"]), pytest.raises(ConfigError, match='no attention="own" of a plugin'):
        load(EngineConfig(model=folder, device="cpu", tensor_parallel=2, attention="own"))
    with pytest.raises(ConfigError, match="tensor_parallel=3 does not fit 4 heads in 2 groups"):
        load(EngineConfig(model=folder, device="cpu", tensor_parallel=3))
    with pytest.raises(ConfigError, match="tensor_parallel must be an integer of at least 1, got 0"):
        EngineConfig(model=folder, tensor_parallel=0)
    assert not torch.distributed.is_initialized(), "the global group is the program's own"

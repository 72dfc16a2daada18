"""Layers in host memory: the same tokens, in any kind of weights, and never a layer's numbers while another one has its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine import EngineConfig, EngineFeatures, load
from maskwright.engine.errors import ConfigError, UnsupportedModel
from maskwright.engine.models.decoder import Decoder
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.offload.host_layers import HostLayers, bytes_by_layer, chosen_layers
from maskwright.engine.offload.layer_stream import SLOTS, LayerStream

from ..conftest import save_tiny_model
from ..gguf.writing import Kind, write_gguf
from ..models import test_decoder

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CPU = torch.device("cpu")
LAYERS = {"num_hidden_layers": 6, "intermediate_size": 64}


def loaded(path: Path, offload_bytes: int, **changes: Any) -> Decoder:
    spec = replace(read_spec(path), **changes)
    model = load_model(path, spec, torch.float32, DEVICE, 64, offload_bytes=offload_bytes)
    assert isinstance(model, Decoder)
    return model


def logits(model: Decoder) -> torch.Tensor:
    """Of three steps, so that layers come more than once."""
    cache = model.allocate_cache(num_blocks=8, block_size=4)
    tokens = list(range(3, 23))
    steps = [(tokens[:8], 0), (tokens[8:9], 8), (tokens[9:20], 9)]
    return torch.cat([test_decoder.forward(model, cache, [(chunk, done, list(range(8)))]) for chunk, done in steps])


def is_same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Up to the order of sums, which on a CPU depends on where a matrix begins in memory."""
    return torch.allclose(found, expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item())


KINDS = {
    "dense": ("LlamaConfig", {}, {}),
    "norms of heads": ("Qwen3Config", {"head_dim": 16}, {}),
    "experts": ("Qwen3MoeConfig", {"num_experts": 4, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "head_dim": 16}, {}),
    "int4": ("LlamaConfig", {}, {"quantization": "int4"}),
    "fp8": ("MixtralConfig", {"num_local_experts": 2}, {"quantization": "fp8"}),
}


@pytest.mark.parametrize("name", KINDS)
def test_streamed_layers_compute_the_same(name: str, tmp_path: Path) -> None:
    class_name, config, changes = KINDS[name]
    folder = save_tiny_model(tmp_path, class_name, {**LAYERS, **config}).folder
    whole = loaded(folder, 0, **changes)
    streamed = loaded(folder, 1, **changes)
    assert is_same(logits(streamed), logits(whole))
    assert streamed.num_bytes < whole.num_bytes and streamed.host_bytes > 0 == whole.host_bytes


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.F32], ids=lambda kind: kind.name)
def test_streamed_blocks_compute_the_same(kind: Kind, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", save_tiny_model(tmp_path / "folder", "LlamaConfig", LAYERS).folder, kind)
    whole = loaded(path, 0)
    assert is_same(logits(loaded(path, 1)), logits(whole))
    half = loaded(path, whole.num_bytes // 3)
    assert is_same(logits(half), logits(whole))
    assert half.num_bytes <= whole.num_bytes - whole.num_bytes // 3 + 6 * 256 * 20  # each tensor begins at a multiple of 256


def test_a_step_that_was_broken_off_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_tiny_model(tmp_path, "LlamaConfig", LAYERS).folder
    whole, streamed = loaded(folder, 0), loaded(folder, 1)
    expected, real = logits(whole), LayerStream.leave
    calls = []

    def leave(self: LayerStream, number: int) -> None:
        calls.append(number)
        if len(calls) == 2:
            raise RuntimeError("broken off")
        real(self, number)

    monkeypatch.setattr(LayerStream, "leave", leave)
    with pytest.raises(RuntimeError, match="broken off"):
        logits(streamed)
    assert is_same(logits(streamed), expected)


@settings(max_examples=60)
@given(st.integers(1, 9), st.lists(st.integers(0, 8), max_size=40), st.integers(0, 99))
def test_a_layer_that_is_entered_is_there(count: int, turns: list[int], seed: int) -> None:
    """In whatever order layers are entered, and whether they are left or not: nothing is computed with another one's numbers."""
    generator = torch.Generator().manual_seed(seed)
    dtypes = [torch.float32, torch.bfloat16, torch.uint8, torch.int64]
    expected = {
        number: [
            torch.randint(0, 99, (number + 1, size), generator=generator).to(dtypes[(number + size) % 4]).T for size in range(1, 4)
        ]
        for number in range(count)
    }
    tensors = {number: [tensor.clone() for tensor in kept] for number, kept in expected.items()}
    stream = LayerStream(tensors, CPU)
    for turn in turns:
        number = turn % count
        stream.enter(number)
        assert all(tensor.equal(kept) for tensor, kept in zip(tensors[number], expected[number], strict=True))
        if (turn + seed) % 3:
            stream.leave(number)
    assert stream.numbers == frozenset(range(count))
    assert stream.device_bytes <= stream.host_bytes


def test_the_next_layer_comes_when_one_is_left() -> None:
    tensors = {number: [torch.full((4,), float(number))] for number in (1, 4, 5, 7, 9)}
    stream = LayerStream(tensors, CPU)
    stream.enter(1)
    stream.leave(1)
    assert tensors[5][0].tolist() == [5.0] * 4, "the next one that uses the place is there before it is entered"
    stream.enter(9)
    stream.leave(9)
    assert tensors[1][0].tolist() == [1.0] * 4, "behind the last comes the first, for the next step"


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 30_000))
def test_as_few_layers_as_that_takes_are_chosen(sizes: list[int], wanted: int) -> None:
    try:
        chosen = chosen_layers(sizes, wanted)
    except ConfigError:
        assert len(sizes) <= SLOTS or sum(sizes) - SLOTS * max(sizes) < wanted
        return
    kept = [sizes[number] for number in chosen]
    assert sum(kept) - SLOTS * max(kept) >= wanted
    gaps = [second - first for first, second in zip(sorted(chosen), sorted(chosen)[1:], strict=False)]
    assert max(gaps) - min(gaps) <= 1, "they are spread evenly"


def test_what_layers_take_is_counted_by_name() -> None:
    assert bytes_by_layer([("embedding.weight", 7), ("layers.0.a", 1), ("layers.1.b.0.codes", 2), ("layers.1.c", 3)], 3) == [1, 5, 0]


def test_only_tensors_of_chosen_layers_move() -> None:
    weights = {"layers.0.a": torch.ones(3), "layers.1.a": torch.ones(3), "head.weight": torch.ones(3)}
    before = {name: tensor.data_ptr() for name, tensor in weights.items()}
    host = HostLayers(frozenset({1}), CPU)
    host.park(weights)
    host.park(weights)
    host.stream().enter(1)
    assert {name for name, tensor in weights.items() if tensor.data_ptr() != before[name]} == {"layers.1.a"}
    assert weights["layers.1.a"].tolist() == [1.0] * 3


def test_what_makes_no_sense_is_refused(tmp_path: Path, tiny_model: Any) -> None:
    folder = save_tiny_model(tmp_path, "LlamaConfig", LAYERS).folder
    with pytest.raises(ConfigError, match=r"asks for 1e\+03 GB less on the device; all 6 layers in host memory save .* GB"):
        loaded(folder, 10**12)
    with pytest.raises(ConfigError, match='cpu_offload_gb is for a GPU; on "cpu" all weights are in host memory'):
        load(EngineConfig(model=folder, device="cpu", cpu_offload_gb=1))
    for wrong in (-1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(ConfigError, match="cpu_offload_gb must be a number of gigabytes"):
            EngineConfig(model=folder, cpu_offload_gb=wrong)  # type: ignore[arg-type]


def test_models_that_are_not_native_are_refused() -> None:
    from transformers import Mamba2Config

    from maskwright.engine.models.mamba import mamba_spec

    spec = mamba_spec({**Mamba2Config().to_dict(), "architectures": ["Mamba2ForCausalLM"]})
    with pytest.raises(UnsupportedModel, match="cpu_offload_gb streams layers of models that are computed natively; Mamba2ForCausalLM is not"):
        load_model(Path("nowhere"), spec, torch.float32, CPU, 64, offload_bytes=1)


def test_graphs_cannot_capture_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engine import config

    monkeypatch.setattr(config, "resolve_device", lambda name: torch.device("cuda"))
    features = EngineFeatures(overlap=True, automaton="device", cuda_graphs=True)
    folder = save_tiny_model(tmp_path, "LlamaConfig", LAYERS).folder
    monkeypatch.setattr("maskwright.engine.loader.load_tokenizer", lambda *_: None)
    with pytest.raises(ConfigError, match="cuda_graphs cannot capture layers that are streamed"):
        load(EngineConfig(model=folder, cpu_offload_gb=1, kernels="reference"), features)

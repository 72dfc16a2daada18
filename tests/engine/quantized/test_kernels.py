"""Models with packed matrices whose products Triton kernels compute, as those on a GPU do: the same logits as in plain PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

from maskwright.engine.models.model import Model, load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.quantization.linears import StackedMlp
from maskwright.kernels import quantized
from maskwright.kernels.quantized import scaled

from ..conftest import save_tiny_model
from ..gguf.writing import Kind, write_gguf
from ..models import test_decoder

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def logits(model: Model) -> torch.Tensor:
    cache = model.allocate_cache(num_blocks=4, block_size=16)
    return test_decoder.forward(model, cache, [(list(range(3, 20)), 0, [0, 1, 2, 3])])


def folder_of(tmp_path: Path) -> Path:
    return save_tiny_model(tmp_path / "folder", "LlamaConfig", SIZES).folder


@pytest.mark.parametrize("stored", ["Q4_1", "fp8", "int4"])
def test_a_model_computes_the_same_by_kernels(stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder_of(tmp_path)
    spec = read_spec(path)
    if stored in ("fp8", "int4"):
        spec = replace(spec, quantization=stored)
    else:
        path = write_gguf(tmp_path / "model.gguf", path, Kind[stored])
        spec = read_spec(path)
    expected = logits(load_model(path, spec, torch.float32, DEVICE, 64, backend="reference"))
    for module in (quantized, scaled):  # nothing but kernels computes products then
        monkeypatch.setattr(module, "_multiply_on_cpu", None)
        monkeypatch.setattr(module, "multiply_in_pieces", None)
    found = logits(load_model(path, spec, torch.float32, DEVICE, 64, backend="triton"))
    assert torch.allclose(found, expected, atol=1e-4 * expected.abs().max().item())


def mixture_of(tmp_path: Path, name: str) -> Path:
    changes = {"num_local_experts": 3} if name == "Mixtral" else {"num_experts": 4, "moe_intermediate_size": 32, "num_experts_per_tok": 2}
    return save_tiny_model(tmp_path / "folder", f"{name}Config", {**SIZES, **changes}).folder


@pytest.mark.parametrize(("name", "stored"), [("Qwen3Moe", "Q8_0"), ("Mixtral", "int4"), ("Mixtral", "expanded")])
def test_experts_stay_packed_under_kernels(name: str, stored: str, tmp_path: Path) -> None:
    path = mixture_of(tmp_path, name)
    spec = read_spec(path)
    if stored == "int4":
        spec = replace(spec, quantization=stored)
    else:
        other = {"ffn_up": Kind.Q8_0} if stored == "expanded" else {}  # gate and up of two types are not one matrix
        path = write_gguf(tmp_path / "model.gguf", path, Kind.Q4_0 if stored == "expanded" else Kind[stored], overrides=other)
        spec = read_spec(path)
    by_kernels = load_model(path, spec, torch.float32, DEVICE, 64, backend="triton")
    plain = load_model(path, spec, torch.float32, DEVICE, 64, backend="reference")
    kinds = {type(layer.mlp.experts) for layer in by_kernels.layers}
    assert (kinds == {StackedMlp}) == (stored != "expanded")
    expected = logits(plain)
    assert torch.allclose(logits(by_kernels), expected, atol=1e-4 * expected.abs().max().item())


@pytest.mark.slow
def test_layers_with_packed_experts_can_be_streamed(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", save_tiny_model(tmp_path / "folder", "MixtralConfig", {**SIZES, "num_local_experts": 2, "num_hidden_layers": 4}).folder, Kind.Q8_0)
    whole, streamed = (load_model(path, read_spec(path), torch.float32, DEVICE, 64, backend="triton", offload_bytes=size) for size in (0, 1))
    assert torch.allclose(logits(streamed), logits(whole), atol=1e-5)

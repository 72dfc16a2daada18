"""Where weights are after loading: in the mapped file if they can be, and never all of them expanded."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwright import LLM
from maskwright.engine import EngineConfig, load
from maskwright.engine.conversion.quantized_folder import write_quantized_folder
from maskwright.engine.errors import ConfigError
from maskwright.engine.models import checkpoint_weights as loading
from maskwright.engine.models.checkpoint_weights import read_decoder_weights
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import MODELS as FAMILIES
from ..conftest import save_tiny_model
from ..models.test_loading import add_tokenizer
from .test_compressed_tensors import preset, write
from .test_formats import CASES, MODELS, WIDE, assert_same, ours, theirs
from .writing import quantise_folder

CPU = torch.device("cpu")
LARGE = {  # of matrices of at least 1 MB
    **WIDE, "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 32,
    "initializer_range": 0.1,
}  # fmt: skip


def mapped_ranges(path: Path) -> list[tuple[int, int]]:
    lines = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path.resolve()))]
    return [(int(begin, 16), int(end, 16)) for begin, end in (line.split("-") for line in lines)]


def mapped_share(folder: Path, dtype: torch.dtype = torch.float32) -> float:
    """Of the bytes of a model's weights, how many lie in its file."""
    weights, _, _ = read_decoder_weights(folder, read_spec(folder), dtype, CPU)
    ranges = mapped_ranges(folder / "model.safetensors")
    inside = [tensor.nbytes for tensor in weights.values() if any(begin <= tensor.data_ptr() < end for begin, end in ranges)]
    return sum(inside) / sum(tensor.nbytes for tensor in weights.values())


@pytest.mark.parametrize(
    ("class_name", "changes"),
    [
        ("LlamaConfig", {**LARGE, "attention_bias": True}),
        ("CohereConfig", LARGE),
        ("MixtralConfig", {**LARGE, "num_local_experts": 4}),
        ("Phi3Config", {**LARGE, "pad_token_id": 0}),
    ],
)
def test_large_weights_of_the_type_that_is_computed_in_stay_in_the_file(class_name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, class_name, changes).folder
    assert mapped_share(folder) > 0.98
    assert mapped_share(folder, torch.bfloat16) < 0.02
    assert_same(ours(folder), theirs(folder))


def test_small_matrices_are_joined(tmp_path: Path) -> None:
    """One product is quicker than three."""
    folder = save_tiny_model(tmp_path, "LlamaConfig", WIDE).folder
    weights, _, _ = read_decoder_weights(folder, read_spec(folder), torch.float32, CPU)
    assert weights["layers.0.attention.qkv.weight"].shape == (64 + 2 * 32, 64)


@pytest.mark.parametrize("name", ["fp8-blocks", "fbgemm", "llm-int8"])
def test_codes_of_a_byte_stay_in_the_file(name: str, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**LARGE, "num_hidden_layers": 1}).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES[name])
    assert mapped_share(quantised) > 0.98


def test_packed_integers_of_compressed_tensors_stay_in_the_file(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**LARGE, "num_hidden_layers": 1}).folder
    write(folder, tmp_path / "quantised", preset("W4A16", group_size=32))
    assert mapped_share(tmp_path / "quantised") > 0.98


def half(folder: Path, target: Path) -> Path:
    """The model in `folder` with weights of 16 bits."""
    shutil.copytree(folder, target)
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor.bfloat16() for name, tensor in weights.items()}, target / "model.safetensors")
    return target


def test_weights_of_16_bits_stay_as_they_are_where_copies_do_not_fit(tmp_path: Path, monkeypatch, caplog) -> None:
    folder = half(save_tiny_model(tmp_path / "whole", "LlamaConfig", {**LARGE, "vocab_size": 1100}).folder, tmp_path / "half")
    expected = ours(folder)
    assert mapped_share(folder) < 0.02 and not caplog.text
    monkeypatch.setattr(loading, "free_bytes", lambda device: 20_000_000)
    assert mapped_share(folder) > 0.98
    assert "in float32 its weights would take 0.0255 GB of memory, of which 0.02 GB are free: those of 16 bits stay" in caplog.text
    assert "read from the file in every step" not in caplog.text
    assert_same(ours(folder), expected)


def test_a_model_larger_than_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    folder = save_tiny_model(tmp_path, "LlamaConfig", LARGE).folder
    monkeypatch.setattr(loading, "free_bytes", lambda device: 2_000_000)
    read_decoder_weights(folder, read_spec(folder), torch.float32, CPU)
    assert "its weights take 0.0214 GB (0.0214 GB of them in the file), and 0.002 GB of memory are free: what does not fit" in caplog.text


def test_what_is_not_packed_of_a_packed_model_stays_in_the_file_too(tmp_path: Path) -> None:
    """A tied embedding of 16 bits beside matrices of 4."""
    changes = {**LARGE, "vocab_size": 1100, "tie_word_embeddings": True}
    folder = half(save_tiny_model(tmp_path / "whole", "LlamaConfig", changes).folder, tmp_path / "half")
    write_quantized_folder(folder, tmp_path / "packed", "INT4")
    assert mapped_share(tmp_path / "packed") > 0.98
    assert_same(ours(tmp_path / "packed"), theirs(tmp_path / "packed"))


# ---- quantised while loading


def with_quantization(folder: Path, kind: Any) -> torch.Tensor:
    spec = replace(read_spec(folder), quantization=kind)
    weights, linears, _ = read_decoder_weights(folder, spec, torch.float32, CPU)
    return weights, linears


@pytest.mark.parametrize(("kind", "bits", "loss"), [("fp8", 8, 0.15), ("int8", 8, 0.04), ("int4", 4.5, 0.45)])
@pytest.mark.parametrize("class_name", ["LlamaConfig", "Qwen3MoeConfig"])
def test_weights_are_quantised_while_they_are_loaded(kind: Any, bits: float, loss: float, class_name: str, tmp_path: Path) -> None:
    changes = {**WIDE, "num_experts": 4, "moe_intermediate_size": 64, "num_experts_per_tok": 2} if "Moe" in class_name else WIDE
    folder = save_tiny_model(tmp_path, class_name, {**changes, "initializer_range": 0.15}).folder
    spec = replace(read_spec(folder), quantization=kind)
    plain, _, _ = read_decoder_weights(folder, read_spec(folder), torch.float32, CPU)
    weights, _, _ = read_decoder_weights(folder, spec, torch.float32, CPU)
    codes = sum(tensor.nbytes for name, tensor in weights.items() if name.endswith(".codes"))
    scales = sum(tensor.nbytes for name, tensor in weights.items() if name.endswith(".scales"))
    numbers = sum(t.numel() for name, t in plain.items() if t.ndim > 1 and name.startswith("layers.") and "router" not in name and "norm" not in name)
    assert 8 * codes == int(bits) * numbers and (kind != "int4" or scales * 16 == numbers)
    assert {name for name in plain if name in weights} == {name for name in plain if plain[name].ndim == 1 or name.startswith(("embedding", "head")) or "router" in name or "norm" in name}
    expected = theirs(folder)
    relative = (ours_quantised(folder, kind) - expected).square().mean().sqrt() / expected.std()
    assert 1e-4 < relative < loss


def ours_quantised(folder: Path, kind: Any) -> torch.Tensor:
    from .test_formats import logits_of

    return logits_of(folder, replace(read_spec(folder), quantization=kind))


def test_rows_of_no_whole_groups_stay_as_they_are(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, *FAMILIES["llama"]).folder  # of 48 columns
    weights, _ = with_quantization(folder, "int4")
    assert weights["layers.0.mlp.down.weight"].dtype == torch.float32
    assert weights["layers.0.mlp.up.0.codes"].dtype == torch.uint8


def test_the_engine_takes_the_option(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "model", *FAMILIES["llama"]).folder
    add_tokenizer(folder)
    plain, small = (load(EngineConfig(model=folder, device="cpu", quantization=kind)).engine for kind in (None, "int8"))
    assert small.footprint.weight_bytes < 0.5 * plain.footprint.weight_bytes
    with pytest.raises(ConfigError, match='quantization must be one of fp8, int8, int4, got "int3"'):
        EngineConfig(model=folder, quantization="int3")


def test_a_session_belongs_to_weights_of_as_many_bits(tmp_path: Path) -> None:
    """Keys and values that were computed by other numbers are not gone on with."""
    folder = save_tiny_model(tmp_path / "model", *FAMILIES["llama"]).folder
    add_tokenizer(folder)

    def belonging(**options: Any) -> str:
        return LLM(folder, device="cpu", num_kv_blocks=8, **options).driver._sessions._model()

    assert belonging() == belonging() == model_fingerprint(folder)
    assert len({belonging(), belonging(quantization="int8"), belonging(quantization="int4"), belonging(quantized_activations=False)}) == 4


def test_what_is_quantised_already_is_not_quantised_again(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES["gptq-4"])
    with pytest.raises(ConfigError, match=r'quantization="int8" is for weights of 16 or 32 bits; .* is quantised already \(gptq\)'):
        load(EngineConfig(model=quantised, device="cpu", quantization="int8"))
    other = save_tiny_model(tmp_path / "other", "OlmoConfig", {}).folder
    with pytest.raises(ConfigError, match="is for models that are computed natively; OlmoForCausalLM is not"):
        load(EngineConfig(model=other, device="cpu", quantization="int8"))


def test_inputs_stay_as_they_are_if_asked(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES["fp8-blocks"])
    add_tokenizer(quantised)
    for rounds in (True, False):
        spec = load(EngineConfig(model=quantised, device="cpu", quantized_activations=rounds)).spec
        assert spec.quantization.rounds_inputs == rounds
    model = load_model(quantised, spec, torch.float32, CPU, 128)
    assert model.layers[0].mlp.down.parts[0].rounding is None
    shutil.rmtree(quantised)

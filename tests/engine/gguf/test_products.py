"""Which products a GGUF file is computed with on a CPU, and by how much they differ."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maskwright.engine import config as engine_config
from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.errors import ConfigError
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.kernels.cpu import is_available

from ..conftest import save_tiny_model
from ..models import test_decoder
from .test_models import BLOCKS, K_BLOCKS, MODELS
from .writing import Kind, write_gguf

needs_library = pytest.mark.skipif(not is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")


def chosen(path: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch, **options: str) -> str:
    monkeypatch.setattr(engine_config, "is_available", lambda: is_there)
    return resolve(EngineConfig(model=path, **options), read_spec(path)).products


def test_activations_are_rounded_where_nobody_asked_for_float32(tmp_path: Path, tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_model("llama").folder
    path = write_gguf(tmp_path / "model.gguf", folder)
    assert chosen(path, True, monkeypatch) == chosen(path, True, monkeypatch, products="int8", dtype="float32") == "int8"
    assert chosen(path, True, monkeypatch, dtype="float32") == chosen(path, True, monkeypatch, products="float32") == "float32"
    assert chosen(path, False, monkeypatch) == chosen(folder, False, monkeypatch) == "float32"
    with pytest.raises(ConfigError, match='products="int8" needs a C compiler'):
        chosen(path, False, monkeypatch, products="int8")
    with pytest.raises(ConfigError, match="products must be one of auto, int8, compiled, float32"):
        EngineConfig(model=path, products="int4")


@needs_library
@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.Q4_0, Kind.Q5_1, Kind.F16], ids=lambda kind: kind.name)
def test_logits_are_those_of_exact_products_but_for_the_rounding(kind: Kind, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**K_BLOCKS, "tie_word_embeddings": True}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, kind)

    def logits(rounds: bool) -> torch.Tensor:
        model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 128, is_compiled=rounds)
        steps = [([token], 0, [token]) for token in range(3, 15)]  # sequences of one token: sharp attention would magnify what differs
        return test_decoder.forward(model, model.allocate_cache(16, 4), steps)

    exact, rounded = logits(False), logits(True)
    apart = (rounded - exact).abs().max() / exact.abs().max()
    assert apart < 1e-4 if kind == Kind.F16 else 1e-5 < apart < 0.05


@needs_library
@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_is_the_same_with_compiled_layers(name: str, tmp_path: Path) -> None:
    """Of F32, whose products are exact: what differs would be norms, turned heads, attention or gates."""
    class_name, changes = MODELS[name]
    folder = save_tiny_model(tmp_path / "folder", class_name, {**BLOCKS, **changes}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.F32)
    tokens = torch.randint(3, 90, (30,), generator=torch.Generator().manual_seed(1)).tolist()

    def logits(rounds: bool) -> torch.Tensor:
        model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 128, is_compiled=rounds)
        cache = model.allocate_cache(24, 4)
        first, second = list(range(8)), list(range(8, 16))
        steps = [[(tokens[:12], 0, first)], [(tokens[12:13], 12, first), (tokens[:20], 0, second)]]
        steps += [[(tokens[13:14], 13, first), (tokens[20:21], 20, second)], [(tokens[14:17], 14, first), (tokens[21:23], 21, second)]]
        return torch.cat([test_decoder.forward(model, cache, step) for step in steps])

    exact = logits(False)
    assert torch.allclose(logits(True), exact, atol=2e-4 * exact.abs().max().item())


WHOLE = (
    "llama", "llama-biased-tied", "llama-rope-factors", "llama-yarn", "llama-linear", "mistral", "qwen2", "qwen3", "gemma3", "phi3", "gemma", "smollm3", "granite",
    "glm4",
)  # fmt: skip


@needs_library
@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.BF16], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "phi3-long"])  # whose factors are those of narrower heads
def test_a_step_in_one_call_has_the_bits_of_one_product_by_product(name: str, kind: Kind, tmp_path: Path) -> None:
    """Prompts, then steps of few tokens in which sequences of other lengths take part, and change places."""
    class_name, changes = MODELS[name]
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, **BLOCKS}
    folder = save_tiny_model(tmp_path / "folder", class_name, {**changes, **sizes}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, kind)
    tokens = torch.randint(3, 90, (60,), generator=torch.Generator().manual_seed(1)).tolist()
    model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 128, is_compiled=True)

    def logits(in_one_call: bool) -> torch.Tensor:
        if not in_one_call:
            model._compiled_steps = None
        cache = model.allocate_cache(24, 4)
        first, second = list(range(8)), list(range(15, 7, -1))
        steps = [[(tokens[:12], 0, first)], [(tokens[:20], 0, second)]]
        steps += [[(tokens[12 + i : 13 + i], 12 + i, first), (tokens[20 + i : 21 + i], 20 + i, second)] for i in range(3)]
        steps += [[(tokens[23:24], 23, second), (tokens[15:16], 15, first)], [(tokens[24:25], 24, second)]]
        steps += [[(tokens[16:17], 16, first), (tokens[25:29], 25, second)], [(tokens[17:30], 17, first)]]
        found = torch.cat([test_decoder.forward(model, cache, step) for step in steps])
        return torch.cat((found, torch.cat([keys[:24].flatten() for keys in cache.keys]).view(-1, 1).expand(-1, found.shape[1])))

    assert (model._compiled_steps is not None) == (name in WHOLE)
    assert torch.equal(logits(True), logits(False))

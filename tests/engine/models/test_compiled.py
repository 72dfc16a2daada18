"""Folders whose matrices stay as they are stored, and are multiplied by compiled code."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from maskwright.engine import config as engine_config
from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.errors import ConfigError
from maskwright.engine.models.decoder import Decoder, ForwardBatch
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.kernels.attention import FP8
from maskwright.kernels.cpu import is_available

from ..conftest import save_tiny_model
from . import test_decoder

needs_library = pytest.mark.skipif(not is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
WIDE = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
MODELS = {
    "llama-tied": ("LlamaConfig", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "qwen3": ("Qwen3Config", {}),
    "gemma3": ("Gemma3TextConfig", {"sliding_window": 6, "num_hidden_layers": 7, "query_pre_attn_scalar": 16}),
    "glm": ("GlmConfig", {"pad_token_id": 0, "partial_rotary_factor": 0.5}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4}),
    "command-r": ("CohereConfig", {"use_qk_norm": True}),
}  # fmt: skip


def halved(folder: Path, dtype: torch.dtype) -> Path:
    """The folder with its tensors, and what config.json says of them, in another type."""
    import json

    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    save_file({name: tensor.to(dtype) for name, tensor in load_file(path).items()}, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    name = str(dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps({**config, "dtype": name, "torch_dtype": name}))
    return folder


def logits(folder: Path, is_compiled: bool, kv_dtype: torch.dtype | None = None) -> torch.Tensor:
    cpu = torch.device("cpu")
    model = load_model(folder, read_spec(folder), torch.float32, cpu, 128, is_compiled=is_compiled, kv_dtype=kv_dtype)
    tokens = torch.randint(3, 90, (40,), generator=torch.Generator().manual_seed(1)).tolist()
    cache, first, second = model.allocate_cache(24, 4), list(range(8)), list(range(8, 16))
    steps = [[(tokens[:20], 0, first)], [(tokens[20:21], 20, first), (tokens[:9], 0, second)]]
    steps += [[(tokens[21 + i : 22 + i], 21 + i, first), (tokens[9 + i : 10 + i], 9 + i, second)] for i in range(4)]
    return torch.cat([test_decoder.forward(model, cache, step) for step in steps])


@needs_library
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_expanded_matrices(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    class_name, changes = MODELS[name]
    folder = halved(save_tiny_model(tmp_path / "folder", class_name, {**WIDE, **changes}).folder, dtype)
    expected = logits(folder, False)
    assert torch.allclose(logits(folder, True), expected, atol=1e-4 * expected.abs().max().item())


@needs_library
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("name", ["llama-tied", "qwen3", "gemma3"])
def test_a_step_of_lists_is_that_of_tensors_and_that_of_layers(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    """Bit by bit, for one new token and for several, of sequences that come, go and change places, whose tables grow and change."""
    class_name, changes = MODELS[name]
    folder = halved(save_tiny_model(tmp_path / "folder", class_name, {**WIDE, **changes}).folder, dtype)
    model = load_model(folder, read_spec(folder), torch.float32, torch.device("cpu"), 128, is_compiled=True)
    assert isinstance(model, Decoder) and model._compiled_steps is not None
    steps, rng, caches = model._compiled_steps, random.Random(5), [model.allocate_cache(80, 4) for _ in range(3)]
    free, pasts, tables = list(range(80)), [0] * 4, [list[int]() for _ in range(4)]
    for number in range(24):
        here = rng.sample(range(4), rng.randint(1, 4))
        widths = sorted(rng.choice([1, 1, 1, 2, 5]) for _ in here)
        spans, token_ids, positions, logit_rows = [], list[int](), list[int](), list[int]()
        for which, width in zip(here, widths, strict=True):
            past, table = pasts[which], tables[which]
            if table and rng.random() < 0.2:  # another block takes the place of its last one
                old, new = table[-1], free.pop()
                table[-1] = new
                for tensor in (tensor for cache in caches for tensor in cache.tensors):
                    tensor[new] = tensor[old]
            while len(table) * 4 < past + width:
                table.append(free.pop())
            spans.append((past, width, table))
            token_ids += [rng.randrange(3, 90) for _ in range(width)]
            positions += range(past, past + width)
            logit_rows.append(len(token_ids) - 1)
            pasts[which] += width
        columns = torch.tensor(sorted(rng.sample(range(90), 5))) if number % 5 == 4 else None
        given = map(torch.tensor, (token_ids, positions, logit_rows))
        batch = ForwardBatch(*given, attention=model.plan(spans, caches[0]), columns=columns)
        expected = model.forward(batch, caches[0])
        wanted = None if columns is None else columns.numpy()
        found = model.forward_lists(token_ids, positions, logit_rows, spans, caches[1], wanted)
        assert found is not None and torch.equal(found, expected)
        model._compiled_steps = None
        of_layers = model.forward(replace(batch, attention=model.plan(spans, caches[2])), caches[2])
        model._compiled_steps = steps
        assert torch.equal(of_layers if columns is None else of_layers[:, columns], expected if columns is None else expected[:, columns])
    assert model.forward_lists([5] * 20, list(range(20)), [19], [(0, 20, tables[0])], caches[1]) is None
    with pytest.raises(IndexError, match="not one of the model's"):
        model.forward_lists([10**6], [0], [0], [(0, 1, tables[0])], caches[1])
    with pytest.raises(IndexError, match="fewer blocks"):
        model.forward_lists([5], [4], [0], [(4, 1, [7])], caches[1])


@needs_library
def test_matrices_take_the_memory_that_they_have_in_the_file(tmp_path: Path) -> None:
    folder = halved(save_tiny_model(tmp_path / "folder", "LlamaConfig", {**WIDE, "tie_word_embeddings": True}).folder, torch.bfloat16)
    model = load_model(folder, read_spec(folder), torch.float32, torch.device("cpu"), 128, is_compiled=True)
    assert model._compiled_steps is not None
    assert model.num_bytes < 1.1 * (folder / "model.safetensors").stat().st_size


def chosen(folder: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch, **options: str) -> str:
    monkeypatch.setattr(engine_config, "is_available", lambda: is_there)
    return resolve(EngineConfig(model=folder, device="cpu", **options), read_spec(folder)).products


def test_matrices_are_computed_with_as_they_are_where_nobody_asked_for_a_dtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = save_tiny_model(tmp_path / "whole", "LlamaConfig", WIDE).folder
    halves = halved(save_tiny_model(tmp_path / "halves", "LlamaConfig", WIDE).folder, torch.bfloat16)
    assert chosen(halves, True, monkeypatch) == chosen(whole, True, monkeypatch) == "compiled"
    assert chosen(halves, True, monkeypatch, dtype="float32", products="compiled") == "compiled"
    assert chosen(whole, True, monkeypatch, products="compiled") == "compiled"
    for options in ({"products": "float32"}, {"dtype": "float32"}, {"dtype": "bfloat16"}):
        assert chosen(halves, True, monkeypatch, **options) == "float32"
    assert chosen(halves, False, monkeypatch) == chosen(whole, False, monkeypatch) == "float32"
    with pytest.raises(ConfigError, match='products="compiled" needs a C compiler'):
        chosen(halves, False, monkeypatch, products="compiled")
    with pytest.raises(ConfigError, match='products="int8" is for GGUF files'):
        chosen(halves, True, monkeypatch, products="int8")
    with pytest.raises(ConfigError, match='computes in float32, and dtype="bfloat16" was asked for'):
        chosen(halves, True, monkeypatch, products="compiled", dtype="bfloat16")


@needs_library
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2), (FP8, 0.15)], ids=str)
def test_a_cache_of_fewer_bits_is_that_of_plain_attention(dtype: torch.dtype, bound: float, tmp_path: Path) -> None:
    """Whole steps, chunks beside them, and what an exact cache gives but for the rounding."""
    changes = {**WIDE, "initializer_range": 0.1}
    folder = halved(save_tiny_model(tmp_path / "folder", "LlamaConfig", changes).folder, torch.bfloat16)
    expected, found = (logits(folder, is_compiled, dtype) for is_compiled in (False, True))
    assert torch.allclose(found, expected, atol=bound / 4 * expected.abs().max().item())
    apart = (found - logits(folder, True)).abs().max() / expected.abs().max()
    assert 0 < apart < bound


def test_a_cache_of_16_bits_is_for_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", WIDE).folder
    resolve(EngineConfig(model=folder, device="cpu", kv_dtype="bfloat16"), read_spec(folder))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ConfigError, match='kv_dtype="bfloat16" is for a CPU'):
        resolve(EngineConfig(model=folder, device="cuda", kv_dtype="bfloat16"), read_spec(folder))

"""Models of every native family compute with an adapter what peft computes with it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from maskwright.engine.adapters.linears import AdaptedLinears
from maskwright.engine.adapters.modules import modules_of
from maskwright.engine.adapters.reading import read_adapter
from maskwright.engine.adapters.slots import AdapterSlots
from maskwright.engine.models.layout import head_name
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import save_tiny_model
from ..models import test_decoder, test_mamba
from ..models.test_decoder import BLOCK_SIZE, random_tokens
from .making import ATTENTION, peft_adapter, peft_logits

ALL = {"target_modules": "all-linear"}
MLP = ["gate_proj", "up_proj", "down_proj"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", ALL),
    "llama-one-matrix": ("llama", {"target_modules": ["v_proj"]}),
    "llama-rslora": ("llama", {**ALL, "use_rslora": True}),
    "llama-ranks": ("llama", {**ALL, "r": 3, "rank_pattern": {"q_proj": 5, "^model.layers.1.mlp.up_proj": 2}, "alpha_pattern": {r"layers\.\d+\.mlp\.down_proj": 3, "model.layers.0.self_attn.o_proj": 20}}),
    "llama-some-layers": ("llama", {"target_modules": [*ATTENTION, *MLP], "layers_to_transform": [0, 2]}),
    "llama-pattern": ("llama", {"target_modules": r".*\.(q_proj|down_proj)"}),
    "llama-head": ("llama", {"target_modules": [*ATTENTION, "lm_head"]}),
    "llama-biased": ("llama-tied-biased", ALL),
    "qwen2": ("qwen2", ALL),
    "qwen3": ("qwen3", ALL),
    "gemma2": ("gemma2", ALL),
    "gemma3": ("gemma3", ALL),
    "phi3": ("phi3", ALL),
    "mixtral": ("mixtral", {}),
    "qwen3-moe": ("qwen3-moe", {}),
    "cohere": ("cohere", ALL),
    "cohere2": ("cohere2", ALL),
    "starcoder2": ("starcoder2", ALL),
    "deepseek-v3": ("deepseek-v3", {"target_modules": ["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "o_proj"]}),
    "llama4": ("llama4", {}),
    "mistral": ("mistral", ALL),
    "olmo2": ("olmo2", ALL),
    "olmo3": ("olmo3", ALL),
    "exaone4": ("exaone4", ALL),
}  # fmt: skip


def adapted_model(folder, adapter_folder, backend: Any = "auto"):
    """(a model with the adapter in slot 1, its slots)"""
    spec, device = read_spec(folder), torch.device("cpu")
    slots, modules = AdapterSlots(4, torch.float32, device, backend), modules_of(spec)

    def adapt(base):
        return AdaptedLinears(base, slots, modules, head_name(spec))

    model = load_model(folder, spec, torch.float32, device, 128, adapt=adapt, backend=backend)
    adapter = read_adapter(adapter_folder, spec, 16)
    assert (slots.load(adapter), slots.load(adapter)) == (0, 1)
    slots.free(0)
    return model, slots


def logits_of(model, slots: AdapterSlots, tokens: list[int], slot: int) -> torch.Tensor:
    with slots.applied(torch.full((len(tokens),), slot), torch.arange(len(tokens))):
        return test_decoder.forward(model, model.allocate_cache(16, BLOCK_SIZE), [(tokens, 0, list(range(8)))])


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_peft(case, tiny_model, tmp_path):
    name, options = CASES[case]
    tiny = tiny_model(name)
    reference = peft_adapter(tiny, tmp_path, **options)
    model, slots = adapted_model(tiny.folder, tmp_path)
    tokens = random_tokens(19)
    plain = logits_of(model, slots, tokens, -1)
    found = logits_of(model, slots, tokens, 1)
    torch.testing.assert_close(found, peft_logits(reference, tokens), atol=3e-4, rtol=3e-4)
    assert not torch.allclose(found, plain, atol=1e-2), "the adapter changes something"
    with torch.inference_mode():
        torch.testing.assert_close(plain, tiny.reference(torch.tensor([tokens])).logits[0], atol=3e-4, rtol=3e-4)


def test_a_state_space_model_with_an_adapter(tmp_path):
    tiny = save_tiny_model(tmp_path / "model", "Mamba2Config", {**test_mamba.SIZES})
    reference = peft_adapter(tiny, tmp_path / "adapter", target_modules=["in_proj"])
    model, slots = adapted_model(tiny.folder, tmp_path / "adapter")
    tokens = random_tokens(19)
    with slots.applied(torch.full((19,), 1), torch.arange(19)):
        found = test_mamba.forward(model, model.allocate_cache(16, BLOCK_SIZE), [(tokens, 0, 3)])
    torch.testing.assert_close(found, peft_logits(reference, tokens), atol=3e-4, rtol=3e-4)


def test_each_sequence_of_a_batch_has_an_adapter_of_its_own(tiny_model, tmp_path):
    """The runner's slots are those of the tokens, also where the head reads some rows only."""
    tiny = tiny_model("llama")
    reference = peft_adapter(tiny, tmp_path, target_modules=[*ATTENTION, "lm_head"])
    model, slots = adapted_model(tiny.folder, tmp_path)
    texts, tables = [random_tokens(length, seed) for seed, length in enumerate((5, 9, 3))], [[1, 2], [5, 3, 4], [0]]
    of_row = torch.cat([torch.full((len(text),), slot) for text, slot in zip(texts, (-1, 1, -1), strict=True)])
    with slots.applied(of_row, torch.arange(len(of_row))):
        together = test_decoder.forward(model, model.allocate_cache(8, BLOCK_SIZE), [(t, 0, b) for t, b in zip(texts, tables, strict=True)])
    first, second, third = together.split([len(text) for text in texts])
    with torch.inference_mode():
        for found, text in ((first, texts[0]), (third, texts[2])):
            torch.testing.assert_close(found, tiny.reference(torch.tensor([text])).logits[0], atol=3e-4, rtol=3e-4)
    torch.testing.assert_close(second, peft_logits(reference, texts[1]), atol=3e-4, rtol=3e-4)


def test_a_model_without_slots_in_use_pays_nothing(tiny_model, tmp_path):
    tiny = tiny_model("llama")
    peft_adapter(tiny, tmp_path)
    model, slots = adapted_model(tiny.folder, tmp_path)
    assert slots.num_bytes > 0
    slots.free(1)
    assert slots.num_bytes == 0
    assert torch.equal(logits_of(model, slots, [5, 6, 7], -1), logits_of(model, slots, [5, 6, 7], 1)), "slot 1 is nobody's"

"""Adapters over quantised weights of every format: what peft adds to the numbers that the codes stand for, mixed with others in a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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
from maskwright.kernels.quantized import BLOCK_TYPES

from ..conftest import TinyModel, save_tiny_model
from ..gguf.writing import Kind, as_folder, write_gguf
from ..models import test_decoder
from ..models.test_decoder import BLOCK_SIZE, random_tokens
from ..quantized.test_formats import CASES, MODELS
from ..quantized.writing import quantise_folder
from .making import peft_adapter, peft_logits

ADAPTERS: dict[str, dict[str, Any]] = {  # as different as two in a batch may be
    "ranks": {"target_modules": "all-linear", "r": 3, "rank_pattern": {"q_proj": 5}, "alpha_pattern": {"down_proj": 3}, "seed": 1},
    "rslora": {"target_modules": ["v_proj", "gate_proj", "lm_head"], "use_rslora": True, "seed": 2},
}
TEXTS = [random_tokens(length, seed) for seed, length in enumerate((5, 9, 3, 7))]
WANTED = [0, -1, 1, 0]  # the slot of each text's adapter
BLOCKS = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 64}


def mixed_logits(path: Path, spec: Any, adapters: list[Path], **options: Any) -> list[torch.Tensor]:
    """Of each text of one batch."""
    slots, modules = AdapterSlots(4, torch.float32, torch.device("cpu")), modules_of(spec)

    def adapt(base: Any) -> AdaptedLinears:
        return AdaptedLinears(base, slots, modules, head_name(spec))

    model = load_model(path, spec, torch.float32, torch.device("cpu"), 128, adapt=adapt, **options)
    assert [slots.load(read_adapter(each, spec, 16)) for each in adapters] == [0, 1]
    of_row = torch.cat([torch.full((len(text),), slot) for text, slot in zip(TEXTS, WANTED, strict=True)])
    tables = [list(range(8 * number, 8 * number + 8)) for number in range(len(TEXTS))]
    with slots.applied(of_row, torch.arange(len(of_row))):
        spans = [(text, 0, table) for text, table in zip(TEXTS, tables, strict=True)]
        together: torch.Tensor = test_decoder.forward(model, model.allocate_cache(8 * len(TEXTS), BLOCK_SIZE), spans)
    return list(together.split([len(text) for text in TEXTS]))


def references(same: Path, tmp_path: Path) -> tuple[list[Path], list[Callable[[list[int]], torch.Tensor]]]:
    """(adapters, for the slots 0, 1 and -1 the logits of a text) over a folder with the numbers that codes stand for."""
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(same, dtype=torch.float32).eval()
    models = [peft_adapter(TinyModel(same, plain), tmp_path / name, **options) for name, options in ADAPTERS.items()]
    with_adapter = [lambda tokens, model=model: peft_logits(model, tokens) for model in models]
    return [tmp_path / name for name in ADAPTERS], [*with_adapter, lambda tokens: peft_logits(plain, tokens)]


def check(path: Path, spec: Any, same: Path, tmp_path: Path, tolerance: float = 4e-4) -> None:
    adapters, expected = references(same, tmp_path)
    for text, slot, found in zip(TEXTS, WANTED, mixed_logits(path, spec, adapters), strict=True):
        wanted = expected[slot](text)
        assert (found - wanted).abs().max() < tolerance * wanted.abs().max()


TURNED = ["gptq-act-order", "awq-whole-rows", "fp8-blocks", "nf4"]  # also where rows of queries and keys are permuted


@pytest.mark.parametrize(("model", "name"), [*(("llama", name) for name in CASES), *(("cohere", name) for name in TURNED)])
def test_over_folders(model: str, name: str, tmp_path: Path) -> None:
    config, writer = CASES[name]
    folder = save_tiny_model(tmp_path / "folder", *MODELS[model]).folder
    quantised, same = quantise_folder(folder, tmp_path, config, writer)
    spec = read_spec(quantised)
    assert spec.quantization is not None and not isinstance(spec.quantization, str)
    check(quantised, replace(spec, quantization=replace(spec.quantization, rounds_inputs=False)), same, tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name in BLOCK_TYPES], ids=lambda kind: kind.name)
def test_over_gguf_files(kind: Kind, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", BLOCKS).folder
    path = write_gguf(tmp_path / "model.gguf", folder, kind)
    check(path, read_spec(path), as_folder(path, folder, tmp_path / "same"), tmp_path)

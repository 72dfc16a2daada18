"""The layouts that `benchmarks/weights.py` measures are read as what they were rounded from, up to the rounding."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from maskwright.engine.models.checkpoint_weights import read_decoder_weights
from maskwright.engine.models.spec import read_spec
from maskwright.kernels.quantized import scaled

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES |= {"vocab_size": 50}


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield import_module("quantised_layouts")


@pytest.mark.parametrize(("kind", "tolerance"), [("GPTQ", 0.07), ("AWQ", 0.07), ("W8A8", 0.01)])
def test_a_layout_is_read_as_what_it_was_made_of(kind: str, tolerance: float, layouts: ModuleType, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SIZES))
    model.save_pretrained(tmp_path / "plain")
    layouts.write_layout(tmp_path / "plain", tmp_path / kind, kind)
    path = tmp_path / kind
    _, linears, _ = read_decoder_weights(path, read_spec(path), torch.float32, torch.device("cpu"))
    expected = model.state_dict()["model.layers.0.mlp.down_proj.weight"]
    (found,) = linears.linear("layers.0.mlp.down").parts
    assert (found.rounding is not None) == (kind == "W8A8")
    apart = (scaled.dequantize(found.matrix) - expected).abs().max()
    assert 0 < apart <= tolerance * expected.abs().max()

"""Quantised folders on a CPU: layers of codes are computed by compiled code, whole steps in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from maskwright.engine import config as engine_config
from maskwright.engine.config import EngineConfig, resolve
from maskwright.engine.conversion.quantized_folder import write_quantized_folder
from maskwright.engine.errors import ConfigError
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.quantization.linears import CompiledLinear, JoinedLinear
from maskwright.kernels.cpu import is_available

from ..adapters.making import make_engine, peft_adapter, request
from ..conftest import SIZES, run_all, save_tiny_model
from ..models import test_decoder
from .test_compressed_tensors import CONFIGS, write
from .test_formats import CASES, MODELS, WIDE
from .writing import gptq, quantise_folder

needs_library = pytest.mark.skipif(not is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
WHOLE = (
    "gptq-4", "gptq-8", "gptq-4-asymmetric", "gptq-8-asymmetric", "gptq-act-order", "gptq-whole-rows", "gptq-mixed", "awq",
    "awq-whole-rows", "awq-but-some", "fp8-blocks", "fp8-whole", "fp8-static", "fbgemm", "llm-int8",
    "gptq-3", "gptq-2", "gptq-3-act-order", "nf4", "nf4-nested",
)  # fmt: skip
IN_PARTS = ("fp8-blocks-that-overhang",)  # other matrices than those, the head for one, are compiled
TOKENS = torch.randint(3, SIZES["vocab_size"], (12,), generator=torch.Generator().manual_seed(1)).tolist()


def computed(folder: Path, is_compiled: bool) -> tuple[Tensor, bool]:
    """(logits of sequences of one token, whose attention is not sharp: that would magnify what differs; whether steps are whole)."""
    model = load_model(folder, read_spec(folder), torch.float32, torch.device("cpu"), 128, is_compiled=is_compiled)
    steps = [([token], 0, [number]) for number, token in enumerate(TOKENS)]
    cache = model.allocate_cache(12, 4)
    return test_decoder.forward(model, cache, steps), model._compiled_steps is not None


def assert_near(folder: Path, is_whole: bool) -> None:
    (exact, never), (found, whole) = computed(folder, False), computed(folder, True)
    assert (never, whole) == (False, is_whole)
    apart = (found - exact).abs().max() / exact.abs().max()
    assert 0 < apart < 0.05


@needs_library
@pytest.mark.parametrize("name", [*WHOLE, *IN_PARTS])
@pytest.mark.parametrize("model", MODELS)
def test_logits_are_those_of_the_numbers_but_for_rounding(model: str, name: str, tmp_path: Path) -> None:
    """Of models whose attention and MLP are parallel, no step is whole."""
    folder = save_tiny_model(tmp_path / "folder", *MODELS[model]).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES[name])
    assert_near(quantised, name in WHOLE and model == "llama")


@needs_library
@pytest.mark.parametrize("name", ["W4A16", "W4A16_ASYM", "W8A16", "W8A8", "FP8", "FP8_DYNAMIC", "FP8_BLOCK", "mixed"])
def test_what_compressed_tensors_writes_is_computed_whole(name: str, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    write(folder, tmp_path / "quantised", CONFIGS[name]())
    assert_near(tmp_path / "quantised", True)


@needs_library
@pytest.mark.parametrize("name", ["gptq-act-order", "awq", "fp8-blocks"])
def test_experts_are_multiplied_by_compiled_code(name: str, tmp_path: Path) -> None:
    changes = {**WIDE, "num_experts": 6, "moe_intermediate_size": 64, "num_experts_per_tok": 2, "norm_topk_prob": True}
    folder = save_tiny_model(tmp_path / "folder", "Qwen3MoeConfig", changes).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES[name])
    model = load_model(quantised, read_spec(quantised), torch.float32, torch.device("cpu"), 128, is_compiled=True)
    experts: Any = model.layers[0].mlp.experts
    assert all(isinstance(linear, CompiledLinear) for linear in (*experts.gate_up, *experts.down))


@needs_library
def test_parts_that_are_not_compiled_leave_others_that_are(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    """Keys have a scale for each 16 columns, half of what is rounded together."""
    config = {**CASES["gptq-4"][0], "dynamic": {r"+:.*k_proj": {"group_size": 16}}}
    writer = {"k_proj": gptq(4, 16), "": CASES["gptq-4"][1]}
    quantised, _ = quantise_folder(folder, tmp_path, config, writer)
    assert_near(quantised, False)
    model = load_model(quantised, read_spec(quantised), torch.float32, torch.device("cpu"), 128, is_compiled=True)
    joined: Any = model.layers[0].attention.qkv
    assert isinstance(joined, JoinedLinear)
    assert [isinstance(part, CompiledLinear) for part in joined.parts] == [True, False, True]


@needs_library
def test_adapters_add_to_what_compiled_code_multiplies(tmp_path: Path) -> None:
    """Of floats of 8 bits, whose products round nothing: the same tokens as with plain ones, beside sequences without an adapter."""
    tiny = save_tiny_model(tmp_path / "folder", *MODELS["llama"])
    write_quantized_folder(tiny.folder, tmp_path / "quantised", "FP8")
    peft_adapter(tiny, tmp_path / "adapter", target_modules="all-linear")
    requests = [request(TOKENS[:5]), request(TOKENS[:5], "sql"), request(TOKENS[5:], "sql")]

    def tokens(is_compiled: bool) -> list[list[int]]:
        engine = make_engine(tmp_path / "quantised", {"sql": tmp_path / "adapter"}, is_compiled=is_compiled)
        return [list(output.token_ids) for _, output in sorted(run_all(engine, {0: requests}).items())]

    found = tokens(True)
    assert found == tokens(False)
    assert found[0] != found[1]


def chosen(folder: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch, **options: str) -> str:
    monkeypatch.setattr(engine_config, "is_available", lambda: is_there)
    return resolve(EngineConfig(model=folder, device="cpu", **options), read_spec(folder)).products


def test_activations_are_rounded_where_nobody_asked_for_a_dtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    quantised, _ = quantise_folder(folder, tmp_path, *CASES["awq"])
    assert chosen(quantised, True, monkeypatch) == chosen(quantised, True, monkeypatch, products="int8", dtype="float32") == "int8"
    assert chosen(quantised, False, monkeypatch) == "float32"
    for options in ({"products": "float32"}, {"dtype": "float32"}, {"dtype": "bfloat16"}):
        assert chosen(quantised, True, monkeypatch, **options) == "float32"
    with pytest.raises(ConfigError, match='products="compiled" is for folders in floating point'):
        chosen(quantised, True, monkeypatch, products="compiled")
    with pytest.raises(ConfigError, match='computes in float32, and dtype="bfloat16" was asked for'):
        chosen(quantised, True, monkeypatch, products="int8", dtype="bfloat16")

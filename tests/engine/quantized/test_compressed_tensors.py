"""compressed-tensors: folders that the library itself writes compute what it computes, roundings of inputs included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    apply_quantization_config,
)
from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams
from torch import Tensor

from ..conftest import save_tiny_model
from .test_formats import MODELS, TOKENS, WIDE, assert_same, ours


def write(folder: Path, target: Path, config: QuantizationConfig) -> Tensor:
    """Save the model in `folder`, its weights rounded to the nearest, as the library saves it; the logits that it computes."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    apply_quantization_config(model, config)
    for module in model.modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is not None:
            scale, zero = found_scales(module.weight.detach(), scheme.weights)
            module.weight_scale.data = scale.reshape(module.weight_scale.shape)
            if hasattr(module, "weight_zero_point"):
                module.weight_zero_point.data = zero.reshape(module.weight_zero_point.shape).to(module.weight_zero_point.dtype)
            if hasattr(module, "input_scale"):
                module.input_scale.data = torch.full_like(module.input_scale, 0.03)
            if hasattr(module, "input_zero_point"):
                module.input_zero_point.data = torch.full_like(module.input_zero_point, 0)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(target)
    compressor.update_config(target)
    with torch.inference_mode():
        return model(torch.tensor([TOKENS])).logits[0]


def found_scales(weight: Tensor, args: QuantizationArgs) -> tuple[Tensor, Tensor]:
    rows, columns = weight.shape
    height, width = {
        "tensor": (rows, columns), "channel": (1, columns), "group": (1, args.group_size), "block": args.block_structure,
    }[args.strategy]  # fmt: skip
    blocks = torch.nn.functional.pad(weight, (0, -columns % width, 0, -rows % height)).unflatten(0, (-1, height)).unflatten(2, (-1, width))
    return calculate_qparams(blocks.amin((1, 3)), blocks.amax((1, 3)), args)


def preset(name: str, **weights: Any) -> QuantizationConfig:
    scheme = preset_name_to_scheme(name, ["Linear"])
    if weights:
        scheme.weights = QuantizationArgs(**{**scheme.weights.model_dump(exclude_unset=True), **weights})
    return QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"])


INT8_TOKEN = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
CONFIGS: dict[str, Any] = {
    "W4A16": lambda: preset("W4A16", group_size=32),
    "W4A16_ASYM": lambda: preset("W4A16_ASYM", group_size=32),
    "W3A16": lambda: preset("W3A16", group_size=32),
    "W2A16": lambda: preset("W2A16", group_size=32),
    "W5A16": lambda: preset("W5A16", group_size=32),
    "W8A16": lambda: preset("W8A16", group_size=32),
    "W8A8": lambda: preset("W8A8"),
    "FP8": lambda: preset("FP8"),
    "FP8_DYNAMIC": lambda: preset("FP8_DYNAMIC"),
    "FP8_BLOCK": lambda: QuantizationConfig(
        config_groups={
            "group_0": QuantizationScheme(
                targets=["Linear"],
                weights=QuantizationArgs(num_bits=8, type="float", strategy="block", block_structure=[16, 32]),
                input_activations=QuantizationArgs(num_bits=8, type="float", strategy="group", group_size=32, dynamic=True),
            )
        },
        ignore=["lm_head"],
    ),
    "W8A8-asymmetric-inputs": lambda: QuantizationConfig(
        config_groups={
            "group_0": QuantizationScheme(
                targets=["Linear"],
                weights=QuantizationArgs(num_bits=8, type="int", strategy="channel"),
                input_activations=QuantizationArgs(**INT8_TOKEN, symmetric=False),
            )
        },
        ignore=["lm_head"],
    ),
    "mixed": lambda: QuantizationConfig(
        config_groups={
            "group_0": QuantizationScheme(
                targets=["re:.*self_attn.*"], weights=QuantizationArgs(num_bits=8, type="int", strategy="channel")
            ),
            "group_1": QuantizationScheme(
                targets=["Linear"], weights=QuantizationArgs(num_bits=4, type="int", strategy="group", group_size=32)
            ),
            "group_2": QuantizationScheme(
                targets=["model.layers.1.mlp.down_proj"],
                weights=QuantizationArgs(num_bits=8, type="float", strategy="tensor"),
                input_activations=QuantizationArgs(num_bits=8, type="float", strategy="tensor", dynamic=False),
            ),
        },
        ignore=["lm_head", r"re:.*\.0\.self_attn\.k_proj"],
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_what_the_library_writes_computes_what_it_computes(name: str, tmp_path: Path) -> None:
    """Where inputs are rounded, a number between two codes may go to either: a step of few inputs, in logits of 20 tokens."""
    folder = save_tiny_model(tmp_path / "folder", *MODELS["cohere"]).folder
    quantised = tmp_path / "quantised"
    expected = write(folder, quantised, CONFIGS[name]())
    found = ours(quantised)
    has_rounding = json.dumps(json.loads((quantised / "config.json").read_text())).count('"input_activations": {')
    assert_same(found, expected, 5e-3 if has_rounding else 2e-5)
    difference = (ours(quantised, rounds_inputs=False) - expected).abs().max() / expected.abs().max()
    assert difference > 1e-2 if has_rounding else difference < 2e-5


def test_a_head_may_be_packed_too(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**WIDE, "vocab_size": 99}).folder
    config = preset("W4A16", group_size=32)
    config.ignore = []
    quantised = tmp_path / "quantised"
    expected = write(folder, quantised, config)
    assert_same(ours(quantised), expected)

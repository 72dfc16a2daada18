"""Quantised safetensors: a model of each format computes what the numbers that it stands for compute, in transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec

from ..conftest import LATENT, SIZES, save_tiny_model
from ..conftest import MODELS as FAMILIES
from ..models import test_decoder
from .writing import awq, float8, gptq, llm_int8, nf4, quantise_folder

WIDE = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16}
TOKENS = torch.randint(3, SIZES["vocab_size"], (21,), generator=torch.Generator().manual_seed(1)).tolist()


def ours(folder: Path, **changes: Any) -> Tensor:
    """Logits of a checkpoint, with changes of its plan."""
    spec = read_spec(folder)
    return logits_of(folder, replace(spec, quantization=replace(spec.quantization, **changes)) if changes else spec)


def logits_of(folder: Path, spec: Any) -> Tensor:
    """Of 21 tokens, in two chunks and one decode step."""
    model = load_model(folder, spec, torch.float32, torch.device("cpu"), 128)
    cache = model.allocate_cache(num_blocks=16, block_size=4)
    chunks = [(TOKENS[:12], 0), (TOKENS[12:20], 12), (TOKENS[20:], 20)]
    return torch.cat([test_decoder.forward(model, cache, [(chunk, done, list(range(8)))]) for chunk, done in chunks])


def theirs(folder: Path) -> Tensor:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        return model(torch.tensor([TOKENS])).logits[0]


def assert_same(found: Tensor, expected: Tensor, factor: float = 2e-5) -> None:
    assert (found - expected).abs().max() < factor * expected.abs().max()


GPTQ = {"quant_method": "gptq", "group_size": 32, "desc_act": False, "sym": True, "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True, "modules_to_not_convert": None}
BLOCKS = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [16, 32]}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    **{f"gptq-{bits}": ({**GPTQ, "bits": bits}, gptq(bits, 32)) for bits in (2, 3, 4, 8)},
    **{f"gptq-{bits}-asymmetric": ({**GPTQ, "bits": bits, "sym": False}, gptq(bits, 32, sym=False)) for bits in (2, 3, 4, 8)},
    "gptq-v2": ({**GPTQ, "bits": 4, "sym": False, "checkpoint_format": "gptq_v2"}, gptq(4, 32, sym=False, version=2)),
    "gptq-act-order": ({**GPTQ, "bits": 4, "desc_act": True}, gptq(4, 32, desc_act=True)),
    "gptq-3-act-order": ({**GPTQ, "bits": 3, "desc_act": True, "sym": False}, gptq(3, 32, desc_act=True, sym=False)),
    "gptq-whole-rows": ({**GPTQ, "bits": 4, "group_size": -1}, gptq(4, -1)),
    "gptq-no-index": ({**GPTQ, "bits": 4}, gptq(4, 32, has_index=False)),
    "gptq-mixed": (
        {**GPTQ, "bits": 4, "dynamic": {"-:.*k_proj": {}, r"+:.*\.1\..*down_proj": {"bits": 8, "group_size": 64}}},
        {"k_proj": None, r"\.1\..*down_proj": gptq(8, 64), "": gptq(4, 32)},
    ),
    "awq": (AWQ, awq(32)),
    "awq-whole-rows": ({**AWQ, "group_size": -1}, awq(-1)),
    "awq-but-some": ({**AWQ, "modules_to_not_convert": ["self_attn"]}, {"self_attn": None, "": awq(32)}),
    "fp8-blocks": (BLOCKS, float8((16, 32))),
    "fp8-blocks-that-overhang": ({**BLOCKS, "weight_block_size": [48, 24]}, float8((48, 24))),
    "fp8-whole": ({"quant_method": "fp8", "activation_scheme": "dynamic"}, float8(None, scale="weight_scale")),
    "fp8-static": ({"quant_method": "fp8", "activation_scheme": "static"}, float8(None, scale="weight_scale", input_scale=0.02)),
    "fbgemm": (
        {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]},
        float8(None, per_row=True, scale="weight_scale"),
    ),
    "modelopt": (
        {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head", "*.0.*k_proj"], "kv_cache_scheme": {"num_bits": 8}},
        {"lm_head": None, r"\.0\..*k_proj": None, "": float8(None, scale="weight_scale", input_scale=0.02)},
    ),
    "nf4": (BNB, nf4(is_nested=False)),
    "nf4-nested": (BNB, nf4(is_nested=True)),
    "llm-int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]}, llm_int8),
}  # fmt: skip
MODELS = {
    "llama": ("LlamaConfig", {**WIDE, "attention_bias": True}),
    "cohere": ("CohereConfig", {**WIDE}),  # rows of queries and keys are permuted
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("model", MODELS)
def test_a_format_computes_what_its_numbers_do(model: str, name: str, tmp_path: Path) -> None:
    config, writer = CASES[name]
    folder = save_tiny_model(tmp_path / "folder", *MODELS[model]).folder
    quantised, same = quantise_folder(folder, tmp_path, config, writer)
    expected = theirs(same)
    assert_same(ours(quantised, rounds_inputs=False), expected)
    assert not torch.allclose(theirs(folder), expected, atol=1e-3 * expected.abs().max().item()), "numbers were rounded"


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_computed_from_codes(name: str, tmp_path: Path, tiny_model: Callable[[str], Any]) -> None:
    quantised, same = quantise_folder(tiny_model(name).folder, tmp_path, BLOCKS, float8((16, 32)))
    assert_same(ours(quantised, rounds_inputs=False), ours(same))


@pytest.mark.parametrize("name", ["gptq-act-order", "awq", "fp8-blocks", "nf4"])
def test_experts_are_packed_one_by_one(name: str, tmp_path: Path) -> None:
    config, writer = CASES[name]
    changes = {**WIDE, "num_experts": 6, "moe_intermediate_size": 64, "num_experts_per_tok": 2, "norm_topk_prob": True}
    folder = save_tiny_model(tmp_path / "folder", "Qwen3MoeConfig", changes).folder
    quantised, same = quantise_folder(folder, tmp_path, config, writer)
    assert_same(ours(quantised, rounds_inputs=False), theirs(same))


def test_latent_attention_is_expanded_where_it_must_be(tmp_path: Path) -> None:
    changes = {**LATENT, "hidden_size": 64, "kv_lora_rank": 32, "q_lora_rank": 32, "moe_intermediate_size": 32, "v_head_dim": 8}
    folder = save_tiny_model(tmp_path / "folder", "DeepseekV3Config", {**changes, "intermediate_size": 64}).folder
    quantised, same = quantise_folder(folder, tmp_path, BLOCKS, float8((16, 32)))
    assert_same(ours(quantised, rounds_inputs=False), theirs(same))


def test_what_older_tools_write_into_files_of_their_own_is_read(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["llama"]).folder
    for name, old, (config, writer) in (
        ("quantize_config.json", {"bits": 4, "group_size": 32, "desc_act": False, "sym": True}, CASES["gptq-4"]),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 32, "zero_point": True, "version": "GEMM"}, CASES["awq"]),
        ("hf_quant_config.json", {"producer": {}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, CASES["fp8-static"]),
    ):
        quantised, same = quantise_folder(folder, tmp_path / name, config, writer)
        plain = json.loads((folder / "config.json").read_text())
        (quantised / "config.json").write_text(json.dumps(plain))
        (quantised / name).write_text(json.dumps(old))
        assert_same(ours(quantised, rounds_inputs=False), theirs(same))

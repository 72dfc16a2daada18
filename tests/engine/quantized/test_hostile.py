"""Quantised checkpoints that do not hang together: one error that names the tensor, or the key of config.json."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from maskwright.engine.conversion.quantized_folder import FOLDER_KINDS, write_quantized_folder
from maskwright.engine.errors import EngineError, UnsupportedModel, WeightError
from maskwright.engine.models.spec import read_spec
from maskwright.engine.quantization.plan import Pattern, compiled
from maskwright.engine.quantization.reading import read_plan

from ..conftest import save_tiny_model
from .test_formats import CASES, MODELS, ours
from .writing import quantise_folder

Q = "model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("plain"), *MODELS["llama"]).folder


def broken(plain: Path, target: Path, name: str, changes: dict[str, Any]) -> Path:
    """A checkpoint of that case, of whose tensors some are replaced, or dropped (None)."""
    folder, _ = quantise_folder(plain, target, *CASES[name])
    tensors = load_file(folder / "model.safetensors")
    for key, change in changes.items():
        made = change(tensors[f"{Q}.{key}"]) if callable(change) else change
        tensors.pop(f"{Q}.{key}", None)
        if made is not None:
            tensors[f"{Q}.{key}"] = made.contiguous()
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gptq-4", {"scales": None}, rf"lacks {Q}\.scales, which config.json calls for"),
        ("gptq-4", {"qweight": None}, rf"lacks {Q}\.qweight"),
        ("gptq-4", {"qweight": lambda t: t[:-1]}, rf"tensor {Q}\.qweight has shape \[7, 64\], config.json calls for \[8, 64\]"),
        ("gptq-4", {"qzeros": lambda t: t[:, :-1]}, rf"tensor {Q}\.qzeros has shape \[2, 7\]"),
        ("gptq-4", {"scales": lambda t: t.int()}, rf"tensor {Q}\.scales is of type I32, config.json calls for F32 or F16"),
        ("gptq-4", {"qweight": lambda t: t.float()}, rf"tensor {Q}\.qweight is of type F32, config.json calls for I32"),
        ("gptq-4", {"g_idx": lambda t: t + 1}, rf"tensor {Q}\.g_idx holds 1 to 2; there are groups 0 to 1"),
        ("gptq-4", {"g_idx": lambda t: t - 1}, rf"tensor {Q}\.g_idx holds -1 to 0"),
        ("gptq-4", {"g_idx": lambda t: t * 0}, rf"tensor {Q}\.g_idx has groups of other sizes than 32 columns"),
        ("gptq-4", {"surprise": torch.zeros(3)}, rf"holds {Q}\.surprise, which LlamaForCausalLM has no place for"),
        ("awq", {"qzeros": None}, rf"lacks {Q}\.qzeros"),
        ("awq", {"qweight": lambda t: t.T}, rf"tensor {Q}\.qweight has shape \[8, 64\]"),
        ("fp8-blocks", {"weight_scale_inv": lambda t: t[:, :-1]}, rf"tensor {Q}\.weight_scale_inv has shape \[4, 1\]"),
        ("fp8-blocks", {"weight_scale_inv": None}, rf"lacks {Q}\.weight_scale_inv, "),
        ("fp8-blocks", {"weight": lambda t: t.view(torch.int8)}, rf"tensor {Q}\.weight is of type I8, config.json calls for F8_E4M3"),
        ("fp8-static", {"input_scale": None}, rf"lacks {Q}\.input_scale"),
        ("fp8-static", {"input_scale": lambda t: t * 0}, rf"tensor {Q}\.input_scale is 0\.0; it must be positive"),
        ("fp8-static", {"input_scale": lambda t: t * torch.nan}, rf"tensor {Q}\.input_scale is nan; it must be positive"),
        ("nf4", {"weight.absmax": lambda t: t[:16]}, rf"tensor {Q}\.weight\.absmax "),
        ("nf4", {"weight.quant_map": lambda t: t * 2}, rf"tensor {Q}\.weight\.quant_map is not that of NF4"),
        ("nf4", {"weight.quant_state.bitsandbytes__nf4": lambda t: t[:9]}, rf"tensor {Q}\.weight\.quant_state.* is no JSON"),
        ("nf4-nested", {"weight.nested_absmax": None}, rf"tensor {Q}\.weight\.nested_absmax or .* is missing"),
        ("llm-int8", {"SCB": None}, rf"lacks {Q}\.SCB"),
        ("llm-int8", {"weight_format": lambda t: t + 1}, rf"tensor {Q}\.weight_format names an order of a GPU"),
    ],
)
def test_a_tensor_that_cannot_be_is_named(name: str, changes: dict[str, Any], message: str, plain: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightError, match=message):
        ours(broken(plain, tmp_path, name, changes))


def test_codes_without_a_configuration_are_refused(plain: Path, tmp_path: Path) -> None:
    folder, _ = quantise_folder(plain, tmp_path, *CASES["fp8-whole"])
    (folder / "config.json").write_text((plain / "config.json").read_text())
    with pytest.raises(WeightError, match=r"is of type F8_E4M3, and config\.json does not say what it means"):
        ours(folder)


def test_biases_of_zeros_are_passed_over(tmp_path: Path) -> None:
    """Old GPTQ tools wrote one for every matrix."""
    changes = {**MODELS["llama"][1], "attention_bias": False}
    folder = save_tiny_model(tmp_path / "plain", "LlamaConfig", changes).folder
    expected = ours(broken(folder, tmp_path / "first", "gptq-4", {}))
    assert torch.equal(ours(broken(folder, tmp_path / "second", "gptq-4", {"bias": torch.zeros(64)})), expected)
    with pytest.raises(WeightError, match=rf"holds {Q}\.bias"):
        ours(broken(folder, tmp_path / "third", "gptq-4", {"bias": torch.ones(64)}))


GROUP = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}
COMPRESSED = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": GROUP}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, r'quantised weights \("None"\) are not supported; supported: gptq, awq, compressed-tensors'),
        ({"quant_method": "gptq", "bits": 5}, r'"bits" is 5; supported: 2, 3, 4, 8'),
        ({"quant_method": "gptq", "bits": True}, r'"bits" is True'),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, r'"group_size" is 0; it must be a positive integer'),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, 'in the layout "marlin" is not supported; supported: gptq, gptq_v2'),
        ({"quant_method": "gptq", "bits": 4, "pack_dtype": "int16"}, '"pack_dtype" is .int16.; supported: int32'),
        ({"quant_method": "gptq", "bits": 4, "dynamic": [1]}, '"dynamic" must be an object'),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:(": {}}}, r'"\(" is no expression for names'),
        ({"quant_method": "awq", "version": "gemv"}, 'AWQ in the layout "gemv" is not supported; supported: gemm'),
        ({"quant_method": "awq", "bits": 8}, '"bits" is 8; supported: 4'),
        ({"quant_method": "awq", "modules_to_not_convert": "lm_head"}, '"modules_to_not_convert" must be a list of names'),
        ({"quant_method": "fp8", "weight_block_size": [128]}, '"weight_block_size" is .*; it must be two positive integers'),
        ({"quant_method": "fp8", "activation_scheme": "none"}, '"activation_scheme" is "none"; supported: dynamic, static'),
        ({"quant_method": "fp8", "scale_fmt": "ue8m0"}, '"scale_fmt" is "ue8m0"'),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, '"fp4" is not supported; supported: nf4, and 8 bits'),
        ({**COMPRESSED, "format": "nvfp4-pack-quantized"}, 'the format "nvfp4-pack-quantized" .* supported: pack-quantized, int-q'),
        (
            {**COMPRESSED, "config_groups": {"g": {**GROUP, "weights": {"num_bits": 4, "strategy": "tensor", "symmetric": False}}}},
            'zero points with "strategy" "tensor" are not supported; supported: channel, group',
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, '"quant_algo" of modelopt is "NVFP4"; supported: FP8'),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "W4A16_AWQ"}}, '"quant_algo" of modelopt is "W4A16_AWQ"'),
        ({"quant_method": "torchao"}, r'quantised weights \("torchao"\) are not supported'),
        ({"quant_method": "hqq"}, r'quantised weights \("hqq"\) are not supported'),
        ({**COMPRESSED, "config_groups": {"g": {**GROUP, "output_activations": {"num_bits": 8}}}}, '"output_activations" of group "g" are not supported'),
        ({**COMPRESSED, "transform_config": {"a": 1}}, '"transform_config" and "sparsity_config" of compressed-tensors are not'),
        ({**COMPRESSED, "config_groups": {"g": {"targets": ["Linear"]}}}, 'group "g" of "config_groups" does not say'),
        ({**COMPRESSED, "config_groups": {"g": {**GROUP, "weights": {"num_bits": 4, "strategy": "row"}}}}, '"strategy" of weights is "row"'),
        ({**COMPRESSED, "config_groups": {"g": {**GROUP, "input_activations": {"num_bits": 4}}}}, '"num_bits" is 4; supported: 8'),
    ],
)
def test_what_the_configuration_may_not_say(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        read_plan(config)


def test_quantised_weights_of_other_models_are_refused(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "OlmoConfig", {}).folder
    edited = json.loads((folder / "config.json").read_text()) | {"quantization_config": CASES["awq"][0]}
    (folder / "config.json").write_text(json.dumps(edited))
    with pytest.raises(UnsupportedModel, match=r'quantised weights \("awq"\) of OlmoForCausalLM are not supported: mxfp4 is for gpt-oss, the other'):
        read_spec(folder)


def test_scales_of_caches_are_passed_over(plain: Path, tmp_path: Path) -> None:
    expected = ours(broken(plain, tmp_path / "first", "fp8-whole", {}))
    folder = broken(plain, tmp_path / "second", "fp8-whole", {})
    tensors = load_file(folder / "model.safetensors") | {"model.layers.0.self_attn.k_scale": torch.ones(1)}
    save_file(tensors, folder / "model.safetensors")
    assert torch.equal(ours(folder), expected)


@pytest.mark.parametrize("expression", ["(a+)+$", "(?:a|a)*b", "([a-z._0-9]+)*!", "(?:(?:ab)?){20}", "a" * 3000, r"(a)(?(1)b|c)"])
def test_expressions_that_could_take_forever_are_refused(expression: str) -> None:
    with pytest.raises(UnsupportedModel, match="repeats more than single characters"):
        compiled(expression)


@pytest.mark.parametrize(
    ("expression", "module", "is_meant"),
    [
        (r".*self_attn\.(q|k|v)_proj$", "model.layers.3.self_attn.q_proj", True),
        (r".*self_attn\.(q|k|v)_proj$", "model.layers.3.self_attn.o_proj", False),
        (r"model\.layers\.(0|1[0-9])\..*", "model.layers.12.mlp.up_proj", True),
        (r"(?:model\.)?lm_head", "lm_head", True),
    ],
)
def test_ordinary_expressions_mean_what_they_say(expression: str, module: str, is_meant: bool) -> None:
    assert Pattern("regex", expression).matches(module) == is_meant


KEYS = ["quant_method", "bits", "group_size", "version", "dynamic", "weight_block_size", "config_groups", "ignore", "format", "load_in_4bit"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 300) | st.floats() | st.sampled_from(["gptq", "awq", "fp8", "compressed-tensors", "re:(", "", "Linear"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "weights", "targets", "num_bits", "strategy"]), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_configuration_is_read_or_refused(config: dict[str, Any]) -> None:
    with suppress(EngineError):
        read_plan(config).scheme_of(Q)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of one layer in every format."""
    parent = tmp_path_factory.mktemp("small")
    plain = save_tiny_model(parent / "plain", "LlamaConfig", {**MODELS["llama"][1], "num_hidden_layers": 1}).folder
    for kind in FOLDER_KINDS:
        write_quantized_folder(plain, parent / kind, kind)
    written = {kind: parent / kind for kind in FOLDER_KINDS}
    return written | {name: quantise_folder(plain, parent / name, *CASES[name])[0] for name in FUZZED if name not in written}


FUZZED = (*FOLDER_KINDS, "gptq-4", "gptq-3-act-order", "awq", "fp8-blocks", "fp8-static", "nf4-nested", "llm-int8")
DTYPES = (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float8_e4m3fn, torch.bool)


@given(st.sampled_from(FUZZED), st.integers(0, 10**6), st.sampled_from(["drop", "cut", "turn", "type", "bits", "flat", "rename"]), st.sampled_from(DTYPES))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_tensor_is_read_or_refused(small: dict[str, Path], tmp_path_factory, name: str, place: int, change: str, dtype: torch.dtype) -> None:
    folder = small[name]
    tensors = load_file(folder / "model.safetensors")
    key = sorted(tensors)[place % len(tensors)]
    tensor = tensors.pop(key)
    made = {
        "drop": lambda: None,
        "cut": lambda: tensor.flatten()[: tensor.numel() // 2] if tensor.ndim < 2 else tensor[: len(tensor) // 2],
        "turn": lambda: tensor.T if tensor.ndim == 2 else tensor.reshape(1, -1),
        "type": lambda: tensor.float().to(dtype),
        "bits": lambda: torch.randint(0, 256, (tensor.nbytes,), dtype=torch.uint8).view(tensor.dtype).view(tensor.shape),
        "flat": lambda: tensor.flatten(),
        "rename": lambda: tensor,
    }[change]()
    target = tmp_path_factory.mktemp("broken") / "model"
    target.mkdir()
    (target / "config.json").write_text((folder / "config.json").read_text())
    changed = {} if made is None else {f"{key}x" if change == "rename" else key: made.clone().contiguous()}
    save_file(tensors | changed, target / "model.safetensors")
    with suppress(EngineError):
        assert ours(target).shape == (21, 99)

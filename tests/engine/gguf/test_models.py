"""Models out of GGUF files: every architecture and block type computes what the same numbers compute as safetensors."""

from __future__ import annotations

import json
import struct
from itertools import product
from pathlib import Path

import pytest
import torch

from maskwright.engine.errors import ModelFolderError, UnsupportedModel, WeightError
from maskwright.engine.gguf.files import open_gguf
from maskwright.engine.models.fingerprints import model_fingerprint
from maskwright.engine.models.gguf_weights import read_gguf_weights
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.kernels.quantized import BLOCK_TYPES

from ..conftest import LATENT, LLAMA3_ROPE, SIZES, YARN_ROPE, save_tiny_model
from ..models import test_decoder
from . import writing
from .writing import Kind, as_folder, write_gguf

BLOCKS = {"intermediate_size": 64}  # rows of whole blocks of 32
LONG_ROPE = {
    "rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": 32, "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.5, 3.0, 4.0, 5.0],
}  # fmt: skip
V2 = {**LATENT, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "topk_method": "greedy", "routed_scaling_factor": 1.5}
GROWING = {"llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 1.0}
MODELS = {
    "llama": ("LlamaConfig", {}),
    "llama-biased-tied": ("LlamaConfig", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "llama-rope-factors": ("LlamaConfig", {"rope_parameters": LLAMA3_ROPE}),
    "llama-yarn": ("LlamaConfig", {"rope_parameters": YARN_ROPE}),
    "llama-linear": ("LlamaConfig", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}),
    "mistral": ("MistralConfig", {"sliding_window": None}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3Config", {"head_dim": 16}),
    "qwen3moe": ("Qwen3MoeConfig", {"num_experts": 6, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "norm_topk_prob": True, "head_dim": 16}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 16}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 6, "num_hidden_layers": 7, "query_pre_attn_scalar": 16}),
    "phi3": ("Phi3Config", {"pad_token_id": 0, "sliding_window": 9}),
    "phi3-long": ("Phi3Config", {"pad_token_id": 0, "rope_parameters": LONG_ROPE, "original_max_position_embeddings": 32}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 9}),
    "command-r": ("CohereConfig", {"use_qk_norm": True}),
    "cohere2": ("Cohere2Config", {"num_hidden_layers": 4, "sliding_window": 6}),
    "deepseek2": ("DeepseekV3Config", {**LATENT, "moe_intermediate_size": 32, "rope_parameters": {**YARN_ROPE, "mscale": 1.0, "mscale_all_dim": 1.0}}),
    "deepseek2-softmax": ("DeepseekV2Config", {**V2, "rope_parameters": {**YARN_ROPE, "mscale": 0.7, "mscale_all_dim": 0.7}}),
    "deepseek2-lite": ("DeepseekV2Config", {**V2, "q_lora_rank": None, "num_hidden_layers": 26}),
    "gemma": ("GemmaConfig", {"head_dim": 16}),
    "smollm3": ("SmolLM3Config", {"num_hidden_layers": 5, "pad_token_id": 0}),
    "granite": ("GraniteConfig", {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.1, "logits_scaling": 2.0}),
    "glm4": ("Glm4Config", {"head_dim": 16, "pad_token_id": 0}),
    "qwen2moe": ("Qwen2MoeConfig", {"num_experts": 6, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64, "num_experts_per_tok": 2}),
    "mistral3": ("Ministral3Config", {"head_dim": 8, "rope_parameters": {**YARN_ROPE, **GROWING, "original_max_position_embeddings": 8}}),
    "olmo2": ("Olmo2Config", {}),
    "olmo2-sliding": ("Olmo3Config", {"num_hidden_layers": 5, "sliding_window": 6, "rope_parameters": {"full_attention": YARN_ROPE, "sliding_attention": {"rope_type": "default", "rope_theta": YARN_ROPE["rope_theta"]}}}),
    "exaone4": ("Exaone4Config", {"sliding_window": None, "sliding_window_pattern": None, "layer_types": ["full_attention"] * 3, "rope_parameters": LLAMA3_ROPE}),
    "exaone4-sliding": ("Exaone4Config", {"num_hidden_layers": 5, "sliding_window": 6}),
    "llama4": ("Llama4TextConfig", {"intermediate_size_mlp": 64, "num_local_experts": 4, "num_hidden_layers": 5, "interleave_moe_layer_step": 2, "head_dim": 8}),
}  # fmt: skip


def logits(path: Path) -> torch.Tensor:
    """Of 21 tokens, in two chunks and one decode step."""
    model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 128)
    cache = model.allocate_cache(num_blocks=16, block_size=4)
    tokens = torch.randint(3, SIZES["vocab_size"], (21,), generator=torch.Generator().manual_seed(1)).tolist()
    chunks = [(tokens[:12], 0), (tokens[12:20], 12), (tokens[20:], 20)]
    return torch.cat([test_decoder.forward(model, cache, [(chunk, done, list(range(8)))]) for chunk, done in chunks])


@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.F16], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_computes_what_its_numbers_do_as_safetensors(name: str, kind: Kind, tmp_path: Path) -> None:
    class_name, changes = MODELS[name]
    folder = save_tiny_model(tmp_path / "folder", class_name, {**BLOCKS, **changes}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, kind)
    expected = logits(as_folder(path, folder, tmp_path / "same"))
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


K_BLOCKS = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name in BLOCK_TYPES], ids=lambda kind: kind.name)
def test_a_type_of_blocks_is_computed_with_as_it_lies(kind: Kind, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", K_BLOCKS).folder
    path = write_gguf(tmp_path / "model.gguf", folder, kind)
    expected = logits(as_folder(path, folder, tmp_path / "same"))
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


def test_types_may_differ_from_tensor_to_tensor(tmp_path: Path) -> None:
    """As in Q4_K_M: of what is joined here, some is in other blocks."""
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**K_BLOCKS, "tie_word_embeddings": True}).folder
    others = {"attn_v": Kind.Q6_K, "ffn_up": Kind.Q5_0, "token_embd": Kind.Q8_0, "attn_output": Kind.F32}
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.Q4_K, overrides=others)
    expected = logits(as_folder(path, folder, tmp_path / "same"))
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


def test_no_matrix_is_copied_out_of_the_file(tmp_path: Path) -> None:
    """Packed matrices are views of the mapped file; what the model holds beside them is norms."""
    path = write_gguf(tmp_path / "model.gguf", save_tiny_model(tmp_path / "folder", "LlamaConfig", K_BLOCKS).folder, Kind.Q4_0)
    mapped = {tensor.data.data_ptr() for tensor in open_gguf(path).tensors.values()}
    found = read_gguf_weights(path, read_spec(path), torch.float32, torch.device("cpu"))
    blocks = {name: tensor for name, tensor in found.weights.items() if ".blocks." in name}
    assert len(blocks) == 9 and all(tensor.data_ptr() in mapped for tensor in blocks.values())
    assert sum(tensor.nbytes for name, tensor in found.weights.items() if name not in blocks) < 5_000
    model = load_model(path, read_spec(path), torch.float32, torch.device("cpu"), 128)
    assert model.num_bytes < path.stat().st_size


def test_what_cannot_stay_packed_is_expanded_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", K_BLOCKS).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.Q4_0, overrides={"ffn_down": Kind.IQ4_XS})
    expected = logits(as_folder(path, folder, tmp_path / "same"))
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())
    assert "1 tensors of type IQ4_XS are expanded while loading" in caplog.text


def edited(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert content.count(old) == 1 and len(old) == len(new)
    path.write_bytes(content.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (b"blk.0.attn_q.weight", b"blk.0.attn_p.weight", WeightError, "lacks blk.0.attn_q.weight, which llama calls for"),
        (b"blk.2.ffn_up.weight", b"blk.9.ffn_up.weight", WeightError, "lacks blk.2.ffn_up.weight"),
        (b"llama.block_count\x04\0\0\0\x03", b"llama.block_count\x04\0\0\0\x02", WeightError, "it holds blk.2.attn_k.weight, .* and 6 more"),
        (b"llama.block_count\x04\0\0\0\x03", b"llama.block_count\x04\0\0\0\xff", ModelFolderError, '"llama.block_count" is 255; it must be at most 30'),
        (b"llama.embedding_length\x04\0\0\0\x20", b"llama.embedding_length\x04\0\0\0\x40", WeightError, "has shape"),
        (b"llama.attention.head_count\x04", b"llama.attention.head_coumt\x04", ModelFolderError, '"llama.attention.head_count" is missing'),
        (b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0mpt-7", UnsupportedModel, 'architecture "mpt-7" is not supported; supported: llama, '),
    ],
)
def test_a_file_that_does_not_hang_together_is_named(old: bytes, new: bytes, error: type, message: str, tmp_path: Path, tiny_model) -> None:
    path = edited(write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder), old, new)
    with pytest.raises(error, match=message) as raised:
        logits(path)
    assert str(path) in str(raised.value)


def test_a_type_that_nothing_decodes_is_refused_by_name(tmp_path: Path, tiny_model) -> None:
    path = write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder)
    kind = struct.pack("<I2QI", 2, 32, 99, Kind.F32)
    content = path.read_bytes()
    path.write_bytes(content.replace(kind, struct.pack("<I2QI", 2, 32, 99, Kind.I32), 1))
    with pytest.raises(UnsupportedModel, match=r"is of type I32, which cannot be decoded; computed with as they are: F32, F16"):
        logits(path)


@pytest.mark.parametrize(("groups", "method"), [(1, "greedy"), (4, "group_limited_greedy")])
def test_experts_chosen_by_softmax_are_deepseek_v2s(groups: int, method: str, tmp_path: Path) -> None:
    """Groups of V2 are as good as their best expert; llama.cpp takes the two best, as V3 does."""
    folder = save_tiny_model(tmp_path / "folder", "DeepseekV2Config", {**V2, "n_group": groups, "topk_group": 2 if groups > 1 else 1, "topk_method": method}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.F32)
    expected = logits(folder)
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


def test_axes_of_one_place_may_lie_before_a_stack_of_experts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ggml does not tell such shapes apart."""
    folder = save_tiny_model(tmp_path / "folder", *MODELS["mixtral"]).folder
    expected = logits(write_gguf(tmp_path / "model.gguf", folder))
    plain = writing.stacked
    monkeypatch.setattr(writing, "stacked", lambda state: ((name, tensor[None] if "experts" in name else tensor) for name, tensor in plain(state)))
    assert torch.equal(logits(write_gguf(tmp_path / "other.gguf", folder)), expected)
    assert {len(tensor.shape) for name, tensor in open_gguf(tmp_path / "other.gguf").tensors.items() if "_exps" in name} == {4}


@pytest.mark.parametrize("part", ["ffn_down_exps", "ffn_up_exps"])
def test_experts_of_which_some_must_be_expanded(part: str, tmp_path: Path) -> None:
    """As in files that mix IQ types with others."""
    changes = {**K_BLOCKS, "num_local_experts": 4}
    folder = save_tiny_model(tmp_path / "folder", "MixtralConfig", changes).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.Q8_0, overrides={part: Kind.IQ4_XS})
    expected = logits(as_folder(path, folder, tmp_path / "same"))
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


def test_a_window_of_llamas_is_mistrals(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "MistralConfig", {"sliding_window": 7}).folder
    path = write_gguf(tmp_path / "model.gguf", folder)
    expected = logits(folder)
    assert torch.allclose(logits(path), expected, atol=2e-4 * expected.abs().max().item())


def test_which_layers_slide_may_be_a_list(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["gemma2"]).folder
    found = read_spec(write_gguf(tmp_path / "model.gguf", folder, **{"gemma2.attention.sliding_window_pattern": [False, True, True]}))
    assert found.windows == (None, 6, 6)


def test_a_factor_without_a_type_is_linear(tmp_path: Path, tiny_model) -> None:
    """As llama.cpp has it."""
    path = write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, **{"llama.rope.scaling.factor": 4.0})
    (rope,) = read_spec(path).ropes
    assert (rope.kind, rope.parameters["factor"]) == ("linear", 4.0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"llama.attention.temperature_scale": 0.1}, "attention.temperature_scale is 0.1"),
        ({"llama.rope.scaling.type": "wide"}, 'rope.scaling.type is "wide"'),
        ({"llama.rope.dimension_count": 7}, "7 dimensions of a head turn; they do so in pairs"),
        ({"llama.rope.scaling.attn_factor": 1.3}, 'rope.scaling.attn_factor is 1.2999.* where rope.scaling.type is "linear"'),
        ({"llama.rope.scaling.yarn_ext_factor": 0.5}, "rope.scaling.yarn_ext_factor is 0.5"),
        ({"llama.logit_scale": 0.5}, "logit_scale is 0.5"),
        ({"llama.final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ({"llama.attention.causal": False}, "attention.causal is false: it is an encoder"),
        ({"llama.rope.dimension_sections": [2, 1, 1]}, "rope.dimension_sections is array"),
        ({"llama.attention.head_count_kv": [2, 1, 2]}, "attention.head_count_kv differs from layer to layer"),
    ],
)
def test_what_would_change_the_computation_is_refused_by_name(keys: dict, message: str, tmp_path: Path, tiny_model) -> None:
    path = write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, **keys)
    with pytest.raises(UnsupportedModel, match=message):
        read_spec(path)


def test_keys_that_change_nothing_or_that_nobody_knows_are_passed_over(tmp_path: Path, tiny_model) -> None:
    keys = {"llama.rope.scaling.finetuned": True, "llama.tensor_data_layout": "Meta AI original pth", "llama.our_own_note": 7, "llama.logit_scale": 1.0}
    assert read_spec(write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, **keys)).num_layers == 3


def test_multipliers_of_nothing_are_named(tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", *MODELS["granite"]).folder
    for name in ("logit_scale", "residual_scale"):
        path = write_gguf(tmp_path / f"{name}.gguf", folder, **{f"granite.{name}": 0.0})
        with pytest.raises(ModelFolderError, match=f'"granite.{name}" is 0.0; it must be a positive number'):
            read_spec(path)


COUNTS, NUMBERS = ("embedding_length", "attention.head_count", "block_count"), ("attention.layer_norm_rms_epsilon", "rope.freq_base")
OTHERS = ("much", [1.5, 2.5], ["a"], True)


@pytest.mark.parametrize(("name", "value"), [*product(COUNTS, (*OTHERS, 2.5, -3)), *product(NUMBERS, OTHERS)])
def test_a_hyper_parameter_of_another_kind_is_named(name: str, value: object, tmp_path: Path, tiny_model) -> None:
    path = write_gguf(tmp_path / "model.gguf", tiny_model("llama").folder, **{f"llama.{name}": value})
    with pytest.raises(ModelFolderError, match=f'"llama.{name}" is .*; it must be'):
        read_spec(path)


def test_biases_are_those_that_are_there(tmp_path: Path) -> None:
    """Llama's configuration has one switch for both kinds of biases in attention; files have either."""
    folder = save_tiny_model(tmp_path / "folder", "Qwen2Config", {}).folder
    edited = json.loads((folder / "config.json").read_text()) | {"model_type": "llama"}
    (folder / "config.json").write_text(json.dumps(edited))
    spec = read_spec(write_gguf(tmp_path / "model.gguf", folder))
    assert (spec.has_qkv_bias, spec.has_output_bias, spec.has_mlp_bias) == (True, False, False)
    assert logits(tmp_path / "model.gguf").isfinite().all()


def test_two_files_have_two_fingerprints(tmp_path: Path, tiny_model) -> None:
    folder = tiny_model("llama").folder
    first, again = (write_gguf(tmp_path / f"{name}.gguf", folder) for name in ("first", "again"))
    other = write_gguf(tmp_path / "other.gguf", folder, Kind.F16)
    assert model_fingerprint(first) == model_fingerprint(again) != model_fingerprint(other)

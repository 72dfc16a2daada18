"""Shares of every native family, however its weights are stored: what all ranks compute together is what one device computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwright.engine.errors import UnsupportedModel
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.sharding.peers import Peers
from maskwright.engine.sharding.ranks import Rank
from maskwright.kernels.cpu import is_available

from ..conftest import save_tiny_model
from ..gguf.test_models import BLOCKS, K_BLOCKS
from ..gguf.writing import Kind, write_gguf
from ..models.test_compiled import MODELS as COMPILED
from ..models.test_compiled import WIDE, halved
from ..models.test_decoder import random_tokens
from ..models.test_linear import FAMILIES, logits_of
from ..quantized.test_formats import CASES
from ..quantized.test_formats import MODELS as QUANTISED
from ..quantized.writing import quantise_folder
from .ranks import CPU, load_share, on_all_ranks

TOKENS = random_tokens(23)


def check(folder: Path, size: int, spec: Any = None, **options: Any) -> torch.Tensor:
    """That ranks give the logits of one device; returns them."""
    spec = spec or read_spec(folder)
    expected = logits_of(load_model(folder, spec, torch.float32, CPU, 128, **options), TOKENS)
    found = on_all_ranks(size, lambda peers: logits_of(load_share(folder, peers, spec, **options), TOKENS))
    torch.testing.assert_close(found[0], expected, atol=1e-5 * expected.abs().max().item() + 1e-5, rtol=1e-4)
    return expected


@pytest.mark.parametrize("name", FAMILIES)
def test_two_ranks_compute_every_family(name: str, tmp_path: Path) -> None:
    check(save_tiny_model(tmp_path, *FAMILIES[name]).folder, 2)


UNEVEN: dict[str, tuple[int, str, dict[str, Any]]] = {
    "a head of keys on four ranks": (4, "LlamaConfig", {"num_key_value_heads": 1}),
    "two heads of keys on four ranks": (4, "LlamaConfig", {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
    "nine heads of three groups": (2, "LlamaConfig", {"hidden_size": 36, "num_attention_heads": 9, "num_key_value_heads": 3}),
    "a joined matrix of three groups": (2, "Phi3Config", {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 3, "pad_token_id": 0}),
    "more ranks than experts would fill evenly": (3, "Qwen3MoeConfig", {"num_experts": 4, "moe_intermediate_size": 16, "num_experts_per_tok": 1, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8, "decoder_sparse_step": 1}),
    "a group of states on three ranks": (3, "Mamba2Config", {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 1, "chunk_size": 8, "initializer_range": 0.4}),
    "groups of states on four ranks": (4, "Mamba2Config", {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 8, "initializer_range": 0.4}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEVEN)
def test_ranks_need_not_hold_alike_much(name: str, tmp_path: Path) -> None:
    size, class_name, changes = UNEVEN[name]
    check(save_tiny_model(tmp_path, class_name, changes).folder, size)


def test_each_rank_holds_its_share_alone(tmp_path: Path) -> None:
    """All matrices are dealt out; what all ranks hold is norms."""
    folder = save_tiny_model(tmp_path, "LlamaConfig", {"hidden_size": 64, "intermediate_size": 512, "vocab_size": 400}).folder
    whole = load_model(folder, read_spec(folder), torch.float32, CPU, 128)
    shares = [load_share(folder, Peers(Rank(number, 2))) for number in range(2)]
    norms = 4 * 64 * (2 * whole.spec.num_layers + 1)
    assert sum(share.num_bytes for share in shares) == whole.num_bytes + norms
    assert all(share.block_bytes(16) == whole.block_bytes(16) // 2 for share in shares)


# ---- packed matrices


GGUF = {
    "llama": ("LlamaConfig", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    "phi3": ("Phi3Config", {"pad_token_id": 0}),
    "qwen3moe": ("Qwen3MoeConfig", {"num_experts": 5, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "head_dim": 16}),
}  # fmt: skip


@pytest.mark.parametrize("name", GGUF)
def test_blocks_stay_packed_and_mapped(name: str, tmp_path: Path) -> None:
    class_name, changes = GGUF[name]
    changes = {**BLOCKS, "num_attention_heads": 4, "head_dim": 16, "num_key_value_heads": 2, **changes}
    folder = save_tiny_model(tmp_path / "folder", class_name, changes).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.Q8_0)
    check(path, 2)


@pytest.mark.parametrize("is_compiled", [False, pytest.param(True, marks=pytest.mark.skipif(not is_available(), reason="no compiled products here"))])
def test_large_blocks_are_cut_between_them_or_become_numbers(is_compiled: bool, tmp_path: Path) -> None:
    """Inner features go in pieces of 256 where there are as many; heads of 64 do not, and what has their columns is expanded."""
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**K_BLOCKS, "intermediate_size": 768}).folder
    path = write_gguf(tmp_path / "model.gguf", folder, Kind.Q4_K)
    spec = read_spec(path)
    names = load_share(path, Peers(Rank(0, 2))).layers[0]
    assert type(names.mlp.down.own.base if hasattr(names.mlp.down.own, "base") else names.mlp.down.own).__name__ == "PackedLinear"
    assert type(names.attention.output.own).__name__ == "DenseLinear"
    if not is_compiled:
        check(path, 2, spec)
        return
    expected = logits_of(load_model(path, spec, torch.float32, CPU, 128, is_compiled=True), TOKENS)
    found = on_all_ranks(2, lambda peers: logits_of(load_share(path, peers, spec, is_compiled=True), TOKENS))[0]
    assert (found - expected).abs().max() < 0.02 * expected.abs().max(), "activations are rounded to 8 bits, of what is packed"


@pytest.mark.parametrize("name", ["llama-tied", "gemma3", "mixtral"])
@pytest.mark.skipif(not is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
def test_halves_are_multiplied_as_they_are(name: str, tmp_path: Path) -> None:
    class_name, changes = COMPILED[name]
    folder = halved(save_tiny_model(tmp_path / "folder", class_name, {**WIDE, **changes}).folder, torch.bfloat16)
    check(folder, 2, is_compiled=True)


@pytest.mark.parametrize("name", ["gptq-4", "gptq-3-act-order", "gptq-whole-rows", "awq", "fp8-blocks-that-overhang", "fp8-whole", "nf4-nested", "llm-int8"])
@pytest.mark.parametrize("model", QUANTISED)
def test_codes_are_dealt_out_with_their_scales(model: str, name: str, tmp_path: Path) -> None:
    config, writer = CASES[name]
    quantised, _ = quantise_folder(save_tiny_model(tmp_path / "folder", *QUANTISED[model]).folder, tmp_path, config, writer)
    spec = read_spec(quantised)
    check(quantised, 2, replace(spec, quantization=replace(spec.quantization, rounds_inputs=False)))


def test_inputs_with_one_scale_for_all_columns_are_refused(tmp_path: Path) -> None:
    config, writer = CASES["fbgemm"]
    quantised, _ = quantise_folder(save_tiny_model(tmp_path / "folder", *QUANTISED["llama"]).folder, tmp_path, config, writer)
    with pytest.raises(UnsupportedModel, match=r"layers\.0\.self_attn\.o_proj: .* set quantized_activations=False, or tensor_parallel=1"):
        load_share(quantised, Peers(Rank(0, 2)))


@pytest.mark.parametrize("kind", ["int8", "int4", "fp8"])
def test_what_is_quantised_while_loading_has_the_codes_of_one_device(kind: Any, tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path, "LlamaConfig", {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}).folder
    check(folder, 2, replace(read_spec(folder), quantization=kind))

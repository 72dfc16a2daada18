"""Models out of GGUF files: every architecture and block type computes what the same numbers compute as safetensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maskwright.engine.models.model import load_model
from maskwright.engine.models.packed_linear import PackedEmbedding, PackedLinear
from maskwright.engine.models.spec import read_spec

from ..conftest import LATENT, LLAMA3_ROPE, SIZES, YARN_ROPE, save_tiny_model
from ..models import test_decoder
from .writing import Kind, as_folder, write_gguf

BLOCKS = {"intermediate_size": 64}  # rows of whole blocks of 32
LONG_ROPE = {
    "rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": 32, "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.5, 3.0, 4.0, 5.0],
}  # fmt: skip
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

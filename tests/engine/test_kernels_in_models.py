"""Every native family computed by the Triton kernels, in Triton's interpreter where there is no GPU, against plain PyTorch."""

from __future__ import annotations

import pytest
import torch

from maskwright.engine.decode_batch import DecodeBuffers
from maskwright.engine.models.decoder import Decoder, ForwardBatch, load_decoder
from maskwright.engine.models.spec import read_spec

from .conftest import DEEPSEEK_ROPE, FULL, LATENT, LONG_ROPE, SLIDING, TinyModel, save_tiny_model
from .test_decoder import random_tokens

BLOCK_SIZE = 2
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# name -> (transformers' configuration class, what differs from SIZES and SMALL); the interpreter takes 10 ms for each program
# of a kernel, so: two layers, few heads, windows of a few tokens
SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.4}
FAMILIES = {
    "llama": ("LlamaConfig", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "mistral": ("MistralConfig", {"sliding_window": 3}),
    "qwen2": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}),
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 3, "query_pre_attn_scalar": 24}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 3, "layer_types": [SLIDING, FULL]}),
    "phi3": ("Phi3Config", {"pad_token_id": 0, "num_attention_heads": 4, "rope_parameters": LONG_ROPE, "original_max_position_embeddings": 128}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 3}),
    "qwen3-moe": ("Qwen3MoeConfig", {"num_experts": 3, "moe_intermediate_size": 16, "num_experts_per_tok": 2, "mlp_only_layers": [0], "head_dim": 16}),
    "deepseek-v3": ("DeepseekV3Config", {**LATENT, "num_attention_heads": 2, "num_key_value_heads": 2, "rope_parameters": DEEPSEEK_ROPE}),
    "cohere": ("CohereConfig", {"use_qk_norm": True}),
    "cohere2": ("Cohere2Config", {"sliding_window": 3, "layer_types": [SLIDING, FULL]}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 3}),
    "llama4": ("Llama4TextConfig", {"intermediate_size_mlp": 40, "num_local_experts": 2, "num_experts_per_tok": 1, "no_rope_layers": [1, 0], "interleave_moe_layer_step": 2, "attention_chunk_size": 4, "floor_scale": 2, "head_dim": 8}),
}  # fmt: skip


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    built: dict[str, TinyModel] = {}

    def get(name: str) -> TinyModel:
        if name not in built:
            class_name, changes = FAMILIES[name]
            built[name] = save_tiny_model(tmp_path_factory.mktemp(name), class_name, {**SMALL, **changes})
        return built[name]

    return get


def load(folder, backend, dtype=torch.float32, kv_dtype=None):
    decoder = load_decoder(folder, read_spec(folder), dtype, DEVICE, backend, kv_dtype)
    return decoder, decoder.allocate_cache(64, BLOCK_SIZE)


def forward(decoder: Decoder, cache, chunks) -> torch.Tensor:
    token_ids = [token for tokens, _, _ in chunks for token in tokens]
    positions = [past + i for tokens, past, _ in chunks for i in range(len(tokens))]
    plan = decoder.plan([(past, len(tokens), table) for tokens, past, table in chunks], cache)
    numbers = (torch.tensor(column, device=DEVICE) for column in (token_ids, positions, list(range(len(token_ids)))))
    return decoder.forward(ForwardBatch(*numbers, plan), cache)


def steps(decoder: Decoder, cache) -> list[torch.Tensor]:
    """Logits of prompts, of a ragged batch (a decode, then chunks with and without a past), and of a decode step from buffers."""
    sequences = [random_tokens(length, seed) for seed, length in enumerate((5, 6, 2))]
    tables = [[40, 3, 7], [5, 1, 8, 30], [2, 60]]
    past = [4, 2, 0]
    prompts = [(s[:p], 0, t) for s, p, t in zip(sequences, past, tables, strict=True) if p]
    found = [forward(decoder, cache, prompts)]
    found.append(forward(decoder, cache, [(s[p:], p, t) for s, p, t in zip(sequences, past, tables, strict=True)]))
    buffers = DecodeBuffers(3, 4, BLOCK_SIZE, DEVICE)
    buffers.fill([9, 10], [5, 6], tables[:2])
    return [*found, decoder.decode(buffers.batch(3), cache)[:2]]


@pytest.mark.parametrize("name", FAMILIES)
def test_kernels_compute_what_plain_pytorch_computes(name, small_model):
    folder = small_model(name).folder
    for ours, plain in zip(steps(*load(folder, "triton")), steps(*load(folder, "reference")), strict=True):
        torch.testing.assert_close(ours, plain, atol=3e-4, rtol=3e-4)

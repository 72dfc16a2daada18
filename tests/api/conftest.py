"""A model with random weights and a byte-level tokenizer: knows nothing, so whatever is right comes from the constraint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from maskwright import LLM

END, ROLES = "<|end|>", ["<|system|>", "<|user|>", "<|assistant|>"]
HEAD_PADDING = 5  # rows of the output head beyond the tokenizer
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MERGES = ["a b", "ab c", "e r", "i n", "t h", "th e"]  # in the alphabet of ByteLevel, where letters stand for themselves


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random-model")
    tokenizer = byte_level_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    vocab_size = tokenizer.get_vocab_size() + HEAD_PADDING
    config = llama_config(vocab_size, tokenizer.token_to_id(END))
    (folder / "config.json").write_text(json.dumps(config))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    save_file(random_llama_weights(config), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="session")
def llm(model_folder: Path) -> LLM:
    return LLM(model_folder)


def byte_level_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [merge.replace(" ", "") for merge in MERGES]
    vocabulary = {token: index for index, token in enumerate([*alphabet, *merged])}
    pairs = [tuple(merge.split()) for merge in MERGES]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END, *ROLES])
    return tokenizer


def llama_config(vocab_size: int, eos_token_id: int) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "eos_token_id": eos_token_id,
        "torch_dtype": "float32",
    }


def random_llama_weights(config: dict[str, object], seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden, inner, keys = 32, 48, 16

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator) * 0.5

    weights = {"model.embed_tokens.weight": random(int(str(config["vocab_size"])), hidden), "model.norm.weight": torch.ones(hidden)}
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        weights |= {
            prefix + "input_layernorm.weight": torch.ones(hidden),
            prefix + "post_attention_layernorm.weight": torch.ones(hidden),
            prefix + "self_attn.q_proj.weight": random(hidden, hidden),
            prefix + "self_attn.k_proj.weight": random(keys, hidden),
            prefix + "self_attn.v_proj.weight": random(keys, hidden),
            prefix + "self_attn.o_proj.weight": random(hidden, hidden),
            prefix + "mlp.gate_proj.weight": random(inner, hidden),
            prefix + "mlp.up_proj.weight": random(inner, hidden),
            prefix + "mlp.down_proj.weight": random(hidden, inner),
        }
    return weights

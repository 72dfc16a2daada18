"""A model folder with random weights and a tokenizer trained on this repository's pages: what is right in its outputs comes from
constraints alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parents[3]
END, SPECIAL = "<|end|>", ["<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
NUM_TOKENS, HEAD_PADDING = 2000, 40  # rows of the output head beyond the tokenizer
HIDDEN, INNER, LAYERS, HEADS, HEAD_SIZE = 128, 128, 2, 2, 64
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_model(folder: Path) -> Path:
    """Write the folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = trained_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    config = llama_config(tokenizer.get_vocab_size() + HEAD_PADDING, tokenizer.token_to_id(END))
    (folder / "config.json").write_text(json.dumps(config))
    save_file(random_weights(config["vocab_size"]), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def trained_tokenizer() -> Tokenizer:
    """Byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=NUM_TOKENS, special_tokens=[END, *SPECIAL], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train([str(ROOT / "README.md"), *map(str, sorted((ROOT / "docs").glob("*.md")))], trainer)
    return tokenizer


def llama_config(vocab_size: int, eos_token_id: int) -> dict[str, int | str | float | bool | list[str]]:
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocab_size, "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
        "head_dim": HEAD_SIZE, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True, "eos_token_id": eos_token_id, "torch_dtype": "float32",
    }  # fmt: skip


def random_weights(vocab_size: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator) * 0.1

    weights = {"model.embed_tokens.weight": random(vocab_size, HIDDEN), "model.norm.weight": torch.ones(HIDDEN)}
    for layer in range(LAYERS):
        prefix, attended = f"model.layers.{layer}.", HEADS * HEAD_SIZE
        weights |= {
            prefix + "input_layernorm.weight": torch.ones(HIDDEN),
            prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN),
            prefix + "self_attn.q_proj.weight": random(attended, HIDDEN),
            prefix + "self_attn.k_proj.weight": random(attended, HIDDEN),
            prefix + "self_attn.v_proj.weight": random(attended, HIDDEN),
            prefix + "self_attn.o_proj.weight": random(HIDDEN, attended),
            prefix + "mlp.gate_proj.weight": random(INNER, HIDDEN),
            prefix + "mlp.up_proj.weight": random(INNER, HIDDEN),
            prefix + "mlp.down_proj.weight": random(HIDDEN, INNER),
        }
    return weights


if __name__ == "__main__":
    print(write_model(Path(sys.argv[1])))

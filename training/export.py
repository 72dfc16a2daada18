"""Write a trained model as a Hugging Face model folder: `LlamaForCausalLM` in bfloat16 safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from model import Llama
from safetensors.torch import load_file, save_file
from tokenizer import END, PAD, save_tokenizer
from tokenizers import Tokenizer
from torch import Tensor

LAYER_WEIGHTS = (
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)


def hugging_face_weights(model: Llama) -> dict[str, Tensor]:
    """The weights under transformers' names; the tied output head is not stored."""
    weights = {"model.embed_tokens.weight": model.embedding.weight, "model.norm.weight": model.norm.weight}
    for index, block in enumerate(model.blocks):
        prefix = f"model.layers.{index}."
        query, key, value = block.qkv.weight.chunk(3)
        gate, up = block.gate_up.weight.chunk(2)
        weights |= {
            prefix + "input_layernorm.weight": block.attention_norm.weight,
            prefix + "self_attn.q_proj.weight": query,
            prefix + "self_attn.k_proj.weight": key,
            prefix + "self_attn.v_proj.weight": value,
            prefix + "self_attn.o_proj.weight": block.output.weight,
            prefix + "post_attention_layernorm.weight": block.mlp_norm.weight,
            prefix + "mlp.gate_proj.weight": gate,
            prefix + "mlp.up_proj.weight": up,
            prefix + "mlp.down_proj.weight": block.down.weight,
        }
    return {name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in weights.items()}


@torch.no_grad()
def load_weights(model: Llama, folder: Path) -> None:
    """Give `model` the weights of a folder that `export` wrote for the same configuration."""
    saved = load_file(str(folder / "model.safetensors"))
    model.embedding.weight.copy_(saved["model.embed_tokens.weight"])
    model.norm.weight.copy_(saved["model.norm.weight"])
    for index, block in enumerate(model.blocks):
        layer = {name: saved[f"model.layers.{index}.{name}.weight"] for name in LAYER_WEIGHTS}
        block.attention_norm.weight.copy_(layer["input_layernorm"])
        block.qkv.weight.copy_(torch.cat([layer[f"self_attn.{each}_proj"] for each in "qkv"]))
        block.output.weight.copy_(layer["self_attn.o_proj"])
        block.mlp_norm.weight.copy_(layer["post_attention_layernorm"])
        block.gate_up.weight.copy_(torch.cat([layer["mlp.gate_proj"], layer["mlp.up_proj"]]))
        block.down.weight.copy_(layer["mlp.down_proj"])


def hugging_face_config(model: Llama, tokenizer: Tokenizer) -> dict[str, object]:
    config = model.config
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(PAD),
        "torch_dtype": "bfloat16",
        "maskwright_prompt_style": "task",
    }


def export(model: Llama, tokenizer: Tokenizer, folder: Path) -> None:
    """Fill `folder`; weights are replaced in one step, so a reader never sees half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(tokenizer, folder)
    generation = {"eos_token_id": tokenizer.token_to_id(END), "pad_token_id": tokenizer.token_to_id(PAD), "do_sample": False}
    (folder / "config.json").write_text(json.dumps(hugging_face_config(model, tokenizer), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    unfinished = folder / "model.safetensors.tmp"
    save_file(hugging_face_weights(model), str(unfinished), metadata={"format": "pt"})
    unfinished.replace(folder / "model.safetensors")

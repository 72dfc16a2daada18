"""A plain Llama decoder for training on a CPU, and its export to a Hugging Face model folder.

The mathematics is that of transformers' `LlamaForCausalLM` (RMSNorm before each block, rotary positions on half-split
heads, SwiGLU, tied embeddings); `export` relies on it. Query, key and value share one matrix, and so do gate and
up, because few large products are quicker than many small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The shape of the model; everything else about it follows."""

    vocab_size: int = 2048
    hidden_size: int = 256
    num_layers: int = 5
    num_heads: int = 4
    intermediate_size: int = 704
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 2048

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rotary_tables(length: int, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin [length, head_dim], each half repeated, as transformers' half-split rotation expects."""
    inverse_frequency = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angle = torch.arange(length, dtype=torch.float32)[:, None] * inverse_frequency
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [batch, heads, length, head_dim] turned by its position."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.num_heads, self.head_dim = config.num_heads, config.head_dim
        self.attention_norm = RMSNorm(hidden, config.rms_norm_eps)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.output = nn.Linear(hidden, hidden, bias=False)
        self.mlp_norm = RMSNorm(hidden, config.rms_norm_eps)
        self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor, future: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        query, key, value = rotate(qkv[0], cos, sin), rotate(qkv[1], cos, sin), qkv[2]
        scores = query @ key.mT * self.head_dim**-0.5 + future  # quicker on a CPU than the fused kernel
        mixed = scores.softmax(-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, future: Tensor) -> Tensor:
        x = x + self.attend(self.attention_norm(x), cos, sin, future)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        cos, sin = rotary_tables(config.max_position_embeddings, config.head_dim, config.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                fan_in = parameter.shape[1]
                is_residual = name.endswith(("output.weight", "down.weight"))
                scale = 0.02 if "embedding" in name else fan_in**-0.5 * (0.3 if is_residual else 0.6)
                nn.init.normal_(parameter, std=scale)

    def hidden(self, tokens: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Last hidden states [batch, length, hidden] of tokens [batch, length]; padding goes to the right, unmasked."""
        length = tokens.shape[1]
        cos, sin = self.cos[:length].to(dtype), self.sin[:length].to(dtype)
        future = torch.full((length, length), float("-inf"), dtype=dtype).triu(1)
        x = self.embedding(tokens).to(dtype)
        for block in self.blocks:
            x = block(x, cos, sin, future)
        return self.norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.linear(self.hidden(tokens), self.embedding.weight)

    def loss(self, tokens: Tensor, answer: Tensor, targets: Tensor, dtype: torch.dtype) -> Tensor:
        """Mean cross-entropy of targets [n] at flat positions answer [n] of tokens [batch, length]."""
        states = self.hidden(tokens, dtype).flatten(0, 1)[answer]
        return F.cross_entropy(F.linear(states, self.embedding.weight.to(dtype)).float(), targets)

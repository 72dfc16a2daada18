"""The Llama family's decoder in native PyTorch: Llama, Mistral, Qwen2 and Qwen3 differ in switches only.

Query, key and value projections are one matrix, and so are gate and up: fewer, larger products.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, silu

from ..attention import AttentionPlan, KVCache, paged_attention
from .rope import inverse_frequencies
from .spec import ModelSpec
from .weights import Checkpoint, check_checkpoint, open_checkpoint


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """One step's input, packed: the tokens of all sequences one after another."""

    token_ids: Tensor  # int64 [num_tokens]
    positions: Tensor  # int64 [num_tokens]
    logit_rows: Tensor  # int64 [num_logits]: the rows whose next token is wanted
    attention: AttentionPlan


@dataclass(frozen=True, slots=True)
class LayerWeights:
    input_norm: Tensor  # [hidden]
    qkv: Tensor  # [(num_heads + 2 * num_kv_heads) * head_dim, hidden]
    qkv_bias: Tensor | None
    qk_norm: Tensor | None  # [num_heads + num_kv_heads, head_dim]: the query's weight, then the key's, once per head
    output: Tensor  # [hidden, num_heads * head_dim]
    output_bias: Tensor | None
    mlp_norm: Tensor  # [hidden]
    gate_up: Tensor  # [2 * intermediate, hidden]
    gate_up_bias: Tensor | None
    down: Tensor  # [hidden, intermediate]
    down_bias: Tensor | None


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    embedding: Tensor  # [vocab, hidden]
    layers: tuple[LayerWeights, ...]
    final_norm: Tensor  # [hidden]
    head: Tensor  # [vocab, hidden]; the embedding itself when tied

    def num_bytes(self) -> int:
        """Size in memory, a tied head counted once."""
        tensors = [self.embedding, self.final_norm] + ([] if self.head is self.embedding else [self.head])
        for layer in self.layers:
            tensors += [t for name in LayerWeights.__slots__ if (t := getattr(layer, name)) is not None]
        return sum(tensor.nbytes for tensor in tensors)


class Decoder:
    """A loaded model. `forward` is pure but for the KV cache it is given."""

    def __init__(self, spec: ModelSpec, weights: DecoderWeights) -> None:
        self.spec, self.weights = spec, weights
        frequencies, self._rope_factor = inverse_frequencies(spec.rope, spec.head_dim)
        self._frequencies = frequencies.to(self.device)  # float32 [head_dim / 2]

    @property
    def device(self) -> torch.device:
        return self.weights.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        return self.weights.embedding.dtype

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        """Logits [num_logits, vocab] for `batch.logit_rows`; writes this step's keys and values into `cache`."""
        hidden = embedding(batch.token_ids, self.weights.embedding)
        rotation = self._rotation(batch.positions)
        for index, layer in enumerate(self.weights.layers):
            hidden = hidden + self._attention(
                layer, index, self._norm(hidden, layer.input_norm), rotation, batch, cache
            )
            hidden = hidden + _mlp(layer, self._norm(hidden, layer.mlp_norm))
        wanted = hidden.index_select(0, batch.logit_rows)
        return linear(self._norm(wanted, self.weights.final_norm), self.weights.head)

    def _attention(
        self, layer: LayerWeights, index: int, hidden: Tensor, rotation: Rotation, batch: ForwardBatch, cache: KVCache
    ) -> Tensor:
        spec = self.spec
        heads = linear(hidden, layer.qkv, layer.qkv_bias).view(len(hidden), -1, spec.head_dim)
        turned, value = heads.split((spec.num_heads + spec.num_kv_heads, spec.num_kv_heads), dim=1)
        if layer.qk_norm is not None:
            turned = self._norm(turned, None) * layer.qk_norm
        query, key = rotation.apply(turned).split((spec.num_heads, spec.num_kv_heads), dim=1)
        attended = paged_attention(query, key, value, cache, index, batch.attention, spec.windows[index])
        return linear(attended.flatten(1), layer.output, layer.output_bias)

    def _norm(self, hidden: Tensor, weight: Tensor | None) -> Tensor:
        return rms_norm(hidden, (hidden.shape[-1],), weight, self.spec.rms_norm_eps)

    def _rotation(self, positions: Tensor) -> Rotation:
        angles = positions[:, None, None].float() * self._frequencies  # [num_tokens, 1, head_dim / 2]
        angles = torch.cat((angles, angles), dim=-1)
        return Rotation(
            (angles.cos() * self._rope_factor).to(self.dtype), (angles.sin() * self._rope_factor).to(self.dtype)
        )


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosine and sine of each token's angles, [num_tokens, 1, head_dim]; halves repeat (Hugging Face's layout)."""

    cosine: Tensor
    sine: Tensor

    def apply(self, heads: Tensor) -> Tensor:
        """Rotate [num_tokens, num_heads, head_dim]: dimension i pairs with i + head_dim / 2."""
        first, second = heads.chunk(2, dim=-1)
        return heads * self.cosine + torch.cat((-second, first), dim=-1) * self.sine


def _mlp(layer: LayerWeights, hidden: Tensor) -> Tensor:
    gate, up = linear(hidden, layer.gate_up, layer.gate_up_bias).chunk(2, dim=-1)
    return linear(silu(gate) * up, layer.down, layer.down_bias)


def load_decoder(folder: Path, spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> Decoder:
    """The decoder of the checkpoint in `folder`. Raises ModelFolderError or WeightError, one line each."""
    with open_checkpoint(folder) as checkpoint:
        check_checkpoint(checkpoint, spec)
        return Decoder(spec, _WeightReader(checkpoint, spec, dtype, device).weights())


class _WeightReader:
    """Maps Hugging Face's tensors to ours, converted and placed one at a time."""

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> None:
        self.checkpoint, self.spec, self.dtype, self.device = checkpoint, spec, dtype, device

    def weights(self) -> DecoderWeights:
        embedding_table = self.read("model.embed_tokens.weight")
        head = embedding_table if self.spec.has_tied_embeddings else self.read("lm_head.weight")
        layers = tuple(self.layer(f"model.layers.{index}.") for index in range(self.spec.num_layers))
        return DecoderWeights(embedding_table, layers, self.read("model.norm.weight"), head)

    def layer(self, prefix: str) -> LayerWeights:
        spec, attention, mlp = self.spec, f"{prefix}self_attn.", f"{prefix}mlp."
        qkv = [f"{attention}{name}_proj" for name in "qkv"]
        gate_up = [f"{mlp}gate_proj", f"{mlp}up_proj"]
        return LayerWeights(
            input_norm=self.read(f"{prefix}input_layernorm.weight"),
            qkv=self.joined(qkv, "weight"),
            qkv_bias=self.joined(qkv, "bias") if spec.has_qkv_bias else None,
            qk_norm=self.qk_norm(attention) if spec.has_qk_norm else None,
            output=self.read(f"{attention}o_proj.weight"),
            output_bias=self.read(f"{attention}o_proj.bias") if spec.has_output_bias else None,
            mlp_norm=self.read(f"{prefix}post_attention_layernorm.weight"),
            gate_up=self.joined(gate_up, "weight"),
            gate_up_bias=self.joined(gate_up, "bias") if spec.has_mlp_bias else None,
            down=self.read(f"{mlp}down_proj.weight"),
            down_bias=self.read(f"{mlp}down_proj.bias") if spec.has_mlp_bias else None,
        )

    def qk_norm(self, attention: str) -> Tensor:
        query, key = self.read(f"{attention}q_norm.weight"), self.read(f"{attention}k_norm.weight")
        return torch.cat([query.expand(self.spec.num_heads, -1), key.expand(self.spec.num_kv_heads, -1)])

    def read(self, name: str) -> Tensor:
        return self.checkpoint.tensor(name).to(self.device, self.dtype)

    def joined(self, modules: list[str], kind: str) -> Tensor:
        return torch.cat([self.read(f"{module}.{kind}") for module in modules])

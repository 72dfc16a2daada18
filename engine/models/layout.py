"""Which tensors of a checkpoint make which of ours: one table, by which checkpoints are checked and read.

A tensor's name is that of the object that holds it and, behind the last point, what it is there: "layers.0.attention.qkv" is a
linear layer (`linear.py`); it has the tensor "layers.0.attention.qkv.weight", and perhaps "layers.0.attention.qkv.bias". For each
kind of linear layer one function here says how a checkpoint stores it: `linear_sources`, `_per_head`, `_grouped_mlp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ..sharding.cuts import Cut
from .architecture import ExpertSpec, LatentSpec, ModelInfo, ModelSpec

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """How one of our tensors is made: `parts` (name, shape) of the checkpoint, joined along their first axis, then `finish`ed."""

    parts: tuple[tuple[str, Shape], ...]
    finish: Callable[[Tensor], Tensor] | None = None
    dtype: torch.dtype | None = None  # that it is converted to; None: the one that the model computes in
    holds: Literal["rows", "experts", "values"] = "values"
    """What may stay packed: "rows" of a matrix that only multiplies or is looked up, which `finish` does no more than permute; of
    the matrices of all "experts", count times as many parts as one has."""
    cuts: tuple[Cut, ...] | None = None  # what a rank of several holds of each part, and `finish` gets; None: all

    def held(self) -> list[tuple[str, Shape, Cut | None]]:
        """(name, shape, what is held) of each part of which something is. The shape is that of the whole part."""
        if self.cuts is None:
            return [(*part, None) for part in self.parts]
        return [(*part, cut) for part, cut in zip(self.parts, self.cuts, strict=True) if cut.ranges]


Sources = dict[str, Source]


@dataclass(frozen=True, slots=True)
class Portion:
    """What one rank of several holds of a model."""

    spec: ModelInfo  # that of the model, with the sizes that are left
    sources: Sources  # with `cuts`; without what other ranks hold alone
    mean_squares: Callable[[Tensor], Tensor] | None = None  # of heads of which others are on other ranks (`mamba.py`, `JointNorm`)


def sources_of(spec: ModelSpec) -> Sources:
    """Every tensor of the decoder by our name, for instance "layers.0.attention.qkv.weight", and what makes it.

    Tensors that the decoder does not have, such as biases, are absent.
    """
    vocab_size, hidden = spec.vocab_size, spec.hidden_size
    sources = {"embedding.weight": Source((("model.embed_tokens.weight", (vocab_size, hidden)),), holds="rows")}
    if not spec.has_tied_embeddings:
        sources |= linear_sources("head", [("lm_head", vocab_size)], hidden, has_bias=False)
    sources |= _norm(spec, "final_norm", "model.norm", (hidden,))
    for index in range(spec.num_layers):
        sources |= {f"layers.{index}.{name}": source for name, source in _layer(spec, index)}
    return sources


def head_name(spec: ModelInfo) -> str:
    """The linear layer that makes logits of hidden states; tied to the embedding, it is the embedding's matrix."""
    return "embedding" if spec.has_tied_embeddings else "head"


def _layer(spec: ModelSpec, index: int) -> Iterator[tuple[str, Source]]:
    prefix = f"model.layers.{index}."
    for name, theirs in _norms(spec).items():
        yield from _norm(spec, name, prefix + theirs, (spec.hidden_size,)).items()
    attention = _attention(spec, prefix) if spec.latent is None else _latent_attention(spec, spec.latent, prefix)
    yield from attention.items()
    if spec.experts is not None and spec.has_experts[index]:
        yield from _experts(spec, spec.experts, prefix).items()
    else:
        names = spec.names
        yield from _mlp(spec, "mlp.", prefix, (names.gate, names.up, names.down), spec.intermediate_size).items()


def _norms(spec: ModelSpec) -> dict[str, str]:
    """The norms of a layer: our name -> the checkpoint's."""
    found, names = {"input_norm": "input_layernorm"}, spec.names
    if spec.block == "sequential":
        return found | {"mlp_norm": "post_attention_layernorm"}
    if spec.block == "parallel":
        return found
    after = {"after_attention": names.after_attention, "after_mlp": names.after_mlp}
    return after if spec.block == "post" else found | after | {"mlp_norm": names.mlp_norm}


def _norm(spec: ModelSpec, name: str, theirs: str, shape: Shape) -> Sources:
    sources = {f"{name}.weight": Source(((f"{theirs}.weight", shape),), *_offset(spec))}
    if spec.norm.has_bias:
        sources[f"{name}.bias"] = Source(((f"{theirs}.bias", shape),))
    return sources


def _offset(spec: ModelSpec) -> tuple[Callable[[Tensor], Tensor] | None, torch.dtype | None]:
    """(`finish`, `dtype`) of a norm's weight."""
    return (partial(torch.add, spec.norm.offset), torch.float32) if spec.norm.offset else (None, None)


def _attention(spec: ModelSpec, prefix: str) -> Sources:
    hidden, attention = spec.hidden_size, f"{prefix}self_attn."
    widths = [heads * spec.head_dim for heads in (spec.num_heads, spec.num_kv_heads, spec.num_kv_heads)]
    modules = [(f"{attention}{name}_proj", width) for name, width in zip("qkv", widths, strict=True)]
    if spec.names.qkv is not None:
        modules = [(prefix + spec.names.qkv, sum(widths))]
    arrange = partial(_halves_of_heads, spec) if spec.is_rope_interleaved else None
    sources = linear_sources("attention.qkv", modules, hidden, spec.has_qkv_bias, arrange)
    sources |= linear_sources("attention.output", [(f"{attention}o_proj", hidden)], widths[0], spec.has_output_bias)
    if spec.qk_norm in ("head", "heads", "joint"):
        sources["attention.qk_norm.weight"] = _qk_norm(spec, attention)
    return sources


def _qk_norm(spec: ModelSpec, attention: str) -> Source:
    """The norm of heads, [num_heads + num_kv_heads, head_dim]: the checkpoint has one weight for all heads or one for each, in one
    vector where they are normed together."""
    counts = (spec.num_heads, spec.num_kv_heads)
    names = (f"{attention}q_norm.weight", f"{attention}k_norm.weight")
    if spec.qk_norm == "head":
        plus = spec.norm.offset

        def spread(weights: Tensor) -> Tensor:
            pair = weights.view(2, spec.head_dim) + plus
            return pair.repeat_interleave(torch.tensor(counts, device=pair.device), dim=0)

        return Source(tuple((name, (spec.head_dim,)) for name in names), spread, torch.float32 if plus else None)
    if spec.qk_norm == "joint":
        return Source(tuple((name, (count * spec.head_dim,)) for name, count in zip(names, counts, strict=True)), _in_heads(spec))
    shapes = ((count, spec.head_dim) for count in counts)
    arrange = partial(_halves, dim=spec.ropes[0].dim) if spec.is_rope_interleaved else None
    return Source(tuple(zip(names, shapes, strict=True)), arrange)


def _in_heads(spec: ModelSpec) -> Callable[[Tensor], Tensor]:
    """Of weights of all heads in one vector: [heads, head_dim]."""
    return lambda weights: weights.view(-1, spec.head_dim)


def _latent_attention(spec: ModelSpec, latent: LatentSpec, prefix: str) -> Sources:
    hidden, heads, attention = spec.hidden_size, spec.num_heads, f"{prefix}self_attn."
    query_dim = latent.nope_dim + latent.rope_dim
    down = [(f"{attention}kv_a_proj_with_mqa", latent.rank + latent.rope_dim)]
    query = (f"{attention}q_proj", hidden)
    sources: Sources = {}
    if latent.query_rank is not None:
        down = [(f"{attention}q_a_proj", latent.query_rank), *down]
        query = (f"{attention}q_b_proj", latent.query_rank)
        sources["attention.query_norm.weight"] = Source(((f"{attention}q_a_layernorm.weight", (latent.query_rank,)),))
    turn = latent.rope_dim if spec.is_rope_interleaved else 0
    sources |= linear_sources("attention.down", down, hidden, spec.has_qkv_bias, partial(_halves_of_tail, 1, turn))
    sources |= linear_sources(
        "attention.query_up", [(query[0], heads * query_dim)], query[1], False, partial(_halves_of_tail, heads, turn)
    )
    sources["attention.latent_norm.weight"] = Source(((f"{attention}kv_a_layernorm.weight", (latent.rank,)),))
    sources |= _per_head(f"{attention}kv_b_proj", heads, latent)
    output = [(f"{attention}o_proj", hidden)]
    return sources | linear_sources("attention.output", output, heads * latent.value_dim, spec.has_output_bias)


def _mlp(spec: ModelSpec, ours: str, prefix: str, names: tuple[str, str, str], size: int) -> Sources:
    gate, up, down = (prefix + name for name in names)
    modules = [(gate, size), (up, size)] if spec.is_gated else [(up, size)]
    if spec.names.gate_up is not None:
        modules = [(prefix + spec.names.gate_up, 2 * size)]
    sources = linear_sources(f"{ours}up", modules, spec.hidden_size, spec.has_mlp_bias)
    return sources | linear_sources(f"{ours}down", [(down, spec.hidden_size)], size, spec.has_mlp_bias)


def _experts(spec: ModelSpec, experts: ExpertSpec, prefix: str) -> Sources:
    names, count, router = spec.names, experts.count, prefix + spec.names.router
    dtype = torch.float32 if experts.has_correction else None
    sources = linear_sources("mlp.router", [(router, count)], spec.hidden_size, has_bias=False, dtype=dtype)
    if experts.has_correction:
        sources["mlp.correction"] = Source(((f"{router}.e_score_correction_bias", (count,)),), dtype=dtype)
    sources |= _grouped_mlp(spec, experts, prefix)
    if experts.shared_size:
        shared = (f"{names.shared}.gate_proj", f"{names.shared}.up_proj", f"{names.shared}.down_proj")
        sources |= _mlp(spec, "mlp.shared.", prefix, shared, experts.shared_size)
    if experts.gates_shared:
        sources |= linear_sources("mlp.shared_gate", [(f"{prefix}{names.shared}_gate", 1)], spec.hidden_size, has_bias=False)
    return sources


# ---- how a checkpoint stores the linear layers of `linear.py`, one function for each kind


def linear_sources(
    ours: str,
    modules: list[tuple[str, int]],
    columns: int,
    has_bias: bool,
    finish: Callable[[Tensor], Tensor] | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> Sources:
    """The tensors of a `Linear`: weights [rows, columns] of `modules` (name, rows) under one another, and their biases [rows].

    `finish` permutes rows, of the weight and of the bias alike; it leaves columns as they are.
    """
    matrices = tuple((f"{name}.weight", (rows, columns)) for name, rows in modules)
    sources = {f"{ours}.weight": Source(matrices, finish, dtype, "rows")}
    if has_bias:
        sources[f"{ours}.bias"] = Source(tuple((f"{name}.bias", (rows,)) for name, rows in modules), finish, dtype)
    return sources


def _per_head(name: str, heads: int, latent: LatentSpec) -> Sources:
    """The tensors of two `PerHeadLinear`, from one matrix of the checkpoint, [heads * (nope_dim + value_dim), rank].

    That matrix raises a latent to each head's key and value. `absorb` has the keys' part transposed: see `layers.LatentAttention`.
    """
    both = ((f"{name}.weight", (heads * (latent.nope_dim + latent.value_dim), latent.rank)),)
    return {
        "attention.absorb.weight": Source(both, partial(_keys_of_heads, heads, latent.nope_dim)),
        "attention.value_up.weight": Source(both, partial(_values_of_heads, heads, latent.nope_dim)),
    }


def _grouped_mlp(spec: ModelSpec, experts: ExpertSpec, prefix: str) -> Sources:
    """The tensors of a `GroupedMlp`: gate and up [count, 2 * size, hidden], and down [count, hidden, size]."""
    names, hidden, count, size = spec.names, spec.hidden_size, experts.count, experts.size
    if names.stacked_experts is not None:
        stack = prefix + names.stacked_experts
        gate_up = Source(((f"{stack}.gate_up_proj", (count, hidden, 2 * size)),), _transposed)
        down = Source(((f"{stack}.down_proj", (count, size, hidden)),), _transposed)
    else:
        theirs = [f"{prefix}{name}.weight" for name in names.expert]
        inner = tuple((name.format(e), (size, hidden)) for e in range(count) for name in theirs[:2])
        outer = tuple((theirs[2].format(e), (hidden, size)) for e in range(count))
        gate_up, down = (Source(parts, partial(_unstacked, count), holds="experts") for parts in (inner, outer))
    return {"mlp.experts.gate_up.weight": gate_up, "mlp.experts.down.weight": down}


# ---- finishing. Interleaved rotation becomes that of halves when dimensions 0, 2, ..., 1, 3, ... change places in queries
# and keys alike: their products stay what they are.


def _halves(heads: Tensor, dim: int, start: int = 0) -> Tensor:
    """heads [num_heads, head_dim, ...], the `dim` dimensions from `start` on in the order of halves: 0, 2, ..., 1, 3, ..."""
    order = torch.arange(heads.shape[1], device=heads.device)
    order[start : start + dim] = start + torch.arange(dim, device=heads.device).view(-1, 2).T.flatten()
    return heads.index_select(1, order)


def _halves_of_heads(spec: ModelSpec, qkv: Tensor) -> Tensor:
    """qkv [(num_heads + 2 * num_kv_heads) * head_dim, ...], queries and keys in the order of halves, values as they are."""
    turned, kept = qkv.unflatten(0, (-1, spec.head_dim)).split(
        (spec.num_heads + spec.num_kv_heads, spec.num_kv_heads)
    )
    return torch.cat((_halves(turned, spec.ropes[0].dim), kept)).flatten(0, 1)


def _halves_of_tail(num_heads: int, dim: int, rows: Tensor) -> Tensor:
    """rows [num_heads * head_dim, ...], the last `dim` of each head in the order of halves."""
    heads = rows.unflatten(0, (num_heads, -1))
    return _halves(heads, dim, heads.shape[1] - dim).flatten(0, 1)


def _keys_of_heads(num_heads: int, nope_dim: int, rows: Tensor) -> Tensor:
    """[num_heads, rank, nope_dim]: each head's matrix transposed. A copy, so that the values' half is not kept in memory."""
    return rows.unflatten(0, (num_heads, -1))[:, :nope_dim].contiguous().transpose(1, 2)


def _values_of_heads(num_heads: int, nope_dim: int, rows: Tensor) -> Tensor:
    """[num_heads, value_dim, rank]. A copy, so that the keys' half is not kept in memory."""
    return rows.unflatten(0, (num_heads, -1))[:, nope_dim:].contiguous()


def _transposed(experts: Tensor) -> Tensor:
    return experts.transpose(1, 2).contiguous()


def _unstacked(count: int, rows: Tensor) -> Tensor:
    return rows.unflatten(0, (count, -1))

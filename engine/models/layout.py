"""Which tensors of a checkpoint make which of ours: one table, by which checkpoints are checked and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from .architecture import ExpertSpec, LatentSpec, ModelSpec

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Tensors of the checkpoint, joined along their first axis and `finish`ed."""

    parts: tuple[tuple[str, Shape], ...]
    finish: Callable[[Tensor], Tensor] | None = None
    is_exact: bool = False  # float32, whatever the model computes in


Sources = dict[str, Source]


def sources_of(spec: ModelSpec) -> Sources:
    """Every tensor of the decoder by our name, for instance "layers.0.attention.qkv"; those it does not have are absent."""
    table = (spec.vocab_size, spec.hidden_size)
    sources = {"embedding": Source((("model.embed_tokens.weight", table),))}
    if not spec.has_tied_embeddings:
        sources["head"] = Source((("lm_head.weight", table),))
    sources |= _norm(spec, "final_norm", "model.norm", (spec.hidden_size,))
    for index in range(spec.num_layers):
        sources |= {f"layers.{index}.{name}": source for name, source in _layer(spec, index)}
    return sources


def _layer(spec: ModelSpec, index: int) -> Iterator[tuple[str, Source]]:
    prefix = f"model.layers.{index}."
    for name, theirs in _NORMS[spec.block].items():
        yield from _norm(spec, name, prefix + theirs, (spec.hidden_size,)).items()
    attention = _attention(spec, prefix) if spec.latent is None else _latent_attention(spec, spec.latent, prefix)
    yield from attention.items()
    if spec.experts is not None and spec.has_experts[index]:
        yield from _experts(spec, spec.experts, prefix).items()
    else:
        names = spec.names
        yield from _mlp(spec, "mlp.", prefix, (names.gate, names.up, names.down), spec.intermediate_size).items()


_NORMS = {
    "sequential": {"input_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"},
    "parallel": {"input_norm": "input_layernorm"},
    "sandwich": {
        "input_norm": "input_layernorm",
        "after_attention": "post_attention_layernorm",
        "mlp_norm": "pre_feedforward_layernorm",
        "after_mlp": "post_feedforward_layernorm",
    },
}


def _norm(spec: ModelSpec, name: str, theirs: str, shape: Shape) -> Sources:
    sources = {f"{name}.weight": Source(((f"{theirs}.weight", shape),), *_offset(spec))}
    if spec.norm.has_bias:
        sources[f"{name}.bias"] = Source(((f"{theirs}.bias", shape),))
    return sources


def _offset(spec: ModelSpec) -> tuple[Callable[[Tensor], Tensor] | None, bool]:
    """How a norm's weight is finished, and whether it stays in float32."""
    return (partial(torch.add, spec.norm.offset), True) if spec.norm.offset else (None, False)


def _attention(spec: ModelSpec, prefix: str) -> Sources:
    hidden, attention = spec.hidden_size, f"{prefix}self_attn."
    widths = [heads * spec.head_dim for heads in (spec.num_heads, spec.num_kv_heads, spec.num_kv_heads)]
    modules = [(f"{attention}{name}_proj", width) for name, width in zip("qkv", widths, strict=True)]
    if spec.names.qkv is not None:
        modules = [(prefix + spec.names.qkv, sum(widths))]
    arrange = partial(_halves_of_heads, spec) if spec.is_rope_interleaved else None
    sources = _linear("attention.qkv", modules, hidden, spec.has_qkv_bias, arrange)
    sources |= _linear("attention.output", [(f"{attention}o_proj", hidden)], widths[0], spec.has_output_bias)
    if spec.qk_norm in ("head", "heads"):
        sources["attention.qk_norm.weight"] = _qk_norm(spec, attention)
    return sources


def _qk_norm(spec: ModelSpec, attention: str) -> Source:
    """[num_heads + num_kv_heads, head_dim], whether the checkpoint has one weight for all heads or one for each."""
    counts = (spec.num_heads, spec.num_kv_heads)
    names = (f"{attention}q_norm.weight", f"{attention}k_norm.weight")
    if spec.qk_norm == "head":
        plus = spec.norm.offset

        def spread(weights: Tensor) -> Tensor:
            pair = weights.view(2, spec.head_dim) + plus
            return pair.repeat_interleave(torch.tensor(counts, device=pair.device), dim=0)

        return Source(tuple((name, (spec.head_dim,)) for name in names), spread, bool(plus))
    shapes = ((count, spec.head_dim) for count in counts)
    arrange = partial(_halves, dim=spec.ropes[0].dim) if spec.is_rope_interleaved else None
    return Source(tuple(zip(names, shapes, strict=True)), arrange)


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
    sources |= _linear("attention.down", down, hidden, spec.has_qkv_bias, partial(_halves_of_tail, 1, turn))
    sources |= _linear(
        "attention.query_up", [(query[0], heads * query_dim)], query[1], False, partial(_halves_of_tail, heads, turn)
    )
    sources["attention.latent_norm.weight"] = Source(((f"{attention}kv_a_layernorm.weight", (latent.rank,)),))
    both = ((f"{attention}kv_b_proj.weight", (heads * (latent.nope_dim + latent.value_dim), latent.rank)),)
    sources["attention.key_up"] = Source(both, partial(_columns_of_heads, heads, slice(0, latent.nope_dim)))
    sources["attention.value_up"] = Source(both, partial(_columns_of_heads, heads, slice(latent.nope_dim, None)))
    output = [(f"{attention}o_proj", hidden)]
    return sources | _linear("attention.output", output, heads * latent.value_dim, spec.has_output_bias)


def _mlp(spec: ModelSpec, ours: str, prefix: str, names: tuple[str, str, str], size: int) -> Sources:
    gate, up, down = (prefix + name for name in names)
    modules = [(gate, size), (up, size)] if spec.is_gated else [(up, size)]
    if spec.names.gate_up is not None:
        modules = [(prefix + spec.names.gate_up, 2 * size)]
    sources = _linear(f"{ours}up", modules, spec.hidden_size, spec.has_mlp_bias)
    return sources | _linear(f"{ours}down", [(down, spec.hidden_size)], size, spec.has_mlp_bias)


def _experts(spec: ModelSpec, experts: ExpertSpec, prefix: str) -> Sources:
    names, hidden, count, size = spec.names, spec.hidden_size, experts.count, experts.size
    router = prefix + names.router
    sources = {"mlp.router": Source(((f"{router}.weight", (count, hidden)),), None, experts.has_correction)}
    if experts.has_correction:
        sources["mlp.correction"] = Source(((f"{router}.e_score_correction_bias", (count,)),), None, True)
    if names.stacked_experts is not None:
        stack = prefix + names.stacked_experts
        sources["mlp.gate_up"] = Source(((f"{stack}.gate_up_proj", (count, hidden, 2 * size)),), _transposed)
        sources["mlp.down"] = Source(((f"{stack}.down_proj", (count, size, hidden)),), _transposed)
    else:
        gate, up, down = (f"{prefix}{name}.weight" for name in names.expert)
        inner = tuple((name.format(e), (size, hidden)) for e in range(count) for name in (gate, up))
        sources["mlp.gate_up"] = Source(inner, partial(_unstacked, count))
        sources["mlp.down"] = Source(
            tuple((down.format(e), (hidden, size)) for e in range(count)), partial(_unstacked, count)
        )
    if experts.shared_size:
        shared = (f"{names.shared}.gate_proj", f"{names.shared}.up_proj", f"{names.shared}.down_proj")
        sources |= _mlp(spec, "mlp.shared.", prefix, shared, experts.shared_size)
    return sources


def _linear(
    ours: str,
    modules: list[tuple[str, int]],
    columns: int,
    has_bias: bool,
    finish: Callable[[Tensor], Tensor] | None = None,
) -> Sources:
    """Weights [rows, columns] of `modules` (name, rows) under one another, and their biases."""
    sources = {ours: Source(tuple((f"{name}.weight", (rows, columns)) for name, rows in modules), finish)}
    if has_bias:
        sources[f"{ours}_bias"] = Source(tuple((f"{name}.bias", (rows,)) for name, rows in modules), finish)
    return sources


# ---- finishing. Interleaved rotation becomes that of halves when dimensions 0, 2, ..., 1, 3, ... change places in queries
# and keys alike: their products stay what they are.


def _halves(heads: Tensor, dim: int, start: int = 0) -> Tensor:
    """[num_heads, head_dim, ...] with `dim` dimensions from `start` on put into the order of halves."""
    order = torch.arange(heads.shape[1], device=heads.device)
    order[start : start + dim] = start + torch.arange(dim, device=heads.device).view(-1, 2).T.flatten()
    return heads.index_select(1, order)


def _halves_of_heads(spec: ModelSpec, qkv: Tensor) -> Tensor:
    turned, kept = qkv.unflatten(0, (-1, spec.head_dim)).split(
        (spec.num_heads + spec.num_kv_heads, spec.num_kv_heads)
    )
    return torch.cat((_halves(turned, spec.ropes[0].dim), kept)).flatten(0, 1)


def _halves_of_tail(num_heads: int, dim: int, rows: Tensor) -> Tensor:
    """The last `dim` rows of each head."""
    heads = rows.unflatten(0, (num_heads, -1))
    return _halves(heads, dim, heads.shape[1] - dim).flatten(0, 1)


def _columns_of_heads(num_heads: int, part: slice, rows: Tensor) -> Tensor:
    """[num_heads, part, ...], not a view: the rest is not kept in memory."""
    return rows.unflatten(0, (num_heads, -1))[:, part].contiguous()


def _transposed(experts: Tensor) -> Tensor:
    return experts.transpose(1, 2).contiguous()


def _unstacked(count: int, rows: Tensor) -> Tensor:
    return rows.unflatten(0, (count, -1))

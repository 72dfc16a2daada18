"""A decoder layer: attention of two kinds, and how it is put together with norms and an MLP."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels import fused
from ...kernels.cpu import between
from ..attention.kernel_plans import layer_cache
from ..attention.paged import LayerCall, Plan, paged_attention
from ..kv_cache.tensors import KVCache
from .architecture import LatentSpec, ModelSpec
from .linear import Linear, PerHeadLinear
from .modules import Experts, JointNorm, Mlp, Norm, Rotation, Unnormed


@dataclass(frozen=True, slots=True)
class Step:
    """What all layers of one forward pass share."""

    positions: Tensor  # integers [num_tokens]
    rotations: tuple[Rotation, ...]  # one for each of the model's `ropes`
    plan: Plan
    cache: KVCache


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention (arXiv:2305.13245); one product computes queries, keys and values."""

    spec: ModelSpec
    index: int  # of the layer
    qkv: Linear  # hidden -> (num_heads + 2 * num_kv_heads) * head_dim
    qk_norm: Norm | JointNorm | None  # weight [num_heads + num_kv_heads, head_dim]: of the queries, then of the keys
    output: Linear  # num_heads * head_dim -> hidden
    head_norm: fused.HeadNorm | None = None  # qk_norm, where the kernel that rotates computes it as well
    uses_triton: bool = False
    is_compiled: bool = False  # compiled code of `kernels/cpu` does what `_stored` does

    def __call__(self, hidden: Tensor, step: Step) -> Tensor:
        spec = self.spec
        projected = self.qkv(hidden)
        heads = projected.view(hidden.shape[0], -1, spec.head_dim)
        if self.is_compiled and projected.dtype == torch.float32 and step.cache.keys[self.index].dtype in between.CACHES:
            query = self._stored_compiled(projected, step)
        else:
            query = self._stored_by_kernel(heads, step) if self.uses_triton else self._stored(heads, step)
        call = LayerCall(self.index, spec.head_dim, spec.windows[self.index], spec.scoring)
        return self.output(step.plan.attend(query, step.cache, call).flatten(1))

    def _stored(self, heads: Tensor, step: Step) -> Tensor:
        """Write keys and values into the cache. Returns the queries, normalised and rotated.

        heads [num_tokens, num_heads + 2 * num_kv_heads, head_dim] are queries, keys and values; queries [num_tokens, num_heads,
        head_dim] come back.
        """
        spec, rope = self.spec, self.spec.rope_of[self.index]
        turned, value = heads.split((spec.num_heads + spec.num_kv_heads, spec.num_kv_heads), dim=1)
        if self.qk_norm is not None and spec.qk_norm != "after_rope":
            turned = self.qk_norm(turned)
        if rope is not None:
            turned = step.rotations[rope].apply(turned)
            if self.qk_norm is not None and spec.qk_norm == "after_rope":
                turned = self.qk_norm(turned)
        query, key = turned.split((spec.num_heads, spec.num_kv_heads), dim=1)
        step.cache.write(self.index, step.plan.slots, key, value)
        return self._tempered(query, step.positions)

    def _stored_compiled(self, projected: Tensor, step: Step) -> Tensor:
        spec, rope, norm = self.spec, self.spec.rope_of[self.index], self.qk_norm
        assert rope is not None, "the builder has made sure"
        angles, cache = step.rotations[rope], (step.cache.key_places[self.index], step.cache.value_places[self.index])
        assert not isinstance(norm, JointNorm), "the builder has made sure"
        head_norm = None if norm is None or norm.weight is None else between.HeadNorm(norm.weight, norm.spec.eps)
        heads = between.Heads(spec.num_heads, spec.num_kv_heads, spec.head_dim)
        return between.turn_and_cache(projected, heads, (angles.cosine, angles.sine), head_norm, cache, step.plan.slots)

    def _stored_by_kernel(self, heads: Tensor, step: Step) -> Tensor:
        """Do what `_stored` does in one kernel, which normalises heads, rotates them and writes the cache."""
        spec, rope = self.spec, self.spec.rope_of[self.index]
        counts = (spec.num_heads, spec.num_kv_heads)
        query, key, value = heads.split((*counts, spec.num_kv_heads), dim=1)
        if self.qk_norm is not None and self.head_norm is None and spec.qk_norm != "after_rope":
            query, key = self.qk_norm(heads[:, : sum(counts)]).split(counts, dim=1)
        if rope is None:
            still = heads.new_empty((len(heads), 0), dtype=torch.float32)
            rotation, norm = fused.Rotation(still, still), None if spec.qk_norm == "after_rope" else self.head_norm
        else:
            angles = step.rotations[rope]
            rotation, norm = fused.Rotation(angles.cosine[:, 0], angles.sine[:, 0]), self.head_norm
        where = layer_cache(step.cache, self.index)
        query = fused.rotate_and_cache(query, key, value, rotation, where, step.plan.slots, norm=norm, backend="triton")
        return self._tempered(query, step.positions)

    def _tempered(self, query: Tensor, positions: Tensor) -> Tensor:
        """Queries scaled by a factor that grows with the logarithm of their position (`TemperatureSpec`)."""
        temperature, is_turned = self.spec.temperature, self.spec.rope_of[self.index] is not None
        if temperature is None or (is_turned and not temperature.is_everywhere):
            return query
        growth = torch.log1p(((positions.float() + temperature.first) / temperature.floor).floor()) * temperature.scale + 1
        return (query * growth[:, None, None]).to(query.dtype)


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (arXiv:2405.04434) in its absorbed form: all heads share one cached latent and one rotated key.

    Let K [nope_dim, rank] raise a latent to a head's key: query . (K latent) = (K^T query) . latent. So `absorb` applies K^T to the
    queries, all heads attend to the latents as they are, and `value_up` raises what comes out to the heads' values.
    """

    spec: ModelSpec
    latent: LatentSpec
    index: int
    down: Linear  # hidden -> (query_rank) + rank + rope_dim: of the query, then of keys and values
    query_norm: Norm | None
    query_up: Linear  # query_rank or hidden -> num_heads * (nope_dim + rope_dim)
    latent_norm: Norm
    absorb: PerHeadLinear  # nope_dim -> rank
    value_up: PerHeadLinear  # rank -> value_dim
    output: Linear  # num_heads * value_dim -> hidden

    def __call__(self, hidden: Tensor, step: Step) -> Tensor:
        spec, latent, rotation = self.spec, self.latent, step.rotations[0]
        lowered = self.down(hidden)
        low_query, compressed, shared_key = lowered.split((latent.query_rank or 0, latent.rank, latent.rope_dim), dim=-1)
        source = hidden if self.query_norm is None else self.query_norm(low_query)
        heads = self.query_up(source).view(len(hidden), spec.num_heads, -1)
        nope, turning = heads.split((latent.nope_dim, latent.rope_dim), dim=-1)
        query = torch.cat((self.absorb(nope), rotation.apply(turning)), dim=-1)
        value = self.latent_norm(compressed)[:, None]
        key = torch.cat((value, rotation.apply(shared_key[:, None])), dim=-1)
        call = LayerCall(self.index, latent.rank, spec.windows[self.index], spec.scoring)
        attended = paged_attention(query, key, value, step.cache, step.plan, call)
        return self.output(self.value_up(attended).flatten(1))


@dataclass(frozen=True, slots=True)
class Layer:
    """Attention and an MLP, each added to the residual stream. A norm that the kind of block does not have is None."""

    input_norm: Norm | Unnormed
    attention: Attention | LatentAttention
    after_attention: Norm | None  # sandwich, post
    mlp_norm: Norm | Unnormed | None  # None: parallel, the MLP reads what attention reads
    mlp: Mlp | Experts
    after_mlp: Norm | None  # sandwich, post

    def __call__(self, hidden: Tensor, delta: Tensor | None, step: Step) -> tuple[Tensor, Tensor]:
        """(residual stream, output that is still to be added to it) behind this layer, from those behind the layer before.

        All are [num_tokens, hidden]. The sum is left to the next norm, which a kernel computes with it.
        """
        given, hidden = self.input_norm.after(hidden, delta)
        attended = self.attention(given, step)
        if self.mlp_norm is None:
            return hidden, attended + self.mlp(given)
        attended = attended if self.after_attention is None else self.after_attention(attended)
        given, hidden = self.mlp_norm.after(hidden, attended)
        raised = self.mlp(given)
        return hidden, raised if self.after_mlp is None else self.after_mlp(raised)

"""Which decoders are computed by compiled code a step at a time, and how they are handed to it: see `kernels/cpu/decoder.py`.

A step has few new tokens of each sequence and no adapters. Layers have Llama's parts: attention that is not latent, RMS norms, a
gated MLP, no experts, caps or sinks; what a family has else is computed product by product, as prompts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.cpu import decoder as compiled
from ..attention.kernel_plans import CompiledPlan, covers_compiled
from ..attention.paged import Chunks, LayerCall, Plan
from ..kv_cache.tensors import KVCache
from .architecture import ModelSpec
from .layers import Attention, Layer
from .linear import Linear
from .modules import Mlp, Norm, Rotation
from .packed_linear import PackedLinear


@dataclass(frozen=True, slots=True)
class CompiledSteps:
    """The compiled decoder of a model, and when it is used."""

    decoder: compiled.CompiledDecoder
    spec: ModelSpec

    def takes(self, plan: Plan, cache: KVCache, num_rows: int) -> bool:
        """Whether a step is computed here."""
        if not isinstance(plan, CompiledPlan) or not plan.is_whole or not self.decoder.is_good_for(num_rows):
            return False
        return covers_compiled(cache, LayerCall(0, self.spec.head_dim, scoring=self.spec.scoring))

    def __call__(
        self, hidden: Tensor, rotations: Sequence[Rotation], plan: Plan, cache: KVCache, logit_rows: Tensor
    ) -> Tensor:
        """What the head gives for `logit_rows`; `hidden` [num_rows, hidden_size], embedded tokens, is written to."""
        assert isinstance(plan, CompiledPlan), "`takes` was asked"
        self.decoder.use_cache(cache, cache.key_places, cache.value_places, cache.block_size)
        angles = [(rotation.cosine, rotation.sine) for rotation in rotations]
        return self.decoder(hidden, angles, compiled.Rows(plan.slots, plan.tables, plan.lengths, plan.max_tokens), logit_rows)


def compiled_steps(
    spec: ModelSpec, layers: Sequence[Layer], final_norm: Norm, linear: Callable[[str], Linear], head: str
) -> CompiledSteps | None:
    """The compiled decoder of these layers; None where they are not what it computes. `linear` gives matrices without adapters."""
    scale = spec.head_dim**-0.5 if spec.scoring.scale is None else spec.scoring.scale
    shape = compiled.Shape(spec.num_heads, spec.num_kv_heads, spec.head_dim, spec.activation, spec.norm.eps, scale)
    made = [_layer(spec, index, layer, linear) for index, layer in enumerate(layers)]
    last = _matrix(linear(head))
    known = [layer for layer in made if layer is not None]
    is_plain = spec.scoring.softcap is None and spec.temperature is None and spec.is_gated and _is_norm(final_norm)
    if not is_plain or last is None or not known or len(known) < len(made) or not compiled.fits(known, shape):
        return None
    assert final_norm.weight is not None
    return CompiledSteps(compiled.CompiledDecoder(known, final_norm.weight, last, shape), spec)


def _layer(spec: ModelSpec, index: int, layer: Layer, linear: Callable[[str], Linear]) -> compiled.Layer | None:
    attention, mlp, window, rope = layer.attention, layer.mlp, spec.windows[index], spec.rope_of[index]
    if not isinstance(attention, Attention) or not isinstance(mlp, Mlp) or isinstance(window, Chunks) or layer.mlp_norm is None:
        return None
    norms = (layer.input_norm, layer.after_attention, layer.mlp_norm, layer.after_mlp)
    is_turned = attention.is_compiled or (rope is None and attention.qk_norm is None)
    names = [f"layers.{index}.{name}" for name in ("attention.qkv", "attention.output", "mlp.up", "mlp.down")]
    matrices = [matrix for matrix in map(_matrix, map(linear, names)) if matrix is not None]
    if not is_turned or len(matrices) < len(names) or not all(norm is None or _is_norm(norm) for norm in norms):
        return None
    before, after_attention, mlp_norm, after_mlp = (None if norm is None else norm.weight for norm in norms)
    assert before is not None and mlp_norm is not None
    head_norm = None if attention.qk_norm is None else attention.qk_norm.weight
    qkv, output, up, down = matrices
    return compiled.Layer(qkv, output, up, down, before, after_attention, mlp_norm, after_mlp, head_norm, window, rope)


def _is_norm(norm: Norm) -> bool:
    """An RMS norm with float32 weights over the hidden state."""
    weight = norm.weight
    is_vector = weight is not None and weight.ndim == 1 and weight.dtype == torch.float32
    return norm.is_compiled and norm.spec.kind == "rms" and is_vector


def _matrix(linear: Linear) -> compiled.Matrix | None:
    if not isinstance(linear, PackedLinear) or linear.rows.product is None:
        return None
    return compiled.Matrix(linear.rows.product, linear.bias)

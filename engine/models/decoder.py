"""The native decoder: every family of `families.py` is an instance of it, with the parts that the family's spec asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...kernels.backend import Backend, uses_triton
from ...kernels.cpu import between
from ...kernels.cpu import decoder as compiled
from ...kernels.fused import HeadNorm
from ...kernels.quantized import BLOCK_TYPES, Packed
from ..attention.decode_batch import DecodeBatch
from ..attention.kernel_plans import CompiledPlan, covers_compiled, decode_plan, step_plan
from ..attention.methods import Attend, fused
from ..attention.paged import MAX_SHORT, Chunks, LayerCall, Plan, Span
from ..gguf.files import is_gguf
from ..kv_cache.tensors import KVCache, kv_block_bytes
from ..offload.layer_stream import LayerStream
from ..quantization.linears import CompiledLinear
from .architecture import ModelSpec, NormSpec
from .checkpoint_weights import read_decoder_weights
from .gguf_weights import read_gguf_weights
from .layers import Attention, LatentAttention, Layer, Step
from .layout import Portion, head_name
from .linear import Adapt, DenseEmbedding, DenseLinears, Embedding, Linear, Linears
from .modules import Experts, JointNorm, MeanSquares, Mlp, Norm, Rotation, Unnormed
from .packed_linear import PackedEmbedding, PackedLinear
from .rope import AngleTable, inverse_frequencies


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """One step's input, packed: the tokens of all sequences one after another."""

    token_ids: Tensor  # int64 [num_tokens]
    positions: Tensor  # int64 [num_tokens]
    logit_rows: Tensor  # int64 [num_logits]: the rows whose next token is wanted
    attention: Any  # the plan of the step, made by the model that will run it
    adapters: Tensor | None = None  # int64 [num_tokens]: the slot of each token's adapter, -1 for none; None: no token has one
    columns: Tensor | None = None  # int64, ascending: tokens whose logits are wanted, others may be 0; None: all of them


class Decoder:
    """A loaded model. `forward` and `decode` change nothing but the KV cache they are given.

    `weights` are all tensors that the model holds, by the names of `layout.sources_of(spec)`. `linears` makes its linear layers;
    None: dense ones, of `weights`; `adapt` wraps them. `backend` says whether Triton kernels compute what lies between the matrix
    products, "auto": on a GPU; `is_compiled` that the compiled code of `kernels/cpu` does, as far as it can. `kv_dtype` is what
    the KV cache holds, the weights' dtype or fp8. `stream` has the layers whose weights are in host memory. Where a model is not
    `is_whole`, other ranks hold the rest, and its layers meet theirs in products, so that no step is one call of compiled code;
    `mean_squares` takes their heads into account.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Mapping[str, Tensor],
        backend: Backend = "auto",
        kv_dtype: torch.dtype | None = None,
        linears: Linears | None = None,
        adapt: Adapt | None = None,
        is_compiled: bool = False,
        stream: LayerStream | None = None,
        is_whole: bool = True,
        mean_squares: MeanSquares | None = None,
    ) -> None:
        self.spec, self.is_compiled = spec, is_compiled
        plain = linears or DenseLinears(weights)
        linears = plain if adapt is None else adapt(plain)
        self.uses_triton = uses_triton(backend, next(iter(weights.values())).device)
        self.embedding = linears.embedding("embedding", uses_triton=self.uses_triton)  # vocab -> hidden
        self._embedding_scale = torch.tensor(spec.embedding_scale, dtype=self.dtype).item()
        self.head = linears.linear(head_name(spec))  # hidden -> vocab
        self.host_bytes = 0 if stream is None else stream.host_bytes
        self.num_bytes = _resident_bytes(weights, stream)
        self.kv_dtype = kv_dtype or self.dtype
        build = _Builder(spec, weights, linears, self.uses_triton, is_compiled, mean_squares)
        layers = [build.layer(index) for index in range(spec.num_layers)]
        self.layers = tuple(layer if stream is None else stream.wrap(index, layer) for index, layer in enumerate(layers))
        self._final_norm = build.norm("final_norm")
        self._compiled_steps = None
        if is_compiled and stream is None and is_whole:
            embedding = _compiled_embedding(self.embedding, self._embedding_scale)
            self._compiled_steps = compiled_steps(spec, layers, self._final_norm, plain.linear, head_name(spec), embedding)
        self._turns = [(frequencies.to(self.device), factor) for frequencies, factor in map(inverse_frequencies, spec.ropes)]
        self._angles = [AngleTable(*turn) for turn in self._turns] if is_compiled else []

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def picks_columns(self) -> bool:
        """Whether steps may compute some columns of the head alone."""
        return self._compiled_steps is not None

    def block_bytes(self, block_size: int) -> int:
        return kv_block_bytes(self.spec.kv_layers, block_size, self.kv_dtype)

    def allocate_cache(self, num_blocks: int, block_size: int) -> KVCache:
        layers = self.spec.kv_layers
        return KVCache.of_layers(layers, num_blocks, block_size, self.dtype, self.device, self.kv_dtype)

    def plan(self, spans: Sequence[Span], cache: KVCache, attend: Attend = fused) -> Plan:
        return step_plan(spans, cache, self.spec.windows, attend, self.uses_triton, self.is_compiled)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        """Logits [num_logits, vocab] for `batch.logit_rows`; writes this step's keys and values into `cache`."""
        steps = self._compiled_steps
        if steps is not None and batch.adapters is None and steps.takes(batch.attention, cache, batch.token_ids.shape[0]):
            embedded = None if steps.decoder.embeds else self.embedding(batch.token_ids, self._embedding_scale)
            return self._finished(steps(batch, self._angles, cache, embedded))
        hidden, delta = self._hidden(batch.token_ids, batch.positions, batch.attention, cache)
        return self._logits(hidden.index_select(0, batch.logit_rows), delta.index_select(0, batch.logit_rows))

    def forward_lists(
        self,
        token_ids: Sequence[int],
        positions: Sequence[int],
        logit_rows: Sequence[int],
        spans: Sequence[Span],
        cache: KVCache,
        columns: NDArray[np.int64] | None = None,
    ) -> Tensor | None:
        """`forward` of what the host knows, in one call of compiled code, by the method `fused`; None where it is not one."""
        steps = self._compiled_steps
        if steps is None or not steps.takes_lists(spans, cache, len(token_ids)):
            return None
        return self._finished(steps.of_lists(token_ids, positions, logit_rows, spans, self._angles, cache, columns))

    @property
    def whole_steps(self) -> CompiledSteps | None:
        """What computes steps from tokens to the very logits that are drawn from; None where something lies before or behind it."""
        steps, is_plain = self._compiled_steps, self.spec.logit_scale == 1.0 and self.spec.logit_softcap is None
        return steps if steps is not None and steps.embeds and is_plain else None

    @property
    def angles(self) -> Sequence[AngleTable]:
        """Of each rope, where compiled code computes."""
        return self._angles

    @torch.inference_mode()
    def decode(self, batch: DecodeBatch, cache: KVCache, attend: Attend = fused) -> Tensor:
        """Logits [num_rows, vocab] of a step in which every sequence has one new token: see `decode_batch.py`.

        A CUDA graph can capture this call. The logits of rows that pad the batch mean nothing.
        """
        plan = decode_plan(batch, cache, self.spec.windows, attend, self.uses_triton)
        return self._logits(*self._hidden(batch.token_ids, batch.positions, plan, cache))

    def _hidden(self, token_ids: Tensor, positions: Tensor, plan: Plan, cache: KVCache) -> tuple[Tensor, Tensor]:
        """The residual stream before the last layer's output is added, and that output, both [num_tokens, hidden]."""
        hidden, delta = self.embedding(token_ids, self._embedding_scale), None
        step = Step(positions, self._rotations(positions), plan, cache)
        for layer in self.layers:
            hidden, delta = layer(hidden, delta, step)
        assert delta is not None, "a model has layers"
        return hidden, delta

    def _logits(self, hidden: Tensor, delta: Tensor) -> Tensor:
        normed, _ = self._final_norm.after(hidden, delta)
        return self._finished(self.head(normed))

    def _finished(self, logits: Tensor) -> Tensor:
        """Logits as the head gives them, scaled and capped."""
        if self.spec.logit_scale != 1.0:
            logits = logits * self.spec.logit_scale
        cap = self.spec.logit_softcap
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def _rotations(self, positions: Tensor) -> tuple[Rotation, ...]:
        """A rotation for each of the model's ropes: float32 for kernels; the model's dtype, as in transformers, for PyTorch."""
        dtype = torch.float32 if self.uses_triton else self.dtype
        rotations = []
        if self._angles and dtype == torch.float32:
            positions = positions.clamp_min(0)  # of rows that pad, nothing is read
            tables = [table.up_to(int(positions.max()) + 1) for table in self._angles]
            return tuple(Rotation(cosine.index_select(0, positions), sine.index_select(0, positions)) for cosine, sine in tables)
        for frequencies, factor in self._turns:
            angles = positions[:, None, None].float() * frequencies  # [num_tokens, 1, dim / 2]
            rotations.append(Rotation((angles.cos() * factor).to(dtype), (angles.sin() * factor).to(dtype)))
        return tuple(rotations)


def _resident_bytes(weights: Mapping[str, Tensor], stream: LayerStream | None) -> int:
    """Of the weights on the device."""
    if stream is None:
        return sum(tensor.nbytes for tensor in weights.values())
    streamed = tuple(f"layers.{number}." for number in stream.numbers)
    return stream.device_bytes + sum(tensor.nbytes for name, tensor in weights.items() if not name.startswith(streamed))


class _Builder:
    """Puts linear layers, and the weights of norms, into the modules that `spec` asks for."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: Mapping[str, Tensor],
        linears: Linears,
        uses_triton: bool,
        is_compiled: bool,
        mean_squares: MeanSquares | None,
    ) -> None:
        self.mean_squares = mean_squares
        self.spec, self.weights, self.uses_triton, self.is_compiled = spec, weights, uses_triton, is_compiled
        self.linear, self.per_head, self.grouped_mlp = linears.linear, linears.per_head, linears.grouped_mlp

    def norm(self, name: str, spec: NormSpec | None = None) -> Norm:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        return Norm(spec or self.spec.norm, weight, bias, self.uses_triton, self.is_compiled)

    def norm_if_any(self, name: str, spec: NormSpec | None = None) -> Norm | None:
        return self.norm(name, spec) if f"{name}.weight" in self.weights else None

    def layer(self, index: int) -> Layer:
        prefix = f"layers.{index}."
        return Layer(
            input_norm=Unnormed() if self.spec.block == "post" else self.norm(f"{prefix}input_norm"),
            attention=self.attention(index, f"{prefix}attention."),
            after_attention=self.norm_if_any(f"{prefix}after_attention"),
            mlp_norm=Unnormed() if self.spec.block == "post" else self.norm_if_any(f"{prefix}mlp_norm"),
            mlp=self.experts(f"{prefix}mlp.") if self.spec.has_experts[index] else self.mlp(f"{prefix}mlp."),
            after_mlp=self.norm_if_any(f"{prefix}after_mlp"),
        )

    def attention(self, index: int, prefix: str) -> Attention | LatentAttention:
        spec, output = self.spec, self.linear(f"{prefix}output")
        if spec.latent is None:
            qk_norm = self.qk_norm(f"{prefix}qk_norm")
            head_norm, is_fused = self._head_norm(qk_norm, self.spec.rope_of[index])
            is_compiled = self.is_compiled and self._turns_compiled(qk_norm, self.spec.rope_of[index])
            return Attention(spec, index, self.linear(f"{prefix}qkv"), qk_norm, output, head_norm, is_fused, is_compiled)
        inner = NormSpec("rms", 1e-6)  # DeepSeek's are not configurable
        return LatentAttention(
            spec=spec,
            latent=spec.latent,
            index=index,
            down=self.linear(f"{prefix}down"),
            query_norm=self.norm_if_any(f"{prefix}query_norm", inner),
            query_up=self.linear(f"{prefix}query_up"),
            latent_norm=self.norm(f"{prefix}latent_norm", inner),
            absorb=self.per_head(f"{prefix}absorb"),
            value_up=self.per_head(f"{prefix}value_up"),
            output=output,
        )

    def qk_norm(self, name: str) -> Norm | JointNorm | None:
        if self.spec.qk_norm == "joint":
            return JointNorm(self.spec.norm, self.weights[f"{name}.weight"], self.spec.num_heads, self.mean_squares)
        return Norm(self.spec.norm, None) if self.spec.qk_norm == "after_rope" else self.norm_if_any(name)

    def _turns_compiled(self, norm: Norm | JointNorm | None, rope: int | None) -> bool:
        """Whether compiled code turns the heads: there are angles, and a norm before them is one of each head, with weights."""
        spec = self.spec
        is_plain = norm is None or (spec.qk_norm == "head" and spec.norm.kind == "rms" and norm.weight is not None)
        has_shape = norm is None or norm.weight is None or norm.weight.shape == (spec.num_heads + spec.num_kv_heads, spec.head_dim)
        is_tempered = spec.temperature is not None and spec.temperature.is_everywhere
        fits = between.fits(spec.head_dim) and spec.head_dim <= between.MAX_HEAD_DIM
        return rope is not None and not is_tempered and is_plain and has_shape and fits

    def _head_norm(self, norm: Norm | JointNorm | None, rope: int | None) -> tuple[HeadNorm | None, bool]:
        """The norm of heads as the kernel that rotates takes it (None: it computes none), and whether that kernel can be used.

        The kernel normalises before it rotates. A norm without weights may be computed there although it comes after the rotation,
        which changes no length.
        """
        spec, plain = self.spec, (None, self.uses_triton)
        if norm is None or spec.norm.kind != "rms" or spec.qk_norm in ("heads", "joint") or not self.uses_triton:
            return plain
        if norm.weight is not None:
            return HeadNorm(norm.weight[0], norm.weight[spec.num_heads], norm.spec.eps), True
        if rope is None:
            return plain
        ones = torch.ones(spec.head_dim, device=self.weights["final_norm.weight"].device)
        is_turned_only = inverse_frequencies(spec.ropes[rope])[1] == 1.0
        return (HeadNorm(ones, ones, norm.spec.eps), True) if is_turned_only else (None, False)

    def mlp(self, prefix: str) -> Mlp:
        up, down = self.linear(f"{prefix}up"), self.linear(f"{prefix}down")
        return Mlp(self.spec.activation, self.spec.is_gated, up, down, self.uses_triton, self.is_compiled)

    def experts(self, prefix: str) -> Experts:
        spec = self.spec.experts
        assert spec is not None
        return Experts(
            spec,
            router=self.linear(f"{prefix}router"),
            correction=self.weights.get(f"{prefix}correction"),
            experts=self.grouped_mlp(
                f"{prefix}experts", self.spec.activation, scales_input=spec.scales_input, uses_triton=self.uses_triton
            ),
            shared=self.mlp(f"{prefix}shared.") if spec.shared_size else None,
            shared_gate=self.linear(f"{prefix}shared_gate") if spec.gates_shared else None,
        )


class CompiledSteps:
    """The compiled decoder of a model (`kernels/cpu/decoder.py`), and when it is used.

    A step has few new tokens of each sequence and no adapters. Layers have Llama's parts: attention that is not latent, RMS norms,
    a gated MLP, no experts, caps or sinks; what a family has else is computed product by product, as prompts are.
    """

    def __init__(self, decoder: compiled.CompiledDecoder, spec: ModelSpec) -> None:
        self.decoder, self._spec = decoder, spec
        self._input = compiled.StepInput()
        self._covered: KVCache | None = None  # that it is known to read

    def takes(self, plan: Plan, cache: KVCache, num_rows: int) -> bool:
        """Whether a step is computed here."""
        is_whole = isinstance(plan, CompiledPlan) and plan.is_whole
        return is_whole and self.decoder.is_good_for(num_rows) and self._covers(cache)

    @property
    def embeds(self) -> bool:
        """Whether steps are given tokens."""
        return self.decoder.embeds

    def use_cache(self, cache: KVCache) -> None:
        """Read and write this cache from here on."""
        self.decoder.use_cache(cache, cache.key_places, cache.value_places, cache.block_size)

    def takes_lists(self, spans: Sequence[Span], cache: KVCache, num_rows: int) -> bool:
        """The same of a step that has no plan."""
        is_whole = self.decoder.embeds and max(new for _, new, _ in spans) <= MAX_SHORT
        return is_whole and self.decoder.is_good_for(num_rows) and self._covers(cache)

    def __call__(
        self, batch: ForwardBatch, angles: Sequence[AngleTable], cache: KVCache, hidden: Tensor | None
    ) -> Tensor:
        """What the head gives for `batch.logit_rows`, at its columns at least; `hidden`, embedded tokens, is changed."""
        plan = batch.attention
        assert isinstance(plan, CompiledPlan), "`takes` was asked"
        rows = compiled.Rows(
            batch.token_ids.data_ptr(), batch.positions.data_ptr(), plan.tables.data_ptr(), batch.logit_rows.data_ptr(),
            batch.token_ids.shape[0], batch.logit_rows.shape[0], plan.tables.stride(0),
        )  # fmt: skip
        columns = None if batch.columns is None else (batch.columns.data_ptr(), len(batch.columns))
        self.use_cache(cache)
        return self.decoder(rows, [table.up_to(plan.max_tokens) for table in angles], hidden, columns)

    def of_lists(
        self,
        token_ids: Sequence[int],
        positions: Sequence[int],
        logit_rows: Sequence[int],
        spans: Sequence[Span],
        angles: Sequence[AngleTable],
        cache: KVCache,
        columns: NDArray[np.int64] | None,
    ) -> Tensor:
        """The same of lists."""
        rows = self._input.rows(token_ids, positions, logit_rows, tables_of(spans, cache.block_size))
        wanted = None if columns is None else (columns.ctypes.data, len(columns))
        self.use_cache(cache)
        return self.decoder(rows, [table.up_to(max(positions) + 1) for table in angles], None, wanted)

    def _covers(self, cache: KVCache) -> bool:
        if cache is not self._covered:
            if not covers_compiled(cache, LayerCall(0, self._spec.head_dim, scoring=self._spec.scoring)):
                return False
            self._covered = cache
        return True


def tables_of(spans: Sequence[Span], block_size: int) -> list[Sequence[int]]:
    """The blocks of each new token's sequence. Raises IndexError where there are too few."""
    if any(past + new > len(table) * block_size for past, new, table in spans):
        raise IndexError("a sequence has fewer blocks than its tokens need")
    return [table for _, new, table in spans for _ in range(new)]


def compiled_steps(
    spec: ModelSpec,
    layers: Sequence[Layer],
    final_norm: Norm,
    linear: Callable[[str], Linear],
    head: str,
    embedding: compiled.Embedding | None,
) -> CompiledSteps | None:
    """The compiled decoder of these layers; None where they are not what it computes. `linear` gives matrices without adapters."""
    scale = spec.head_dim**-0.5 if spec.scoring.scale is None else spec.scoring.scale
    shape = compiled.Shape(spec.num_heads, spec.num_kv_heads, spec.head_dim, spec.activation, spec.norm.eps, scale)
    made = [_compiled_layer(spec, index, layer, linear) for index, layer in enumerate(layers)]
    last = _compiled_matrix(linear(head))
    known = [layer for layer in made if layer is not None]
    is_plain = spec.scoring.softcap is None and spec.temperature is None and spec.is_gated and _is_norm(final_norm)
    if not is_plain or last is None or not known or len(known) < len(made) or not compiled.fits(known, shape):
        return None
    assert final_norm.weight is not None
    return CompiledSteps(compiled.CompiledDecoder(known, final_norm.weight, last, shape, embedding), spec)


def _compiled_layer(spec: ModelSpec, index: int, layer: Layer, linear: Callable[[str], Linear]) -> compiled.Layer | None:
    attention, mlp, window, rope = layer.attention, layer.mlp, spec.windows[index], spec.rope_of[index]
    if not isinstance(attention, Attention) or not isinstance(mlp, Mlp) or isinstance(window, Chunks) or layer.mlp_norm is None:
        return None
    norms = (layer.input_norm, layer.after_attention, layer.mlp_norm, layer.after_mlp)
    is_turned = attention.is_compiled or (rope is None and attention.qk_norm is None)
    names = [f"layers.{index}.{name}" for name in ("attention.qkv", "attention.output", "mlp.up", "mlp.down")]
    matrices = [matrix for matrix in map(_compiled_matrix, map(linear, names)) if matrix is not None]
    if not is_turned or len(matrices) < len(names) or not all(norm is None or _is_norm(norm) for norm in norms):
        return None
    before, after_attention, mlp_norm, after_mlp = (None if norm is None else norm.weight for norm in norms)
    assert before is not None and mlp_norm is not None
    head_norm = None if attention.qk_norm is None else attention.qk_norm.weight
    qkv, output, up, down = matrices
    return compiled.Layer(qkv, output, up, down, before, after_attention, mlp_norm, after_mlp, head_norm, window, rope)


def _compiled_embedding(embedding: Embedding, scale: float) -> compiled.Embedding | None:
    """None for codes with scales: PyTorch looks their rows up."""
    if isinstance(embedding, PackedEmbedding):
        return compiled.Embedding(embedding.matrix, scale)
    if isinstance(embedding, DenseEmbedding) and embedding.weight.dtype == torch.float32 and embedding.weight.is_contiguous():
        return compiled.Embedding(Packed(BLOCK_TYPES["F32"], embedding.weight.view(torch.uint8)), scale)
    return None


def _is_norm(norm: Norm | Unnormed) -> bool:
    """An RMS norm with float32 weights over the hidden state."""
    if isinstance(norm, Unnormed):
        return False
    weight = norm.weight
    is_vector = weight is not None and weight.ndim == 1 and weight.dtype == torch.float32
    return norm.is_compiled and norm.spec.kind == "rms" and is_vector


def _compiled_matrix(linear: Linear) -> compiled.Matrix | None:
    if isinstance(linear, CompiledLinear):
        return compiled.Matrix(linear.product, linear.bias)
    if not isinstance(linear, PackedLinear) or linear.rows.product is None:
        return None
    return compiled.Matrix(linear.rows.product, linear.bias)


def load_decoder(
    folder: Path,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend = "auto",
    kv_dtype: torch.dtype | None = None,
    adapt: Adapt | None = None,
    *,
    is_compiled: bool = False,
    offload_bytes: int = 0,
    portion: Portion | None = None,
) -> Decoder:
    """The decoder of the checkpoint in `folder`, its weights converted to `dtype`; `backend`, `kv_dtype`, `adapt` as in `Decoder`.

    `folder` may be a GGUF file: its matrices stay in their blocks. `is_compiled` is as in `read_gguf_weights`, for folders as in
    `read_decoder_weights`. `offload_bytes`: so many bytes of layers less are on the device; they stay in host memory and are
    streamed (`engine/offload/`). `portion`: what of the model is loaded, of which `adapt` makes one with the other ranks'.
    Raises ModelFolderError when a file is missing or damaged, WeightError when tensors are not those that `spec` calls for,
    UnsupportedModel when one is of a type that cannot be read.
    """
    if offload_bytes and is_compiled:
        raise ValueError("compiled products point to the memory that matrices lie in: they cannot be streamed")
    own = spec if portion is None else portion.spec
    assert isinstance(own, ModelSpec), "a portion of a decoder is one"
    shared: dict[str, Any] = {} if portion is None else {"is_whole": False, "mean_squares": portion.mean_squares}
    if is_gguf(folder):
        weights, linears, stream = read_gguf_weights(
            folder, spec, dtype, device, is_compiled=is_compiled, backend=backend, offload_bytes=offload_bytes, portion=portion
        )
        return Decoder(own, weights, backend, kv_dtype, linears, adapt, is_compiled, stream, **shared)
    weights, made, stream = read_decoder_weights(
        folder, spec, dtype, device, backend, is_compiled=is_compiled, offload_bytes=offload_bytes, portion=portion
    )
    return Decoder(own, weights, backend, kv_dtype, made, adapt, is_compiled, stream, **shared)

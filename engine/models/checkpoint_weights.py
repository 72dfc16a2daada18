"""The weights of a native decoder out of safetensors: packed matrices as codes, large ones where they lie, the rest as numbers.

A matrix is plain where its "weight" is there in floating point, whatever config.json says; else it is stored as the plan says.
On a CPU tensors stay in the mapped files if they have the type that is computed in, if a format keeps codes as we do, or if they
have 16 bits and compiled code multiplies by them, or copies would not fit. The parts of a joined matrix are multiplied one after
another then, or in one pass by compiled code: joining would copy them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ...kernels.backend import Backend, uses_triton
from ...kernels.cpu import Product, can_multiply
from ...kernels.quantized import BLOCK_TYPES, Packed, scaled
from ...kernels.quantized.experts import stacked_codes
from ...kernels.quantized.rounding import Rounding
from ...kernels.quantized.scaled import Scaled
from ..device.memory import drop_pages, free_bytes
from ..errors import UnsupportedModel, WeightError
from ..offload.host_layers import HostLayers, bytes_by_layer, chosen_layers
from ..offload.layer_stream import LayerStream
from ..quantization.linears import (
    CompiledLinear,
    ExpertwiseMlp,
    JoinedLinear,
    ScaledEmbedding,
    ScaledLinear,
    Stack,
    stacked_mlp,
)
from ..quantization.online import OnlineKind, can_quantize, quantized
from ..quantization.plan import Plan
from ..quantization.scheme import FLOATS, BadTensor, Scheme, Stored
from ..sharding.cuts import Cut
from .architecture import ModelSpec
from .layout import Portion, Shape, Source, sources_of
from .linear import DenseLinear, DenseLinears, DensePerHeadLinear, Embedding, GroupedMlp, Linear
from .packed_linear import PackedEmbedding, PackedLinear, PackedRows
from .weights import Checkpoint, check_checkpoint, finished, held, open_checkpoint

logger = logging.getLogger(__name__)

LEAST_MAPPED = 1 << 20  # bytes of a joined matrix: below, one product of a copy is quicker than several
_OF_CACHES = (  # of keys and values in 8 bits: `kv_dtype` needs none
    ".k_scale", ".v_scale", ".kv_scale", ".k_zero_point", ".v_zero_point", ".k_proj.output_scale", ".v_proj.output_scale",
)  # fmt: skip
_OF_ITS_OWN = frozenset({"g_idx", "weight_g_idx", "input_scale", "input_zero_point"})  # an order, or inputs, of one matrix
HALVES = ("F16", "BF16")
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class MadeLinears:
    """The linear layers that were made while weights were loaded, and dense ones of all other matrices.

    `made` has them by the layer's name, and those of each expert in turn by "NAME.gate_up" and "NAME.down".
    """

    made: Mapping[str, tuple[Linear, ...]]
    embeddings: Mapping[str, Embedding]
    weights: Mapping[str, Tensor]
    stacks: Mapping[str, Stack] = field(default_factory=dict)  # of experts whose matrices kernels multiply, likewise
    num_experts: int = 0

    @property
    def _dense(self) -> DenseLinears:
        return DenseLinears(self.weights)

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding:
        return self.embeddings.get(name) or self._dense.embedding(name, uses_triton=uses_triton)

    def linear(self, name: str) -> Linear:
        if name not in self.made:
            return self._dense.linear(name)
        return self.made[name][0]

    def per_head(self, name: str) -> DensePerHeadLinear:
        return self._dense.per_head(name)

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        if f"{name}.down" in self.stacks:
            return stacked_mlp(self.stacks, name, self.num_experts, activation, scales_input)
        if f"{name}.down" not in self.made:
            return self._dense.grouped_mlp(name, activation, scales_input=scales_input, uses_triton=uses_triton)
        return ExpertwiseMlp(self.made[f"{name}.gate_up"], self.made[f"{name}.down"], activation, scales_input)


class DecoderWeights(NamedTuple):
    """What a `Decoder` takes."""

    weights: dict[str, Tensor]  # by the names of `layout.py`; the tensors of linear layers as "NAME.0.codes" and so on
    linears: MadeLinears
    stream: LayerStream | None = None  # of layers that are in host memory


def read_decoder_weights(
    folder: Path,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend = "auto",
    *,
    is_compiled: bool = False,
    offload_bytes: int = 0,
    portion: Portion | None = None,
) -> DecoderWeights:
    """All tensors of `spec`, checked before any is read, as they are stored or converted to `dtype`, on `device`.

    `backend` says who computes products with packed matrices. `is_compiled`: matrices in floating point stay as they are stored,
    and are multiplied by the compiled code of `kernels/cpu`. Layers stay in host memory so that the device holds `offload_bytes`
    less. `portion`: what of the model is read, where that is not all.
    Raises ModelFolderError when a file is missing or damaged, WeightError when a tensor is missing, unknown, misshaped or wrong,
    UnsupportedModel where codes cannot be held in portions.
    """
    with open_checkpoint(folder) as checkpoint:
        reader = _Reader(checkpoint, spec, dtype, device, backend, is_compiled, portion)
        reader.check()
        reader.plan_memory(folder)
        return reader.read(offload_bytes)


@dataclass(frozen=True, slots=True)
class Plain:
    """A tensor in floating point."""

    name: str
    shape: Shape
    cut: Cut | None = None  # what of it is held; None: all

    @property
    def held(self) -> Shape:
        return self.shape if self.cut is None else self.cut.shape(self.shape)


@dataclass(frozen=True, slots=True)
class Coded:
    """A matrix that is stored by a scheme."""

    module: str
    scheme: Scheme
    shape: Shape
    stored: tuple[Stored, ...]
    names: Mapping[str, str]  # of the tensors that are there, in the checkpoint, by ours
    cut: Cut | None = None  # what of the matrix is held; None: all

    @property
    def held(self) -> Shape:
        return self.shape if self.cut is None else self.cut.shape(self.shape)


Part = Plain | Coded


class Parts:
    """What the tensors of a checkpoint are, by its configuration and by what is there."""

    def __init__(self, checkpoint: Checkpoint, prefix: str, plan: Plan | None) -> None:
        self._checkpoint, self._prefix, self._plan = checkpoint, prefix, plan

    def part(self, name: str, shape: Shape) -> Part:
        """Raises WeightError where the plan's format cannot store such a matrix, or no plan says how it is stored."""
        full = self._prefix + name
        module = full.removesuffix(".weight")
        has_it = full in self._checkpoint.names
        is_plain = has_it and self._checkpoint.dtype(full) in (*FLOATS, "F64")
        scheme = None if self._plan is None or module == full or len(shape) != 2 else self._plan.scheme_of(module)
        if is_plain or (scheme is None and not has_it):
            return Plain(full, shape)
        if scheme is None:
            kind = self._checkpoint.dtype(full)
            raise WeightError(f"tensor {full} is of type {kind}, and config.json does not say what it means")
        try:
            stored = tuple(scheme.stored(*shape))
        except BadTensor as error:
            raise WeightError(f"tensor {module}.{error.name} {error.reason}") from None
        return Coded(module, scheme, shape, stored, dict(self._found(module, stored)))

    def _found(self, module: str, stored: tuple[Stored, ...]) -> list[tuple[str, str]]:
        """(our name, the checkpoint's), of all that is there or must be."""
        found = []
        for tensor in stored:
            names = [f"{module}.{name}" for name in tensor.names]
            there = next((name for name in names if name in self._checkpoint.names), None)
            if there is not None or not tensor.is_optional:
                found.append((tensor.names[0], there or names[0]))
        return found


class _Reader:
    def __init__(
        self,
        checkpoint: Checkpoint,
        spec: ModelSpec,
        dtype: torch.dtype,
        device: torch.device,
        backend: Backend,
        is_compiled: bool,
        portion: Portion | None,
    ) -> None:
        self.checkpoint, self.spec, self.dtype, self.device = checkpoint, spec, dtype, device
        self.backend, self.is_compiled = backend, is_compiled
        self.plan = spec.quantization if isinstance(spec.quantization, Plan) else None
        self.online: OnlineKind | None = None if isinstance(spec.quantization, Plan) else spec.quantization
        parts = Parts(checkpoint, spec.prefix, self.plan)
        self.whole = [parts.part(*part) for source in sources_of(spec).values() for part in source.parts]
        self.sources = sources_of(spec) if portion is None else portion.sources
        self.parts = {
            name: [replace(parts.part(theirs, shape), cut=cut) for theirs, shape, cut in source.held()]
            for name, source in self.sources.items()
        }
        experts = (spec if portion is None else portion.spec).experts  # type: ignore[attr-defined]
        self.num_experts: int = 0 if experts is None else experts.count
        self.keeps_halves = device.type == "cpu" and (is_compiled or spec.quantization is not None)
        self.kept = (*HALVES, "F32") if is_compiled else HALVES  # what may stay as it is stored
        self.weights: dict[str, Tensor] = {}
        self.made: dict[str, tuple[Linear, ...]] = {}
        self.embeddings: dict[str, Embedding] = {}
        self.stacks: dict[str, Stack] = {}

    # ---- before anything is read

    def check(self) -> None:
        expected: dict[str, tuple[Shape, ...]] = {}
        types: dict[str, tuple[str, ...]] = {}
        coded = set()
        for part in self.whole:
            if isinstance(part, Plain):
                expected[part.name] = (part.shape,)
                continue
            coded.add(part.module)
            for tensor in part.stored:
                if (name := part.names.get(tensor.names[0])) is not None:
                    expected[name], types[name] = tensor.shapes, tensor.dtypes
        check_checkpoint(self.checkpoint, self.spec, expected, self._passed_over(coded))
        for name, dtypes in types.items():
            kind = self.checkpoint.dtype(name)
            if kind not in dtypes:
                raise WeightError(f"tensor {name} is of type {kind}, config.json calls for {' or '.join(dtypes)}")

    def _passed_over(self, coded: set[str]) -> frozenset[str]:
        """What the product does not need: scales of caches, and biases that are zero, which some tools write for every matrix."""
        if self.plan is None:
            return frozenset()
        return frozenset(
            name
            for name in self.checkpoint.names
            if name.endswith(_OF_CACHES)
            or (name.endswith(".bias") and name.removesuffix(".bias") in coded and self._is_zero(name))
        )

    def _is_zero(self, name: str) -> bool:
        return self.checkpoint.dtype(name) in FLOATS and not self.checkpoint.tensor(name).any()

    def plan_memory(self, folder: Path) -> None:
        """Leave matrices of 16 bits in the file where copies would not fit into memory; say what does not fit even so."""
        if self.device.type != "cpu":
            return
        free, (mapped, copied) = free_bytes(self.device), self._sizes()
        if copied > free and not self.keeps_halves:
            self.keeps_halves = True
            logger.warning(
                "%s: in %s its weights would take %.3g GB of memory, of which %.3g GB are free: those of 16 bits stay as they are",
                folder, str(self.dtype).removeprefix("torch."), copied / 1e9, free / 1e9,
            )  # fmt: skip
            mapped, copied = self._sizes()
        if mapped + copied > free:
            logger.warning(
                "%s: its weights take %.3g GB (%.3g GB of them in the file), and %.3g GB of memory are free: what does not fit is "
                "read from the file in every step, as fast as the disk is",
                folder, (mapped + copied) / 1e9, mapped / 1e9, free / 1e9,
            )  # fmt: skip

    def _sizes(self) -> tuple[int, int]:
        """Bytes of weights that stay in the file, and of those that are copied."""
        mapped = copied = 0
        for name, source in self.sources.items():
            is_alone = source.finish is None and len(source.parts) == 1
            for part in self.parts[name]:
                size = self._bytes(name, part)
                is_mapped = (self._is_lazy(name) or is_alone) and self._stays_mapped(name, part)
                mapped, copied = (mapped + size, copied) if is_mapped else (mapped, copied + size)
        return mapped, copied

    def _bytes(self, name: str, part: Part) -> int:
        """In memory; of what is quantised while it is loaded without its scales."""
        if isinstance(part, Coded):
            return sum(map(self.checkpoint.num_bytes, part.names.values())) * math.prod(part.held) // math.prod(part.shape)
        if self._becomes_codes(name, part):
            return math.prod(part.held) * (4 if self.online == "int4" else 8) // 8
        stored = self.checkpoint.num_bytes(part.name) // math.prod(part.shape)
        return math.prod(part.held) * (stored if self._stays_half(name, part) else self.dtype.itemsize)

    def _stays_mapped(self, name: str, part: Part) -> bool:
        if part.cut is not None and part.cut.copies:
            return False
        if isinstance(part, Coded):
            return part.scheme.is_in_place
        is_as_stored = self._is_stored_as_computed(part) or self._stays_half(name, part)
        return is_as_stored and not self._becomes_codes(name, part)

    def _is_stored_as_computed(self, part: Plain) -> bool:
        return DTYPES.get(self.checkpoint.dtype(part.name)) == self.dtype

    # ---- reading

    def read(self, offload_bytes: int) -> DecoderWeights:
        host = self._host_layers(offload_bytes) if offload_bytes else None
        for name, source in self.sources.items():
            parts, ours = self.parts[name], name.removesuffix(".weight")
            if not self._is_lazy(name):
                self.weights[name] = finished([self._numbers(part, source) for part in parts], source)
            elif ours == "embedding":
                self._make_embedding(parts)
            elif self._is_stacked(name):
                self._make_stack(ours, parts)
            elif source.holds == "experts":
                self._make_experts(ours, parts)
            else:
                self._make_linear(ours, parts)
            if host is not None:
                host.park(self.weights)
        for name in self.made:
            joined = self.made[name][0]
            if f"{name}.bias" in self.weights and isinstance(joined, CompiledLinear | JoinedLinear | PackedLinear):
                self.made[name] = (replace(joined, bias=self.weights[f"{name}.bias"]),)
        stream = None if host is None else host.stream()
        linears = MadeLinears(self.made, self.embeddings, self.weights, self.stacks, self.num_experts)
        return DecoderWeights(self.weights, linears, stream)

    def _host_layers(self, wanted: int) -> HostLayers:
        sizes = ((name, sum(self._device_bytes(name, part) for part in parts)) for name, parts in self.parts.items())
        return HostLayers(chosen_layers(bytes_by_layer(sizes, self.spec.num_layers), wanted), self.device)

    def _is_lazy(self, name: str) -> bool:
        """Whether the parts become linear layers of their own, of experts on a CPU only, or are stacked."""
        source, parts = self.sources[name], self.parts[name]
        if self._is_stacked(name):
            return True
        if source.holds == "values" or (source.holds == "experts" and self.device.type != "cpu"):
            return False
        if any(isinstance(part, Coded) or self._becomes_codes(name, part) or self._stays_half(name, part) for part in parts):
            return True
        if self.device.type != "cpu" or len(parts) == 1:
            return False
        size = sum(self._bytes(name, part) for part in parts) // (len(parts) if source.holds == "experts" else 1)
        plain = [part for part in parts if isinstance(part, Plain)]
        is_as_computed = source.dtype in (None, self.dtype) and all(self._is_stored_as_computed(part) for part in plain)
        return size >= LEAST_MAPPED and is_as_computed

    def _is_stacked(self, name: str) -> bool:
        """Whether kernels multiply the matrices of a layer's experts as they are: all are stored alike, gate, up and down."""
        if self.sources[name].holds != "experts" or not uses_triton(self.backend, self.device):
            return False
        pair = (name.replace(".down.", ".gate_up."), name.replace(".gate_up.", ".down."))
        parts = [(each, part) for each in pair for part in self.parts[each]]
        if all(self._becomes_codes(each, part) for each, part in parts):
            return True
        coded = [part for _, part in parts if isinstance(part, Coded)]
        alike = len(coded) == len(parts) and all(part.scheme == coded[0].scheme for part in coded)
        return alike and not any(_OF_ITS_OWN & part.names.keys() for part in coded)

    def _becomes_codes(self, name: str, part: Part) -> bool:
        """Whether the matrix is quantised now."""
        if self.online is None or isinstance(part, Coded):
            return False
        return is_inner(name, self.sources[name]) and can_quantize(self.online, part.shape[1])

    def _make_embedding(self, parts: list[Part]) -> None:
        (part,) = parts
        if isinstance(part, Plain):
            half = self._half("embedding.0", part)
            self.embeddings["embedding"] = PackedEmbedding(half, self.dtype)
            self.made["embedding"] = (PackedLinear(self._packed((half,))),)
            return
        matrix, _ = self._codes(part)
        if part.cut is not None:
            matrix = part.cut.codes(matrix) or matrix
        self._hold("embedding.0", matrix)
        self.embeddings["embedding"] = ScaledEmbedding(matrix, self.dtype)
        self.made["embedding"] = (self._joined((ScaledLinear(matrix, backend=self.backend),)),)

    def _make_linear(self, ours: str, parts: list[Part]) -> None:
        source, rows = self.sources[f"{ours}.weight"], torch.arange(sum(part.held[0] for part in parts))
        finished_rows = rows if source.finish is None else source.finish(rows)
        order = None if torch.equal(finished_rows, rows) else finished_rows.to(self.device)
        halves = [part for part in parts if isinstance(part, Plain) and self._stays_half(f"{ours}.weight", part)]
        if self.is_compiled and len(halves) == len(parts):
            packed = tuple(self._half(f"{ours}.{number}", part) for number, part in enumerate(halves))
            self.made[ours] = (PackedLinear(self._packed(packed, order)),)
        else:
            self.made[ours] = (self._joined(self._linears(ours, parts), order),)

    def _device_bytes(self, name: str, part: Part) -> int:
        """What a part takes, of which nothing is mapped."""
        return self._bytes(name, part) if self._is_lazy(name) else math.prod(part.held) * self.dtype.itemsize

    def _make_stack(self, ours: str, parts: list[Part]) -> None:
        codes = [self._codes(part) for part in parts]
        matrices = stacked_codes([matrix for matrix, _ in codes])
        if matrices is None:
            raise WeightError(f"the experts of {ours} have scales of several types or shapes, and cannot be multiplied together")
        self._hold(f"{ours}.0", matrices)
        self.stacks[ours] = Stack(matrices, codes[0][1])

    def _make_experts(self, ours: str, parts: list[Part]) -> None:
        each, linears = len(parts) // self.num_experts, self._linears(ours, parts)
        groups = (linears[begin : begin + each] for begin in range(0, len(linears), each))
        self.made[ours] = tuple(group[0] if each == 1 and not self.is_compiled else self._joined(group) for group in groups)

    def _joined(self, parts: tuple[Linear, ...], order: Tensor | None = None) -> JoinedLinear | CompiledLinear:
        """One product of compiled code if that multiplies by all parts at once, else one of each."""
        joined = JoinedLinear(parts, order)
        if not self.is_compiled:
            return joined
        matrices = [matrix for matrix in map(_matrix_of, parts) if matrix is not None]
        roundings = [part.rounding if isinstance(part, ScaledLinear) else None for part in parts]
        if len(matrices) == len(parts) and all(map(can_multiply, matrices, roundings)):
            return CompiledLinear(Product(matrices, order, roundings), joined)
        return joined if len(parts) == 1 else JoinedLinear(tuple(self._joined((part,)) for part in parts), order)

    def _linears(self, ours: str, parts: list[Part]) -> tuple[Linear, ...]:
        return tuple(self._linear(f"{ours}.{number}", part, f"{ours}.weight") for number, part in enumerate(parts))

    def _stays_half(self, name: str, part: Part) -> bool:
        """Whether a matrix, of 16 bits in most cases, is left in the file and multiplied in float32, as those of fewer are."""
        if isinstance(part, Coded) or not self.keeps_halves or self._becomes_codes(name, part):
            return False
        source = self.sources[name]
        is_matrix = source.holds != "values" and source.dtype is None
        return is_matrix and self.dtype == torch.float32 and self.checkpoint.dtype(part.name) in self.kept

    def _half(self, name: str, part: Plain) -> Packed:
        """The matrix as blocks of one number."""
        data = held(self.checkpoint.tensor(part.name), part.cut)
        self.weights[f"{name}.weight"] = data
        return Packed(BLOCK_TYPES[self.checkpoint.dtype(part.name)], data.view(torch.uint8))

    def _packed(self, parts: tuple[Packed, ...], order: Tensor | None = None) -> PackedRows:
        return PackedRows(parts, order, Product(parts, order) if self.is_compiled else None, self.backend)

    def _linear(self, name: str, part: Part, of: str) -> Linear:
        if isinstance(part, Coded) or self._becomes_codes(of, part):
            matrix, rounding = self._codes(part)
            cut = None if part.cut is None else part.cut.codes(matrix)
            if part.cut is not None and cut is None:  # through what has a scale in common
                self.weights[f"{name}.weight"] = part.cut.tensor(scaled.dequantize(matrix)).to(self.dtype)
                return DenseLinear(self.weights[f"{name}.weight"])
            matrix = cut or matrix
            self._hold(name, matrix)
            return ScaledLinear(matrix, rounding, self.backend)
        if self._stays_half(of, part):
            return PackedLinear(self._packed((self._half(name, part),)))
        self.weights[f"{name}.weight"] = self._numbers(part, self.sources[of])
        return DenseLinear(self.weights[f"{name}.weight"])

    def _hold(self, name: str, matrix: Scaled) -> None:
        self.weights |= {f"{name}.{what}": tensor for what, tensor in matrix.tensors.items()}

    def _codes(self, part: Part) -> tuple[Scaled, Rounding | None]:
        if isinstance(part, Plain):
            assert self.online is not None
            weight = self.checkpoint.tensor(part.name)
            made = quantized(self.online, weight).to(self.device)
            drop_pages(weight)
            return made, None
        tensors = {ours: self.checkpoint.tensor(name) for ours, name in part.names.items()}
        try:
            matrix, rounding = part.scheme.matrix(tensors, *part.shape), part.scheme.rounding(tensors)
        except BadTensor as error:
            raise WeightError(f"tensor {part.module}.{error.name} {error.reason}") from None
        for tensor in tensors.values():
            drop_pages(tensor, matrix.tensors.values())
        assert self.plan is not None
        if rounding is None or not self.plan.rounds_inputs:
            return matrix.to(self.device), None
        if part.cut is not None and part.cut.axis == 1 and rounding.scale is None:
            raise UnsupportedModel(
                f"{part.module}: its inputs are rounded by scales that all their columns have in common, of which each rank of "
                "tensor_parallel has some; set quantized_activations=False, or tensor_parallel=1"
            )
        scale, zero = (None if tensor is None else tensor.to(self.device) for tensor in (rounding.scale, rounding.zero))
        return matrix.to(self.device), replace(rounding, scale=scale, zero=zero)

    def _numbers(self, part: Part, source: Source) -> Tensor:
        if isinstance(part, Coded):
            return held(scaled.dequantize(self._codes(part)[0]), part.cut).to(source.dtype or self.dtype)
        weight = self.checkpoint.tensor(part.name)
        numbers = held(weight, part.cut).to(self.device, source.dtype or self.dtype)
        drop_pages(weight, [numbers])
        return numbers



def _matrix_of(linear: Linear) -> Packed | Scaled | None:
    """The one matrix of a linear layer; None where it is not packed."""
    if isinstance(linear, ScaledLinear):
        return linear.matrix
    return linear.rows.parts[0] if isinstance(linear, PackedLinear) else None


def is_inner(name: str, source: Source) -> bool:
    """Whether our tensor is a matrix within a layer that loses little by fewer bits.

    What is lost in embedding, head and router is lost in every token.
    """
    return source.holds != "values" and name.startswith("layers.") and not name.endswith("router.weight")

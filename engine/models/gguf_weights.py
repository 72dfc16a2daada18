"""The weights of a native decoder out of a GGUF file: matrices in their blocks where they lie, the rest as numbers."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from ...kernels.backend import Backend, uses_triton
from ...kernels.cpu import Product
from ...kernels.quantized import BLOCK_TYPES, FLOATS, Packed
from ...kernels.quantized.experts import stacked_blocks
from ..errors import UnsupportedModel, WeightError
from ..gguf.dequantization import dequantized
from ..gguf.files import GgufModel, open_gguf
from ..gguf.names import Names
from ..gguf.reader import StoredTensor
from ..offload.host_layers import HostLayers, bytes_by_layer, chosen_layers
from ..offload.layer_stream import LayerStream
from ..quantization.linears import Stack
from ..sharding.cuts import Cut
from .architecture import ModelSpec
from .layout import Portion, Shape, Source, sources_of
from .packed_linear import PackedLinears, PackedRows
from .weights import held

logger = logging.getLogger(__name__)

CONSUMED = frozenset(
    {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}
)  # by the configuration


class GgufWeights(NamedTuple):
    """What a `Decoder` takes."""

    weights: dict[str, Tensor]  # by the names of `layout.py`; packed matrices as blocks, "NAME.blocks.0" and so on
    linears: PackedLinears
    stream: LayerStream | None  # of layers that are in host memory


def read_gguf_weights(
    path: Path,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    *,
    is_compiled: bool = False,
    backend: Backend = "auto",
    offload_bytes: int = 0,
    portion: Portion | None = None,
) -> GgufWeights:
    """All tensors of `spec`, checked, as the file has them or converted to `dtype`, on `device`.

    `is_compiled`: matrices are multiplied by the compiled code of `kernels/cpu`, which must be available.
    `backend` says who computes other products with blocks. Layers stay in host memory so that the device holds `offload_bytes`
    less. `portion`: what of the model is read, where that is not all; a matrix that is cut through its blocks becomes numbers.
    Raises WeightError where a tensor is missing, unknown or misshaped, UnsupportedModel for a type that cannot be read.
    """
    checkpoint, sources = GgufCheckpoint(open_gguf(path), spec), sources_of(spec)
    checkpoint.check(sources.values())
    if portion is not None:
        sources = portion.sources
    stacked = checkpoint.stackable(sources) if uses_triton(backend, device) else frozenset()
    host = None
    if offload_bytes:
        sizes = ((name, checkpoint.num_bytes(source, dtype, device, name in stacked)) for name, source in sources.items())
        host = HostLayers(chosen_layers(bytes_by_layer(sizes, spec.num_layers), offload_bytes), device)
    weights: dict[str, Tensor] = {}
    packed: dict[str, tuple[PackedRows, ...]] = {}
    stacks: dict[str, Stack] = {}
    for name, source in sources.items():
        if name in stacked:
            ours = name.removesuffix(".weight")
            matrices = checkpoint.stack(source, device)
            stacks[ours], weights[f"{ours}.blocks.0"] = Stack(matrices), matrices.data
            _park(host, {f"{ours}.blocks.0": matrices.data})
            continue
        if not all(checkpoint.stays_packed(sources[part], device) for part in _together(name)):
            weights[name] = checkpoint.read(source, dtype, device)
            _park(host, {name: weights[name]})
            continue
        ours = name.removesuffix(".weight")
        packed[ours] = tuple(replace(rows, backend=backend) for rows in checkpoint.packed(source, device))
        if is_compiled:
            packed[ours] = tuple(replace(rows, product=Product(rows.parts, rows.order)) for rows in packed[ours])
        blocks = (part.data for rows in packed[ours] for part in rows.parts)
        named = {f"{ours}.blocks.{number}": data for number, data in enumerate(blocks)}
        _park(host, named)
        weights |= named
    experts = (spec if portion is None else portion.spec).experts  # type: ignore[attr-defined]
    num_experts = 0 if experts is None else experts.count
    return GgufWeights(weights, PackedLinears(packed, weights, dtype, stacks, num_experts), None if host is None else host.stream())


def _together(name: str) -> tuple[str, ...]:
    """Names of matrices that are all packed or all numbers: experts' gate and up, and down, go through one product."""
    if ".experts." not in name:
        return (name,)
    layer = name.rpartition(".experts.")[0]
    return (f"{layer}.experts.gate_up.weight", f"{layer}.experts.down.weight")


def _park(host: HostLayers | None, weights: Mapping[str, Tensor]) -> None:
    if host is not None:
        host.park(weights)


class GgufCheckpoint:
    """The tensors of a GGUF file by the names that a checkpoint of transformers has for them."""

    def __init__(self, model: GgufModel, spec: ModelSpec) -> None:
        self._model, self._spec, self._names = model, spec, Names(model, spec.num_layers)

    def check(self, sources: Iterable[Source]) -> None:
        """Raise for the first tensor that is missing, misshaped, unknown or of a type that cannot be read, before any is read."""
        used = set(CONSUMED)
        for name, shape in (part for source in sources for part in source.parts):
            used |= self._check_shape(name, shape)
        unknown = sorted(self._model.tensors.keys() - used)
        if unknown:
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            self._fail(f"it holds {', '.join(unknown[:3])}{more}, which {self._model.architecture} has no place for")
        self._check_types()

    def stays_packed(self, source: Source, device: torch.device) -> bool:
        """Whether all parts are matrices that can be multiplied in turn. Experts are only where products may wait: on a CPU."""
        is_kind = source.holds == "rows" or (source.holds == "experts" and device.type == "cpu")
        return is_kind and all(self._is_whole_blocks(name, cut) for name, _, cut in source.held())

    def _is_whole_blocks(self, name: str, cut: Cut | None) -> bool:
        """Whether the part is a matrix in blocks, and what is held of it is blocks."""
        kind = BLOCK_TYPES.get(self._find(name).type)
        return kind is not None and (cut is None or cut.fits_blocks(kind.num_weights))

    def stackable(self, sources: Mapping[str, Source]) -> frozenset[str]:
        """The names of ours that are the matrices of experts, all of a layer's gate and up of one type, and its down.

        Matrices of numbers are not among them: `kernels/moe` multiplies those.
        """
        found: set[str] = set()
        for name in (name for name, source in sources.items() if source.holds == "experts" and name.endswith("gate_up.weight")):
            pair = (name, name.replace("gate_up", "down"))
            kinds = [{self._find(part).type for part, _ in sources[each].parts} for each in pair]
            if all(len(types) == 1 and types <= BLOCK_TYPES.keys() - FLOATS.keys() for types in kinds):
                found |= set(pair)
        return frozenset(found)

    def stack(self, source: Source, device: torch.device) -> Packed:
        """All experts' matrices, one under another."""
        found = stacked_blocks([self._blocks(name, device, cut) for name, _, cut in source.held()])
        assert found is not None, "`stackable` has made sure"
        return found

    def num_bytes(self, source: Source, dtype: torch.dtype, device: torch.device, is_stacked: bool) -> int:
        """What the tensor takes in memory."""
        if is_stacked or self.stays_packed(source, device):
            return sum(self._find(name).data.nbytes for name, _ in source.parts)
        return sum(math.prod(shape) for _, shape in source.parts) * (source.dtype or dtype).itemsize

    def packed(self, source: Source, device: torch.device) -> tuple[PackedRows, ...]:
        """One matrix, or one for each expert."""
        parts = [self._blocks(name, device, cut) for name, _, cut in source.held()]
        if source.holds == "experts":
            per_expert = len(source.parts) // self._spec.experts.count if self._spec.experts is not None else 1
            groups = (tuple(parts[begin : begin + per_expert]) for begin in range(0, len(parts), per_expert))
            return tuple(PackedRows(group) for group in groups)
        rows = torch.arange(sum(part.num_rows for part in parts))
        order = rows if source.finish is None else source.finish(rows)
        return (PackedRows(tuple(parts), None if torch.equal(order, rows) else order.to(device)),)

    def read(self, source: Source, dtype: torch.dtype, device: torch.device) -> Tensor:
        """The tensor as numbers."""
        held_parts = ((self._numbers(name).reshape(shape), cut) for name, shape, cut in source.held())
        parts = [held(numbers, cut).to(device, source.dtype or dtype) for numbers, cut in held_parts]
        joined = parts[0] if len(parts) == 1 else torch.cat(parts)
        return joined if source.finish is None else source.finish(joined)

    # ---- one tensor

    def _find(self, name: str) -> StoredTensor:
        """What the file has under another name; of all experts' matrices the one that is meant. KeyError if there is none."""
        place = self._names.place(name)
        stored = self._model.tensors[place.tensor]
        if place.index is None:
            return stored
        assert self._spec.experts is not None, "names of experts come from layers that have some"
        matrices = stored.data.reshape(self._spec.experts.count, -1, stored.data.shape[-1])  # axes of one place may lie before
        return StoredTensor(f"{stored.name}[{place.index}]", stored.type, stored.shape[-2:], matrices[place.index])

    def _check_shape(self, name: str, shape: Shape) -> set[str]:
        """The tensors of the file that make this one. Raises WeightError."""
        place = self._names.place(name)
        if place.tensor not in self._model.tensors and (halves := self._latent_halves(name)) is not None:
            return {half.name for half in halves}
        stored = self._model.tensors.get(place.tensor)
        if stored is None:
            self._fail(f"it lacks {place.tensor}, which {self._model.architecture} calls for")
        experts = () if self._spec.experts is None or place.index is None else (self._spec.experts.count,)
        if _without_ones(stored.shape) != _without_ones((*experts, *shape)):
            self._fail(f"tensor {stored.name} has shape {list(stored.shape)}, {[*experts, *shape]} is called for")
        return {stored.name}

    def _latent_halves(self, name: str) -> tuple[StoredTensor, StoredTensor] | None:
        """What newer files have in place of kv_b_proj: each head's keys, transposed, and values."""
        latent = self._spec.latent
        if latent is None or not name.endswith("kv_b_proj.weight"):
            return None
        names = [self._names.place(name.replace("kv_b", half)).tensor for half in ("k_b", "v_b")]
        keys, values = (self._model.tensors.get(half) for half in names)
        heads = self._spec.num_heads
        if keys is None or values is None:
            return None
        if keys.shape != (heads, latent.rank, latent.nope_dim) or values.shape != (
            heads,
            latent.value_dim,
            latent.rank,
        ):
            self._fail(f"tensors {keys.name} and {values.name} have shapes {list(keys.shape)} and {list(values.shape)}")
        return keys, values

    def _blocks(self, name: str, device: torch.device, cut: Cut | None) -> Packed:
        stored = self._find(name)
        whole = Packed(BLOCK_TYPES[stored.type], stored.data.reshape(-1, stored.data.shape[-1]))
        part = whole if cut is None else cut.blocks(whole)
        return Packed(part.type, part.data.to(device))

    def _numbers(self, name: str) -> Tensor:
        """A tensor in float32, with the values and the shape that a checkpoint of transformers has."""
        halves = self._latent_halves(name)
        if halves is not None and self._names.place(name).tensor not in self._model.tensors:
            keys, values = (dequantized(half) for half in halves)
            return torch.cat((keys.transpose(1, 2), values), dim=1).flatten(0, 1)
        numbers = dequantized(self._find(name))
        is_norm = name.endswith("norm.weight")
        return numbers - self._spec.norm.offset if is_norm and self._spec.norm.offset else numbers

    def _check_types(self) -> None:
        """Raise UnsupportedModel for what nothing decodes; say what is decoded once and for all, for it takes more memory."""
        from gguf.quants import _type_traits as decoders

        stored = [tensor for tensor in self._model.tensors.values() if tensor.type not in BLOCK_TYPES]
        for tensor in stored:
            if tensor.type not in {kind.name for kind in decoders}:
                raise UnsupportedModel(
                    f"{self._model.path}: tensor {tensor.name} is of type {tensor.type}, which cannot be decoded; "
                    f"computed with as they are: {', '.join(BLOCK_TYPES)}"
                )
        if stored:
            count = sum(math.prod(tensor.shape) for tensor in stored)
            kinds = ", ".join(sorted({tensor.type for tensor in stored}))
            logger.warning(
                "%s: %d tensors of type %s are expanded while loading: %.2f billion weights instead of %.2f GB in blocks",
                self._model.path, len(stored), kinds, count / 1e9, sum(tensor.data.nbytes for tensor in stored) / 1e9,
            )  # fmt: skip

    def _fail(self, reason: str) -> NoReturn:
        raise WeightError(f"{self._model.path}: {reason}")


def _without_ones(shape: Shape) -> Shape:
    """The shape as ggml may store it, which drops the first axes where they have one place."""
    first = next((index for index, size in enumerate(shape) if size != 1), len(shape) - 1)
    return shape[first:]

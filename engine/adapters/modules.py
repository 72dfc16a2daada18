"""Where in our model the modules are that adapters name: a linear layer, or a slice of one that several modules share.

Which tensors make which layer is the table of `layout.py`; nothing here knows a family. Rows of a layer may stand in another order
than in the checkpoint, and what an adapter adds to them is put in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..models.architecture import ModelInfo, ModelSpec
from ..models.layout import Source, Sources, head_name, sources_of
from ..models.mamba import MambaSpec, mamba_sources

TURNED_IN_GGUF = frozenset({
    "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "Ministral3ForCausalLM", "SmolLM3ForCausalLM",
    "GraniteForCausalLM",
})  # fmt: skip
"""Families whose queries and keys GGUF files store for another rotation than checkpoints and adapters of peft do."""


class Place(NamedTuple):
    """A slice of a linear layer, both as `layout.py` has them."""

    linear: str  # such as "layers.0.attention.qkv"
    slice: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """A matrix of the checkpoint that an adapter can add to."""

    place: Place
    out_features: int
    in_features: int
    order: Tensor | None = field(default=None, repr=False)  # int64 [out_features]: the row of the checkpoint that ours is


@dataclass(frozen=True, slots=True)
class Modules:
    """All modules of a model by their names in its checkpoint, without prefix and ".weight"."""

    of_name: Mapping[str, Module]
    refused: Mapping[str, str]  # name -> why nothing can be added to it
    widths: Mapping[str, tuple[int, ...]]  # of the slices of each linear layer
    in_features: Mapping[str, int]  # of each linear layer


def takes_adapters(spec: ModelInfo) -> bool:
    return isinstance(spec, ModelSpec | MambaSpec)


def why_no_adapters(spec: ModelInfo) -> str:
    """Why an engine with this model has no adapters."""
    if takes_adapters(spec):
        return "this engine was made without adapters; set max_adapters to how many there may be"
    return f"adapters are for native families, and {spec.architecture} is computed by transformers; merge it into the model"


def modules_of(spec: ModelInfo, *, is_turned: bool = False) -> Modules:
    """The modules of a native model. is_turned: as a GGUF file stores rows, where that differs (`TURNED_IN_GGUF`)."""
    if isinstance(spec, MambaSpec):
        return _modules(mamba_sources(spec), spec)
    assert isinstance(spec, ModelSpec)
    if spec.architecture in TURNED_IN_GGUF:
        spec = replace(spec, is_rope_interleaved=is_turned)
    return _modules(sources_of(spec), spec)


def _modules(sources: Sources, spec: ModelInfo) -> Modules:
    found: dict[str, Module] = {}
    refused: dict[str, str] = {}
    widths: dict[str, tuple[int, ...]] = {}
    for tensor, source in sources.items():
        ours, _, kind = tensor.rpartition(".")
        if kind != "weight" or len(source.parts[0][1]) != 2:
            continue
        if source.holds != "rows" or ours == "embedding":
            refused |= {_module(name): _why_not(ours) for name, _ in source.parts}
            continue
        widths[ours] = tuple(shape[0] for _, shape in source.parts)
        found |= dict(zip(map(_module, (name for name, _ in source.parts)), _slices(ours, source), strict=True))
    if spec.has_tied_embeddings:
        ours = head_name(spec)
        vocab, hidden = sources[f"{ours}.weight"].parts[0][1]
        found["lm_head"], widths[ours] = Module(Place(ours), vocab, hidden), (vocab,)
    in_features = {module.place.linear: module.in_features for module in found.values()}
    return Modules(found, refused, widths, in_features)


def _slices(ours: str, source: Source) -> list[Module]:
    """The modules of a layer. `finish` moves rows within their module only: heads are turned, not exchanged."""
    heights = [shape[0] for _, shape in source.parts]
    order = torch.arange(sum(heights)) if source.finish is None else source.finish(torch.arange(sum(heights)))
    made, first = list[Module](), 0
    for number, (_, (height, columns)) in enumerate(source.parts):
        own = order[first : first + height] - first
        assert torch.equal(own.sort().values, torch.arange(height)), f"{ours}: rows leave their module"
        is_same = torch.equal(own, torch.arange(height))
        made.append(Module(Place(ours, number), height, columns, None if is_same else own))
        first += height
    return made


def _module(tensor: str) -> str:
    return tensor.removesuffix(".weight")


def _why_not(ours: str) -> str:
    if ours == "embedding":
        return "adapters of the embedding are not supported"
    if ".experts." in ours:
        return "adapters of the experts of a mixture are not supported"
    if ours.endswith((".absorb", ".value_up")):
        return "adapters of the projection that raises latents are not supported"
    return "it is no matrix that multiplies"

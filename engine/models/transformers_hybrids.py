"""Models of transformers with layers that keep a state: Mamba, gated delta rules, short convolutions, beside attention or alone.

Such a layer's mixer asks transformers' cache for the state before its tokens and leaves the state behind them. Here a `Carried`
stands in for that cache: the mixer runs over the tokens of each sequence, and over the last token of all of them at once, with
states that come from our pool (`state_plan.py`) and return to it. Attention layers beside it have the paged cache, with one block
for each sequence, as long as the longest. Right, but not fast: each prompt is a call of every mixer (of Mamba 1, whose scan cannot
go on from a state, later chunks are one call a token), and prefixes cannot be shared.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...kernels.backend import Backend
from ..attention.methods import Attend, fused
from ..attention.paged import Plan, Span
from ..errors import UnsupportedModel
from ..kv_cache.tensors import KVCache
from .decoder import ForwardBatch
from .state_plan import StatePlan, plan_states
from .transformers_families import EMPTY_SCANS
from .transformers_model import HARMLESS, TransformersModel, TransformersSpec

Part = tuple[Literal["conv", "recurrent"], int]  # which state of a layer, as transformers numbers them
Parts = dict[Part, Tensor]
CACHE_NAMES = ("cache_params", "past_key_values")


@dataclass(frozen=True, slots=True)
class HybridCache:
    """Keys and values of the layers that attend, states of the others; a block of the one is a slot of the other."""

    kv: KVCache | None  # None: no layer attends
    states: Mapping[int, Parts]  # layer -> [num_slots, 2, ...] each
    lengths: np.ndarray  # int64 [num_slots, 2]: after how many tokens the states at these places are

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors; their first axis is the slot."""
        kept = () if self.kv is None else (tensor for tensor in self.kv.tensors if tensor.numel())
        return (*kept, *(tensor for parts in self.states.values() for tensor in parts.values()))


class HybridPlan(NamedTuple):
    attention: Plan | None
    states: StatePlan


@dataclass(slots=True)
class _Step:
    """What mixers need and `forward` cannot pass through the model. Without a plan they are probed, and their states noted."""

    noted: dict[int, Parts] = field(default_factory=dict)
    states: Mapping[int, Parts] = field(default_factory=dict)
    plan: StatePlan | None = None


class Carried:
    """transformers' cache, towards one mixer: gives it the states of some sequences, and keeps what it leaves."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts  # [num_sequences, ...] each; none while probing

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        return self.parts.get(("conv", state_idx))

    def update_conv_state(
        self, conv_states: Tensor, layer_idx: int, state_idx: int = 0, conv_kernel_size: int | None = None
    ) -> Tensor:
        """Inputs [..., num_tokens] of a convolution; returns them behind those that it still sees."""
        before = self.parts.get(("conv", state_idx))
        if before is None:
            before = conv_states.new_zeros((*conv_states.shape[:-1], conv_kernel_size or conv_states.shape[-1]))
        whole = torch.cat((before, conv_states), dim=-1)
        self.parts["conv", state_idx] = whole[..., -before.shape[-1] :]
        return whole

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        return self.parts.get(("recurrent", state_idx))

    def update_recurrent_state(self, recurrent_states: Tensor, layer_idx: int, state_idx: int = 0) -> Tensor:
        self.parts["recurrent", state_idx] = recurrent_states
        return recurrent_states

    def is_recording_past(self, layer_idx: int) -> bool:
        return False


class _Mixer:
    """Stands in for a mixer's `forward`: maps hidden states [1, num_tokens, hidden_size] of a packed batch to as many."""

    def __init__(self, module: Any, step: _Step, *, continues: bool) -> None:
        self._forward, self._layer, self._step = module.forward, module.layer_idx, step
        self._continues = continues  # with several tokens behind a state
        self._signature = inspect.signature(module.forward)
        self._cache_name = next(name for name in CACHE_NAMES if name in self._signature.parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        bound = self._signature.bind(*args, **kwargs).arguments
        others = bound.pop("kwargs", {})
        hidden: Tensor = bound.pop(next(iter(self._signature.parameters)))
        if self._step.plan is None:
            strange = [name for name, value in (bound | others).items() if value is not None and name not in HARMLESS]
            if strange:
                raise UnsupportedModel(f"layer {self._layer} calls its mixer with {strange[0]}, which is not supported")
            output, self._step.noted[self._layer] = self._run(hidden, {})
            return output
        return self._run_all(hidden[0], self._step.plan, self._step.states[self._layer])[None]

    def _run_all(self, hidden: Tensor, plan: StatePlan, states: Parts) -> Tensor:
        """Run hidden [num_tokens, hidden_size]: prompts one by one but for their last tokens, then all last tokens at once."""
        for tensor in states.values():
            tensor[plan.fresh, 0] = 0
        output = torch.empty_like(hidden)
        for scan in plan.scans:
            rows, slot = slice(scan.start, scan.stop), scan.slot
            state = {part: _first(tensor[slot], scan.source) for part, tensor in states.items()}
            width = scan.stop - scan.start if self._continues or scan.source is None else 1
            for some, mixed in zip(hidden[None, rows].split(width, 1), output[None, rows].split(width, 1), strict=True):
                mixed[:], state = self._run(some, state)
            for part, tensor in states.items():
                tensor[slot, scan.target] = state[part][0]
        before = {part: tensor[plan.slots, plan.sources] for part, tensor in states.items()}
        last, after = self._run(hidden[plan.rows][:, None], before)
        output[plan.rows] = last[:, 0]
        for part, tensor in states.items():
            tensor[plan.slots, plan.targets] = after[part]
        return output

    def _run(self, hidden: Tensor, before: Parts) -> tuple[Tensor, Parts]:
        """Output of hidden [num_sequences, num_tokens, hidden_size], and the states after it. The mixer may overwrite `before`."""
        carried = Carried(before)
        output: Tensor = self._forward(hidden, **{self._cache_name: carried})
        return output, carried.parts


class HybridModel(TransformersModel):
    """A model of transformers some of whose layers keep a state. Sequences have one block each."""

    def __init__(
        self, spec: TransformersSpec, module: Any, backend: Backend = "auto", kv_dtype: torch.dtype | None = None
    ) -> None:
        self._step = _Step()
        for part in module.modules():
            if keeps_state(part):
                part.forward = _Mixer(part, self._step, continues=spec.model_type not in EMPTY_SCANS)
        super().__init__(spec, module, backend, kv_dtype)
        self._parts = {layer: {part: tensor[0] for part, tensor in parts.items()} for layer, parts in self._step.noted.items()}

    def block_bytes(self, block_size: int) -> int:
        states = sum(prod(tensor.shape) * tensor.itemsize for parts in self._parts.values() for tensor in parts.values())
        return super().block_bytes(block_size) + 2 * states

    def allocate_cache(self, num_blocks: int, block_size: int) -> HybridCache:
        states = {
            layer: {part: tensor.new_zeros((num_blocks, 2, *tensor.shape)) for part, tensor in parts.items()}
            for layer, parts in self._parts.items()
        }
        kv = super().allocate_cache(num_blocks, block_size) if self._switchboard.places else None
        return HybridCache(kv, states, np.zeros((num_blocks, 2), dtype=np.int64))

    def plan(self, spans: Sequence[Span], cache: Any, attend: Attend = fused) -> HybridPlan:
        attention = None if cache.kv is None else super().plan(spans, cache.kv, attend)
        return HybridPlan(attention, plan_states(spans, cache.lengths, self.device))

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: Any) -> Tensor:
        """Logits as from `TransformersModel.forward`; writes the states after this step into `cache` too."""
        self._step.plan, self._step.states = batch.attention.states, cache.states
        self._switchboard.plan, self._switchboard.cache = batch.attention.attention, cache.kv
        return self._run(batch.token_ids, batch.positions, batch.logit_rows)

    def _silent_layers(self) -> set[int]:
        kinds = getattr(self.module.config.get_text_config(), "layer_types", None) or []
        return {*self._step.noted, *(layer for layer, kind in enumerate(kinds) if kind in ("mlp", "moe"))}


def keeps_state(module: nn.Module) -> bool:
    """Whether the module asks transformers' cache for a state."""
    forward = inspect.unwrap(type(module).forward)
    return hasattr(module, "layer_idx") and "get_conv_state" in forward.__code__.co_names


def _first(places: Tensor, source: int | None) -> Tensor:
    """A copy of the state at a place of `places` [2, ...], as [1, ...]; the empty state for None."""
    return torch.zeros_like(places[:1]) if source is None else places[source : source + 1].clone()

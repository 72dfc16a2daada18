"""Any other decoder of transformers, on our paged cache.

transformers' models call their attention through a table of functions. Ours, registered as "maskwright", writes keys and
values into the cache's blocks and attends to what is there; everything else of the model runs unchanged, on the packed
tokens of all sequences as if they were one. Right, but not fast: projections are not fused, and experts may be loops.

Matrix products are those of transformers' own modules; the linear layers of `linear.py` do not reach them. To compute them
otherwise, replace `nn.Linear` modules of the loaded model (`set_submodule`) before `TransformersModel` gets it; modules for
experts, which multiply by parameters of their own, cannot be replaced in that way.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ...kernels.backend import Backend, uses_triton
from ..attention.kernel_plans import step_plan
from ..attention.methods import Attend, Scoring, fused
from ..attention.paged import LayerCall, Plan, Span, Window, paged_attention
from ..errors import UnsupportedModel
from ..kv_cache.tensors import KVCache, LayerShape, kv_block_bytes
from .architecture import ModelInfo
from .decoder import ForwardBatch
from .families import dtype_of, token_ids
from .transformers_families import HYBRID, REFUSED, VERIFIED

HEADS = ("attention_heads", "key_value_heads")  # ends of the names of numbers of heads
UNLIMITED = 1 << 20  # tokens: nothing in the model limits the length of a sequence

# What transformers passes along that means nothing to attention over a cache that knows the sequences.
HARMLESS = frozenset({
    "dropout", "position_ids", "use_cache", "output_attentions", "output_hidden_states", "output_router_logits",
    "cache_position", "is_causal",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersSpec(ModelInfo):
    """A model that transformers computes."""

    model_type: str
    sharding: tuple[tuple[str, str], ...] = ()  # its plan for several ranks: (module or parameter, how it is cut)
    head_counts: tuple[tuple[str, int], ...] = ()  # numbers of heads, by their names in config.json


@dataclass(slots=True)
class _Call:
    """One layer's attention, as the model was seen to ask for it."""

    shape: LayerShape
    window: Window


@dataclass(slots=True)
class _Switchboard:
    """What the model's attention modules need and `forward` cannot pass through the model: this step's plan and cache.

    While probing there is no cache: calls are written down instead.
    """

    calls: dict[int, _Call] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)  # layer that attends -> its place in the cache, once known
    windows: list[Window] = field(default_factory=list)  # per place
    plan: Plan | None = None
    cache: KVCache | None = None


def transformers_spec(architecture: str | None, config: Mapping[str, Any]) -> TransformersSpec:
    """What transformers makes of a config.json, which may name no architecture. Raises UnsupportedModel naming the model
    type, and why."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    model_type = str(config.get("model_type"))
    what = f'config.json: model type "{model_type}" is not supported'
    if architecture is not None:
        what = f'config.json: architecture "{architecture}" (model type "{model_type}") is not supported'
    if model_type in REFUSED:
        raise UnsupportedModel(f"{what}: {REFUSED[model_type]}")
    if model_type not in VERIFIED | HYBRID or model_type not in CONFIG_MAPPING:
        raise UnsupportedModel(
            f"{what}: it is neither native nor among the model types of transformers that are known to run on a paged "
            "cache (maskwright.engine.models.transformers_families)"
        )
    try:
        full = CONFIG_MAPPING[model_type].from_dict(dict(config))
    except Exception as error:  # the checks of 200 configuration classes
        raise UnsupportedModel(f"{what}: {type(error).__name__}: {error}") from None
    return TransformersSpec(
        architecture=architecture or model_type,
        model_type=model_type,
        vocab_size=int(full.vocab_size),
        dtype=dtype_of(config),
        eos_token_ids=token_ids(full.eos_token_id),
        max_positions=_max_positions(full),
        is_recurrent=model_type in HYBRID,
        sharding=tuple((getattr(full, "base_model_tp_plan", None) or {}).items()),
        head_counts=tuple(each for each in full.to_dict().items() if each[0].endswith(HEADS) and isinstance(each[1], int)),
    )


def _max_positions(config: Any) -> int:
    """The longest sequence, in tokens: at most the length at which longrope changes its stretch.

    Beyond that length, all sequences of a packed batch would change together with the longest.
    """
    longest = int(getattr(config, "max_position_embeddings", UNLIMITED))
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        return min(longest, int(rope["original_max_position_embeddings"]))
    return longest


class TransformersModel:
    """A causal language model of transformers whose attention reads and writes our cache, a `KVCache`."""

    def __init__(
        self, spec: TransformersSpec, module: Any, backend: Backend = "auto", kv_dtype: torch.dtype | None = None
    ) -> None:
        self.spec, self.module = spec, module
        self.uses_triton = uses_triton(backend, self.device)
        self.kv_dtype = kv_dtype or self.dtype
        self.num_bytes, self.host_bytes = sum(parameter.nbytes for parameter in module.parameters()), 0
        self._switchboard = _Switchboard()
        for part in module.modules():
            if hasattr(part, "layer_idx"):
                part.maskwright = self._switchboard
        _register()
        module.set_attn_implementation("maskwright")
        self._keeps_logits = "logits_to_keep" in inspect.signature(module.forward).parameters
        self._probe()
        self._shapes = [call.shape for _, call in sorted(self._switchboard.calls.items())]

    @property
    def device(self) -> torch.device:
        return torch.device(self.module.device)

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.module.dtype
        return dtype

    def block_bytes(self, block_size: int) -> int:
        return kv_block_bytes(self._shapes, block_size, self.kv_dtype)

    def allocate_cache(self, num_blocks: int, block_size: int) -> Any:
        return KVCache.of_layers(self._shapes, num_blocks, block_size, self.dtype, self.device, self.kv_dtype)

    def plan(self, spans: Sequence[Span], cache: Any, attend: Attend = fused) -> Any:
        return step_plan(spans, cache, self._switchboard.windows, attend, self.uses_triton)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, cache: Any) -> Tensor:
        """Logits [num_logits, vocab] for `batch.logit_rows`; writes this step's keys and values into `cache`."""
        self._switchboard.plan, self._switchboard.cache = batch.attention, cache
        return self._run(batch.token_ids, batch.positions, batch.logit_rows)

    def _run(self, token_ids: Tensor, positions: Tensor, logit_rows: Tensor) -> Tensor:
        given = {"input_ids": token_ids[None], "position_ids": positions[None], "use_cache": False}
        if self._keeps_logits:
            kept: Tensor = self.module(**given, logits_to_keep=logit_rows).logits[0]
            return kept
        everything: Tensor = self.module(**given).logits[0]
        return everything.index_select(0, logit_rows)

    @torch.inference_mode()
    def _probe(self) -> None:
        """Run one token to see what each layer stores. Raises UnsupportedModel when it is not one call for each that attends."""
        zero = torch.zeros(1, dtype=torch.int64, device=self.device)
        self._run(zero, zero, zero)
        board, config = self._switchboard, self.module.config.get_text_config()
        layers = set(range(config.num_hidden_layers))
        if not layers - self._silent_layers() <= board.calls.keys() <= layers:
            raise _unsupported(self.spec, f"{len(board.calls)} of its {len(layers)} layers call the attention interface")
        windows = _windows_of(config)
        board.places = {layer: place for place, layer in enumerate(sorted(board.calls))}
        board.windows = [board.calls[layer].window or windows[layer] for layer in board.places]

    def _silent_layers(self) -> set[int]:
        """The layers that need not call the attention interface."""
        return set()


def _windows_of(config: Any) -> list[Window]:
    """The window of each layer as the config has it: some models apply it by a mask, and do not tell their attention."""
    window = (getattr(config, "use_sliding_window", True) and getattr(config, "sliding_window", None)) or None
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    return [window if kind == "sliding_attention" else None for kind in kinds[: config.num_hidden_layers]]


def _register() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register("maskwright", _attention)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface. query [1, num_heads, num_tokens, head_dim], key and value likewise.

    Returns [1, num_tokens, num_heads, value_dim] and no weights.
    """
    board: Any = module.maskwright
    index: Any = module.layer_idx
    query, key, value = (heads[0].transpose(0, 1) for heads in (query, key, value))
    if not board.places:
        _note_call(board, module, index, LayerShape(key.shape[1], key.shape[2], value.shape[2]), sliding_window or None)
        if (strange := _strange(module, attention_mask, others)) is not None:
            raise UnsupportedModel(f"{type(module).__name__} calls attention with {strange}, which is not supported")
        return value.new_zeros((1, query.shape[0], query.shape[1], value.shape[-1])), None
    place = board.places[index]
    call = LayerCall(place, value.shape[-1], board.windows[place], Scoring(scaling, softcap), s_aux)
    attended = paged_attention(query.contiguous(), key, value, board.cache, board.plan, call)
    return attended[None], None


def _note_call(board: _Switchboard, module: nn.Module, index: int, shape: LayerShape, window: int | None) -> None:
    if index in board.calls:
        raise UnsupportedModel(f"{type(module).__name__} attends twice in layer {index}; the cache has one place for it")
    board.calls[index] = _Call(shape, window)


def _strange(module: nn.Module, mask: Tensor | None, others: Mapping[str, Any]) -> str | None:
    """The argument of a call that our attention would have to ignore; None where there is none."""
    if mask is not None:
        return "a mask"
    if not getattr(module, "is_causal", True):
        return "is_causal=False"
    return next((name for name, value in others.items() if value is not None and name not in HARMLESS), None)


def _unsupported(spec: TransformersSpec, reason: str) -> UnsupportedModel:
    return UnsupportedModel(f'architecture "{spec.architecture}" is not supported: {reason}')

"""The interface that the engine asks of a loaded model, whichever way that is computed, and the function that loads one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ...kernels.backend import Backend
from ..attention.methods import Attend
from ..attention.paged import Span
from ..errors import UnsupportedModel
from .architecture import ModelInfo, ModelSpec
from .decoder import ForwardBatch, load_decoder
from .layout import Portion
from .linear import Adapt
from .mamba import MambaSpec, load_mamba
from .transformers_loader import load_transformers_model
from .transformers_model import TransformersSpec


class Model(Protocol):
    """`Any` below is the model's own: a KV cache or pool of states, and the plan of a step that goes with it."""

    num_bytes: int  # of the weights, on the device
    host_bytes: int  # of those that are streamed from host memory

    @property
    def spec(self) -> ModelInfo: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def block_bytes(self, block_size: int) -> int:
        """Bytes that one block of the cache takes, in all layers."""

    def allocate_cache(self, num_blocks: int, block_size: int) -> Any: ...

    def plan(self, spans: Sequence[Span], cache: Any, attend: Attend = ...) -> Any:
        """The plan of a step over these sequences, for `ForwardBatch.attention`; those with one new token come first."""

    def forward(self, batch: ForwardBatch, cache: Any) -> Tensor:
        """Logits [num_logits, vocab] for `batch.logit_rows`. Writes the keys and values, or states, of the step into `cache`."""


def load_model(
    folder: Path,
    info: ModelInfo,
    dtype: torch.dtype,
    device: torch.device,
    longest: int,
    *,
    backend: Backend = "auto",
    kv_dtype: torch.dtype | None = None,
    adapt: Adapt | None = None,
    is_compiled: bool = False,
    offload_bytes: int = 0,
    portion: Portion | None = None,
    deal: Callable[[Any], None] | None = None,
) -> Model:
    """The model in `folder`, for sequences of at most `longest` tokens.

    `backend` says who computes what there are Triton kernels for; `kv_dtype` is what the KV cache holds, `dtype` or fp8. `adapt`
    wraps the linear layers of native models. `is_compiled` has the compiled code of `kernels/cpu` compute native models on a CPU,
    as far as it can: activations are rounded to 8 bits for matrices in blocks of integers. `offload_bytes` of the layers of a
    native model stay in host memory. `portion`: what this rank of several holds of a native model; `adapt` then makes one of all.
    `deal` leaves in a model of transformers what this rank holds.
    Raises ModelFolderError, WeightError, or UnsupportedModel for fp8 in a model without keys and values.
    """
    if isinstance(info, ModelSpec):
        spec = info.for_length(longest)
        if portion is not None and isinstance(portion.spec, ModelSpec):
            portion = replace(portion, spec=portion.spec.for_length(longest))
        return load_decoder(
            folder, spec, dtype, device, backend, kv_dtype, adapt,
            is_compiled=is_compiled, offload_bytes=offload_bytes, portion=portion,
        )  # fmt: skip
    if offload_bytes:
        raise UnsupportedModel(f"cpu_offload_gb streams layers of models that are computed natively; {info.architecture} is not")
    if isinstance(info, MambaSpec):
        if kv_dtype not in (None, dtype):
            raise UnsupportedModel(f"{info.architecture} has no keys and values, so kv_dtype={kv_dtype} means nothing for it")
        return load_mamba(folder, info, dtype, device, adapt, portion)
    assert isinstance(info, TransformersSpec)
    return load_transformers_model(folder, info, dtype, device, backend, kv_dtype, deal)

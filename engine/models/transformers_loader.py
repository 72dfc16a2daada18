"""A model of transformers, loaded from a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ...kernels.backend import Backend
from ..errors import ModelFolderError, WeightError
from ..quantization.gpt_oss import PackedExperts
from .files import shard_paths
from .transformers_hybrids import HybridModel
from .transformers_model import TransformersModel, TransformersSpec
from .weights import check_checkpoint, open_checkpoint


def load_transformers_model(
    folder: Path,
    spec: TransformersSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend = "auto",
    kv_dtype: torch.dtype | None = None,
    deal: Callable[[Any], None] | None = None,
) -> TransformersModel:
    """The model in `folder`, its weights converted to `dtype`; `backend` and `kv_dtype` as in `Decoder`, `deal` as in `load_model`.

    Raises ModelFolderError when transformers cannot load it, WeightError when tensors are missing, unknown or misshaped.
    """
    from transformers import AutoModelForCausalLM

    shard_paths(folder)
    kind = HybridModel if spec.is_recurrent else TransformersModel
    if spec.quantization is not None:
        return kind(spec, _with_packed_experts(folder, spec, dtype).eval().to(device), backend, kv_dtype)
    module: Any
    loaded: Any
    try:
        module, loaded = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, use_safetensors=True, output_loading_info=True
        )  # type: ignore[misc]
    except Exception as error:  # of 200 model classes and their configurations
        message = str(error).splitlines() or [""]
        raise ModelFolderError(f"{folder}: transformers cannot load it: {type(error).__name__}: {message[0]}") from None
    for key, verb in (("missing_keys", "lacks"), ("unexpected_keys", "holds"), ("mismatched_keys", "misshapes")):
        if loaded.get(key):
            raise WeightError(f"the checkpoint {verb} {min(map(str, loaded[key]))} ({key} of {spec.architecture})")
    if deal is not None:
        deal(module)
    return kind(spec, module.eval().to(device), backend, kv_dtype)


def _with_packed_experts(folder: Path, spec: TransformersSpec, dtype: torch.dtype) -> Any:
    """gpt-oss, whose experts stay as they are stored. Raises WeightError for a tensor that is missing, unknown or misshaped."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    del config.quantization_config
    with torch.device("meta"):
        module: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)
        for layer in module.model.layers:
            layer.mlp.experts = PackedExperts(config)
    module.model.rotary_emb = type(module.model.rotary_emb)(config)  # what no checkpoint holds
    with open_checkpoint(folder) as checkpoint:
        wanted = dict(module.named_parameters())
        check_checkpoint(checkpoint, spec, {name: (tuple(parameter.shape),) for name, parameter in wanted.items()})
        state = {}
        for name, parameter in wanted.items():
            is_packed = parameter.dtype == torch.uint8
            if is_packed != (checkpoint.dtype(name) == "U8"):
                kind = checkpoint.dtype(name)
                raise WeightError(f"tensor {name} is of type {kind}, which is {'no' if is_packed else 'for'} MXFP4")
            tensor = checkpoint.tensor(name)
            state[name] = tensor if is_packed else tensor.to(dtype)
    module.load_state_dict(state, strict=False, assign=True)
    module.tie_weights()
    return module

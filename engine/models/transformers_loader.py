"""A model of transformers, loaded from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...kernels.backend import Backend
from ..errors import ModelFolderError, WeightError
from .files import shard_paths
from .transformers_hybrids import HybridModel
from .transformers_model import TransformersModel, TransformersSpec


def load_transformers_model(
    folder: Path,
    spec: TransformersSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend = "auto",
    kv_dtype: torch.dtype | None = None,
) -> TransformersModel:
    """The model in `folder`, its weights converted to `dtype`; `backend` and `kv_dtype` as in `Decoder`.

    Raises ModelFolderError when transformers cannot load it, WeightError when tensors are missing, unknown or misshaped.
    """
    from transformers import AutoModelForCausalLM

    shard_paths(folder)
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
    kind = HybridModel if spec.is_recurrent else TransformersModel
    return kind(spec, module.eval().to(device), backend, kv_dtype)

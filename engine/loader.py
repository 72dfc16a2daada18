"""From a model folder to a running engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from .assembly import assemble
from .attention.methods import METHODS
from .config import KV_DTYPES, EngineConfig, limits_of, resolve, resolve_num_blocks
from .device.threads import threads_for
from .engine import Engine
from .errors import ConfigError
from .features import EngineFeatures
from .limits import Limits
from .models.architecture import DTYPES, ModelInfo
from .models.model import Model, load_model
from .models.spec import read_spec
from .models.tokenizer import Tokenizer, load_tokenizer
from .steps.runner import ModelRunner


class Loaded(NamedTuple):
    """An engine that runs, and what a front door needs beside it."""

    engine: Engine
    tokenizer: Tokenizer
    spec: ModelInfo
    config: EngineConfig  # resolved: nothing in it is "auto" or None any more, but `threads`


def load(config: EngineConfig, features: EngineFeatures | None = None) -> Loaded:
    """Load the model that `config` names. Raises ConfigError (one line, naming the file or setting) when it cannot."""
    spec = read_spec(config.model)
    resolved = resolve(config, spec)
    tokenizer = load_tokenizer(resolved.model, spec)
    assert resolved.max_model_len is not None
    features = features or EngineFeatures()
    model = _model(resolved.model, spec, resolved, resolved.max_model_len)
    limits = _limits(resolved, model, config.max_model_len)
    threads = threads_for(resolved.threads, model.num_bytes, is_compiled=resolved.products == "int8")
    runner = _runner(model, resolved, limits, features)
    draft = _draft_runner(features, resolved, limits, spec)
    engine = assemble(runner, tokenizer, limits, features, threads=threads, draft=draft)
    return Loaded(engine, tokenizer, spec, _with_limits(resolved, limits))


def _model(folder: Path, spec: ModelInfo, config: EngineConfig, longest: int) -> Model:
    dtype, device, kv_dtype = DTYPES[config.dtype], torch.device(config.device), KV_DTYPES[config.kv_dtype]
    rounds = config.products == "int8"
    return load_model(
        folder, spec, dtype, device, longest, backend=config.kernels, kv_dtype=kv_dtype, rounds_activations=rounds
    )


def _runner(model: Model, config: EngineConfig, limits: Limits, features: EngineFeatures) -> ModelRunner:
    cache = model.allocate_cache(limits.num_blocks, limits.block_size)
    return ModelRunner(model, cache, METHODS[config.attention], features.num_host_blocks)


def _draft_runner(
    features: EngineFeatures, config: EngineConfig, limits: Limits, large: ModelInfo
) -> ModelRunner | None:
    """The model that drafts, with a cache of its own of as many blocks: a block table means the same in both."""
    if features.draft_model is None:
        return None
    spec = read_spec(features.draft_model)
    is_too_short = spec.max_positions < limits.max_model_len and not spec.is_stretchable
    if spec.vocab_size != large.vocab_size or is_too_short:
        raise ConfigError(
            f"draft_model {features.draft_model} has {spec.vocab_size} tokens and {spec.max_positions} positions; it needs the "
            f"{large.vocab_size} tokens of the model, and {limits.max_model_len} positions"
        )
    model = _model(features.draft_model, spec, config, limits.max_model_len)
    return _runner(model, config, limits, features)


def _limits(config: EngineConfig, model: Model, wanted_len: int | None) -> Limits:
    num_blocks = resolve_num_blocks(config, model.block_bytes(config.block_size), free_bytes(model.device))
    return limits_of(config, num_blocks, wanted_len)


def _with_limits(config: EngineConfig, limits: Limits) -> EngineConfig:
    return replace(config, num_kv_blocks=limits.num_blocks, max_model_len=limits.max_model_len)


def free_bytes(device: torch.device) -> int:
    """Memory that is free now, in bytes."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 << 30  # not Linux: assume little


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []

"""From a model folder to a running engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from .assembly import assemble
from .attention import KVCache
from .config import DTYPES, EngineConfig, Limits, limits_of, resolve, resolve_num_blocks
from .engine import Engine
from .errors import ConfigError
from .features import EngineFeatures
from .models.decoder import Decoder, load_decoder
from .models.spec import ModelSpec, read_spec
from .runner import ModelRunner
from .threads import threads_for
from .tokenizer import Tokenizer, load_tokenizer


class Loaded(NamedTuple):
    """All that a front door needs of a model."""

    engine: Engine
    tokenizer: Tokenizer
    spec: ModelSpec
    config: EngineConfig  # resolved: nothing in it is "auto" or None any more, but `threads`


def load(config: EngineConfig, features: EngineFeatures | None = None) -> Loaded:
    """Load the model that `config` names. Raises ConfigError (one line, naming the file or setting) when it cannot."""
    spec = read_spec(config.model)
    resolved = resolve(config, spec)
    tokenizer = load_tokenizer(resolved.model, spec)
    decoder = load_decoder(resolved.model, spec, DTYPES[resolved.dtype], torch.device(resolved.device))
    limits = _limits(resolved, decoder, config.max_model_len)
    threads = threads_for(resolved.threads, decoder.weights.num_bytes())
    features = features or EngineFeatures()
    runner = ModelRunner(decoder, _allocate_cache(decoder, limits), features.num_host_blocks)
    draft = _draft_runner(features, resolved, limits, spec)
    engine = assemble(runner, tokenizer, limits, features, threads=threads, draft=draft)
    return Loaded(engine, tokenizer, spec, _with_limits(resolved, limits))


def _draft_runner(
    features: EngineFeatures, config: EngineConfig, limits: Limits, large: ModelSpec
) -> ModelRunner | None:
    """The model that drafts, with a cache of its own of as many blocks: a block table means the same in both."""
    if features.draft_model is None:
        return None
    spec = read_spec(features.draft_model)
    if spec.vocab_size != large.vocab_size or spec.max_positions < limits.max_model_len:
        raise ConfigError(
            f"draft_model {features.draft_model} has {spec.vocab_size} tokens and {spec.max_positions} positions; it needs the "
            f"{large.vocab_size} tokens of the model, and {limits.max_model_len} positions"
        )
    decoder = load_decoder(features.draft_model, spec, DTYPES[config.dtype], torch.device(config.device))
    return ModelRunner(decoder, _allocate_cache(decoder, limits), features.num_host_blocks)


def _limits(config: EngineConfig, decoder: Decoder, wanted_len: int | None) -> Limits:
    bytes_per_block = kv_bytes_per_token(decoder) * config.block_size
    num_blocks = resolve_num_blocks(config, bytes_per_block, free_bytes(decoder.device))
    return limits_of(config, num_blocks, wanted_len)


def _allocate_cache(decoder: Decoder, limits: Limits) -> KVCache:
    spec = decoder.spec
    shape = (limits.num_blocks, limits.block_size, spec.num_kv_heads, spec.head_dim)
    return KVCache.allocate(spec.num_layers, shape, decoder.dtype, decoder.device)


def _with_limits(config: EngineConfig, limits: Limits) -> EngineConfig:
    return replace(config, num_kv_blocks=limits.num_blocks, max_model_len=limits.max_model_len)


def kv_bytes_per_token(decoder: Decoder) -> int:
    spec = decoder.spec
    return 2 * spec.num_layers * spec.num_kv_heads * spec.head_dim * decoder.dtype.itemsize


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

"""From a model folder to a running engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..sampling.logits_stages import LogitsStage
from ..sampling.stopping import StoppingCriterion
from .adapters.linears import AdaptedLinears
from .adapters.modules import modules_of, takes_adapters, why_no_adapters
from .adapters.registry import AdapterRegistry
from .adapters.slots import AdapterSlots
from .assembly import assemble
from .attention.methods import METHODS
from .config import COMPILED, KV_DTYPES, EngineConfig, limits_of, resolve, resolve_num_blocks
from .device.memory import free_bytes
from .device.threads import threads_for
from .engine import Engine
from .errors import AdapterError, ConfigError
from .features import EngineFeatures
from .gguf.files import is_gguf
from .limits import Limits
from .models.architecture import DTYPES, ModelInfo, ModelSpec
from .models.layout import Portion, head_name
from .models.linear import Adapt
from .models.model import Model, load_model
from .models.spec import read_spec
from .models.tokenizer import Tokenizer, load_tokenizer
from .parallel.runner import ParallelRunner, SharedSlots
from .parallel.shares import ModelShare, ModuleShare, check_sharing, share_of
from .parallel.team import Team, team_of
from .quantization.plan import Plan
from .steps.runner import ModelRunner


class Loaded(NamedTuple):
    """An engine that runs, and what a front door needs beside it."""

    engine: Engine
    tokenizer: Tokenizer
    spec: ModelInfo
    config: EngineConfig  # resolved: nothing in it is "auto" or None any more, but `threads`


def load(
    config: EngineConfig,
    features: EngineFeatures | None = None,
    adapters: Mapping[str, str | os.PathLike[str]] | None = None,
    logits_processors: tuple[LogitsStage, ...] = (),
    stopping_criteria: tuple[StoppingCriterion, ...] = (),
) -> Loaded:
    """Load the model that `config` names, and adapters. Raises ConfigError (one line, naming file or setting) when it cannot."""
    features = features or EngineFeatures()
    spec, resolved = checked(config, features)
    with team_of(resolved, spec) as team:
        tokenizer = load_tokenizer(resolved.model, spec)
        slots = slots_of(resolved, spec, team)
        registry = None if slots is None else AdapterRegistry(spec, slots, resolved.max_adapter_rank)
        model = model_of(resolved, spec, slots, None if team is None else share_of(spec, team.peers, slots))
        if team is not None:
            team.answers()  # all shares are loaded
        _load_adapters(registry, spec, adapters or {})  # before the cache takes the memory that is left
        limits = _limits(resolved, model, config.max_model_len, team)
        runner = _runner(model, resolved, limits, features, slots, team)
        draft = _draft_runner(features, resolved, limits, spec)
        threads = threads_of(resolved, model)
        engine = assemble(
            runner, tokenizer, limits, features, threads=threads, draft=draft, adapters=registry,
            logits_processors=logits_processors, stopping_criteria=stopping_criteria,
        )  # fmt: skip
    return Loaded(engine, tokenizer, spec, _with_limits(resolved, limits))


def checked(config: EngineConfig, features: EngineFeatures) -> tuple[ModelInfo, EngineConfig]:
    """What the model is, and the config resolved. Raises ConfigError for all that is refused before anything is loaded."""
    spec = _quantized(read_spec(config.model), config)
    resolved = resolve(config, spec)
    _check_together(resolved, features)
    if resolved.tensor_parallel > 1:
        check_sharing(spec, resolved.tensor_parallel)
    return spec, resolved


def _check_together(config: EngineConfig, features: EngineFeatures) -> None:
    """Raises ConfigError for what does not go together."""
    if config.cpu_offload_gb and features.cuda_graphs:
        raise ConfigError("cuda_graphs cannot capture layers that are streamed from host memory (cpu_offload_gb): leave out one")
    if config.tensor_parallel > 1 and not METHODS.is_built_in(config.attention):
        raise ConfigError(
            f'tensor_parallel={config.tensor_parallel}: the other ranks are processes of their own, which know no attention="'
            f'{config.attention}" of a plugin: leave out one'
        )
    if config.tensor_parallel > 1 and features.automaton == "device":
        raise ConfigError(
            f'tensor_parallel={config.tensor_parallel} has the host tell all ranks of each step; automaton="device" takes steps of '
            "which the host does not know yet: leave out one"
        )


def _quantized(spec: ModelInfo, config: EngineConfig) -> ModelInfo:
    """`spec` with what the config wants of its matrices. Raises ConfigError where they are quantised already, or not ours."""
    if isinstance(spec.quantization, Plan) and not config.quantized_activations:
        spec = replace(spec, quantization=replace(spec.quantization, rounds_inputs=False))
    if config.quantization is None:
        return spec
    asked, stored = f'quantization="{config.quantization}"', spec.quantization
    if isinstance(stored, Plan) or is_gguf(config.model):
        method = stored.method if isinstance(stored, Plan) else "GGUF"
        raise ConfigError(f"{asked} is for weights of 16 or 32 bits; {config.model} is quantised already ({method}): leave it out")
    if not isinstance(spec, ModelSpec):
        raise ConfigError(f"{asked} is for models that are computed natively; {spec.architecture} is not: leave it out")
    return replace(spec, quantization=config.quantization)


def model_of(
    config: EngineConfig,
    spec: ModelInfo,
    slots: AdapterSlots | None = None,
    share: ModelShare | ModuleShare | None = None,
) -> Model:
    """The model of a resolved config, or a rank's share of it, whose layers look into `slots`."""
    assert config.max_model_len is not None, "the config is resolved"
    adapt: Adapt | None = None
    portion, deal, offload_bytes = None, None, int(config.cpu_offload_gb * 1e9)
    if isinstance(share, ModelShare):
        adapt, portion = share.linears, share.portion
    elif share is not None:
        deal = share.deal_out
    elif slots is not None:
        adapt = partial(AdaptedLinears, slots=slots, modules=modules_of(spec), head=head_name(spec))
    return _model(config.model, spec, config, config.max_model_len, adapt, offload_bytes, portion, deal)


def _model(
    folder: Path,
    spec: ModelInfo,
    config: EngineConfig,
    longest: int,
    adapt: Adapt | None = None,
    offload_bytes: int = 0,
    portion: Portion | None = None,
    deal: Callable[[Any], None] | None = None,
) -> Model:
    dtype, device, kv_dtype = DTYPES[config.dtype], torch.device(config.device), KV_DTYPES[config.kv_dtype]
    return load_model(
        folder, spec, dtype, device, longest, backend=config.kernels, kv_dtype=kv_dtype, adapt=adapt,
        is_compiled=config.products in COMPILED, offload_bytes=offload_bytes, portion=portion, deal=deal,
    )  # fmt: skip


def _runner(
    model: Model,
    config: EngineConfig,
    limits: Limits,
    features: EngineFeatures,
    adapters: AdapterSlots | None = None,
    team: Team | None = None,
) -> ModelRunner:
    cache, method = model.allocate_cache(limits.num_blocks, limits.block_size), METHODS[config.attention]
    if team is None:
        return ModelRunner(model, cache, method, features.num_host_blocks, adapters)
    team.begin(limits.num_blocks, features.num_host_blocks, model.device)
    return ParallelRunner(team, model, cache, method, features.num_host_blocks, adapters)


def slots_of(config: EngineConfig, spec: ModelInfo, team: Team | None = None) -> AdapterSlots | None:
    """Where adapters of this model are kept; None where there can be none."""
    if not config.max_adapters or not takes_adapters(spec):
        return None
    if team is not None:
        return SharedSlots(team, spec, config)
    return AdapterSlots(config.max_adapters, DTYPES[config.dtype], torch.device(config.device), config.kernels)


def threads_of(config: EngineConfig, model: Model) -> int | None:
    """CPU threads of a step; ranks of one machine share its cores."""
    threads = threads_for(config.threads, model.num_bytes, is_compiled=config.products in COMPILED)
    if config.tensor_parallel == 1 or config.threads is not None or model.device.type != "cpu":
        return threads
    return max(1, (threads or torch.get_num_threads()) // config.tensor_parallel)


def num_blocks_of(config: EngineConfig, model: Model) -> int:
    """For how many blocks of the cache there is room. Raises ConfigError where there is none for one."""
    sharing = config.tensor_parallel if model.device.type == "cpu" else 1  # ranks of the same memory
    return resolve_num_blocks(config, model.block_bytes(config.block_size), free_bytes(model.device) // sharing)


def _load_adapters(registry: AdapterRegistry | None, spec: ModelInfo, adapters: Mapping[str, str | os.PathLike[str]]) -> None:
    if adapters and registry is None:
        raise AdapterError(f'adapter "{next(iter(adapters))}": {why_no_adapters(spec)}')
    for name, path in adapters.items():
        assert registry is not None
        registry.load(name, registry.read(path))


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


def _limits(config: EngineConfig, model: Model, wanted_len: int | None, team: Team | None) -> Limits:
    num_blocks = num_blocks_of(config, model)
    return limits_of(config, num_blocks if team is None else min(num_blocks, team.num_blocks()), wanted_len)


def _with_limits(config: EngineConfig, limits: Limits) -> EngineConfig:
    return replace(config, num_kv_blocks=limits.num_blocks, max_model_len=limits.max_model_len)

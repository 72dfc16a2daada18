"""Adapters that peft itself makes for small models, with numbers that change what comes out; and engines that run with them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from maskwright.engine.adapters.linears import AdaptedLinears
from maskwright.engine.adapters.modules import modules_of
from maskwright.engine.adapters.registry import AdapterRegistry
from maskwright.engine.adapters.slots import AdapterSlots
from maskwright.engine.engine import Engine
from maskwright.engine.features import EngineFeatures
from maskwright.engine.limits import Limits
from maskwright.engine.models.layout import head_name
from maskwright.engine.models.model import load_model
from maskwright.engine.models.spec import read_spec
from maskwright.engine.requests.request import Request
from maskwright.engine.steps.runner import ModelRunner
from maskwright.sampling import SamplingParams

from ..conftest import EOS, TinyModel, tiny_vocabulary

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]


def peft_adapter(tiny: TinyModel, folder: Path, seed: int = 1, **options: Any) -> Any:
    """Save an adapter of random numbers to `folder`; returns peft's model, which computes with it."""
    peft = pytest.importorskip("peft", reason="the truth about adapters is peft's own output")
    import copy

    options = {"r": 4, "lora_alpha": 8, "target_modules": ATTENTION, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(copy.deepcopy(tiny.reference), peft.LoraConfig(**options)).eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if ".lora_" in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
        model.save_pretrained(folder, save_embedding_layers=False)
    return model


def peft_logits(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0]


def peft_greedy(model: Any, prompt: list[int], count: int) -> list[int]:
    """The most probable tokens, one after another, but for the end of text."""
    tokens = list(prompt)
    for _ in range(count):
        logits = peft_logits(model, tokens)[-1].clone()
        logits[EOS] = -torch.inf
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt) :]


def make_engine(folder: Path, adapters: Mapping[str, Path] = {}, *, backend: Any = "auto", max_adapters: int = 4, draft: Path | None = None, is_compiled: bool = False, **options: Any) -> Engine:
    """An engine on a model folder, in float32, with adapters by name."""
    from maskwright.engine.drafts.draft_model import DraftModel
    from maskwright.engine.drafts.drafter import Lookup

    features, options = EngineFeatures.split(options)
    spec, device = read_spec(folder), torch.device("cpu")
    limits = Limits(**{"block_size": 4, "num_blocks": 256, "max_batch_tokens": 64, "max_sequences": 16, "max_model_len": 128, **options})
    slots = AdapterSlots(max_adapters, torch.float32, device, backend)
    registry = AdapterRegistry(spec, slots, max_rank=16)
    modules = modules_of(spec)
    decoder = load_model(
        folder, spec, torch.float32, device, limits.max_model_len, backend=backend,
        adapt=lambda base: AdaptedLinears(base, slots, modules, head_name(spec)), is_compiled=is_compiled,
    )  # fmt: skip
    runner = ModelRunner(decoder, decoder.allocate_cache(limits.num_blocks, limits.block_size), adapters=slots, num_host_blocks=features.num_host_blocks)
    drafter: Any = Lookup() if features.speculation == "lookup" else None
    if draft is not None:
        small = load_model(draft, read_spec(draft), torch.float32, device, limits.max_model_len)
        drafter = DraftModel(ModelRunner(small, small.allocate_cache(limits.num_blocks, limits.block_size)), tiny_vocabulary().size)
    if spec.is_recurrent:
        features = features.for_recurrent()
    engine = Engine(runner, tiny_vocabulary(), limits, features, drafter=drafter, adapters=registry)
    for name, path in adapters.items():
        engine.load_adapter(name, registry.read(path))
    return engine


def request(prompt: list[int], adapter: str | None = None, count: int = 12, **options: Any) -> Request:
    sampling = SamplingParams(**{"temperature": 0.0, "max_tokens": count, "ignore_eos": True, **options})
    return Request(prompt_token_ids=tuple(prompt), adapter=adapter, sampling=sampling)

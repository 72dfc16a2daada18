"""A whole decode step of real shapes with random weights, over the bytes that it cannot but read. `run.py` runs it.

The floor of a step is the bytes of all weights that it multiplies with, and of the keys and values of all contexts, over the card's
copy bandwidth. Steps are `Decoder.decode` on buffers at fixed addresses, captured in a CUDA graph as the engine does it: without
sampling. Beside the Triton kernels the same step in plain PyTorch is measured, which gathers keys and values before it attends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from cases import Case, Line
from timing import Clock
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1]))

from random_weights import random_weights

from maskwright.engine.attention.decode_batch import DecodeBuffers
from maskwright.engine.kv_cache.tensors import KVCache
from maskwright.engine.models.architecture import ModelSpec
from maskwright.engine.models.decoder import Decoder
from maskwright.engine.models.spec import spec_from_config
from maskwright.kernels.attention import FP8
from maskwright.kernels.backend import Backend

BLOCK_SIZE = 16
GATHERED_TOKENS = 1 << 17  # that plain PyTorch copies out of the cache in every layer
MEMORY_SHARE = 0.8  # of what is free, for keys and values
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "Qwen3-0.6B": {
        "architectures": ["Qwen3ForCausalLM"], "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 40_960, "rope_theta": 1e6, "tie_word_embeddings": True,
    },
    "Llama-3.1-8B": {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 131_072, "rope_parameters": LLAMA3_ROPE,
    },
}  # fmt: skip
TINY = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
TINY |= {"num_key_value_heads": 1, "head_dim": 16}


class Size(NamedTuple):
    shape: str
    batch: int
    context: int  # tokens that every row sees, the new one included
    kv_dtype: torch.dtype | None  # None = the weights'


def floor_bytes(decoder: Decoder, size: Size) -> int:
    """Weights of all products, and the contexts. Of an embedding that is not the head as well only rows are read."""
    embedding = 0 if decoder.spec.has_tied_embeddings else decoder.embedding.weight.nbytes
    return decoder.num_bytes - embedding + size.batch * size.context * decoder.block_bytes(1)


def cases(
    batches: Sequence[int], contexts: Sequence[int], clock: Clock, bandwidth: float, *, smoke: bool
) -> Iterator[Case]:
    """Small caches first. Plain PyTorch is compared where it takes no more than milliseconds."""
    for shape, config in SHAPES.items():
        model = RandomModel({**config, **TINY} if smoke else config, torch.float32 if smoke else torch.bfloat16, clock.device)
        for context in contexts:
            for batch in batches:
                for kv_dtype in (None, FP8):
                    size = Size(shape, batch, context, kv_dtype)
                    what = {"what": "decode", "model": shape, "batch": batch, "context": context}
                    what["kv"] = str(kv_dtype or model.dtype).removeprefix("torch.")
                    yield Case(what, partial(measured, size, model, bandwidth, clock))
        model.forget()


class RandomModel:
    """Weights that are made when they are first needed."""

    def __init__(self, config: dict[str, Any], dtype: torch.dtype, device: torch.device) -> None:
        spec = spec_from_config(config)
        assert isinstance(spec, ModelSpec)
        self.spec, self.dtype, self.device = spec, dtype, device
        self._weights: dict[str, Tensor] = {}

    def decoder(self, backend: Backend, kv_dtype: torch.dtype | None) -> Decoder:
        self._weights = self._weights or random_weights(self.spec, self.dtype, self.device)
        return Decoder(self.spec, self._weights, backend, kv_dtype)

    def forget(self) -> None:
        self._weights = {}


def measured(size: Size, model: RandomModel, bandwidth: float, clock: Clock) -> Iterator[Line]:
    decoder = model.decoder("triton", size.kv_dtype)
    floor = floor_bytes(decoder, size) / bandwidth
    if (reason := _does_not_fit(decoder, size)) is not None:
        yield {"by": "none", "reason": reason}
        return
    cache, step = _prepared(decoder, size)
    decoders = {"triton": decoder}
    if size.batch * size.context <= GATHERED_TOKENS:
        decoders["pytorch"] = model.decoder("reference", size.kv_dtype)
    for by, decoder in decoders.items():
        seconds, captured = clock.seconds(step(decoder, cache))
        yield {"by": by, "us": seconds * 1e6, "floor_us": floor * 1e6, "share_of_floor": floor / seconds, "graph": captured}


def _does_not_fit(decoder: Decoder, size: Size) -> str | None:
    if decoder.device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(decoder.device)
    needed = size.batch * size.context * decoder.block_bytes(1)
    return None if needed <= free * MEMORY_SHARE else f"{needed >> 30} GiB of keys and values, {free >> 30} are free"


def _prepared(decoder: Decoder, size: Size) -> tuple[KVCache, Callable[[Decoder, KVCache], Callable[[], Tensor]]]:
    """A cache whose blocks lie in no order, and a step on it."""
    per_row = -(-size.context // BLOCK_SIZE)
    cache = decoder.allocate_cache(size.batch * per_row, BLOCK_SIZE)
    buffers = DecodeBuffers(size.batch, per_row, BLOCK_SIZE, decoder.device)
    order = torch.randperm(size.batch * per_row, generator=torch.Generator().manual_seed(0)).tolist()
    tables = [order[row * per_row : (row + 1) * per_row] for row in range(size.batch)]
    buffers.fill([7] * size.batch, [size.context - 1] * size.batch, tables)
    batch = buffers.batch(size.batch)
    return cache, lambda decoder, cache: lambda: decoder.decode(batch, cache)

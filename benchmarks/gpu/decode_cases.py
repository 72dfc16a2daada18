"""A whole decode step of real shapes with random weights, over the bytes that it cannot but read. `run.py` runs it.

The floor of a step is the bytes of all weights that it multiplies with, and of the keys and values of all contexts, over the card's
copy bandwidth. Steps are `Decoder.decode` on buffers at fixed addresses, captured in a CUDA graph as the engine does it: without
sampling. Beside the Triton kernels the same step in plain PyTorch is measured, which gathers keys and values before it attends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1]))

from random_weights import random_weights

from maskwright.engine.decode_batch import DecodeBuffers
from maskwright.engine.kv_cache import KVCache
from maskwright.engine.models.architecture import ModelSpec
from maskwright.engine.models.decoder import Decoder
from maskwright.engine.models.spec import spec_from_config
from maskwright.kernels.attention import FP8
from maskwright.kernels.backend import Backend

BLOCK_SIZE = 16
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


class Case(NamedTuple):
    shape: str
    batch: int
    context: int  # tokens that every row sees, the new one included
    kv_dtype: torch.dtype | None  # None = the weights'


def cases(shape: str, batches: Sequence[int], contexts: Sequence[int]) -> Iterator[Case]:
    for context in contexts:
        for batch in batches:
            for kv_dtype in (None, FP8):
                yield Case(shape, batch, context, kv_dtype)


def floor_bytes(decoder: Decoder, case: Case) -> int:
    """Weights of all products, and the contexts. Of an embedding that is not the head as well only rows are read."""
    embedding = 0 if decoder.spec.has_tied_embeddings else decoder.embedding.nbytes
    return decoder.num_bytes - embedding + case.batch * case.context * decoder.block_bytes(1)


def measure_decode(
    batches: Sequence[int], contexts: Sequence[int], device: torch.device, bandwidth: float, clock: Any, *, smoke: bool
) -> Iterator[dict[str, Any]]:
    for shape, config in SHAPES.items():
        spec = spec_from_config({**config, **TINY} if smoke else config)
        assert isinstance(spec, ModelSpec)
        dtype = torch.float32 if smoke else torch.bfloat16
        weights = random_weights(spec, dtype, device)
        for case in cases(shape, batches, contexts):
            yield from _measured(case, spec, weights, bandwidth, clock)


def _measured(
    case: Case, spec: ModelSpec, weights: dict[str, Tensor], bandwidth: float, clock: Any
) -> Iterator[dict[str, Any]]:
    backends: dict[str, Backend] = {"triton": "triton", "pytorch": "reference"}
    decoders = {by: Decoder(spec, weights, backend, case.kv_dtype) for by, backend in backends.items()}
    num_bytes = floor_bytes(decoders["triton"], case)
    floor = num_bytes / bandwidth
    what = {
        "what": "decode", "model": case.shape, "batch": case.batch, "context": case.context, "floor_us": floor * 1e6,
        "kv": str(case.kv_dtype or decoders["triton"].dtype).removeprefix("torch."),
    }  # fmt: skip
    if (reason := _does_not_fit(decoders["triton"], case)) is not None:
        yield {**what, "by": "none", "reason": reason}
        return
    cache, step = _prepared(decoders["triton"], case)
    for by, decoder in decoders.items():
        seconds, captured = clock.seconds(step(decoder, cache))
        yield {**what, "by": by, "us": seconds * 1e6, "share_of_floor": floor / seconds, "graph": captured}


def _does_not_fit(decoder: Decoder, case: Case) -> str | None:
    if decoder.device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(decoder.device)
    needed = case.batch * case.context * decoder.block_bytes(1)
    return None if needed <= free * MEMORY_SHARE else f"{needed >> 30} GiB of keys and values, {free >> 30} are free"


def _prepared(decoder: Decoder, case: Case) -> tuple[KVCache, Callable[[Decoder, KVCache], Callable[[], Tensor]]]:
    """A cache whose blocks lie in no order, and a step on it."""
    per_row = -(-case.context // BLOCK_SIZE)
    cache = decoder.allocate_cache(case.batch * per_row, BLOCK_SIZE)
    buffers = DecodeBuffers(case.batch, per_row, BLOCK_SIZE, decoder.device)
    order = torch.randperm(case.batch * per_row, generator=torch.Generator().manual_seed(0)).tolist()
    tables = [order[row * per_row : (row + 1) * per_row] for row in range(case.batch)]
    buffers.fill([7] * case.batch, [case.context - 1] * case.batch, tables)
    batch = buffers.batch(case.batch)
    return cache, lambda decoder, cache: lambda: decoder.decode(batch, cache)

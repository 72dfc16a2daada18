"""Paged attention on a GPU: decode against the card's copy bandwidth, prefill against torch's flash attention. `run.py` runs it.

Decode reads every key and value once, so its floor is their bytes over the measured copy bandwidth. The share of that bandwidth is
reported at contexts of 1k to 32k and batches of 1 to 256, beside torch's attention and FlexAttention on contiguous copies of the
same keys (which, unlike ours, find small ones in the card's cache again). Prefill is reported in TFLOP/s beside torch's flash
kernel and FlexAttention, for whole prompts and for chunks behind a cached prefix. Every model is first compared with the plain twin
at a small size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from cases import Case, Line
from measure import seconds_per_call
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from maskwright.kernels.attention import FP8, LayerCache, PagedBatch, Scoring, paged_attention

BLOCK_SIZE = 16
CACHE_BYTES = 192 << 20  # that repeated calls must go through before they meet their first keys again
MEMORY_BYTES = 36 << 30  # of keys and values in one configuration, at most; torch's copies need as much again


@dataclass(frozen=True)
class Model:
    """Heads of one layer."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    cache_dtype: torch.dtype
    window: int | None = None
    dtype: torch.dtype = torch.bfloat16

    @property
    def bytes_per_token(self) -> int:
        return 2 * self.num_kv_heads * self.head_dim * self.cache_dtype.itemsize

    def described(self) -> dict[str, Any]:
        return {name: str(value) if isinstance(value, torch.dtype) else value for name, value in asdict(self).items()}


LLAMA_8B = Model(32, 8, 128, torch.bfloat16)
MODELS = [LLAMA_8B, Model(32, 8, 128, FP8), Model(16, 8, 128, torch.bfloat16), Model(64, 8, 64, torch.bfloat16)]
MODELS += [Model(8, 4, 256, torch.bfloat16), Model(8, 4, 256, torch.bfloat16, window=1024)]


@dataclass(frozen=True)
class Inputs:
    query: Tensor
    cache: LayerCache
    batches: Sequence[PagedBatch]  # on different blocks of the cache
    scoring: Scoring
    contexts: Sequence[int]
    counts: Sequence[int]


def drawn(model: Model, contexts: Sequence[int], counts: Sequence[int], device: torch.device, copies: int) -> Inputs:
    """`copies` batches of the same lengths, each on random blocks of its own."""
    blocks = [-(-context // BLOCK_SIZE) for context in contexts]
    cache_shape = (copies * sum(blocks), BLOCK_SIZE, model.num_kv_heads, model.head_dim)
    keys, values = (random(cache_shape, model.cache_dtype, device) for _ in range(2))
    order = torch.randperm(copies * sum(blocks), device=device, dtype=torch.int32)
    num_decodes = len(counts) if all(count == 1 for count in counts) else 0
    starts = torch.tensor([0, *counts], dtype=torch.int32, device=device).cumsum(0, dtype=torch.int32)
    lengths = torch.tensor(contexts, dtype=torch.int32, device=device)
    batches = []
    for copied in range(copies):
        rows = order[copied * sum(blocks) : (copied + 1) * sum(blocks)].split(blocks)
        tables = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
        batches.append(PagedBatch(tables, lengths, starts, num_decodes))
    query = random((sum(counts), model.num_heads, model.head_dim), model.dtype, device)
    scoring = Scoring(model.head_dim**-0.5, model.window)
    return Inputs(query, LayerCache(keys, values), batches, scoring, contexts, counts)


def random(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Normal numbers, in pieces: never a second copy in fp32 of a large cache."""
    out = torch.empty(tuple(shape), dtype=dtype, device=device)
    for piece in out.split(max(1, (1 << 26) // max(1, out[0].numel()))):
        piece.copy_(torch.randn(piece.shape, device=device))
    return out


def check(model: Model, device: torch.device) -> Iterator[Line]:
    """Largest difference from the twin on a small batch. Raises AssertionError when it is too large."""
    worst = 0.0
    for contexts, counts in (([140, 33, 1], [1, 1, 1]), ([140, 33, 64], [40, 33, 1])):
        inputs = drawn(model, contexts, counts, device, 1)
        arguments = (inputs.query, inputs.cache, inputs.batches[0], inputs.scoring)
        expected = paged_attention(*arguments, backend="reference").float()
        found = paged_attention(*arguments, backend="triton").float()
        worst = max(worst, float((found - expected).abs().max() / expected.abs().max()))
    assert worst < 0.03, f"{model}: differs from the twin by {worst}"
    yield {"largest_difference": worst}


# ---- decode


def decode(
    model: Model, context: int, batch: int, bandwidth: float, device: torch.device, repeats: int, *, has_flex: bool
) -> Iterator[Line]:
    seen = min(context, model.window or context)
    num_bytes = batch * seen * model.bytes_per_token
    copies = max(1, -(-CACHE_BYTES // (batch * context * model.bytes_per_token))) if device.type == "cuda" else 1
    inputs = drawn(model, [context] * batch, [1] * batch, device, copies)
    seconds = seconds_per_call([attend(inputs, copied) for copied in range(copies)], device, repeats)
    rivals = {"sdpa_microseconds": attempted(lambda: 1e6 * seconds_per_call([contiguous(inputs)], device, repeats))}
    if has_flex:
        rivals["flex_microseconds"] = attempted(lambda: 1e6 * seconds_per_call([flexible(inputs)], device, repeats))
    yield {
        "microseconds": seconds * 1e6,
        "gigabytes_per_second": num_bytes / seconds / 1e9,
        "share_of_copy_bandwidth": num_bytes / seconds / bandwidth,
        "floor_microseconds": num_bytes / bandwidth * 1e6,
        **rivals,
    }


def attend(inputs: Inputs, copied: int) -> Callable[[], Tensor]:
    batch, out = inputs.batches[copied], torch.empty_like(inputs.query)
    return lambda: paged_attention(inputs.query, inputs.cache, batch, inputs.scoring, out=out, backend="triton")


def contiguous(inputs: Inputs, backend: SDPBackend | None = None) -> Callable[[], Tensor]:
    """torch's attention of the first batch, whose sequences are equally long, on contiguous keys."""
    context, count = inputs.contexts[0], inputs.counts[0]
    if inputs.scoring.window is not None:
        raise NotImplementedError("torch's attention has no window")
    query, keys, values = contiguous_arrays(inputs)
    is_whole = 1 < count == context
    mask = None if is_whole or count == 1 else causal_lower_right(count, context)

    def call() -> Tensor:
        with sdpa_kernel(backend) if backend else nullcontext():
            return scaled_dot_product_attention(
                query, keys, values, attn_mask=mask, is_causal=is_whole, scale=inputs.scoring.scale, enable_gqa=True
            )

    return call


def contiguous_arrays(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Query, keys and values [batch, heads, tokens, head_dim]."""
    table, context, count = inputs.batches[0].block_tables.long(), inputs.contexts[0], inputs.counts[0]
    if inputs.cache.keys.dtype == FP8:
        raise NotImplementedError("torch's attention has no fp8 cache")
    keys, values = (
        array[table].flatten(1, 2)[:, :context].transpose(1, 2).contiguous() for array in (inputs.cache.keys, inputs.cache.values)
    )
    return inputs.query.view(len(table), count, *inputs.query.shape[1:]).transpose(1, 2).contiguous(), keys, values


def flexible(inputs: Inputs) -> Callable[[], Tensor]:
    """FlexAttention, compiled where there is a GPU."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # takes seconds to import

    query, keys, values = contiguous_arrays(inputs)
    context, count = inputs.contexts[0], inputs.counts[0]
    window = inputs.scoring.window or context

    def is_seen(batch: Tensor, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        position = row + (context - count)
        return (key <= position) & (key > position - window)

    blocks = create_block_mask(is_seen, None, None, count, context, device=query.device.type)
    call = flex_attention
    if query.is_cuda:
        torch.compiler.reset()  # every shape compiles anew, and after eight of them torch would give up
        call = torch.compile(flex_attention, dynamic=False)
    return lambda: call(query, keys, values, block_mask=blocks, scale=inputs.scoring.scale, enable_gqa=True)


def attempted(measure: Callable[[], float]) -> float | str:
    """A figure, or why there is none: a rival that cannot run must not end the run."""
    try:
        return measure()
    except Exception as error:
        return f"none: {str(error).splitlines()[0]}"


# ---- prefill


def prefill(
    model: Model, context: int, count: int, batch: int, device: torch.device, repeats: int, *, has_flex: bool
) -> Iterator[Line]:
    inputs = drawn(model, [context] * batch, [count] * batch, device, 1)
    seconds = seconds_per_call([attend(inputs, 0)], device, repeats)
    window = model.window or context
    pairs = batch * sum(min(position + 1, window) for position in range(context - count, context))
    operations = 4 * pairs * model.num_heads * model.head_dim
    flash = attempted(lambda: seconds_per_call([contiguous(inputs, SDPBackend.FLASH_ATTENTION)], device, repeats))
    line = {
        "microseconds": seconds * 1e6,
        "teraflops": operations / seconds / 1e12,
        "flash_microseconds": flash * 1e6 if isinstance(flash, float) else flash,
        "times_flash": seconds / flash if isinstance(flash, float) else None,
    }
    if has_flex:
        line["flex_microseconds"] = attempted(lambda: 1e6 * seconds_per_call([flexible(inputs)], device, repeats))
    yield line


# ---- what is measured, the sizes of the bars first


DECODES = [(8192, 128), (8192, 32), (8192, 256), (8192, 1), (8192, 8), (32768, 32), (32768, 1), (1024, 256), (1024, 32), (1024, 1)]
PREFILLS = [(4096, 4096, 4), (8192, 512, 8), (16384, 16384, 1), (1024, 1024, 16), (32768, 2048, 1)]  # context, queries, batch
QUICK = 2  # of each list
SMOKE_MODELS = [Model(4, 2, 16, torch.bfloat16), Model(4, 2, 16, FP8, window=9)]


def cases(device: torch.device, bandwidth: float, *, quick: bool, smoke: bool) -> Iterator[Case]:
    """All models at the first sizes, then at the others. FlexAttention is compiled anew for every shape, so it is compared at few.

    bandwidth: bytes a second.
    """
    models, decodes, prefills = SMOKE_MODELS if smoke else MODELS, DECODES, PREFILLS
    if smoke:
        decodes, prefills = [(40, 2)], [(40, 40, 1), (40, 8, 2)]
    elif quick:
        decodes, prefills = DECODES[:QUICK], PREFILLS[:QUICK]
    repeats = 1 if smoke else 20
    for model in models:
        yield Case({"what": "attention check", "model": model.described()}, partial(check, model, device))
    for place in range(max(len(decodes), len(prefills))):
        has_flex = smoke or place == 0
        for model in models:
            what = {"model": model.described()}
            for context, batch in decodes[place : place + 1]:
                if batch * context * model.bytes_per_token <= MEMORY_BYTES:
                    sizes = {"context": context, "batch": batch}
                    run = partial(decode, model, context, batch, bandwidth, device, repeats, has_flex=has_flex)
                    yield Case({"what": "decode attention", **what, **sizes}, run)
            for context, count, batch in prefills[place : place + 1]:
                sizes = {"context": context, "queries": count, "batch": batch}
                run = partial(prefill, model, context, count, batch, device, repeats, has_flex=has_flex)
                yield Case({"what": "prefill attention", **what, **sizes}, run)

"""Paged attention: the kernels against the twin, the twin against torch, on ragged batches with random blocks.

Every block, place and table entry that nobody may read is poisoned, and so is the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from maskwright.kernels.attention import FP8, LayerCache, PagedBatch, Scoring, paged_attention, reference

from .device import DEVICE, IS_NATIVE, poisoned

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # numpy, in the interpreter: 1 / inf is right

TOLERANCE = {torch.float32: 5e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}  # of the largest value; the interpreter cuts bf16 off
ABSENT = 2**30  # in a block table where nobody may look


@dataclass(frozen=True)
class Shape:
    """What is drawn. Sequence s has contexts[s] tokens, the last counts[s] of which are queries."""

    contexts: Sequence[int]
    counts: Sequence[int]
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 32
    block_size: int = 16
    dtype: torch.dtype = torch.float32
    cache_dtype: torch.dtype | None = None
    num_scales: int = 0
    window: int | None = None
    soft_cap: float | None = None
    has_sinks: bool = False
    num_decodes: int = 0


def drawn(shape: Shape, seed: int = 0) -> tuple[Tensor, LayerCache, PagedBatch, Scoring]:
    generator = torch.Generator().manual_seed(seed)
    tables, is_read = block_tables(shape, generator)
    cache_shape = (*is_read.shape, shape.num_kv_heads, shape.head_dim)
    query = torch.randn(sum(shape.counts), shape.num_heads, shape.head_dim, generator=generator)
    keys, values = torch.randn(2, *cache_shape, generator=generator)
    keys[~is_read], values[~is_read] = float("nan"), float("nan")
    cache_dtype = shape.cache_dtype or shape.dtype
    scales = [torch.rand(shape.num_scales, generator=generator) + 0.5 if shape.num_scales else None for _ in range(2)]
    sinks = torch.randn(shape.num_heads, generator=generator) if shape.has_sinks else None
    batch = PagedBatch(
        tables.to(DEVICE),
        torch.tensor(shape.contexts, dtype=torch.int32, device=DEVICE),
        torch.tensor([0, *shape.counts], dtype=torch.int32, device=DEVICE).cumsum(0, dtype=torch.int32),
        shape.num_decodes,
    )
    on_device = [None if array is None else array.to(DEVICE) for array in (*scales, sinks)]
    cache = LayerCache(keys.to(DEVICE, cache_dtype), values.to(DEVICE, cache_dtype), *on_device[:2])
    scoring = Scoring(shape.head_dim**-0.5, shape.window, shape.soft_cap, on_device[2])
    return query.to(DEVICE, shape.dtype), cache, batch, scoring


def block_tables(shape: Shape, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tables of blocks in random order, and which places of which blocks may be read: [blocks, block_size] bool."""
    needed = [-(-context // shape.block_size) for context in shape.contexts]
    order = torch.randperm(sum(needed) + 2, generator=generator).tolist()
    tables = torch.full((len(needed), max(needed) + 1), ABSENT, dtype=torch.int32)
    is_read = torch.zeros(len(order), shape.block_size, dtype=torch.bool)
    for sequence, (context, count) in enumerate(zip(shape.contexts, shape.counts, strict=True)):
        first = 0 if shape.window is None else max(0, context - count - shape.window + 1)
        blocks = {i // shape.block_size: order.pop() for i in range(0, context, shape.block_size)}
        for i in range(first, context if count else 0):
            tables[sequence, i // shape.block_size] = blocks[i // shape.block_size]
            is_read[blocks[i // shape.block_size], i % shape.block_size] = True
    return tables, is_read


def assert_kernels_agree(shape: Shape, seed: int = 0) -> None:
    query, cache, batch, scoring = drawn(shape, seed)
    expected = paged_attention(query, cache, batch, scoring, backend="reference")
    out = poisoned(*query.shape, dtype=query.dtype)
    assert paged_attention(query, cache, batch, scoring, out=out, backend="triton") is out
    assert expected.isfinite().all()
    largest = 4.0 * (1 if cache.value_scale is None else cache.value_scale.max().item())
    torch.testing.assert_close(out, expected, rtol=0, atol=TOLERANCE[shape.dtype] * largest)


DECODES = Shape(contexts=[5, 1, 40, 0, 130], counts=[1] * 5, num_decodes=5)
CHUNKS = Shape(contexts=[5, 30, 100, 70, 0], counts=[1, 30, 20, 3, 0])
MIXED = Shape(contexts=[9, 65, 70, 40, 17, 0], counts=[1, 1, 33, 7, 1, 0], num_decodes=2)
FEATURES = {
    "plain": {},
    "heads that share nothing": {"num_heads": 2},
    "seven heads sharing, odd blocks": {"num_heads": 7, "num_kv_heads": 1, "block_size": 5},
    "twenty heads sharing, fp16": {"num_heads": 20, "num_kv_heads": 1, "dtype": torch.float16},
    "head of 24": {"head_dim": 24},
    "bf16": {"dtype": torch.bfloat16, "head_dim": 64},
    "window": {"window": 17},
    "window of one": {"window": 1, "has_sinks": True},
    "window, cap, sinks, fp16": {"window": 33, "soft_cap": 2.0, "has_sinks": True, "dtype": torch.float16},
    "fp8, one scale": {"cache_dtype": FP8, "num_scales": 1, "dtype": torch.bfloat16},
    "fp8, scale per head": {"cache_dtype": FP8, "num_scales": 2, "window": 40},
    "fp8, no scale, whole pages": {"cache_dtype": FP8, "block_size": 128, "dtype": torch.float16},
}


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("shape", [DECODES, MIXED], ids=["decodes", "mixed"])
def test_kernels_agree_with_the_twin(shape: Shape, features: dict) -> None:
    assert_kernels_agree(replace(shape, **features), seed=len(str(features)))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Ragged batches with any features, the decodes first."""
    contexts = draw(st.lists(st.integers(0, 90), min_size=1, max_size=5))
    num_decodes = draw(st.integers(0, len(contexts)))
    counts = [1 if s < num_decodes else draw(st.integers(0, context)) for s, context in enumerate(contexts)]
    num_kv_heads = draw(st.sampled_from([1, 2]))
    cache_dtype = draw(st.sampled_from([None, FP8]))
    return Shape(
        contexts,
        counts,
        num_heads=num_kv_heads * draw(st.integers(1, 4)),
        num_kv_heads=num_kv_heads,
        head_dim=draw(st.sampled_from([8, 16, 20, 64])),
        block_size=draw(st.sampled_from([1, 3, 16, 32])),
        dtype=draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16])),
        cache_dtype=cache_dtype,
        num_scales=0 if cache_dtype is None else draw(st.sampled_from([0, 1, num_kv_heads])),
        window=draw(st.none() | st.integers(1, 100)),
        soft_cap=draw(st.none() | st.floats(0.5, 50)),
        has_sinks=draw(st.booleans()),
        num_decodes=num_decodes,
    )


@settings(max_examples=12)  # nearly every example compiles kernels of its own where there is a GPU
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_kernels_agree_with_the_twin_on_anything(shape: Shape, seed: int) -> None:
    assert_kernels_agree(shape, seed)


@pytest.mark.skipif(not IS_NATIVE, reason="large shapes need a GPU")
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_kernels_agree_with_the_twin_on_real_shapes(head_dim: int, features: dict) -> None:
    shape = Shape([8000, 1, 4097, 3000, 777], [1, 1, 4097, 1500, 1], 16, 2, num_decodes=2)
    assert_kernels_agree(replace(shape, **{**features, "head_dim": head_dim}))


@pytest.mark.parametrize("num_programs", [1, 2, 5, 16])
def test_how_decodes_are_split_changes_roundings_only(num_programs: int) -> None:
    from maskwright.kernels.attention.gpu.decode import DecodeShape, decode_attention

    query, cache, batch, scoring = drawn(DECODES, seed=num_programs)
    out = poisoned(*query.shape)
    shape = DecodeShape(tile=16, num_warps=4, num_stages=2, programs=1)
    decode_attention(
        query, cache, batch.block_tables, batch.context_lengths, scoring, out, shape=shape, num_programs=num_programs
    )
    expected = reference.paged_attention(query, cache, batch, scoring)
    torch.testing.assert_close(out, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("rows", "window", "num_heads"), [(16, 50, 6), (32, 3, 2)])  # the second: queries that see nothing of a tile
def test_how_chunks_are_tiled_changes_roundings_only(rows: int, window: int, num_heads: int) -> None:
    from maskwright.kernels.attention.gpu.extend import ExtendShape, extend_attention

    query, cache, batch, scoring = drawn(replace(CHUNKS, window=window, num_heads=num_heads), seed=rows)
    out = poisoned(*query.shape)
    extend_attention(query, cache, batch, scoring, out, shape=ExtendShape(rows, tile=16, num_warps=4, num_stages=2))
    expected = reference.paged_attention(query, cache, batch, scoring)
    torch.testing.assert_close(out, expected, rtol=0, atol=2e-5)


def test_queries_may_be_part_of_a_larger_array() -> None:
    query, cache, batch, scoring = drawn(MIXED)
    wider = torch.cat([query, torch.full_like(query, float("nan"))], dim=1)[:, : query.shape[1]]
    expected = paged_attention(query, cache, batch, scoring, backend="reference")
    found = paged_attention(wider, cache, batch, scoring, backend="triton")
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)


def test_an_empty_context_gives_zeros_and_rows_of_nobody_stay() -> None:
    query, cache, batch, scoring = drawn(replace(DECODES, has_sinks=True))
    longer = torch.cat([query, query[:1]])
    for backend in ("reference", "triton"):
        out = poisoned(*longer.shape)
        paged_attention(longer, cache, batch, scoring, out=out, backend=backend)
        assert (out[3] == 0).all()
        assert out[5].isnan().all()


@pytest.mark.parametrize("window", [None, 9])
@pytest.mark.parametrize("shape", [CHUNKS, MIXED], ids=["chunks", "mixed"])
def test_the_twin_agrees_with_torch(shape: Shape, window: int | None) -> None:
    shape = replace(shape, window=window, num_heads=6)
    query, cache, batch, scoring = drawn(shape)
    out = paged_attention(query, cache, batch, scoring, backend="reference")
    stop = 0
    for table, context, count in zip(batch.block_tables, shape.contexts, shape.counts, strict=True):
        start, stop = stop, stop + count
        if not count:
            continue
        token = torch.arange(context, device=DEVICE)
        block = table[token // shape.block_size].clamp(max=len(cache.keys) - 1)
        keys, values = (array[block, token % shape.block_size].nan_to_num() for array in (cache.keys, cache.values))
        position = torch.arange(context - count, context, device=DEVICE)[:, None]
        seen = (token <= position) & (token > position - (window or context))
        expected = scaled_dot_product_attention(
            query[start:stop].transpose(0, 1), keys.transpose(0, 1), values.transpose(0, 1), attn_mask=seen, enable_gqa=True
        )
        torch.testing.assert_close(out[start:stop], expected.transpose(0, 1), rtol=0, atol=1e-5)


def test_a_sink_takes_weight_and_a_cap_bounds_scores() -> None:
    query, cache, batch, scoring = drawn(replace(DECODES, contexts=[1] * 5))
    values = paged_attention(query, cache, batch, scoring, backend="reference")
    score = torch.zeros(query.shape[1], device=DEVICE)
    halved = paged_attention(query * 0, cache, batch, scoring._replace(sinks=score), backend="reference")
    torch.testing.assert_close(halved, values / 2)
    capped = paged_attention(query * 1e6, cache, batch, scoring._replace(sinks=score + 3, soft_cap=3.0), backend="reference")
    weight = (capped / values)[:, :, 0]
    assert all(w == pytest.approx(1 / 2) or w == pytest.approx(1 / (1 + torch.e**6), rel=1e-3) for w in weight.flatten().tolist())


@pytest.mark.skipif(not IS_NATIVE, reason="a CUDA graph needs a GPU")
def test_a_captured_launch_serves_other_lengths() -> None:
    query, cache, batch, scoring = drawn(replace(DECODES, contexts=[64] * 5))
    out = poisoned(*query.shape)
    for _ in range(2):
        paged_attention(query, cache, batch, scoring, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        paged_attention(query, cache, batch, scoring, out=out)
    for lengths in ([1, 2, 3, 0, 5], [64, 1, 50, 64, 0]):
        batch.context_lengths.copy_(torch.tensor(lengths))
        graph.replay()
        expected = paged_attention(query, cache, batch, scoring, backend="reference")
        torch.testing.assert_close(out, expected, rtol=0, atol=2e-5)


def test_the_largest_scores_are_capped_alike() -> None:
    query, cache, batch, scoring = drawn(replace(MIXED, soft_cap=4.0))
    expected = paged_attention(query * 1e4, cache, batch, scoring, backend="reference")
    found = paged_attention(query * 1e4, cache, batch, scoring, backend="triton")
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def refused(change: str) -> tuple[Tensor, LayerCache, PagedBatch, Scoring]:
    query, cache, batch, scoring = drawn(MIXED)
    changed = {
        "float64": (query.double(), cache, batch, scoring),
        "must hold": (query.half(), cache, batch, scoring),
        "multiple of 2 heads": (query[:, :3], cache, batch, scoring),
        "contiguous within a head": (query.transpose(1, 2).contiguous().transpose(1, 2), cache, batch, scoring),
        "may share": (query.repeat(1, 65, 1), cache, batch, scoring),
        "same strides": (query, cache._replace(values=cache.values.transpose(1, 2).contiguous().transpose(1, 2)), batch, scoring),
        "num_blocks": (query, cache._replace(values=cache.values[1:]), batch, scoring),
        "key_scale belongs": (query, cache._replace(key_scale=torch.ones(1, device=DEVICE)), batch, scoring),
        "value_scale must be": (
            query, LayerCache(cache.keys.to(FP8), cache.values.to(FP8), None, torch.ones(3, device=DEVICE)), batch, scoring,
        ),
        "context_lengths": (query, cache, batch._replace(context_lengths=batch.context_lengths[1:]), scoring),
        "query_starts": (query, cache, batch._replace(query_starts=batch.query_starts[1:]), scoring),
        "num_decodes": (query, cache, batch._replace(num_decodes=7), scoring),
        "int32 or int64": (query, cache, batch._replace(block_tables=batch.block_tables.float()), scoring),
        "window": (query, cache, batch, scoring._replace(window=0)),
        "soft_cap": (query, cache, batch, scoring._replace(soft_cap=0.0)),
        "scale must be positive": (query, cache, batch, scoring._replace(scale=0.0)),
        "sinks": (query, cache, batch, scoring._replace(sinks=torch.ones(3, device=DEVICE))),
    }  # fmt: skip
    return changed[change]


@pytest.mark.parametrize("backend", ["reference", "triton"])
@pytest.mark.parametrize(
    "change",
    ["float64", "must hold", "multiple of 2 heads", "contiguous within a head", "may share", "same strides", "num_blocks",
     "key_scale belongs", "value_scale must be", "context_lengths", "query_starts", "num_decodes", "int32 or int64", "window",
     "soft_cap", "scale must be positive", "sinks"],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: str, backend: str) -> None:
    with pytest.raises(ValueError, match=change):
        paged_attention(*refused(change), backend=backend)  # type: ignore[arg-type]

"""The fused small operations: kernels against twins, twins against torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from maskwright.kernels.attention import FP8, LayerCache
from maskwright.kernels.fused import (
    HeadNorm,
    Rotation,
    add_rms_norm,
    embedding,
    gated_activation,
    rms_norm,
    rotate_and_cache,
)

from .device import DEVICE

pytest.importorskip("triton")

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # numpy, in the interpreter: 1 / inf is right
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # relative; the interpreter cuts bf16 off


def random(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def assert_near(found: Tensor, expected: Tensor) -> None:
    assert found.dtype == expected.dtype
    tolerance = TOLERANCE[expected.dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


# ---- RMSNorm


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "width"), [(1, 7), (5, 64), (3, 1000)])
def test_norms_agree_with_their_twins(rows: int, width: int, dtype: torch.dtype) -> None:
    hidden, residual = random(rows, width, seed=width, dtype=dtype), random(rows, width, seed=rows, dtype=dtype)
    weight = random(width, seed=1, dtype=dtype)
    for norm_weight, offset in ((weight, 0.0), (weight, 1.0), (None, 0.0)):
        alone = [rms_norm(hidden, norm_weight, 1e-6, weight_offset=offset, backend=name) for name in ("triton", "reference")]
        assert_near(*alone)
        summed = [
            add_rms_norm(hidden, residual, norm_weight, 1e-6, weight_offset=offset, backend=name)
            for name in ("triton", "reference")
        ]
        assert_near(summed[0][0], summed[1][0])
        assert_near(summed[0][1], summed[1][1])


def test_the_norm_is_that_of_torch() -> None:
    hidden, weight = random(4, 3, 96, seed=0), random(96, seed=1)
    for backend in ("reference", "triton"):
        found = rms_norm(hidden, weight, 1e-5, backend=backend)
        torch.testing.assert_close(found, torch.nn.functional.rms_norm(hidden, (96,), weight, 1e-5))
        gemma = rms_norm(hidden, weight, 1e-5, weight_offset=1.0, backend=backend)
        torch.testing.assert_close(gemma, torch.nn.functional.rms_norm(hidden, (96,), weight + 1, 1e-5))


def test_large_numbers_do_not_overflow_in_fp16() -> None:
    hidden = random(2, 64, seed=0, dtype=torch.float16) * 1000
    for backend in ("reference", "triton"):
        assert rms_norm(hidden, None, 1e-6, backend=backend).isfinite().all()


# ---- gate and embedding


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh"])
def test_gates_agree_with_their_twins(activation: str, dtype: torch.dtype) -> None:
    gate_up = 3 * random(3, 2 * 1100, seed=2, dtype=dtype)
    found = gated_activation(gate_up, activation, backend="triton")  # type: ignore[arg-type]
    assert_near(found, gated_activation(gate_up, activation, backend="reference"))  # type: ignore[arg-type]
    part = torch.cat([gate_up, gate_up], dim=1)[:, : gate_up.shape[1]]
    assert torch.equal(found, gated_activation(part, activation, backend="triton"))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
def test_embeddings_are_rows_of_the_table(dtype: torch.dtype) -> None:
    table, token_ids = random(11, 1500, seed=3, dtype=dtype), torch.tensor([3, -1, 10, 0, 3], device=DEVICE)
    for ids in (token_ids, token_ids.int()):
        found = embedding(ids, table, backend="triton")
        assert torch.equal(found[[0, 2, 3, 4]], table[[3, 10, 0, 3]])
        assert (found[1] == 0).all()
        assert_near(embedding(ids, table, scale=7.5, backend="triton"), embedding(ids, table, scale=7.5, backend="reference"))


# ---- rotation and cache


def drawn_step(
    *, num_heads: int, num_kv_heads: int, head_dim: int, rotary: int, cache_dtype: torch.dtype, dtype: torch.dtype, seed: int
) -> tuple[Tensor, Tensor, Tensor, Rotation, Tensor]:
    """Query, key and value as parts of one product, angles, slots (one is padding). Some numbers are large, some tiny."""
    qkv = random(5, num_heads + 2 * num_kv_heads, head_dim, seed=seed)
    qkv = qkv * torch.logspace(-3, 2.9, qkv.numel()).reshape_as(qkv).to(DEVICE) if cache_dtype == FP8 else qkv
    query, key, value = qkv.to(dtype).split((num_heads, num_kv_heads, num_kv_heads), dim=1)
    angle = 100 * random(5, rotary // 2, seed=seed + 1)
    return query, key, value, Rotation(angle.cos(), angle.sin()), torch.tensor([33, 2, -1, 47, 16], device=DEVICE)


CASES = {
    "whole": {},
    "partial": {"rotary": 8},
    "interleaved": {"is_interleaved": True},
    "partial, interleaved, odd head": {"rotary": 8, "is_interleaved": True, "head_dim": 20},
    "norm": {"has_norm": True, "num_heads": 6},
    "norm, partial, bf16": {"has_norm": True, "rotary": 16, "dtype": torch.bfloat16},
    "one KV head, fp16": {"num_heads": 5, "num_kv_heads": 1, "dtype": torch.float16},
    "fp8": {"cache_dtype": FP8},
    "fp8, scales, norm, bf16": {"cache_dtype": FP8, "num_scales": 2, "has_norm": True, "dtype": torch.bfloat16},
    "fp8, one scale": {"cache_dtype": FP8, "num_scales": 1},
}


@pytest.mark.parametrize("block_size", [16, 5])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rotation_and_cache_agree_with_their_twin(case: dict, block_size: int) -> None:
    options = dict(num_heads=4, num_kv_heads=2, head_dim=32, rotary=32, dtype=torch.float32) | case
    has_norm, is_interleaved, num_scales = (options.pop(name, 0) for name in ("has_norm", "is_interleaved", "num_scales"))
    cache_dtype = options.setdefault("cache_dtype", options["dtype"])
    options["rotary"] = min(options["rotary"], options["head_dim"])
    query, key, value, rotation, slots = drawn_step(**options, seed=block_size)
    rotation = rotation._replace(is_interleaved=bool(is_interleaved))
    weights = random(2, options["head_dim"], seed=4, dtype=options["dtype"])
    norm = HeadNorm(weights[0], weights[1], 1e-6, 1.0) if has_norm else None
    scales = [random(num_scales, seed=s).abs() + 0.5 if num_scales else None for s in (5, 6)]
    found = []
    for backend in ("triton", "reference"):
        shape = (-(-48 // block_size), block_size, options["num_kv_heads"], options["head_dim"])
        cache = LayerCache(*(torch.full(shape, 7.0, device=DEVICE).to(cache_dtype) for _ in range(2)), *scales)
        turned = rotate_and_cache(query, key, value, rotation, cache, slots, norm=norm, backend=backend)
        found.append((turned, cache.keys, cache.values))
    (turned, keys, values), (expected, expected_keys, expected_values) = found
    assert turned.is_contiguous()
    torch.testing.assert_close(turned, expected, rtol=TOLERANCE[turned.dtype], atol=TOLERANCE[turned.dtype] * expected.abs().max().item())
    if cache_dtype == FP8:
        assert torch.equal(values.float(), expected_values.float())
        assert torch.isclose(keys.float(), expected_keys.float(), rtol=0.13, atol=2**-9).all()
        assert (keys.float() == expected_keys.float()).float().mean() > 0.99  # a last bit of fp32 may tip a rounding
    else:
        assert torch.equal(values, expected_values)
        assert_near(keys, expected_keys)
    untouched = torch.ones(shape[0] * block_size, dtype=torch.bool)
    untouched[[33, 2, 47, 16]] = False
    assert (keys.flatten(0, 1)[untouched].float() == 7).all()
    assert (values.flatten(0, 1)[untouched].float() == 7).all()


def test_rotation_keeps_lengths_and_position_zero_is_the_identity() -> None:
    query, key, value, rotation, slots = drawn_step(
        num_heads=2, num_kv_heads=2, head_dim=16, rotary=16, cache_dtype=torch.float32, dtype=torch.float32, seed=9
    )
    cache = LayerCache(*torch.zeros(2, 3, 16, 2, 16, device=DEVICE))
    for backend in ("reference", "triton"):
        turned = rotate_and_cache(query, key, value, rotation, cache, slots, backend=backend)
        torch.testing.assert_close(turned.norm(dim=-1), query.norm(dim=-1))
        still = Rotation(torch.ones_like(rotation.cosine), torch.zeros_like(rotation.sine))
        assert torch.equal(rotate_and_cache(query, key, value, still, cache, slots, backend=backend), query)
        assert torch.equal(cache.keys.flatten(0, 1)[33], key[0])


# ---- what does not fit


def test_what_does_not_fit_is_refused() -> None:
    query, key, value, rotation, slots = drawn_step(
        num_heads=4, num_kv_heads=2, head_dim=16, rotary=16, cache_dtype=torch.float32, dtype=torch.float32, seed=9
    )
    cache = LayerCache(*torch.zeros(2, 3, 16, 2, 16, device=DEVICE))
    wide = Rotation(*torch.zeros(2, 5, 9, device=DEVICE))
    norm = HeadNorm(torch.ones(3), torch.ones(16), 1e-6)
    for message, call in {
        "hidden must be": lambda: rms_norm(query.double(), None, 1e-6),
        "at most 32768 wide": lambda: rms_norm(torch.zeros(1, 40000), None, 1e-6),
        "weight must be": lambda: rms_norm(query, torch.ones(3), 1e-6),
        "residual must be": lambda: add_rms_norm(query, key, None, 1e-6),
        "activation must be": lambda: gated_activation(torch.zeros(2, 4), "relu"),  # type: ignore[arg-type]
        "gate_up must be": lambda: gated_activation(torch.zeros(2, 5)),
        "token_ids must be": lambda: embedding(torch.zeros(2), torch.zeros(4, 4)),
        "table must be": lambda: embedding(slots, torch.zeros(4, 4).T[:, ::2]),
        "query must be": lambda: rotate_and_cache(query[:, :3], key, value, rotation, cache, slots),
        "key must be": lambda: rotate_and_cache(query, key[:2], value, rotation, cache, slots),
        "value must be": lambda: rotate_and_cache(query, key, value.half(), rotation, cache, slots),
        "cosine must be": lambda: rotate_and_cache(query, key, value, wide, cache, slots),
        "same shape and dtype": lambda: rotate_and_cache(query, key, value, rotation._replace(sine=rotation.sine.half()), cache, slots),
        "slots must be": lambda: rotate_and_cache(query, key, value, rotation, cache, slots[:3]),
        "query_weight must be": lambda: rotate_and_cache(query, key, value, rotation, cache, slots, norm=norm),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()

"""Matrices of codes with scales: compiled decoding is the plain twin's, and products are those of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.kernels import quantized
from maskwright.kernels.quantized import integers_cpu, scaled, scaled_reference
from maskwright.kernels.quantized.rounding import Rounding
from maskwright.kernels.quantized.scaled import CODE_TYPES, Scaled, dequantize, multiply, rows
from maskwright.kernels.quantized.scratch import scratch


def random_matrix(name: str, num_rows: int, columns: int, block: tuple[int, int], *, has_zeros: bool = False, ordered: bool = True, seed: int = 0) -> Scaled:
    kind, generator = CODE_TYPES[name], torch.Generator().manual_seed(seed)
    data = torch.randint(0, 256, (num_rows, kind.row_bytes(columns)), dtype=torch.uint8, generator=generator)
    if name == "float8":
        data[data % 128 == 127] = 0  # no numbers
    shape = -(-num_rows // block[0]), -(-columns // block[1])
    scales = (torch.rand(shape, generator=generator) + 0.5).to([torch.float16, torch.bfloat16, torch.float32][seed % 3])
    zeros = torch.randint(0, 1 << kind.bits, shape, dtype=torch.uint8, generator=generator) if has_zeros else None
    order = None if ordered else torch.randperm(columns, generator=generator)
    return Scaled(kind, data, scales, columns, block, zeros, order)


def slow(matrix: Scaled) -> torch.Tensor:
    """One number after another, from the definition."""
    kind, out = matrix.type, torch.zeros(matrix.num_rows, matrix.num_columns)
    data = matrix.data.numpy()
    for i in range(matrix.num_rows):
        bits = int.from_bytes(data[i].tobytes(), "little")
        for j in range(matrix.num_columns):
            code = bits >> (j * kind.bits) & ((1 << kind.bits) - 1)
            place = i // matrix.block[0], j // matrix.block[1]
            zero = kind.middle if matrix.zeros is None else int(matrix.zeros[place])
            column = j if matrix.order is None else int(matrix.order[j])
            out[i, column] = (np.float32(kind.values[code]) - np.float32(zero)) * matrix.scales[place].float()
    return out


@given(
    st.sampled_from(sorted(CODE_TYPES)), st.integers(1, 12), st.integers(1, 40), st.integers(1, 12), st.integers(1, 40),
    st.booleans(), st.booleans(), st.integers(0, 5),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_codes_mean_what_the_definition_says(name, num_rows, columns, height, width, has_zeros, ordered, seed) -> None:
    has_zeros &= name.startswith("uint")
    matrix = random_matrix(name, num_rows, columns, (height, width), has_zeros=has_zeros, ordered=ordered, seed=seed)
    expected = slow(matrix)
    assert torch.equal(dequantize(matrix), expected)
    in_order = scaled_reference.decode(matrix.rows(slice(0, num_rows)))
    assert torch.equal(in_order, expected if matrix.order is None else expected[:, matrix.order])


@given(st.sampled_from(sorted(CODE_TYPES)), st.integers(1, 6), st.integers(1, 40), st.integers(0, 9))
@settings(deadline=None)
def test_packing_is_undone_by_unpacking(name: str, num_rows: int, columns: int, seed: int) -> None:
    kind = CODE_TYPES[name]
    codes = torch.from_numpy(np.random.default_rng(seed).integers(0, 1 << kind.bits, (num_rows, columns), dtype=np.uint8))
    packed = scaled_reference.packed(codes, kind)
    assert packed.shape[1] == kind.row_bytes(columns)
    assert torch.equal(scaled_reference.unpacked(packed, kind, columns), codes)


BLOCKS = {"uint2": (1, 64), "uint3": (1, 64), "uint4": (1, 32), "uint8": (1, 512), "int8": (1, 512), "float8": (128, 128), "float4": (1, 32), "nf4": (1, 64)}


@pytest.mark.parametrize("num_tokens", [1, 5])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_product_is_that_of_the_numbers(name: str, num_tokens: int) -> None:
    """With more rows than are unpacked at a time, of which the last are few."""
    num_rows = 2 * scaled.SCRATCH["cpu"] // 512 + 3
    matrix = random_matrix(name, num_rows, 512, BLOCKS[name], ordered=name != "uint4")
    x = torch.randn(num_tokens, 512, generator=torch.Generator().manual_seed(0))
    weights = dequantize(matrix).double()
    scale = weights.abs().sum(dim=1) + 1e-30
    found = multiply(x, matrix)
    assert ((found.double() - x.double() @ weights.T) / scale).abs().max() < 1e-5
    assert torch.equal(multiply(x.bfloat16(), matrix), multiply(x.bfloat16().float(), matrix).bfloat16())


def test_a_product_in_inference_mode_leaves_nothing_behind_that_hinders_others() -> None:
    matrix, wider = random_matrix("uint4", 20, 4096, (1, 32)), quantized.Packed(quantized.BLOCK_TYPES["F16"], torch.zeros(20, 8192, dtype=torch.uint8))
    scratch.weights = torch.empty(0)
    with torch.inference_mode():
        multiply(torch.ones(1, 4096), matrix)
    assert torch.equal(quantized.multiply(torch.ones(1, 4096), wider), torch.zeros(1, 20))


@pytest.mark.parametrize("name", BLOCKS)
def test_rows_are_looked_up(name: str) -> None:
    matrix, indices = random_matrix(name, 300, 512, BLOCKS[name]), torch.tensor([299, 0, 0, 3, 130])
    assert torch.equal(rows(matrix, indices), dequantize(matrix)[indices])


def test_what_runs_on_another_device_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, x = random_matrix("float8", 300, 512, (128, 128)), torch.randn(2, 512)
    monkeypatch.setitem(scaled.SCRATCH, "cuda", 70 * 512)
    assert torch.allclose(scaled.multiply_in_pieces(x, matrix), multiply(x, matrix), rtol=1e-4, atol=1e-2)


# ---- integers times integers

INPUTS = [
    Rounding("int8"),
    Rounding("int8", is_symmetric=False),
    Rounding("int8", scale=torch.tensor([0.02])),
    Rounding("int8", scale=torch.tensor([0.02]), zero=torch.tensor([-5.0])),
]


@pytest.mark.parametrize("rounding", INPUTS)
@pytest.mark.parametrize(("name", "block"), [("int8", (1, 400)), ("uint8", (1, 320)), ("int8", (128, 999))])
def test_integers_times_integers_are_what_both_stand_for(name: str, block: tuple[int, int], rounding: Rounding) -> None:
    """More rows than are turned at a time; both ways the same numbers are multiplied, and a row is what it is alone."""
    matrix = random_matrix(name, 4000, 320, block, ordered=name == "int8")
    x = torch.randn(7, 320, generator=torch.Generator().manual_seed(1)) * torch.logspace(-2, 2, 7)[:, None]
    assert integers_cpu.can_multiply(matrix, rounding), "this processor, or this build of torch, does not multiply integers exactly"
    found, weights, given = multiply(x, matrix, rounding), dequantize(matrix).double(), rounding(x).double()
    scale = given.abs().amax(1, keepdim=True) * weights.abs().sum(1) + 1e-30
    assert ((found.double() - given @ weights.T).abs() / scale).max() < 1e-6
    assert torch.equal(found, torch.cat([multiply(row[None], matrix, rounding) for row in x]))
    assert torch.equal(multiply(x.bfloat16(), matrix, rounding), multiply(x.bfloat16().float(), matrix, rounding).bfloat16())


def test_sums_of_the_largest_integers_are_exact() -> None:
    extremes = torch.tensor([-128, 127], dtype=torch.int8)
    data = extremes[torch.randint(2, (40, 4096), generator=torch.Generator().manual_seed(0))]
    matrix = Scaled(CODE_TYPES["int8"], data.view(torch.uint8), torch.ones(1, 1), 4096, (40, 4096))
    x = extremes[torch.randint(2, (3, 4096), generator=torch.Generator().manual_seed(1))].float()
    expected = x.double() @ data.double().T
    found = multiply(x, matrix, Rounding("int8", scale=torch.ones(1)))
    assert torch.equal(found.double(), expected.float().double())


def test_integers_are_multiplied_as_numbers_where_they_would_not_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, x, rounding = random_matrix("int8", 30, 64, (1, 64)), torch.randn(2, 64), Rounding("int8")
    expected = multiply(x, matrix, rounding)
    monkeypatch.setattr(torch, "_int_mm", lambda left, right: (left.int() @ right.int()).clamp(-32768, 32767))
    integers_cpu._is_exact.cache_clear()
    try:
        assert not integers_cpu.can_multiply(matrix, rounding)
        assert torch.allclose(multiply(x, matrix, rounding), expected, rtol=1e-5, atol=1e-3)
    finally:
        integers_cpu._is_exact.cache_clear()


def test_what_is_no_number_stays_none() -> None:
    x = torch.randn(2, 64)
    x[1, 5] = float("nan")
    found = multiply(x, random_matrix("int8", 9, 64, (1, 64)), Rounding("int8"))
    assert found[0].isfinite().all() and found[1].isnan().all()


# ---- inputs on a grid


@pytest.mark.parametrize("rounding", [Rounding("int8"), Rounding("float8"), Rounding("int8", is_symmetric=False), Rounding("float8", 32)])
def test_a_row_has_the_same_numbers_in_any_batch(rounding: Rounding) -> None:
    x = torch.randn(7, 96, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 7)[:, None]
    together = rounding(x)
    assert torch.equal(together, torch.cat([rounding(row[None]) for row in x]))
    assert not torch.equal(together, x) and torch.allclose(together, x, rtol=0.07, atol=1e-2 * x.abs().max().item())
    assert torch.equal(rounding(torch.zeros(2, 96)), torch.zeros(2, 96))


def test_int8_moves_a_number_by_half_a_step_at_most() -> None:
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    step = x.abs().amax(1, keepdim=True) / 127.5
    assert ((Rounding("int8")(x) - x).abs() <= 0.501 * step).all()


def test_a_fixed_scale_cuts_off_what_is_larger() -> None:
    rounding = Rounding("int8", scale=torch.tensor([0.5]))
    assert rounding(torch.tensor([[1000.0, -1000.0, 0.7, 0.1]])).tolist() == [[63.5, -64.0, 0.5, 0.0]]


def test_a_ceiling_bounds_the_scale() -> None:
    x = torch.tensor([[4480.0, 1.0]])
    assert Rounding("float8")(x)[0, 0] == 4480 and Rounding("float8", ceiling=448.0)(x)[0, 0] == 448

"""Products with packed matrices in Triton: against the numbers of the plain twins, and codes times codes against what both stand for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

pytest.importorskip("triton")

from maskwright.kernels import quantized
from maskwright.kernels.moe import ACTIVATIONS
from maskwright.kernels.quantized import BLOCK_TYPES, Packed, scaled, scaled_reference
from maskwright.kernels.quantized.experts import grouped_mlp, stacked_blocks, stacked_codes
from maskwright.kernels.quantized.gpu import product
from maskwright.kernels.quantized.gpu.product import Tile, splits_of
from maskwright.kernels.quantized.gpu.rounded import can_multiply, round_rows
from maskwright.kernels.quantized.rounding import Rounding
from maskwright.kernels.quantized.scaled import CODE_TYPES, Scaled

from .device import DEVICE, IS_NATIVE
from .test_quantized import random_blocks
from .test_scaled import random_matrix

SUPERBLOCKS = [name for name, kind in BLOCK_TYPES.items() if kind.num_weights == 256]


def random_inputs(num_rows: int, columns: int, seed: int = 0) -> Tensor:
    return torch.randn(num_rows, columns, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def columns_of(packed: Packed, columns: int) -> Packed:
    return Packed(packed.type, packed.data[:, : packed.type.row_bytes(columns)].contiguous().to(DEVICE))


def is_near(found: Tensor, x: Tensor, weights: Tensor, tolerance: float) -> bool:
    """Whether `found` is x W^T, up to a share of what a row of W can add up to."""
    scale = x.double().abs().amax(dim=1, keepdim=True) * weights.double().abs().sum(dim=1) + 1e-30
    return bool(((found.double() - x.double() @ weights.double().T).abs() / scale).max() < tolerance)


# ---- blocks


@pytest.mark.parametrize("num_rows", [1, 20])
@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_blocks_are_multiplied_as_the_numbers_that_they_are(name: str, num_rows: int) -> None:
    """With rows and columns that do not fill the last tile."""
    packed = columns_of(random_blocks(name, 70, most=60), 512 if name in SUPERBLOCKS else 480)
    x, weights = random_inputs(num_rows, packed.num_columns), quantized.reference.dequantize(packed)
    assert is_near(quantized.multiply(x, packed, backend="triton"), x, weights, 1e-6)


@pytest.mark.parametrize("name", [name for name, kind in BLOCK_TYPES.items() if kind.num_weights > 1])
def test_all_bits_of_a_block_count(name: str) -> None:
    """Every byte that there is, in inputs that pick one column each: numbers are those of the twin, in the interpreter bit by bit."""
    packed = columns_of(random_blocks(name, 64, seed=1), 256)
    is_finite = quantized.reference.dequantize(packed).isfinite().all(dim=1)
    packed = Packed(packed.type, packed.data[is_finite])
    weights, one_each = quantized.reference.dequantize(packed), torch.eye(256, device=DEVICE)
    found = quantized.multiply(one_each, packed, backend="triton")
    assert len(weights) > 9
    assert is_near(found, one_each, weights, 1e-6) if IS_NATIVE else torch.equal(found.T, weights)


@pytest.mark.parametrize("name", ["Q4_0", "MXFP4", "F16"])
def test_blocks_may_lie_anywhere_in_memory(name: str) -> None:
    packed, x = columns_of(random_blocks(name, 12, most=60), 256), random_inputs(2, 256)
    odd = torch.cat((packed.data.new_zeros(1), packed.data.flatten()))[1:].view(packed.data.shape)
    assert torch.equal(
        quantized.multiply(x, Packed(packed.type, odd), backend="triton"), quantized.multiply(x, packed, backend="triton")
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_rounded_to_the_dtype_of_inputs_and_summed_in_more(dtype: torch.dtype) -> None:
    packed = columns_of(random_blocks("Q8_0", 30, most=60), 512)
    x, weights = random_inputs(3, 512).to(dtype), quantized.reference.dequantize(packed).to(dtype)
    found = quantized.multiply(x, packed, backend="triton")
    assert found.dtype == dtype
    assert is_near(found, x.float(), weights.float(), 2e-3)


def test_a_row_is_computed_as_if_it_were_alone_in_small_batches() -> None:
    packed, x = columns_of(random_blocks("Q4_K", 40, most=60), 512), random_inputs(5, 512)
    together = quantized.multiply(x, packed, backend="triton")
    assert torch.equal(together, torch.cat([quantized.multiply(row[None], packed, backend="triton") for row in x]))


def test_columns_are_shared_among_programs_where_rows_are_few() -> None:
    tile = Tile(16, 128, 4)
    assert splits_of(1, 4096, 4096, tile) == 4
    assert splits_of(1, 128_256, 4096, tile) == 1  # rows enough to fill a GPU
    assert splits_of(1, 64, 512, tile) == 1  # not columns enough
    assert splits_of(512, 4096, 4096, Tile(128, 64, 8)) == 1


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 9), st.sampled_from([1, 2, 4, 8]))
def test_parts_of_columns_add_up(num_rows: int, blocks: int, splits: int) -> None:
    """Also where a split has nothing to do."""
    packed = columns_of(random_blocks("Q4_0", 9, most=60), 32 * blocks)
    x = random_inputs(num_rows, 32 * blocks, seed=blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "splits_of", lambda *_: splits)
        found = quantized.multiply(x, packed, backend="triton")
    assert is_near(found, x, quantized.reference.dequantize(packed), 1e-6)


def test_inputs_need_not_be_contiguous_and_may_be_none() -> None:
    packed, wide = columns_of(random_blocks("Q4_1", 9, most=60), 64), random_inputs(3, 100)
    expected = quantized.multiply(wide[:, 20:84].contiguous(), packed, backend="triton")
    assert torch.equal(quantized.multiply(wide[:, 20:84], packed, backend="triton"), expected)
    assert torch.equal(quantized.multiply(wide.T.contiguous().T[:, 20:84], packed, backend="triton"), expected)
    assert quantized.multiply(wide[:0, :64], packed, backend="triton").shape == (0, 9)


# ---- codes


def on_device(matrix: Scaled) -> Scaled:
    return matrix.to(DEVICE)


@given(
    name=st.sampled_from(sorted(CODE_TYPES)), num_rows=st.sampled_from([1, 2, 17]), matrix_rows=st.sampled_from([1, 9, 65]),
    columns=st.integers(1, 200), height=st.integers(1, 12), width=st.sampled_from([1, 5, 16, 24, 32, 64, 128, 1000]),
    has_zeros=st.booleans(), is_ordered=st.booleans(), seed=st.integers(0, 5),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_codes_are_multiplied_as_the_numbers_that_they_are(
    name, num_rows, matrix_rows, columns, height, width, has_zeros, is_ordered, seed
) -> None:
    has_zeros &= name.startswith("uint")
    matrix = random_matrix(name, matrix_rows, columns, (height, width), has_zeros=has_zeros, ordered=is_ordered, seed=seed)
    x, weights = random_inputs(num_rows, columns, seed), scaled.dequantize(matrix).to(DEVICE)
    assert is_near(scaled.multiply(x, on_device(matrix), backend="triton"), x, weights, 1e-6)


@pytest.mark.parametrize("name", ["uint4", "uint3", "float8", "float4", "nf4", "int8"])
def test_every_code_is_its_number(name: str) -> None:
    kind = CODE_TYPES[name]
    codes = torch.arange(1 << kind.bits, dtype=torch.uint8)[None]
    columns = codes.shape[1]
    matrix = on_device(Scaled(kind, scaled_reference.packed(codes, kind), torch.ones(1, 1), columns, (1, columns)))
    kept = [code for code in range(columns) if kind.values[code] == kind.values[code]]  # e4m3 has codes that are no numbers
    matrix.data[:, [code for code in range(columns) if code not in kept]] = 0
    found = scaled.multiply(torch.eye(columns, device=DEVICE)[kept], matrix, backend="triton")
    assert found[:, 0].tolist() == [kind.values[code] - kind.middle for code in kept]


def test_scales_may_be_powers_of_two() -> None:
    matrix, x = random_matrix("float4", 9, 64, (1, 32)), random_inputs(2, 64)
    exponents = torch.randint(120, 134, matrix.scales.shape, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    matrix = Scaled(matrix.type, matrix.data, exponents, 64, (1, 32))
    assert is_near(scaled.multiply(x, on_device(matrix), backend="triton"), x, scaled.dequantize(matrix).to(DEVICE), 1e-6)


# ---- codes times codes

FIXED = {"scale": torch.tensor([0.02], device=DEVICE)}
ROUNDED = [
    ("float8", (1, 999), Rounding("float8")),
    ("float8", (128, 128), Rounding("float8", group=128)),
    ("float8", (999, 999), Rounding("float8", **FIXED)),
    ("float8", (1, 999), Rounding("float8", ceiling=5.0)),
    ("int8", (1, 999), Rounding("int8")),
    ("uint8", (1, 999), Rounding("int8", is_symmetric=False)),
    ("int8", (1, 128), Rounding("int8", group=256, is_symmetric=False)),
    ("int8", (999, 999), Rounding("int8", **FIXED, zero=torch.tensor([3.0], device=DEVICE))),
]


@pytest.mark.parametrize("num_rows", [1, 20])
@pytest.mark.parametrize(("name", "block", "rounding"), ROUNDED)
def test_codes_times_codes_are_what_both_stand_for(name: str, block: tuple[int, int], rounding: Rounding, num_rows: int) -> None:
    """By rows of magnitudes that differ, so that a scale of another row would be seen."""
    matrix = on_device(random_matrix(name, 70, 300, block))
    x = random_inputs(num_rows, 300) * torch.logspace(-2, 2, num_rows, device=DEVICE)[:, None]
    assert can_multiply(matrix, rounding)
    found = scaled.multiply(x, matrix, rounding, backend="triton")
    assert is_near(found, rounding(x), scaled.dequantize(matrix), 1e-6)


@pytest.mark.parametrize(("name", "block", "rounding"), ROUNDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inputs_are_rounded_as_the_twin_rounds_them(name: str, block: tuple[int, int], rounding: Rounding, dtype: torch.dtype) -> None:
    x = torch.cat((random_inputs(6, 300) * torch.logspace(-3, 2, 6, device=DEVICE)[:, None], torch.zeros(1, 300, device=DEVICE))).to(dtype)
    codes, scales, zeros, width = round_rows(x, rounding)
    columns = torch.arange(300, device=DEVICE) // width
    numbers = codes.float() - (0.0 if zeros is None else zeros[:, columns])
    assert torch.equal(numbers * scales[:, columns], rounding(x.float()))


def test_what_is_no_number_stays_none() -> None:
    x = random_inputs(2, 64)
    x[1, 40] = float("nan")
    for name in ("int8", "float8"):
        found = scaled.multiply(x, on_device(random_matrix(name, 9, 64, (1, 64))), Rounding(name), backend="triton")
        assert found[0].isfinite().all() and found[1].isnan().all()


@pytest.mark.parametrize(
    ("name", "block", "rounding"),
    [
        ("uint4", (1, 32), Rounding("int8")),  # weights of fewer bits
        ("int8", (1, 32), Rounding("int8")),  # scales change within a tile
        ("float8", (1, 999), Rounding("float8", group=32)),
        ("float8", (1, 999), Rounding("int8")),
        ("int8", (1, 999), Rounding("float8")),
    ],
)
def test_other_codes_are_multiplied_as_numbers(name: str, block: tuple[int, int], rounding: Rounding) -> None:
    matrix, x = on_device(random_matrix(name, 9, 300, block)), random_inputs(2, 300)
    assert not can_multiply(matrix, rounding)
    assert is_near(scaled.multiply(x, matrix, rounding, backend="triton"), rounding(x), scaled.dequantize(matrix), 1e-6)
    permuted = Scaled(matrix.type, matrix.data, matrix.scales, 300, matrix.block, None, torch.arange(300, device=DEVICE))
    assert not can_multiply(permuted, rounding)


# ---- experts


def one_by_one(hidden, weights_of, chosen, weights, activation, scales_input) -> Tensor:
    """The obvious twin: every token through each of its experts, in numbers."""
    output = torch.zeros_like(hidden)
    for token in range(len(hidden)):
        for expert, weight in zip(chosen[token].tolist(), weights[token], strict=True):
            gate_up, down = weights_of(expert)
            x = hidden[token] * weight if scales_input else hidden[token]
            gate, up = (gate_up @ x).chunk(2)
            result = down @ (ACTIVATIONS[activation](gate) * up)
            output[token] += result if scales_input else result * weight
    return output


def experts_of(make: str, count: int, rows: int, columns: int) -> list[Packed] | list[Scaled]:
    if make in BLOCK_TYPES:
        return [columns_of(random_blocks(make, rows, seed=seed, most=60), columns) for seed in range(count)]
    block = {"uint4": (1, 32), "float8": (50, 64), "uint8": (1, 999)}[make]
    return [on_device(random_matrix(make, rows, columns, block, has_zeros=make == "uint4" and seed != 1, seed=3 * seed)) for seed in range(count)]


@pytest.mark.parametrize(("make", "num_tokens", "scales_input"), [("Q8_0", 3, False), ("Q4_K", 40, True), ("uint4", 5, True), ("float8", 37, False), ("uint8", 1, False)])
def test_packed_experts_compute_what_their_numbers_do(make: str, num_tokens: int, scales_input: bool) -> None:
    """Some experts have nobody; blocks of 16 and of 64 rows; the last ones of experts are not full."""
    count, hidden_size, size, per_token = 3, 256, 256, 2
    gate_up, down = experts_of(make, count, 2 * size, hidden_size), experts_of(make, count, hidden_size, size)
    is_blocks = make in BLOCK_TYPES
    stack, numbers = (stacked_blocks, quantized.dequantize) if is_blocks else (stacked_codes, scaled.dequantize)
    tables = [(numbers(one), numbers(other)) for one, other in zip(gate_up, down, strict=True)]
    x = random_inputs(num_tokens, hidden_size) * (0.1 / hidden_size**0.5)
    chosen = torch.stack([torch.arange(num_tokens) % 2, torch.full((num_tokens,), 2)], dim=1).to(DEVICE)
    weights = torch.rand(num_tokens, per_token, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    found = grouped_mlp(x, stack(gate_up), stack(down), chosen, weights, "silu", scales_input, (None, None), count)
    expected = one_by_one(x, lambda expert: tables[expert], chosen, weights, "silu", scales_input)
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-5 * expected.abs().max().item())


def test_matrices_of_several_forms_are_not_stacked() -> None:
    assert stacked_blocks([columns_of(random_blocks(name, 3), 256) for name in ("Q4_0", "Q4_1")]) is None
    assert stacked_codes([random_matrix("uint4", 3, 64, (1, 32)), random_matrix("uint4", 3, 64, (1, 64))]) is None
    assert stacked_codes([random_matrix("uint4", 3, 64, (1, 32), ordered=False)]) is None

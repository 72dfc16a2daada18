"""Compiled products with codes that have scales beside them: bit by bit those of the twin, and near those of the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.kernels import cpu
from maskwright.kernels.cpu import twin
from maskwright.kernels.quantized import scaled
from maskwright.kernels.quantized.codes import CODE_TYPES, Scaled
from maskwright.kernels.quantized.rounding import Rounding
from maskwright.kernels.quantized.scaled_reference import codes_of, values_of

from .test_cpu import INSTRUCTIONS, activations, at_the_end_of_memory, blocks, same

needs_library = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
COLUMNS, TABLES = 256, ("float4", "nf4")
INTEGERS = (*(f"uint{bits}" for bits in range(2, 9)), "int8")
NAMES = (*INTEGERS, "float8", *TABLES)
BLOCKS = ((1, 32), (1, 64), (1, 96), (1, COLUMNS), (16, 128), (100, COLUMNS))  # the last: one scale for all


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    if not cpu.use_instructions(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    cpu.use_instructions("auto")


def codes(
    name: str, num_rows: int, block: tuple[int, int] = (1, 64), *, has_zeros: bool = False, dtype: torch.dtype = torch.float32,
    seed: int = 0, ordered: bool = True,
) -> Scaled:  # fmt: skip
    """Of any codes, the extreme ones among them; scales of either sign."""
    rng, kind = np.random.default_rng(seed), CODE_TYPES[name]
    data = torch.from_numpy(rng.integers(0, 256, (num_rows, kind.row_bytes(COLUMNS)), dtype=np.uint8))
    data[:, 0], data[:, -1] = 0, 0x88
    if name == "float8":
        data[(data & 127) == 127] = 0x7E  # no number
    shape = (-(-num_rows // block[0]), -(-COLUMNS // block[1]))
    scales = torch.from_numpy(rng.standard_normal(shape).astype(np.float32) * 0.1).to(dtype)
    zeros = torch.from_numpy(rng.integers(0, 1 << kind.bits, shape, dtype=np.uint8)) if has_zeros else None
    zeros = zeros.view(torch.int8) if zeros is not None and name == "int8" else zeros
    order = None if ordered else torch.from_numpy(rng.permutation(COLUMNS))
    return Scaled(kind, data, scales, COLUMNS, block, zeros, order)


def expected(matrix: Scaled, x: torch.Tensor, rounding: Rounding | None = None) -> np.ndarray:
    """By the twin."""
    given = (x if matrix.order is None else x[:, matrix.order]).numpy()
    values = values_of(matrix.type.name, torch.device("cpu"))[codes_of(matrix).long()].numpy()
    rows = np.arange(matrix.num_rows) // matrix.block[0]
    scales = matrix.scales.float().numpy()[rows]
    if matrix.type.name == "float8":
        numbers = given if rounding is None else rounding(torch.from_numpy(given)).numpy()
        return twin.multiply_codes(numbers, twin.Codes(values, scales, np.zeros(scales.shape, np.int64), matrix.block[1]))
    rounded = twin.rounded(given)
    if matrix.type.name in TABLES:
        numbers, of_numbers = twin.of_table(matrix.type.name, values, scales)
        return twin.multiply_codes(rounded, twin.Codes(numbers, of_numbers, np.zeros(scales.shape, np.int64), matrix.block[1]))
    zeros = np.full(scales.shape, matrix.type.middle) if matrix.zeros is None else matrix.zeros.numpy()[rows]
    if rounding is not None:
        scale = None if rounding.scale is None else rounding.scale.item()
        rounded = twin.on_int8_grid(given, COLUMNS if rounding.group is None else rounding.group, scale)
    return twin.multiply_codes(rounded, twin.Codes(values.astype(np.int64), scales, zeros.astype(np.int64), matrix.block[1]))


@needs_library
@pytest.mark.parametrize("num_rows", [1, 6])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", NAMES)
def test_a_product_is_its_twin_bit_by_bit(name: str, block: tuple[int, int], num_rows: int, instructions: str) -> None:
    matrix, x = codes(name, 37, block), activations(num_rows, COLUMNS)
    assert cpu.can_multiply(matrix)
    assert same(cpu.Product([matrix])(x), expected(matrix, x))


@needs_library
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_scales_of_16_bits_zero_points_and_orders_are_read(name: str, dtype: torch.dtype, instructions: str) -> None:
    matrix, x = codes(name, 20, (1, 32), has_zeros=name in INTEGERS, dtype=dtype, ordered=False), activations(3, COLUMNS)
    assert same(cpu.Product([matrix])(x), expected(matrix, x))


@needs_library
@pytest.mark.parametrize("name", [*TABLES, "float8"])
def test_scales_may_be_powers_of_two(name: str, instructions: str) -> None:
    """Among them the smallest, which is subnormal, and the one that is no number."""
    matrix, x = codes(name, 20, (1, 32)), activations(3, COLUMNS)
    exponents = np.random.default_rng(0).integers(100, 130, matrix.scales.shape, dtype=np.uint8)
    exponents[3, 2], exponents[5, 1] = 0, 255
    matrix = replace(matrix, scales=torch.from_numpy(exponents).view(torch.float8_e8m0fnu))
    found = cpu.Product([matrix])(x)
    with np.errstate(invalid="ignore"):
        wanted = expected(matrix, x)
    is_number = np.isfinite(wanted)
    assert not is_number[:, 5].any() and is_number[:, :5].all() and is_number[:, 6:].all()
    assert same(torch.where(torch.from_numpy(is_number), found, 0.0), np.where(is_number, wanted, np.float32(0)))
    assert found[:, 5].isnan().all()


@needs_library
@pytest.mark.parametrize("columns", [48, 64, 112, 176])
def test_small_floats_of_any_width_are_the_twins_and_nothing_is_read_behind_them(columns: int, instructions: str) -> None:
    codes = torch.from_numpy(np.random.default_rng(0).integers(0, 127, (7, columns), dtype=np.uint8))
    scales, x = torch.rand(7, -(-columns // 64)), activations(6, COLUMNS)[:, :columns]
    matrix = Scaled(CODE_TYPES["float8"], at_the_end_of_memory(codes), scales, columns, (1, 64))
    values = values_of("float8", torch.device("cpu"))[codes.long()].numpy()
    numbers = twin.Codes(values, scales.numpy(), np.zeros(scales.shape, np.int64), 64)
    for some in (x[:1], x):
        assert same(cpu.Product([matrix])(some), twin.multiply_codes(some.numpy(), numbers))


@needs_library
@pytest.mark.parametrize("columns", [32, 64, 96, 160])
@pytest.mark.parametrize("name", [name for name in NAMES if CODE_TYPES[name].bits < 8])
def test_nothing_is_read_behind_codes_that_share_bytes(name: str, columns: int, instructions: str) -> None:
    kind, rng, x = CODE_TYPES[name], np.random.default_rng(0), activations(2, COLUMNS)[:, :columns]
    data = torch.from_numpy(rng.integers(0, 256, (21, kind.row_bytes(columns)), dtype=np.uint8))
    wide = torch.zeros(21, kind.row_bytes(COLUMNS), dtype=torch.uint8)
    matrix = Scaled(kind, at_the_end_of_memory(data), torch.rand(21, columns // 32), columns, (1, 32))
    assert cpu.can_multiply(matrix) == (data.shape[1] >= 16)
    if cpu.can_multiply(matrix):
        wide[:, : data.shape[1]] = data
        scales = torch.nn.functional.pad(matrix.scales, (0, (COLUMNS - columns) // 32))
        filled = replace(matrix, data=wide, scales=scales, num_columns=COLUMNS)
        given = torch.nn.functional.pad(x, (0, COLUMNS - columns))
        assert same(cpu.Product([matrix])(x), expected(filled, given))


ROUNDINGS = {
    "a row": Rounding("int8"), "a group": Rounding("int8", group=64), "for all": Rounding("int8", scale=torch.tensor([0.01])),
    "floats of a row": Rounding("float8"), "floats of a group": Rounding("float8", group=32),
    "floats for all": Rounding("float8", scale=torch.tensor([0.02])), "floats below a ceiling": Rounding("float8", ceiling=0.5),
}  # fmt: skip


@needs_library
@pytest.mark.parametrize("which", ROUNDINGS)
def test_inputs_are_rounded_as_the_checkpoint_says(which: str, instructions: str) -> None:
    rounding, x = ROUNDINGS[which], activations(5, COLUMNS)
    x[2] = -x[2].abs().max() * torch.linspace(0, 1, COLUMNS)  # down to the lowest code
    name = "int8" if rounding.grid == "int8" else "float8"
    for matrix in (codes(name, 33, (1, COLUMNS)), codes(name, 33, (1, 64), ordered=False)):
        assert cpu.can_multiply(matrix, rounding)
        found = cpu.Product([matrix], None, [rounding])(x)
        assert same(found, expected(matrix, x, rounding))
        exact = scaled.dequantize(matrix).double()
        near = rounding(x).double() @ exact.T if matrix.order is None else rounding(x[:, matrix.order]).double() @ exact[:, matrix.order].T
        size = x.abs().double() @ exact.abs().T + 1e-30
        assert ((found - near).abs() / size).max() < 1e-5


@needs_library
@given(
    name=st.sampled_from(NAMES), block=st.sampled_from(BLOCKS), has_zeros=st.booleans(), ordered=st.booleans(),
    num_rows=st.integers(16, 60), num_tokens=st.integers(1, 9), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_products_are_near_those_of_the_numbers(
    name: str, block: tuple[int, int], has_zeros: bool, ordered: bool, num_rows: int, num_tokens: int, seed: int
) -> None:
    matrix = codes(name, num_rows, block, has_zeros=has_zeros and name in INTEGERS, ordered=ordered, seed=seed)
    x = torch.randn(num_tokens, COLUMNS, generator=torch.Generator().manual_seed(seed))
    exact = scaled.dequantize(matrix)
    size = x.abs().max(dim=1, keepdim=True).values * exact.abs().sum(dim=1)
    bound = 1e-5 if name == "float8" else 1 / 250  # half a step of activations
    assert ((cpu.Product([matrix])(x) - x @ exact.T).abs() <= bound * size).all()


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_a_row_does_not_depend_on_rows_or_threads_beside_it(name: str) -> None:
    product, x = cpu.Product([codes(name, 200)]), activations(300, COLUMNS)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = torch.cat([product(row[None]) for row in x])
        torch.set_num_threads(3)
        assert torch.equal(product(x), expected)
        assert torch.equal(product(x[:5]), expected[:5])
    finally:
        torch.set_num_threads(before)


@needs_library
def test_parts_of_several_kinds_stand_in_any_order() -> None:
    parts = [codes("uint4", 40), blocks("Q8_0", 3, COLUMNS), codes("float8", 5), blocks("BF16", 7, COLUMNS), codes("int8", 17)]
    parts += [codes("uint3", 18), codes("nf4", 33), codes("uint6", 16)]
    x, order = activations(2, COLUMNS), torch.randperm(139, generator=torch.Generator().manual_seed(0))
    expected = torch.cat([cpu.Product([part])(x) for part in parts], dim=1)
    assert torch.equal(cpu.Product(parts)(x), expected)
    assert torch.equal(cpu.Product(parts, order)(x), expected[:, order])


@needs_library
def test_parts_may_be_given_activations_in_ways_of_their_own() -> None:
    """Two that share an order of columns, one with another, one on a grid, one of blocks, one on the grid of floats."""
    one, other = torch.arange(COLUMNS - 1, -1, -1), torch.arange(COLUMNS).roll(3)
    parts = [replace(codes("uint4", 40), order=one), replace(codes("uint4", 17), order=one.clone()), codes("int8", 20)]
    parts += [blocks("Q8_0", 16, COLUMNS), replace(codes("uint4", 24), order=other), codes("float8", 5)]
    roundings = [None, None, Rounding("int8"), None, None, Rounding("float8")]
    x, order = activations(3, COLUMNS), torch.randperm(122, generator=torch.Generator().manual_seed(0))
    expected = torch.cat([cpu.Product([part], None, [rounding])(x) for part, rounding in zip(parts, roundings, strict=True)], dim=1)
    product = cpu.Product(parts, order, roundings)
    assert product.num_runs == 5
    assert torch.equal(product(x), expected[:, order])


@needs_library
@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_a_code_that_is_no_number_is_seen(code: int, instructions: str) -> None:
    matrix = codes("float8", 20)
    matrix.data[3, 17] = code
    for num_tokens in (1, 8):
        found = cpu.Product([matrix])(activations(num_tokens, COLUMNS))
        assert not found[:, 3].isfinite().any() and found[:, 4:].isfinite().all()


def test_what_is_multiplied_otherwise() -> None:
    """Codes of one bit, narrow rows, groups that part blocks, few rows, other grids, tables with zero points or grids."""
    ones = torch.ones(20, 1)
    for kind, columns in (("uint1", COLUMNS), ("uint3", 32), ("uint2", 32)):
        data = torch.zeros(20, CODE_TYPES[kind].row_bytes(columns), dtype=torch.uint8)
        assert not cpu.can_multiply(Scaled(CODE_TYPES[kind], data, ones, columns, (1, columns)))
    for name in TABLES:
        assert not cpu.can_multiply(codes(name, 20), Rounding("int8"))
        assert not cpu.can_multiply(codes(name, 20, has_zeros=True))
    assert not cpu.can_multiply(codes("uint4", 20, (1, 40)))
    assert not cpu.can_multiply(codes("uint4", 15))
    assert cpu.can_multiply(codes("float8", 3, (1, 16))) and not cpu.can_multiply(codes("float8", 3, (1, 8)))
    assert not cpu.can_multiply(codes("uint4", 20), Rounding("float8")) and not cpu.can_multiply(codes("float8", 20), Rounding("int8"))
    assert not cpu.can_multiply(codes("int8", 20), Rounding("int8", is_symmetric=False))
    assert not cpu.can_multiply(codes("int8", 20), Rounding("int8", group=48))
    assert not cpu.can_multiply(blocks("F32", 20), Rounding("int8"))

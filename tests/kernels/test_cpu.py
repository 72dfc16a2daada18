"""Compiled products: bit by bit those of the twin, whatever the instructions, the threads and the rows beside."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.kernels import cpu
from maskwright.kernels.cpu import library, twin
from maskwright.kernels.quantized import BLOCK_TYPES, Packed, reference

needs_library = pytest.mark.skipif(not cpu.is_available(), reason="no C compiler, or a processor without AVX2 or DotProd")
COLUMNS = 512
INSTRUCTIONS = ("avx512bf16", "avx512", "avx2", "neon")


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    if not cpu.use_instructions(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    cpu.use_instructions("auto")


def blocks(name: str, num_rows: int, columns: int = COLUMNS, seed: int = 0, most: int = 60) -> Packed:
    """Of any bits; below 60 no scale is infinite or no number."""
    kind = BLOCK_TYPES[name]
    data = np.random.default_rng(seed).integers(0, most, (num_rows, kind.row_bytes(columns)), dtype=np.uint8)
    return Packed(kind, torch.from_numpy(data))


def signed_blocks(name: str, num_rows: int, columns: int = COLUMNS) -> Packed:
    """Of all bits, but for scales that are no numbers: those rows are made again."""
    kind, rng, rows = BLOCK_TYPES[name], np.random.default_rng(1), []
    while len(rows) < num_rows:
        row = torch.from_numpy(rng.integers(0, 256, (1, kind.row_bytes(columns)), dtype=np.uint8))
        weights = reference.dequantize(Packed(kind, row))
        if weights.abs().max() < 1e30 and weights.isfinite().all():
            rows.append(row)
    return Packed(kind, torch.cat(rows))


def activations(num_rows: int, columns: int = COLUMNS, seed: int = 0) -> torch.Tensor:
    """Rows of different sizes, among them zeros, numbers that are too small, and blocks with one large number."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_rows, columns, generator=generator) * 10.0 ** torch.randint(-3, 3, (num_rows, 1), generator=generator)
    x[0, :32], x[0, 32:64], x[-1, 70] = 0.0, 1e-38, 1e4
    return x


def same(found: torch.Tensor, expected: np.ndarray) -> bool:
    return bool((found.numpy().view(np.int32) == expected.view(np.int32)).all())


@needs_library
@pytest.mark.parametrize("num_rows", [1, 6])
@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_a_product_is_its_twin_bit_by_bit(name: str, num_rows: int, instructions: str) -> None:
    packed, x = blocks(name, 37), activations(num_rows)
    assert same(cpu.Product([packed])(x), twin.multiply(x.numpy(), name, packed.data.numpy()))


@needs_library
@pytest.mark.parametrize("name", ["Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K"])
def test_all_bits_of_blocks_are_read(name: str, instructions: str) -> None:
    packed, x = signed_blocks(name, 20, 256), activations(3, 256)
    assert same(cpu.Product([packed])(x), twin.multiply(x.numpy(), name, packed.data.numpy()))


@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_the_twin_multiplies_the_numbers_of_blocks_by_rounded_activations(name: str) -> None:
    packed, x = blocks(name, 9), activations(4)
    weights = reference.dequantize(packed).double()
    given = x.numpy()
    if name not in twin.FLOATS:
        quants, scales = twin.rounded(given)
        assert np.abs(quants).max() == 127
        assert (np.abs(given.reshape(quants.shape) - quants * scales[..., None]) <= scales[..., None] * 0.5001 + 1e-30).all()
        given = (quants * scales[..., None].astype(np.float64)).reshape(given.shape)
    expected = torch.from_numpy(given).double() @ weights.T
    size = torch.from_numpy(np.abs(given)).double() @ weights.abs().T + 1e-30
    found = torch.from_numpy(twin.multiply(x.numpy(), name, packed.data.numpy())).double()
    assert ((found - expected) / size).abs().max() < 1e-5


@needs_library
@pytest.mark.parametrize("name", ["Q4_0", "Q4_K", "Q6_K", "BF16", "F32"])
def test_a_row_does_not_depend_on_rows_or_threads_beside_it(name: str) -> None:
    product, x = cpu.Product([blocks(name, 200, 1280)]), activations(300, 1280)
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
@pytest.mark.parametrize("columns", [24, 40])
@pytest.mark.parametrize("name", ["F32", "F16", "BF16"])
def test_rows_of_numbers_have_any_width(name: str, columns: int, instructions: str) -> None:
    packed, x = blocks(name, 7, columns), torch.randn(5, columns)
    assert same(cpu.Product([packed])(x), twin.multiply(x.numpy(), name, packed.data.numpy()))


def at_the_end_of_memory(data: torch.Tensor) -> torch.Tensor:
    """The same, with nothing that may be read behind it."""
    page = mmap.PAGESIZE
    size = -(-data.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(begin + size), ctypes.c_size_t(page), 0) == 0
    copy = torch.frombuffer(memory, dtype=torch.uint8, count=data.numel(), offset=size - data.nbytes).view(data.shape)
    copy.copy_(data)
    return copy


@needs_library
@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected by a call of Linux")
@pytest.mark.parametrize("columns", [32, 96, 576, 608])
@pytest.mark.parametrize("name", [name for name, kind in BLOCK_TYPES.items() if kind.num_weights == 32])
def test_blocks_that_end_within_a_vector_are_the_twins_and_nothing_is_read_behind_them(name: str, columns: int, instructions: str) -> None:
    packed = blocks(name, 35, columns)
    packed = Packed(packed.type, at_the_end_of_memory(packed.data))
    for num_rows in (1, 5):
        x = torch.randn(num_rows, columns, generator=torch.Generator().manual_seed(0))
        assert same(cpu.Product([packed])(x), twin.multiply(x.numpy(), name, packed.data.numpy()))


@needs_library
@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("name", BLOCK_TYPES)
def test_rows_are_read_as_numbers(name: str, factor: float, instructions: str) -> None:
    packed = blocks(name, 9, 256) if name in twin.FLOATS else signed_blocks(name, 9, 256)
    which = torch.tensor([8, 0, -1, 3])
    out, found = torch.empty(4, 256), library.loaded()
    assert found is not None
    given = (ctypes.byref(cpu.matrix_of(packed)), which.data_ptr(), 4, factor, out.data_ptr())
    assert found.maskwright_read_rows(*given) == 0
    assert torch.equal(out, reference.dequantize(packed)[which.clamp_min(0)] * torch.tensor(factor))
    which[2] = 9
    assert found.maskwright_read_rows(*given) == -2


@needs_library
def test_parts_of_several_types_stand_in_any_order() -> None:
    """The last has fewer rows than are computed at a time."""
    parts, x = [blocks("Q4_K", 40), blocks("Q6_K", 21), blocks("Q8_0", 3)], activations(2)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    expected = torch.cat([cpu.Product([part])(x) for part in parts], dim=1)
    assert torch.equal(cpu.Product(parts)(x), expected)
    assert torch.equal(cpu.Product(parts, order)(x), expected[:, order])


@needs_library
def test_activations_may_be_of_another_dtype_or_lie_apart() -> None:
    product, x = cpu.Product([blocks("Q4_1", 33)]), activations(4, 2 * COLUMNS)
    assert torch.equal(product(x[:, :COLUMNS]), product(x[:, :COLUMNS].contiguous()))
    assert torch.equal(product(x[:, ::2]), product(x[:, ::2].contiguous()))
    assert torch.equal(product(x[:, :COLUMNS].bfloat16()), product(x[:, :COLUMNS].bfloat16().float()))
    assert product(x[:0, :COLUMNS]).shape == (0, 33)


@needs_library
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "F16"])
def test_what_is_no_number_is_seen(name: str, bad: float) -> None:
    x = activations(2)
    x[1, 100] = bad
    found = cpu.Product([blocks(name, 16, most=50)])(x)
    assert found[0].isfinite().all() and not found[1].isfinite().any()


@given(*[st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)] * 3)
def test_the_twin_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    found = twin.fma(*(np.array([value], np.float32) for value in (a, b, c)))[0]
    neighbours = (np.nextafter(found, np.float32(-np.inf)), np.nextafter(found, np.float32(np.inf)))
    distance = abs(Fraction(float(found)) - exact)
    assert all(distance <= abs(Fraction(float(other)) - exact) for other in neighbours)


def test_nothing_is_compiled_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_NATIVE", "never")
    assert library.loaded.__wrapped__() is None


def test_without_a_compiler_there_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    assert library.compiled_library() is None
    monkeypatch.setenv("CC", "false")  # there, and fails
    assert library.compiled_library() is None
    assert not list(tmp_path.rglob("*.so"))

"""Adapters on top of a product: both backends against one row after another."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.kernels.lora import NO_ADAPTER, LoraStack, add_lora, empty_stack, rows_of

from .device import DEVICE

BACKENDS = ["reference", "triton"]


def random_stack(num_slots: int, rank: int, in_features: int, widths: tuple[int, ...], seed: int = 0) -> LoraStack:
    generator = torch.Generator().manual_seed(seed)
    down = torch.randn(num_slots, len(widths) * rank, in_features, generator=generator)
    return LoraStack(down.to(DEVICE), torch.randn(num_slots, sum(widths), rank, generator=generator).to(DEVICE), widths)


def row_by_row(y: torch.Tensor, x: torch.Tensor, stack: LoraStack, slots: list[int]) -> torch.Tensor:
    """The obvious twin: for each row and slice one matrix, B A, and a product with it."""
    out = y.clone()
    for row, slot in enumerate(slots):
        if slot < 0:
            continue
        for number, (first, stop) in enumerate(stack.slices):
            down = stack.down[slot, number * stack.rank : (number + 1) * stack.rank]
            out[row, first:stop] += (stack.up[slot, first:stop] @ down) @ x[row]
    return out


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=12)
@given(
    slots=st.lists(st.integers(-1, 2), min_size=1, max_size=37),
    shape=st.sampled_from([(7, (5,)), (70, (66, 3)), (130, (16, 8, 8)), (520, (70, 1, 65))]),
    seed=st.integers(0, 99),
)
def test_every_row_gets_what_its_slot_adds(backend, slots, shape, seed):
    in_features, widths = shape
    stack = random_stack(3, 16, in_features, widths, seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(slots), in_features, generator=generator).to(DEVICE)
    y = torch.randn(len(slots), sum(widths), generator=generator).to(DEVICE)
    expected = row_by_row(y, x, stack, slots)
    rows = rows_of(torch.tensor(slots, device=DEVICE), 3, backend=backend)
    torch.testing.assert_close(add_lora(y.clone(), x, stack, rows), expected, atol=2e-3, rtol=2e-4)
    unasked = rows_of(torch.tensor(slots, device=DEVICE), 3, backend=backend, may_wait=False)
    torch.testing.assert_close(add_lora(y.clone(), x, stack, unasked), expected, atol=2e-3, rtol=2e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_without_an_adapter_stay_bit_by_bit(backend):
    stack, x, y = random_stack(2, 16, 40, (24,)), torch.randn(5, 40, device=DEVICE), torch.randn(5, 24, device=DEVICE)
    slots = torch.tensor([NO_ADAPTER, 1, NO_ADAPTER, 0, -7], dtype=torch.int32, device=DEVICE)
    found = add_lora(y.clone(), x, stack, rows_of(slots, 2, backend=backend))
    same = (found == y).all(dim=1).tolist()
    assert same == [True, False, True, False, True]
    nobody = rows_of(torch.full((5,), NO_ADAPTER, device=DEVICE), 2, backend=backend)
    assert torch.equal(add_lora(y.clone(), x, stack, nobody), y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_need_not_be_contiguous(backend):
    stack, wide = random_stack(1, 16, 40, (24,)), torch.randn(3, 100, device=DEVICE)
    x, rows = wide[:, 30:70], rows_of(torch.zeros(3, dtype=torch.int64, device=DEVICE), 1, backend=backend)
    y = torch.randn(24, 3, device=DEVICE).T
    torch.testing.assert_close(add_lora(y.clone(), x, stack, rows), row_by_row(y, x, stack, [0, 0, 0]), atol=2e-3, rtol=2e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_empty_stack_adds_nothing(backend):
    stack = empty_stack(2, 16, 8, (4, 4), torch.float32, DEVICE)
    y = torch.randn(3, 8, device=DEVICE)
    rows = rows_of(torch.tensor([0, 1, 0], device=DEVICE), 2, backend=backend)
    assert torch.equal(add_lora(y.clone(), torch.randn(3, 8, device=DEVICE), stack, rows), y)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_in_16_bits_are_summed_in_more(backend, dtype):
    stack = random_stack(2, 16, 96, (48,))
    short = LoraStack(stack.down.to(dtype), stack.up.to(dtype), stack.widths)
    x, y = torch.randn(4, 96, device=DEVICE).to(dtype), torch.zeros(4, 48, device=DEVICE, dtype=dtype)
    found = add_lora(y.clone(), x, short, rows_of(torch.tensor([0, 1, -1, 1], device=DEVICE), 2, backend=backend))
    exact = LoraStack(short.down.float(), short.up.float(), stack.widths)
    expected = row_by_row(y.float(), x.float(), exact, [0, 1, -1, 1])
    assert found.dtype == dtype
    assert (found.float() - expected).abs().max() < 0.02 * expected.abs().max()


def test_rows_of_another_step_are_an_error():
    stack, rows = random_stack(1, 16, 8, (4,)), rows_of(torch.zeros(3, dtype=torch.int64), 1, backend="reference")
    with pytest.raises(ValueError, match="3 rows have a slot, but x has 2"):
        add_lora(torch.zeros(2, 4), torch.zeros(2, 8), stack, rows)

"""The table of masks on a device against a dictionary of all masks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.integrations.resident_masks import ResidentMasks, ban_packed
from maskwright.kernels.sampler.interface import UNCONSTRAINED

NUM_MASKS, HEAD = 4, 40


def mask(number: int) -> Callable[[], np.ndarray]:  # of 32 tokens: what lies beyond is forbidden
    return lambda: np.array([number], np.uint32)


@given(st.lists(st.sets(st.integers(1, 9), max_size=NUM_MASKS), max_size=12))
def test_each_step_finds_its_masks(steps: list[set[int]]) -> None:
    masks = ResidentMasks(NUM_MASKS, -(-HEAD // 32), "cpu")
    for names in steps:
        rows = masks.rows({name: mask(name) for name in names})
        assert set(rows) == names and len(set(rows.values())) == len(names) and len(masks) <= NUM_MASKS
        numbers = torch.tensor([*rows.values(), UNCONSTRAINED], dtype=torch.int32)
        logits = torch.zeros(len(numbers), HEAD)
        masks.ban(logits, numbers)
        for name, row in zip(rows, logits, strict=False):
            assert {token for token in range(HEAD) if row[token] == 0} == {bit for bit in range(32) if name >> bit & 1}
        assert bool((logits[-1] == 0).all())


@given(st.lists(st.integers(1, 9), min_size=1, max_size=NUM_MASKS, unique=True), st.data())
def test_a_step_may_ask_in_several_calls(names: list[int], data: st.DataObject) -> None:
    masks = ResidentMasks(NUM_MASKS, 1, "cpu")
    masks.rows({100 + number: mask(1) for number in range(data.draw(st.integers(0, NUM_MASKS)))})  # of steps before
    rows: dict[object, int] = {}
    for name in names:
        rows |= masks.rows({name: mask(name)})
    assert [int(masks.words[rows[name], 0]) for name in names] == names


def test_what_was_not_asked_for_longest_goes() -> None:
    masks, asked = ResidentMasks(2, 1, "cpu"), list[int]()

    def ask(number: int) -> None:
        masks.rows({number: lambda: (asked.append(number), np.array([number], np.uint32))[1]})

    for number in (1, 2, 1, 3, 1, 2):
        ask(number)
    assert asked == [1, 2, 3, 2]


def test_a_step_with_more_masks_than_rows_is_refused() -> None:
    masks = ResidentMasks(2, 2, "cpu")
    with pytest.raises(UsageError, match=r"3 masks.* 2 mask rows"):
        masks.rows({number: mask(number) for number in range(3)})


def test_packed_masks_need_no_table() -> None:
    logits = torch.zeros(2, 3)
    ban_packed(logits, torch.tensor([[0b101], [0b010]], dtype=torch.int32))
    assert (logits == 0).tolist() == [[True, False, True], [False, True, False]]

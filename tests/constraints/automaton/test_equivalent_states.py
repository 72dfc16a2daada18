"""Classes of equivalent states, beside those that are told apart by all texts in turn, a letter longer each time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from maskwright.constraints.automaton.equivalent_states import find_blocks

Rows = list[list[int]]


def found(rows: Rows, ends: list[bool]) -> list[int]:
    block = np.full(len(rows), -1, np.int32)
    count = find_blocks(np.array(rows, np.int32), np.array(ends, np.uint8), block)
    assert count == max(block.tolist())
    return block.tolist()


def told_apart(rows: Rows, ends: list[bool]) -> list[int]:
    """The same, slowly: two states are apart if one ends, or if a letter leads to states that are."""
    classes: list[object] = [None, *ends[1:]]
    while True:
        finer = [None, *((classes[state], *(classes[to] for to in rows[state])) for state in range(1, len(rows)))]
        if len(set(finer)) == len(set(classes)):
            break
        classes = numbered(finer)
    return [0, *(1 + number for number in numbered(classes[1:]))]


def numbered(classes: list[object]) -> list[int]:
    """Numbers in the order in which classes are met first."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in classes]


@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_that_no_text_tells_apart(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        count, letters, share = rng.randint(1, 12), rng.randint(1, 3), rng.random()
        rows = [
            [0] * letters,
            *([rng.randrange(count) if rng.random() < share else 0 for _ in range(letters)] for _ in range(count - 1)),
        ]
        ends = [False, *(rng.random() < 0.3 for _ in range(count - 1))]
        assert found(rows, ends) == told_apart(rows, ends)


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_copies_of_a_chain_are_one(copies: int) -> None:
    """A chain in which states differ by how far its end is: classes fall apart one after another."""
    length = 60
    rows = [[0, 0]]
    for copy in range(copies):
        first = 1 + copy * length
        rows += [[first + i + 1 if i + 1 < length else 0, first + i] for i in range(length)]
    ends = [False, *([False] * (length - 1) + [True]) * copies]
    assert found(rows, ends) == [0, *list(range(1, length + 1)) * copies] == told_apart(rows, ends)


def test_states_without_a_way_out_are_one_that_is_not_the_dead_one() -> None:
    assert found([[0], [2], [1], [3]], [False, False, False, False]) == [0, 1, 1, 1]
    assert found([[0], [0], [3], [0]], [False, False, False, True]) == [0, 1, 2, 3]
    assert found([[0]], [False]) == [0]

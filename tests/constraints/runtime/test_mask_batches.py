"""Masks that are made together, by several threads, against those that are made one by one."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Lark, Regex, StructuralTag
from maskwright.constraints.automaton.tables import FAULT_WORD, Fault
from maskwright.constraints.masks.mask_rows import Region
from maskwright.constraints.runtime import mask_batches
from maskwright.constraints.runtime.constraint import FINISHED, as_token_ids
from maskwright.constraints.runtime.mask_batches import make_masks

from ..grammars import VOCABULARY

STEPS = 12
SOURCES: list[Any] = [
    JsonSchema({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}),
    JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    JsonSchema({"type": "object", "additionalProperties": {"type": "boolean"}}),
    Regex("[ab]{1,20}"),
    Lark('start: "(" start* ")" | "a"'),
]


@pytest.fixture(autouse=True)
def any_number_is_worth_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_batches, "WORTH_TRANSITIONS", 0)


def fresh() -> list[Constraint]:
    compiler = Compiler(VOCABULARY, cache_bytes=0)
    return [compiler.compile(source) for source in SOURCES]


def walk(constraint: Constraint, seed: int) -> list[tuple[int, bytes]]:
    """The tokens of a random text, each with the mask before it."""
    rng, state, found = random.Random(seed), constraint.start(), []
    while len(found) < STEPS and state != FINISHED:
        mask = constraint.mask(state)
        token = rng.choice(list(as_token_ids(mask)))
        found.append((token, mask.tobytes()))
        after = constraint.advance(state, token)
        assert after is not None
        state = after
    return found


@pytest.mark.parametrize("num_threads", [2, 5])
def test_masks_made_together_are_those_made_one_by_one(num_threads: int) -> None:
    expected = [(k, walk(constraint, seed)) for k, constraint in enumerate(fresh()) for seed in range(3)]
    together = fresh()
    states: list[Any] = [together[k].start() for k, _ in expected]
    for step in range(STEPS):
        make_masks(((together[k], state) for (k, _), state in zip(expected, states, strict=True)), num_threads)
        for row, (k, tokens) in enumerate(expected):
            if step < len(tokens):
                assert together[k].knows_mask(states[row])
                assert together[k].mask(states[row]).tobytes() == tokens[step][1]
                states[row] = together[k].advance(states[row], tokens[step][0])


def test_a_table_that_is_full_is_left_to_mask() -> None:
    batch = [(constraint, constraint.start()) for constraint in fresh()]
    full, _ = batch[0]
    full._automaton._machine._arena.array[FAULT_WORD] = Fault.FULL_POOL
    make_masks(batch, 2)
    assert [constraint.knows_mask(state) for constraint, state in batch] == [False, True, True, True, True]
    expected = [constraint.mask(constraint.start()).tobytes() for constraint in fresh()]
    assert [constraint.mask(state).tobytes() for constraint, state in batch] == expected


def test_who_has_a_constraint_is_not_waited_for() -> None:
    batch = [(constraint, constraint.start()) for constraint in fresh()]
    has_it, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with batch[2][0].exclusively():
            has_it.set()
            is_done.wait()

    other = threading.Thread(target=hold)
    other.start()
    has_it.wait()
    try:
        make_masks(batch, 2)
        assert [constraint.knows_mask(state) for constraint, state in batch] == [True, True, False, True, True]
    finally:
        is_done.set()
        other.join()


def test_rows_that_have_no_room_are_left_to_mask() -> None:
    batch = [(constraint, constraint.start()) for constraint in fresh()]
    full = batch[1][0]._automaton.rows
    full._region[Region.CAPACITY] = 1
    make_masks(batch, 2)
    assert [constraint.knows_mask(state) for constraint, state in batch] == [True, False, True, True, True]
    alone = fresh()[1]
    assert batch[1][0].mask(batch[1][1]).tobytes() == alone.mask(alone.start()).tobytes()


def test_constraints_of_others_are_passed_over() -> None:
    whole = Compiler(VOCABULARY).compile(StructuralTag({"type": "const_string", "value": "ab"}))
    make_masks([(object(), 0), (whole, whole.start()), *((constraint, constraint.start()) for constraint in fresh())], 2)


@pytest.mark.parametrize(("share", "num_threads", "is_made"), [(1, 1, False), (1.01, 2, False), (1, 2, True)])
def test_masks_are_made_together_where_threads_spare_enough(
    share: float, num_threads: int, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [(constraint, state) for constraint in fresh() for state in [next_state(constraint)]]
    expected = [constraint.transitions_a_mask for constraint, _ in batch]
    spared = sum(expected) - max(sum(expected) / 2, *expected)
    assert spared > 0
    monkeypatch.setattr(mask_batches, "WORTH_TRANSITIONS", share * spared)
    make_masks(batch, num_threads)
    assert [constraint.knows_mask(state) for constraint, state in batch] == [is_made] * 5


def next_state(constraint: Constraint) -> Any:
    """The state behind one token, before which the mask was asked for."""
    state = constraint.start()
    return constraint.advance(state, next(iter(as_token_ids(constraint.mask(state)))))

"""Memory that is used again: what was handed out stays as it is, and nothing of an old constraint is seen by a new one."""

from __future__ import annotations

import gc
import random
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from maskwright.constraints import Compiler, Constraint, JsonSchema, Limits, Vocabulary
from maskwright.constraints.automaton.assembling import assembly
from maskwright.constraints.masks import mask_rows
from maskwright.constraints.numba_support import pages
from maskwright.constraints.numba_support.pages import reserved

from ..grammars import TOKENS, Recipe

VOCABULARY = Vocabulary([*TOKENS, b"aaaa", b"abba", b'"": ', None], eos_token_ids=[len(TOKENS) + 3])
LARGE = 1 << 20  # words, from which on memory is used again
SCHEMA = JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "additionalProperties": {"type": "array"}})
STATES = Recipe(("repeat", ("seq", ("chars", "ab"), ("repeat", ("any",), 0, 30)), 0, 4))
COMPLEMENT = Recipe(("without", ("repeat", ("any",), 0, 8), ("alt", ("literal", "aab"), ("repeat", ("chars", "ab"), 2, 3))))
SOURCES = (SCHEMA, STATES, COMPLEMENT)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    pages._kept.clear()
    yield
    gc.collect()
    pages._kept.clear()


def kept() -> int:
    gc.collect()
    return sum(map(len, pages._kept.values()))


def masks(constraint: Constraint, seed: int, length: int = 12) -> list[np.ndarray[Any, Any]]:
    rng, state, found = random.Random(seed), constraint.start(), []
    for _ in range(length):
        mask = constraint.mask(state)
        found.append(mask)
        tokens = [t for t in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")) if t < VOCABULARY.size - 1]
        if not tokens:
            break
        after = constraint.advance(state, int(rng.choice(tokens)))
        assert after is not None
        state = after
    return found


def fresh(source: Any, limits: Limits | None = None) -> Constraint:
    return Compiler(VOCABULARY, limits, cache_bytes=0).compile(source)


def test_an_array_is_used_again_only_when_its_last_view_is_gone() -> None:
    array = reserved(LARGE, lambda used: int(np.count_nonzero(used)), "a")
    part = array[5:9].view(np.uint32).reshape(2, 2)[1:]
    array[5:9] = 7
    del array
    assert kept() == 0 and part.tolist() == [[7, 7]]
    other = reserved(LARGE, lambda used: 0, "a")
    other[:] = 1
    assert part.tolist() == [[7, 7]]
    del part
    assert kept() == 1
    del other
    assert kept() == 2


def test_a_region_is_cleaned_before_it_is_used_again_or_given_back_when_too_much_was_touched() -> None:
    def clean(used: np.ndarray[Any, Any]) -> int:
        used[:] = 0
        return 1

    array = reserved(LARGE, clean, "a")
    array[:] = 3
    del array
    assert kept() == 1
    array = reserved(LARGE, lambda used: pages._MAX_TOUCHED + 1, "a")
    assert kept() == 0 and np.count_nonzero(array) == 0
    del array
    assert kept() == 0


def test_memory_is_used_again_only_for_what_lies_in_the_same_places() -> None:
    for layout in ("a", "b"):
        array = reserved(LARGE, lambda used: 0, layout)
        assert not array.any()
        array[:] = 3
        del array
    assert kept() == 2
    for number in range(pages._MAX_LAYOUTS):
        reserved(LARGE, lambda used: 0, number)
    assert kept() <= pages._MAX_LAYOUTS


@pytest.mark.parametrize("source", SOURCES, ids=("schema", "states", "complement"))
def test_masks_outlive_their_constraint(source: Any) -> None:
    constraint = fresh(source)
    held = masks(constraint, seed=1)
    copies = [mask.copy() for mask in held]
    del constraint
    for seed in range(4):
        for other in SOURCES:
            masks(fresh(other), seed)
    assert all(np.array_equal(mask, copy) for mask, copy in zip(held, copies, strict=True))
    assert not any(mask.flags.writeable for mask in held)


def test_rows_outlive_their_constraint() -> None:
    constraint = fresh(STATES)
    numbers, kept_rows = constraint.mask_rows([constraint.start()])
    expected = constraint.mask(constraint.start()).copy()
    del constraint
    for seed in range(3):
        masks(fresh(SCHEMA), seed)
    assert np.array_equal(kept_rows.get(int(numbers[0])), expected)


def test_constraints_in_used_memory_give_the_masks_of_those_in_new_memory() -> None:
    expected = {}
    for source in SOURCES:
        for seed in range(3):
            pages._kept.clear()
            expected[source, seed] = [mask.copy() for mask in masks(fresh(source), seed)]
    again = [*expected] * 3
    random.Random(0).shuffle(again)
    for source, seed in again:
        found = masks(fresh(source), seed)
        assert all(map(np.array_equal, found, expected[source, seed])) and len(found) == len(expected[source, seed])
    assert kept() > 0


def test_memory_of_constraints_with_other_limits_leaves_nothing_behind() -> None:
    """The tables of the next constraint begin elsewhere in it: where transitions were, there is the row of the dead state."""
    expected = [[mask.copy() for mask in masks(fresh(COMPLEMENT), seed)] for seed in range(6)]
    for states in (30_000, 25_000, 20_000):
        pages._kept.clear()
        constraint = fresh(Recipe(("repeat", ("chars", "ab"), 0, 6000)), Limits(states=states))
        assert constraint.accepts(b"ab" * 2900)
        del constraint
        assert kept() > 0
        for seed, before in enumerate(expected):
            found = masks(fresh(COMPLEMENT), seed)
            assert all(map(np.array_equal, found, before)) and len(found) == len(before)


def test_small_tables_grow_into_the_same_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {(source, seed): [mask.copy() for mask in masks(fresh(source), seed)] for source in SOURCES for seed in range(3)}
    small = {"_SPARE_NODES": 1, "_FIRST_STATES": 2, "_FIRST_POOL": 8, "_FIRST_SCRATCH": 2, "_FIRST_SEQUENCE_HASH": 4, "_FIRST_STATE_HASH": 4}
    for name, size in small.items():
        monkeypatch.setattr(assembly, name, size)
    monkeypatch.setattr(mask_rows, "_FIRST_WORDS", 1)
    monkeypatch.setattr(pages, "_SMALL", 1)  # so that every growth leaves memory to be used again
    for (source, seed), before in expected.items():
        found = masks(fresh(source), seed)
        assert all(map(np.array_equal, found, before)) and len(found) == len(before)
    assert kept() > 0


def test_threads_that_drop_constraints_do_not_disturb_each_other() -> None:
    expected = {(source, seed): [mask.copy() for mask in masks(fresh(source), seed)] for source in SOURCES for seed in range(2)}
    failures: list[Any] = []

    def work(number: int) -> None:
        try:
            for round_ in range(6):
                source, seed = SOURCES[(number + round_) % len(SOURCES)], round_ % 2
                held = masks(Compiler(VOCABULARY, cache_bytes=0).compile(source), seed)  # dropped while its masks are held
                masks(fresh(SOURCES[round_ % len(SOURCES)]), seed + 5)
                if not all(map(np.array_equal, held, expected[source, seed])):
                    failures.append((number, round_))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_constraints_with_budgets_share_their_scratch() -> None:
    words = [f"word{number}".encode() for number in range(20_000)]
    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), *words, None], eos_token_ids=[20_256]))

    def use(constraint: Constraint) -> Constraint:
        state = constraint.start()
        for byte in b'{"a":1,"':
            assert constraint.mask(state, budget=constraint.min_tokens(state)).any()
            state = constraint.advance(state, byte)
        return constraint

    sources = [JsonSchema({"type": "object", "title": str(number)}) for number in range(9)]
    use(compiler.compile(sources[0]))  # makes the scratch
    tracemalloc.start()
    others = [use(compiler.compile(source)) for source in sources[1:]]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < len(others) * 4 * len(words), "less than a word for each token"


def test_regions_that_were_mapped_together_are_apart() -> None:
    arrays = [reserved(LARGE, lambda used: 0, "a") for _ in range(2 * pages._MAPPED_AT_ONCE)]
    for number, array in enumerate(arrays, 1):
        assert not array.any()
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(arrays, 1))


@pytest.mark.skipif(not hasattr(pages.mmap, "MADV_DONTNEED"), reason="regions come from NumPy here")
def test_memory_that_is_given_back_is_zero_and_what_lies_beside_it_is_not() -> None:
    regions = [pages._take(4 * LARGE, number, in_huge_pages=False) for number in range(2)]
    views = [np.frombuffer(mapped, np.int32, LARGE, start) for mapped, start in regions]
    for view in views:
        view[:] = 7
    pages._to_system([regions[0]], 4 * LARGE)
    assert not views[0].any() and (views[1] == 7).all()

"""Tables in one array: growth never lets one run into another."""

from __future__ import annotations

from itertools import pairwise

import pytest

from maskwright.constraints import Limits
from maskwright.constraints.automaton.machine import SHARE_OF_ENDS, Machine
from maskwright.constraints.automaton.tables import (
    FIELDS,
    HASH_SIZES,
    HASHES,
    Arena,
    Counters,
    Fault,
    NodeRecord,
    StateRecord,
    clean,
)

ROOM = 1000  # nodes and states that fit, of which a few are there


def small_arena() -> Arena:
    sizes = dict.fromkeys(FIELDS, 64) | {"n": Counters.SIZE, "next": ROOM * 256}
    sizes |= {"nodes": ROOM * NodeRecord.SIZE, "states": ROOM * StateRecord.SIZE}
    arena = Arena(sizes, dict.fromkeys(HASHES, 16))
    arena.n.nodes = arena.n.states = 9
    return arena


@pytest.mark.parametrize("fault", [Fault.FULL_NODES, Fault.FULL_SEQUENCES, Fault.FULL_STATES])
def test_hash_tables_grow_beyond_their_place_without_touching_others(fault: int) -> None:
    arena = small_arena()
    for name in ("nodes", "states", "next", "lists"):
        arena.table(name)[:144] = 7  # of nine records
    for _ in range(6):
        arena.grow(fault)
        for name in ("nodes", "states", "next", "lists"):
            kept = 64 if name == "lists" else 144
            assert (arena.table(name)[:kept] == 7).all()
    doubled = {Fault.FULL_NODES: "node_hash", Fault.FULL_SEQUENCES: "sequence_hash", Fault.FULL_STATES: "state_hash"}[fault]
    assert {name: arena.table(name).size for name in HASHES} == dict.fromkeys(HASHES, 64) | {doubled: 16 << 6}


@pytest.mark.parametrize("name", ["states", "nodes"])
def test_nearly_full_is_what_the_counters_say(name: str) -> None:
    """`Machine` reads single words of the array, since every mask that is met first asks."""
    arena = small_arena()
    counted = {"states": arena.n.states - 1, "nodes": arena.n.nodes}[name]
    for most in range(1, 3 * counted):
        machine = Machine(arena, Limits(**{name: most}))
        assert machine.num_states == arena.n.states - 1
        assert machine.is_nearly_full == (counted > (1 - SHARE_OF_ENDS) * most)


def test_an_arena_is_cleared_where_the_next_one_relies_on_it() -> None:
    """The tables of fixed size before `work` are written before they are read; all others are zero, as new ones are."""
    arena = small_arena()
    offsets = arena.array[: len(FIELDS) + 1].tolist()
    for name in FIELDS:
        if name != "n":
            arena.table(name)[:] = 7
    in_use = {name: int(arena.array[word]) for name, word in HASH_SIZES.items()}
    touched = clean(arena.array)
    behind = offsets[-1] - offsets[FIELDS.index("work")]
    assert touched == sum(in_use.values()) + behind + 9 * (NodeRecord.SIZE + StateRecord.SIZE + 256)
    spans = {name: arena.array[start:end] for name, (start, end) in zip(FIELDS, pairwise(offsets), strict=True)}
    for name, num_words in in_use.items():
        assert not spans[name][:num_words].any() and (spans[name][num_words:] == 7).all()
    for name in ("nodes", "pool", "states", "next"):
        assert (spans[name] == 7).all()
    assert not arena.array[: offsets[1]].any() and not arena.array[offsets[FIELDS.index("work")] : offsets[-1]].any()
    assert clean(arena.array) == 0, "of one that nobody has laid out"

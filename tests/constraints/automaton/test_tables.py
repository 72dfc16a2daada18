"""Tables in one array: growth never lets one run into another."""

from __future__ import annotations

import pytest

from maskwright.constraints import Limits
from maskwright.constraints.automaton.machine import SHARE_OF_ENDS, Machine
from maskwright.constraints.automaton.tables import FIELDS, HASHES, Arena, Counters, Fault, NodeRecord, StateRecord

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

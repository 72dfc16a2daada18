"""Tables in one array: growth never lets one run into another."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from maskwright.constraints import Compiler, JsonSchema, Limits, Vocabulary
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
from maskwright.constraints.runtime.constraint import as_token_ids

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
    grown = {Fault.FULL_NODES: "node_hash", Fault.FULL_SEQUENCES: "sequence_hash", Fault.FULL_STATES: "state_hash"}[fault]
    in_use = {name: arena.array.item(HASH_SIZES[name]) for name in HASHES}
    assert in_use == dict.fromkeys(HASHES, 16) | {grown: 64 << 5}  # four times as large where there was room, then doubled
    assert {name: arena.table(name).size for name in HASHES} == dict.fromkeys(HASHES, 64) | {grown: 64 << 5}


@pytest.mark.parametrize("fault", [Fault.FULL_NODES, Fault.FULL_SEQUENCES, Fault.FULL_STATES])
def test_a_hash_table_that_has_room_is_emptied_where_it_is(fault: int) -> None:
    """A mask waits for it, so nothing is copied, and only what is in use then is made zero."""
    arena = small_arena()
    array, offsets = arena.array, arena.array[: len(FIELDS) + 1].tolist()
    spans = {name: array[start:end] for name, (start, end) in zip(FIELDS, pairwise(offsets), strict=True)}
    for name in FIELDS[1:]:
        spans[name][:] = 7
    arena.array[HASH_SIZES["state_hash"]] = arena.array[HASH_SIZES["node_hash"]] = 8
    (emptied,) = arena.grow(fault)
    assert arena.array is array and arena.n.fault == Fault.NONE
    in_use = {name: array.item(HASH_SIZES[name]) for name in HASHES}
    assert in_use == {"node_hash": 8, "sequence_hash": 16, "state_hash": 8} | {emptied: 64 if emptied == "sequence_hash" else 32}
    for name in FIELDS[1:]:
        zeros = in_use[emptied] if name == emptied else 0
        assert not spans[name][:zeros].any() and (spans[name][zeros:] == 7).all()


def test_a_hash_table_is_not_grown_alone_where_its_records_have_no_room() -> None:
    arena = small_arena()
    arena.n.nodes = ROOM
    assert set(arena.grow(Fault.FULL_SEQUENCES)) == set(HASHES)
    assert arena.table("nodes").size == 2 * ROOM * NodeRecord.SIZE


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
    """Hash tables and what is noted of judgements are zero, as in a new one; all others are written before they are read."""
    arena = small_arena()
    offsets = arena.array[: len(FIELDS) + 1].tolist()
    for name in FIELDS:
        if name != "n":
            arena.table(name)[:] = 7
    in_use = {name: int(arena.array[word]) for name, word in HASH_SIZES.items()} | {"judging": 64, "contained": 64}
    assert clean(arena.array) == sum(in_use.values()) + 9 * (NodeRecord.SIZE + StateRecord.SIZE + 256)
    spans = {name: arena.array[start:end] for name, (start, end) in zip(FIELDS, pairwise(offsets), strict=True)}
    for name in FIELDS[1:]:
        assert not spans[name][: in_use.get(name, 0)].any() and (spans[name][in_use.get(name, 0) :] == 7).all()
    assert not arena.array[: offsets[1]].any()
    assert clean(arena.array) == 0, "of one that nobody has laid out"


SCRATCH = ("path", "ends", "apart", "steps", "requests", "work", "items")
STRINGS = {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 9}}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"enum": ["x", "yy"]}}, "additionalProperties": {"type": "integer", "maximum": 9}},
    {"anyOf": [STRINGS, {"type": "string", "pattern": "^(ab|a?c){2,5}$"}, {"type": "string", "format": "date"}]},
    {"type": "object", "patternProperties": {"^[ab]+$": STRINGS}, "propertyNames": {"maxLength": 3}, "minProperties": 2},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_is_left_in_scratch_changes_no_mask(schema: dict[str, Any]) -> None:
    tokens = [b"<end>", b'": ', b'{"', b"ab", b"aba", *(bytes([byte]) for byte in range(256))]
    vocabulary, source = Vocabulary(tokens, eos_token_ids=[0]), JsonSchema(schema, whitespace="flexible")
    fresh, used = (Compiler(vocabulary).compile(source) for _ in range(2))
    rng = random.Random(0)
    for _ in range(20):
        state, other = fresh.start(), used.start()
        for _ in range(40):
            with used.exclusively() as (automaton, _):
                for name in SCRATCH:
                    automaton._machine.table(name)[:] = rng.randrange(-9, 1 << 30)
            mask = fresh.mask(state)
            assert (mask == used.mask(other)).all()
            allowed = as_token_ids(mask)
            token = allowed[rng.randrange(len(allowed))]
            state, other = fresh.advance(state, token), used.advance(other, token)
            assert state is not None and other is not None
            if token == 0:
                break

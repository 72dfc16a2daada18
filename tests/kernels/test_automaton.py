"""The device automaton's kernels against their twins in plain PyTorch, on random tables, and those against single steps in Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from maskwright.kernels.automaton import gpu, reference, vocabulary
from maskwright.kernels.automaton.backend import choose_operations
from maskwright.kernels.automaton.interface import (
    FREE,
    IDLE,
    NEAR,
    PLENTY,
    PROBES,
    UNKNOWN,
    Fact,
    Flag,
    Slots,
    Tables,
    hash_place,
    new_slots,
    new_tables,
)
from maskwright.kernels.automaton.vocabulary import ByteAutomaton, TokenBytes
from maskwright.kernels.sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED

from .device import DEVICE, poisoned

# What a GPU computes silently, the interpreter's numpy warns of: a hash that wraps around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

STATES, VOCABULARY, PLACES = 12, 40, 64


def random_tables(rng: np.random.Generator) -> Tables:
    tables = new_tables(states=STATES, partitions=3, vocab_size=VOCABULARY, ladder=64, exceptions=PLACES, device="cpu")
    tables.row.copy_(torch.from_numpy(rng.integers(8, 20, STATES)))
    tables.row[rng.random(STATES) < 0.3] = MISSING
    tables.needed.copy_(torch.from_numpy(rng.integers(UNKNOWN, 6, STATES)))
    tables.facts.copy_(torch.from_numpy(rng.choice([0, 0, 0, Fact.FINISHED, Fact.ONLY_END], STATES)))
    tables.default.copy_(torch.from_numpy(rng.integers(UNKNOWN, STATES, STATES)))
    tables.partition.copy_(torch.from_numpy(rng.integers(UNKNOWN, 3, STATES)))
    tables.ladder_start.copy_(torch.from_numpy(rng.integers(0, 60, STATES)))
    tables.classes.copy_(torch.from_numpy(rng.integers(0, 4, (3, VOCABULARY))))
    tables.ladder.copy_(torch.from_numpy(rng.integers(UNKNOWN, STATES, 64)))
    tables.stands.copy_(torch.from_numpy(np.where(rng.random(STATES) < 0.4, rng.integers(0, STATES, STATES), UNKNOWN)))
    tables.room.copy_(torch.from_numpy(rng.choice([PLENTY, 5, 12], STATES)))
    tables.more.copy_(torch.from_numpy(rng.choice([0, 0, 4], STATES)))
    tables.reach.copy_(torch.from_numpy(rng.choice([0, 4, 8], STATES)))
    tables.length.copy_(torch.from_numpy(rng.integers(1, 6, VOCABULARY)))
    for _ in range(24):
        insert(tables, int(rng.integers(STATES)), int(rng.integers(VOCABULARY)), int(rng.integers(STATES)))
    return tables


def insert(tables: Tables, state: int, token: int, target: int) -> None:
    key = state << 32 | token
    for probe in range(PROBES):
        place = (hash_place(key, len(tables.keys)) + probe) % len(tables.keys)
        if int(tables.keys[place]) in (-1, key):
            tables.keys[place], tables.targets[place] = key, target
            return
    raise AssertionError("no place")


def random_slots(rng: np.random.Generator, num_slots: int) -> Slots:
    slots = new_slots(num_slots, 3, "cpu")
    slots.state.copy_(torch.from_numpy(rng.choice([IDLE, FREE, *range(STATES)], num_slots)))
    slots.pending.copy_(torch.from_numpy(np.where(rng.random(num_slots) < 0.2, rng.integers(0, VOCABULARY, num_slots), NO_TOKEN)))
    slots.left.copy_(torch.from_numpy(rng.choice([0, 1, 3, 15, 18, 25, 100], num_slots)))
    slots.tight.copy_(torch.where(torch.from_numpy(rng.random(num_slots) < 0.5), slots.left, slots.left - 1))
    slots.taken.copy_(torch.from_numpy(rng.integers(0, 9, num_slots)))
    slots.draw.copy_(slots.taken)
    slots.room.copy_(torch.from_numpy(rng.choice([PLENTY, 4, 9, 14], num_slots)))
    slots.more.copy_(torch.from_numpy(rng.choice([0, 3, 60], num_slots)))
    slots.flags.copy_(torch.from_numpy(rng.choice([0, 0, Flag.REFUSED, Flag.DONE], num_slots)))
    return slots


def single_target(tables: Tables, state: int, token: int) -> int:
    exceptions = dict(zip(tables.keys.tolist(), tables.targets.tolist(), strict=True))
    if (found := exceptions.get(state << 32 | token)) is not None:
        return found
    partition = int(tables.partition[state])
    if partition < 0:
        return int(tables.default[state])
    return int(tables.ladder[int(tables.ladder_start[state]) + int(tables.classes[partition, token])])


def on_device(arrays: Slots | Tables) -> Slots | Tables:
    return type(arrays)(*(array.clone().to(DEVICE) for array in arrays))


@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
@settings(max_examples=25)
def test_the_kernel_does_what_the_reference_does(seed: int, num_slots: int) -> None:
    rng = np.random.default_rng(seed)
    tables, slots = random_tables(rng), random_slots(rng, num_slots)
    there, tables_there = on_device(slots), on_device(tables)
    for _ in range(3):
        token = torch.from_numpy(rng.integers(NO_TOKEN, VOCABULARY, num_slots))
        reference.advance(token, slots, tables)
        gpu.advance(token.to(DEVICE), there, tables_there)
        for name, expected, found in zip(Slots._fields, slots, there, strict=True):
            assert torch.equal(found.cpu(), expected), name


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_reference_does_what_the_docstring_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables, slots = random_tables(rng), random_slots(rng, 8)
    before = Slots(*(array.clone() for array in slots))
    token = torch.from_numpy(rng.integers(NO_TOKEN, VOCABULARY, 8))
    reference.advance(token, slots, tables)
    for k in range(8):
        state, flags = int(before.state[k]), int(before.flags[k])
        offered = int(before.pending[k]) if before.pending[k] >= 0 else int(token[k])
        if state == IDLE or flags & Flag.DONE or offered < 0:
            assert slots.state[k] == state and slots.taken[k] == before.taken[k] and slots.left[k] == before.left[k]
        elif state == FREE:
            assert slots.taken[k] == before.taken[k] + 1 and slots.output[k, int(before.taken[k]) % 3] == offered
        else:
            named = single_target(tables, state, offered)
            target = named if named == UNKNOWN or tables.stands[named] == UNKNOWN else int(tables.stands[named])
            after = int(before.left[k]) - 1
            unknown = target == UNKNOWN or int(tables.needed[target]) == UNKNOWN
            room, more, counted, counts = PLENTY, 0, False, target != UNKNOWN and bool(tables.reach[target])
            if counts:
                room = min(int(before.room[k] - tables.length[offered]), int(tables.room[named]))
                more = int(before.more[k] + tables.more[named])
                is_short = after <= int(tables.needed[target]) + more + NEAR
                counted = not unknown and (room < int(tables.reach[target]) or is_short)
            waits = unknown or counted
            ends = not waits and bool(tables.facts[target] & Fact.FINISHED)
            refused = not waits and not ends and not counts and int(tables.needed[target]) > after
            assert bool(slots.flags[k] & Flag.NO_TRANSITION) == unknown
            assert bool(slots.flags[k] & Flag.COUNTED) == counted
            registers = (before.room[k], before.more[k]) if waits or refused else (room, more)
            assert (slots.room[k], slots.more[k]) == registers
            assert int(slots.pending[k]) == (offered if waits else NO_TOKEN)
            assert int(slots.state[k]) == (state if waits or refused else target)
            assert int(slots.taken[k]) == int(before.taken[k]) + (not (waits or ends or refused))
            if refused:
                assert slots.draw[k] == before.draw[k] + (1 << 32)
        if slots.flags[k] & (Flag.DONE | Flag.NO_TRANSITION | Flag.NO_ROW | Flag.COUNTED) or state == IDLE:
            assert slots.mask_index[k] == MISSING
        elif state == FREE:
            assert slots.mask_index[k] == UNCONSTRAINED
        elif slots.flags[k] & Flag.TIGHT:
            assert int(slots.mask_index[k]) == (k if slots.tight[k] == slots.left[k] else MISSING)
        else:
            assert slots.mask_index[k] == tables.row[slots.state[k]]


# ---- masks of finite automata


def random_vocabulary(rng: np.random.Generator, size: int) -> list[bytes | None]:
    lengths = rng.choice([0, 1, 1, 2, 3, 7], size)
    tokens: list[bytes | None] = [bytes(rng.choice([97, 98, 99, 255], n).astype(np.uint8)) for n in lengths]
    tokens[0] = None
    return tokens


def random_automaton(rng: np.random.Generator, states: int) -> ByteAutomaton:
    transitions = rng.integers(0, states, (states, 3)).astype(np.int32)
    transitions[0] = 0
    byte_class = rng.integers(0, 3, 256).astype(np.uint8)
    accepting = rng.integers(0, 2, states).astype(np.int32)
    return ByteAutomaton(*map(torch.from_numpy, (transitions, byte_class, accepting)))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 31, 33, 100, 1025]))
@settings(max_examples=12)
def test_mask_rows_walk_every_token(seed: int, vocab_size: int) -> None:
    rng = np.random.default_rng(seed)
    tokens, automaton = random_vocabulary(rng, vocab_size), random_automaton(rng, 6)
    end_ids = [int(rng.integers(vocab_size))]
    token_bytes = TokenBytes.of(tokens, end_ids)
    states = torch.from_numpy(rng.integers(1, 6, 3).astype(np.int32))
    words = -(-vocab_size // 32)
    plain, native = torch.full((3, words), -1, dtype=torch.int32), poisoned(3, words, dtype=torch.int32)
    vocabulary.mask_rows(states, automaton, token_bytes, plain)
    there = (type(arrays)(*(array.to(DEVICE) for array in arrays)) for arrays in (automaton, token_bytes))
    gpu.mask_rows(states.to(DEVICE), *there, native)
    assert torch.equal(native.cpu(), plain)
    for state, row in zip(states.tolist(), plain.numpy().view(np.uint32), strict=True):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        for token_id, text in enumerate(tokens):
            at = state if text and token_id not in end_ids else 0
            for byte in text or b"":
                at = int(automaton.transitions[at, int(automaton.byte_class[byte])])
            legal = at != 0 or (token_id in end_ids and bool(automaton.accepting[state]))
            assert bool(bits[token_id]) == legal
        assert not bits[vocab_size:].any()


# ---- the switch


def test_the_device_chooses_and_the_caller_may() -> None:
    assert choose_operations(torch.device("cpu")).advance is reference.advance
    assert choose_operations(torch.device("cuda")).advance is gpu.advance
    assert choose_operations(DEVICE, "triton").mask_rows is gpu.mask_rows
    with pytest.raises(ValueError, match='not on "meta"'):
        choose_operations(torch.device("meta"), "triton")
    with pytest.raises(ValueError, match="unknown backend"):
        choose_operations(DEVICE, "cuda")  # type: ignore[arg-type]


def test_tables_of_an_odd_size_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        new_tables(states=1, partitions=1, vocab_size=1, ladder=1, exceptions=12, device="cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("width", "words"), [(40, 2), (64, 2), (100, 2), (1500, 47), (2100, 65)])
def test_tokens_are_banned_where_masks_say_so(width: int, words: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(width)
    masks = rng.integers(0, 1 << 32, (5, words), np.uint32)
    index = np.array([3, UNCONSTRAINED, 0, MISSING, 3, 4], np.int32)
    logits = rng.standard_normal((6, width)).astype(np.float32)
    expected = torch.from_numpy(logits).to(dtype)
    for row, number in enumerate(index):
        for token in range(width if number >= 0 else 0):
            if token >= 32 * words or not masks[number, token // 32] >> (token % 32) & 1:
                expected[row, token] = -torch.inf
    pool, numbers = torch.from_numpy(masks.view(np.int32)).to(DEVICE), torch.from_numpy(index).to(DEVICE)
    for backend in ("reference", "triton"):
        given = torch.from_numpy(logits).to(dtype).to(DEVICE)
        choose_operations(DEVICE, backend).ban(given, pool, numbers)
        assert torch.equal(given.cpu(), expected), backend

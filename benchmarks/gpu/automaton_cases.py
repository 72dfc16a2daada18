"""The device automaton: one step of a batch, and the mask rows of a regular expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from cases import Case
from timing import Clock, timed

from maskwright.kernels.automaton.backend import choose_operations
from maskwright.kernels.automaton.interface import Slots, Tables, new_slots, new_tables
from maskwright.kernels.automaton.vocabulary import ByteAutomaton, TokenBytes
from maskwright.kernels.backend import Backend


def known_states(batch: int, vocab_size: int, num_masks: int, device: torch.device) -> tuple[Slots, Tables]:
    """Sequences in states of which everything is known: a mask each, and transitions by class of token."""
    num_states, num_classes = 4096, 16
    tables = new_tables(
        states=num_states, partitions=4, vocab_size=vocab_size, ladder=num_states, exceptions=1 << 14, device=device
    )
    slots = new_slots(batch, 16, device)
    generator = torch.Generator(device).manual_seed(0)
    tables.row.random_(0, num_masks, generator=generator)
    tables.needed.fill_(1)
    tables.partition.fill_(0)
    tables.classes.random_(0, num_classes, generator=generator)
    tables.ladder_start.random_(0, num_states - num_classes, generator=generator)
    tables.ladder.random_(0, num_states, generator=generator)
    slots.state.random_(0, num_states, generator=generator)
    slots.mask_index.copy_(tables.row[slots.state.long()])
    slots.left.fill_(1 << 30)
    slots.flags.zero_()
    return slots, tables


def steps(batch: int, vocab_size: int, device: torch.device, backend: Backend) -> Callable[[], Any]:
    """One step of `batch` sequences."""
    operations = choose_operations(device, backend)
    slots, tables = known_states(batch, vocab_size, 64, device)
    token = torch.randint(vocab_size, (batch,), generator=torch.Generator(device).manual_seed(1), device=device)
    return lambda: operations.advance(token, slots, tables)


def rows_of_all_states(vocab_size: int, num_states: int, device: torch.device, backend: Backend) -> Callable[[], Any]:
    """The masks of all states of a random automaton over tokens of 1 to 12 letters, in which a walk dies after a few bytes."""
    operations = choose_operations(device, backend)
    generator = torch.Generator().manual_seed(0)
    transitions = torch.randint(0, num_states, (num_states, 8), generator=generator, dtype=torch.int32)
    transitions[torch.rand(num_states, 8, generator=generator) < 0.3] = 0
    byte_class = torch.randint(0, 8, (256,), generator=generator, dtype=torch.uint8)
    automaton = ByteAutomaton(transitions, byte_class, torch.ones(num_states, dtype=torch.int32))
    lengths = torch.randint(1, 13, (vocab_size,), generator=generator).tolist()
    letters = torch.randint(97, 123, (sum(lengths),), generator=generator, dtype=torch.uint8).numpy().tobytes()
    texts, place = [], 0
    for length in lengths:
        texts.append(letters[place : place + length])
        place += length
    vocabulary = TokenBytes.of(texts, [0], device)
    there = ByteAutomaton(*(array.to(device) for array in automaton))
    states = torch.arange(1, num_states, dtype=torch.int32, device=device)
    out = torch.empty(num_states - 1, -(-vocab_size // 32), dtype=torch.int32, device=device)
    return lambda: operations.mask_rows(states, there, vocabulary, out)


def cases(
    batches: Sequence[int], vocabularies: Sequence[int], clock: Clock, backend: Backend
) -> Iterator[Case]:
    for vocab_size in vocabularies:
        for batch in batches:
            make = partial(steps, batch, vocab_size, clock.device, backend)
            yield timed({"what": "automaton step", "batch": batch, "vocabulary": vocab_size}, make, clock)
        for num_states in (16, 256) if clock.device.type == "cuda" else (4,):
            make = partial(rows_of_all_states, vocab_size, num_states, clock.device, backend)
            yield timed({"what": "mask rows of an automaton", "states": num_states - 1, "vocabulary": vocab_size}, make, clock)

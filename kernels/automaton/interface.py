"""The arrays of the device automaton, the same for every implementation."""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

import torch
from torch import Tensor

from ..sampler.interface import MISSING, NO_TOKEN

IDLE = -2  # in Slots.state: no sequence
FREE = -1  # in Slots.state: a sequence without a constraint
UNKNOWN = -1  # as a target: the tables do not say
PLENTY = 1 << 30  # as bytes of room: nothing is counted (constraints.counters.PLENTY)
PROBES = 32  # places at which an exception may be found, from its hash on
REDRAW = 1 << 32  # added to a draw's number when its token was refused (sampling.sequence.REFUSAL_STRIDE)
NEAR = 16  # tokens between what a state needs and what is left, below which masks are made for what is left (engine.guide.NEAR)


class Flag(IntFlag):
    """What the host has to know about a slot. Everything but DONE and REFUSED is found anew at every step."""

    NO_TRANSITION = 1  # `pending` waits for the state after it, or for what is needed there
    NO_ROW = 2  # the mask row of `state` is missing
    TIGHT = 4  # the mask has to be made for what is left
    REFUSED = 8  # so it has, because a token led too far
    DONE = 16  # end of text, only end of text is left, or no token is left; also where no sequence is
    COUNTED = 32  # `pending` waits to be told where the slot is: a count is near its end, or tokens are few


class Fact(IntFlag):
    """What the device knows of a state beside its transitions."""

    FINISHED = 1  # end of text was read
    ONLY_END = 2  # only end of text is legal


class Tables(NamedTuple):
    """What is known of the states of all constraints, numbered from 0 across them. Capacities are fixed."""

    row: Tensor  # [states] int32, row of the mask pool or MISSING
    needed: Tensor  # [states] int32, tokens that suffice to finish; UNKNOWN: the state may not be entered yet
    facts: Tensor  # [states] int32, Fact
    default: Tensor  # [states] int32, the state after a legal token of which nothing else is said, or UNKNOWN
    partition: Tensor  # [states] int32, row of `classes` that the state uses, or UNKNOWN
    ladder_start: Tensor  # [states] int32, where its states by class begin in `ladder`
    classes: Tensor  # [partitions, vocabulary] uint8, class of a token
    ladder: Tensor  # [entries] int32, state after a token of this class, or UNKNOWN
    keys: Tensor  # [places] int64, state * 2**32 + token of an exception, -1 = free; a power of two
    targets: Tensor  # [places] int32, the state after it
    stands: Tensor  # [states] int32, the state that stands for this one but for its counts, where a slot then is, or UNKNOWN
    room: Tensor  # [states] int32, bytes left in those counts
    more: Tensor  # [states] int32, tokens that their lower bounds need beyond `needed`
    reach: Tensor  # [states] int32, bytes of room that a slot must have to be in this state; 0: nothing is counted there
    length: Tensor  # [vocabulary] int32, bytes of each token


class Slots(NamedTuple):
    """Where each sequence is in its constraint: one slot a sequence, one row of logits a slot."""

    state: Tensor  # [slots] int32, or FREE, IDLE
    pending: Tensor  # [slots] int64, token that waits to be taken, or NO_TOKEN
    mask_index: Tensor  # [slots] int32, what the sampler reads: row of the mask pool, UNCONSTRAINED or MISSING
    left: Tensor  # [slots] int32, tokens that may still be taken
    tight: Tensor  # [slots] int32, value of `left` for which row `tight_row` of the mask pool was made
    tight_row: Tensor  # [slots] int32, the slot's own row of the mask pool
    draw: Tensor  # [slots] int64, the number of the next draw (SamplerRows.position)
    taken: Tensor  # [slots] int32, tokens taken
    output: Tensor  # [slots, capacity] int64, tokens taken; token number n at n % capacity
    flags: Tensor  # [slots] int32, Flag
    room: Tensor  # [slots] int32, bytes that are left in the counts of a state that stands for others
    more: Tensor  # [slots] int32, tokens that their lower bounds need at most


def new_tables(
    *, states: int, partitions: int, vocab_size: int, ladder: int, exceptions: int, device: torch.device | str
) -> Tables:
    """Empty tables. exceptions: places of the hash table, a power of two, to be at most half full."""
    if exceptions & (exceptions - 1):
        raise ValueError(f"exceptions must be a power of two, got {exceptions}")

    def filled(value: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=device)

    return Tables(
        row=filled(MISSING, states),
        needed=filled(UNKNOWN, states),
        facts=filled(0, states),
        default=filled(UNKNOWN, states),
        partition=filled(UNKNOWN, states),
        ladder_start=filled(0, states),
        classes=filled(0, partitions, vocab_size, dtype=torch.uint8),
        ladder=filled(UNKNOWN, ladder),
        keys=filled(-1, exceptions, dtype=torch.int64),
        targets=filled(UNKNOWN, exceptions),
        stands=filled(UNKNOWN, states),
        room=filled(PLENTY, states),
        more=filled(0, states),
        reach=filled(0, states),
        length=filled(0, vocab_size),
    )


def new_slots(slots: int, capacity: int, device: torch.device | str) -> Slots:
    """Slots without sequences. The first `slots` rows of the mask pool are the slots' own."""

    def filled(value: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=device)

    return Slots(
        state=filled(IDLE, slots),
        pending=filled(NO_TOKEN, slots, dtype=torch.int64),
        mask_index=filled(MISSING, slots),
        left=filled(0, slots),
        tight=filled(-1, slots),
        tight_row=torch.arange(slots, dtype=torch.int32, device=device),
        draw=filled(0, slots, dtype=torch.int64),
        taken=filled(0, slots),
        output=filled(NO_TOKEN, slots, capacity, dtype=torch.int64),
        flags=filled(int(Flag.DONE), slots),
        room=filled(PLENTY, slots),
        more=filled(0, slots),
    )


def hash_place(key: int, places: int) -> int:
    """The first place at which the exception with this key may be: multiplicative hashing (Knuth, TAOCP 6.4) of 64 bits."""
    return ((key * 0x9E3779B97F4A7C15) % (1 << 64) >> 32) & (places - 1)

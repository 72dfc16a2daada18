"""One step of the device automaton in plain PyTorch: the implementation on a CPU, and the truth for the kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from ..sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED
from .interface import FREE, IDLE, NEAR, PLENTY, PROBES, REDRAW, UNKNOWN, Fact, Flag, Slots, Tables

GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # as int64


def advance(token: Tensor, slots: Slots, tables: Tables) -> None:
    """Every slot takes its token, in place; the package docstring says how. token: [slots] int64, NO_TOKEN where none was drawn."""
    was_done = (slots.flags & Flag.DONE) != 0
    is_free, is_bound = slots.state == FREE, slots.state >= 0
    offered = torch.where(slots.pending >= 0, slots.pending, token)
    has_token = (offered >= 0) & ~was_done & (slots.state != IDLE)

    steps = has_token & is_bound
    named = find_target(slots.state, offered, steps, tables)
    target, room, more = enter(named, offered, steps, slots, tables)
    target = torch.where(is_free, FREE, target)
    known = torch.where(target >= 0, target, 0).long()
    unknown = steps & ((target == UNKNOWN) | (tables.needed[known] == UNKNOWN))
    counts, after = tables.reach[known] > 0, slots.left - 1
    counted = steps & ~unknown & counts & ((room < tables.reach[known]) | (after <= tables.needed[known] + more + NEAR))
    waits = unknown | counted
    finishes = steps & ~waits & ((tables.facts[known] & Fact.FINISHED) != 0)
    refused = steps & ~waits & ~finishes & ~counts & (tables.needed[known] > after)
    moves = has_token & ~waits & ~refused
    takes = moves & ~finishes

    capacity = slots.output.shape[1]
    place = (slots.taken % capacity).long()[:, None]
    slots.output.scatter_(1, place, torch.where(takes[:, None], offered[:, None], slots.output.gather(1, place)))
    slots.state.copy_(torch.where(moves & is_bound, target, slots.state))
    slots.room.copy_(torch.where(moves & is_bound, room, slots.room))
    slots.more.copy_(torch.where(moves & is_bound, more, slots.more))
    slots.pending.copy_(torch.where(waits, offered, NO_TOKEN))
    slots.taken.add_(takes)
    slots.left.sub_(takes.int())
    slots.draw.copy_(torch.where(takes, slots.taken.long(), slots.draw + refused * REDRAW))

    state = slots.state.clamp(min=0).long()
    facts = tables.facts[state]
    ends = is_bound & (facts != 0)
    done = was_done | finishes | ends | ((slots.left <= 0) & (slots.state != IDLE))
    was_refused = refused | (~moves & ((slots.flags & Flag.REFUSED) != 0))
    tight = is_bound & (was_refused | ((tables.reach[state] == 0) & (slots.left <= tables.needed[state] + NEAR)))
    row = torch.where(tight, torch.where(slots.tight == slots.left, slots.tight_row, MISSING), tables.row[state])
    no_row = is_bound & ~done & ~tight & (tables.row[state] == MISSING)
    row = torch.where(is_free, UNCONSTRAINED, row)
    slots.mask_index.copy_(torch.where(done | waits | (slots.state == IDLE), MISSING, row))
    slots.flags.copy_(
        unknown * Flag.NO_TRANSITION
        + counted * Flag.COUNTED
        + no_row * Flag.NO_ROW
        + (tight & ~done) * Flag.TIGHT
        + (was_refused & is_bound & ~done) * Flag.REFUSED
        + done * Flag.DONE
    )


def enter(named: Tensor, token: Tensor, wanted: Tensor, slots: Slots, tables: Tables) -> tuple[Tensor, Tensor, Tensor]:
    """([slots] int32 state, room, more) after a token that leads to the state `named`: in the state that stands for that one, if
    one does, with as much room as its counts leave and those of the slot."""
    at = torch.where(named >= 0, named, 0).long()
    target = torch.where((named >= 0) & (tables.stands[at] >= 0), tables.stands[at], named)
    counts = (target >= 0) & (tables.reach[target.clamp(min=0).long()] > 0)
    left = slots.room - tables.length[torch.where(wanted, token, 0)]
    room = torch.where(counts, torch.minimum(left, tables.room[at]), PLENTY)
    more = torch.where(counts, slots.more + tables.more[at], 0)
    return target, room, more


def ban(logits: Tensor, mask_rows: Tensor, mask_index: Tensor) -> None:
    """Set the logits of the tokens that a row's mask forbids to -inf, in place.

    logits: [rows, head], contiguous within a row; what lies beyond the masks is forbidden too. mask_rows: [pool, words] int32;
    mask_index: [rows] int32, a row without a mask (UNCONSTRAINED, MISSING) stays as it is.
    """
    width = logits.shape[1]
    rows = mask_rows[mask_index.clamp(min=0).long()]
    bits = (rows[:, :, None] >> torch.arange(32, dtype=torch.int32, device=rows.device)) & 1
    allowed = bits.flatten(1)[:, :width] != 0
    allowed = torch.nn.functional.pad(allowed, (0, width - allowed.shape[1]))
    logits.masked_fill_(~allowed & (mask_index >= 0)[:, None], -torch.inf)


def find_target(state: Tensor, token: Tensor, wanted: Tensor, tables: Tables) -> Tensor:
    """[slots] int32: the state after the token, UNKNOWN where the tables do not say or nothing is wanted."""
    at = torch.where(wanted, state, 0).long()
    token = torch.where(wanted, token, 0)
    partition = tables.partition[at].long()
    classes = tables.classes[partition.clamp(min=0), token].long()
    by_class = tables.ladder[tables.ladder_start[at].long() + torch.where(partition >= 0, classes, 0)]
    target = torch.where(partition >= 0, by_class, tables.default[at])

    key = (at << 32) | token
    places = tables.keys.shape[0]
    start = ((key * GOLDEN) >> 32) & (places - 1)
    probed = (start[:, None] + torch.arange(PROBES, device=key.device)) & (places - 1)  # [slots, PROBES]
    is_key = tables.keys[probed] == key[:, None]
    exception = torch.where(is_key, tables.targets[probed], UNKNOWN).amax(-1)
    return torch.where(wanted, torch.where(is_key.any(-1), exception, target), UNKNOWN)

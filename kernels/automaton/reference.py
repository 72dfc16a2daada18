"""One step of the device automaton in plain PyTorch: the implementation on a CPU, and the truth for the kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from ..sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED
from .interface import FREE, IDLE, NEAR, PROBES, REDRAW, UNKNOWN, Fact, Flag, Slots, Tables

GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # as int64


def advance(token: Tensor, slots: Slots, tables: Tables) -> None:
    """Every slot takes its token, in place; the package docstring says how. token: [slots] int64, NO_TOKEN where none was drawn."""
    was_done = (slots.flags & Flag.DONE) != 0
    is_free, is_bound = slots.state == FREE, slots.state >= 0
    offered = torch.where(slots.pending >= 0, slots.pending, token)
    has_token = (offered >= 0) & ~was_done & (slots.state != IDLE)

    target = torch.where(is_free, FREE, find_target(slots.state, offered, has_token & is_bound, tables))
    known = torch.where(target >= 0, target, 0).long()
    waits = has_token & is_bound & (target == UNKNOWN)
    finishes = has_token & is_bound & ~waits & ((tables.facts[known] & Fact.FINISHED) != 0)
    refused = has_token & is_bound & ~waits & ~finishes & (tables.needed[known] > slots.left - 1)
    moves = has_token & ~waits & ~refused
    takes = moves & ~finishes

    capacity = slots.output.shape[1]
    place = (slots.num_taken % capacity).long()[:, None]
    slots.output.scatter_(1, place, torch.where(takes[:, None], offered[:, None], slots.output.gather(1, place)))
    slots.state.copy_(torch.where(moves & is_bound, target, slots.state))
    slots.pending.copy_(torch.where(waits, offered, NO_TOKEN))
    slots.num_taken.add_(takes)
    slots.left.sub_(takes.int())
    slots.draw.copy_(torch.where(takes, slots.num_taken.long(), slots.draw + refused * REDRAW))

    state = slots.state.clamp(min=0).long()
    facts = tables.facts[state]
    ends = is_bound & (facts != 0)
    done = was_done | finishes | ends | ((slots.left <= 0) & (slots.state != IDLE))
    was_refused = refused | (~moves & ((slots.flags & Flag.REFUSED) != 0))
    tight = is_bound & (was_refused | (slots.left <= tables.needed[state] + NEAR))
    row = torch.where(tight, torch.where(slots.tight == slots.left, slots.tight_row, MISSING), tables.row[state])
    no_row = is_bound & ~done & ~tight & (tables.row[state] == MISSING)
    row = torch.where(is_free, UNCONSTRAINED, row)
    slots.mask_index.copy_(torch.where(done | waits | (slots.state == IDLE), MISSING, row))
    slots.flags.copy_(
        waits * Flag.NO_TRANSITION
        + no_row * Flag.NO_ROW
        + (tight & ~done) * Flag.TIGHT
        + (was_refused & is_bound & ~done) * Flag.REFUSED
        + done * Flag.DONE
    )


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

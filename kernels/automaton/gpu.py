"""The device automaton as Triton kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..sampler.interface import MISSING, NO_TOKEN, UNCONSTRAINED
from . import interface
from .interface import Fact, Flag, Slots, Tables
from .vocabulary import ByteAutomaton, TokenBytes

BLOCK = 32  # slots of one program: a warp
TOKENS = 1024  # tokens of one program

MISSING_ROW, NOTHING, ANYTHING = tl.constexpr(MISSING), tl.constexpr(NO_TOKEN), tl.constexpr(UNCONSTRAINED)
FREE, IDLE, UNKNOWN = tl.constexpr(interface.FREE), tl.constexpr(interface.IDLE), tl.constexpr(interface.UNKNOWN)
PROBES, NEAR, REDRAW = tl.constexpr(interface.PROBES), tl.constexpr(interface.NEAR), tl.constexpr(interface.REDRAW)
PLENTY, COUNTED = tl.constexpr(interface.PLENTY), tl.constexpr(int(Flag.COUNTED))
NO_TRANSITION, NO_ROW, TIGHT = tl.constexpr(int(Flag.NO_TRANSITION)), tl.constexpr(int(Flag.NO_ROW)), tl.constexpr(int(Flag.TIGHT))
REFUSED, DONE = tl.constexpr(int(Flag.REFUSED)), tl.constexpr(int(Flag.DONE))
FINISHED = tl.constexpr(int(Fact.FINISHED))


@triton.jit
def find_target(at, token, wanted, tables: Tables, vocab_size, places):
    """int32 [BLOCK]: the state that `token` leads to from state `at`, UNKNOWN where the tables do not say or nothing is wanted.

    An exception (at, token) decides, if the hash table has one; else the class of the token, where the state has a partition; else
    the state's default.
    """
    row = tl.load(tables.partition + at, mask=wanted, other=UNKNOWN)
    by_class = wanted & (row >= 0)
    token_class = tl.load(tables.classes + row.to(tl.int64) * vocab_size + token, mask=by_class, other=0).to(tl.int32)
    target = tl.load(tables.default + at, mask=wanted & (row < 0), other=UNKNOWN)
    step = tl.load(tables.ladder_start + at, mask=by_class, other=0) + token_class
    target = tl.where(by_class, tl.load(tables.ladder + step, mask=by_class, other=UNKNOWN), target)
    key = (at.to(tl.int64) << 32) | token
    start = ((key.to(tl.uint64) * 0x9E3779B97F4A7C15) >> 32).to(tl.int64)
    probe = 0
    looking = wanted
    while (probe < PROBES) & (tl.max(tl.where(looking, 1, 0), axis=0) > 0):
        place = (start + probe) & (places - 1)
        found = tl.load(tables.keys + place, mask=looking, other=-1)
        hit = looking & (found == key)
        target = tl.where(hit, tl.load(tables.targets + place, mask=hit, other=UNKNOWN), target)
        looking = looking & (found != key) & (found >= 0)  # a free place ends the search: exceptions are never removed one by one
        probe += 1
    return target


@triton.jit
def advance_kernel(token, slots: Slots, tables: Tables, num_slots, capacity, vocab_size, places, BLOCK: tl.constexpr):
    """Every slot takes its token: `reference.advance`, whose names these are, for BLOCK slots.

    token: int64 [num_slots], negative = none. Of a slot in state s that is offered token t (the one that is pending, else its own):

        s' = find_target(s, t), or the state that stands for it
        s' unknown, or its counts near their end       t stays pending: the host is asked
        s' needs more tokens than are left             t is refused: it is drawn once more
        else                                           the slot is in s'; t is put out, unless it ends the text

    Launched by `advance` with the grid (num_slots / BLOCK,).
    """
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_slot = slot < num_slots
    state = tl.load(slots.state + slot, mask=is_slot, other=IDLE)
    pending = tl.load(slots.pending + slot, mask=is_slot, other=NOTHING)
    flags = tl.load(slots.flags + slot, mask=is_slot, other=0)
    left = tl.load(slots.left + slot, mask=is_slot, other=0)
    count = tl.load(slots.taken + slot, mask=is_slot, other=0)
    draw = tl.load(slots.draw + slot, mask=is_slot, other=0)
    was_done = (flags & DONE) != 0
    is_free, is_bound, is_idle = state == FREE, state >= 0, state == IDLE
    offered = tl.where(pending >= 0, pending, tl.load(token + slot, mask=is_slot, other=NOTHING))
    has_token = (offered >= 0) & (was_done == 0) & (is_idle == 0)

    steps = has_token & is_bound
    named = find_target(state, offered, steps, tables, vocab_size, places)
    stand = tl.load(tables.stands + named, mask=steps & (named >= 0), other=UNKNOWN)
    target = tl.where(stand >= 0, stand, named)
    is_target = steps & (target >= 0)
    need = tl.load(tables.needed + target, mask=is_target, other=UNKNOWN)
    reach = tl.load(tables.reach + target, mask=is_target, other=0)
    counts = reach > 0
    room = tl.load(slots.room + slot, mask=is_slot, other=PLENTY)
    more = tl.load(slots.more + slot, mask=is_slot, other=0)
    num_bytes = tl.load(tables.length + offered, mask=counts, other=0)
    room_after = tl.minimum(room - num_bytes, tl.load(tables.room + named, mask=counts, other=0))
    more_after = more + tl.load(tables.more + named, mask=counts, other=0)
    counted = counts & (need >= 0) & ((room_after < reach) | (left - 1 <= need + more_after + NEAR))
    unknown = steps & (need < 0)
    waits = unknown | counted
    known = steps & (waits == 0)
    finishes = known & ((tl.load(tables.facts + target, mask=known, other=0) & FINISHED) != 0)
    refused = known & (finishes == 0) & (counts == 0) & (need > left - 1)
    moves = has_token & (waits == 0) & (refused == 0)
    takes = moves & (finishes == 0)

    tl.store(slots.output + slot.to(tl.int64) * capacity + count % capacity, offered, mask=takes)
    state = tl.where(moves & is_bound, target, state)
    tl.store(slots.room + slot, tl.where(moves & is_bound, tl.where(counts, room_after, PLENTY), room), mask=is_slot)
    tl.store(slots.more + slot, tl.where(moves & is_bound, tl.where(counts, more_after, 0), more), mask=is_slot)
    count = tl.where(takes, count + 1, count)
    left = tl.where(takes, left - 1, left)
    draw = tl.where(takes, count.to(tl.int64), tl.where(refused, draw + REDRAW, draw))

    facts = tl.load(tables.facts + state, mask=is_bound, other=0)
    done = was_done | (is_bound & (facts != 0)) | ((left <= 0) & (is_idle == 0))
    was_refused = refused | ((moves == 0) & ((flags & REFUSED) != 0))
    is_exact = tl.load(tables.reach + state, mask=is_bound, other=0) == 0
    tight = is_bound & (was_refused | (is_exact & (left <= tl.load(tables.needed + state, mask=is_bound, other=0) + NEAR)))
    plain = tl.load(tables.row + state, mask=is_bound, other=MISSING_ROW)
    own = tl.load(slots.tight_row + slot, mask=is_slot, other=MISSING_ROW)
    is_made = tl.load(slots.tight + slot, mask=is_slot, other=-1) == left
    row = tl.where(tight, tl.where(is_made, own, MISSING_ROW), tl.where(is_free, ANYTHING, plain))
    no_row = is_bound & (done == 0) & (tight == 0) & (plain == MISSING_ROW)

    tl.store(slots.state + slot, state, mask=is_slot)
    tl.store(slots.pending + slot, tl.where(waits, offered, NOTHING), mask=is_slot)
    tl.store(slots.taken + slot, count, mask=is_slot)
    tl.store(slots.left + slot, left, mask=is_slot)
    tl.store(slots.draw + slot, draw, mask=is_slot)
    tl.store(slots.mask_index + slot, tl.where(done | waits | is_idle, MISSING_ROW, row), mask=is_slot)
    flags = tl.where(unknown, NO_TRANSITION, 0) + tl.where(counted, COUNTED, 0) + tl.where(no_row, NO_ROW, 0)
    flags += tl.where(tight & (done == 0), TIGHT, 0) + tl.where(was_refused & is_bound & (done == 0), REFUSED, 0)
    flags += tl.where(done, DONE, 0)
    tl.store(slots.flags + slot, flags, mask=is_slot)


def advance(token: Tensor, slots: Slots, tables: Tables) -> None:
    """`reference.advance` as one kernel, slots BLOCK at a time."""
    num_slots, capacity = slots.output.shape
    with torch.cuda.device_of(token):
        advance_kernel[(triton.cdiv(num_slots, BLOCK),)](
            token, slots, tables, num_slots, capacity, tables.classes.shape[1], tables.keys.shape[0],
            BLOCK=BLOCK, num_warps=1, enable_fp_fusion=False,
        )  # fmt: skip


@triton.jit
def ban_kernel(logits, mask_rows, mask_index, width, words, logits_stride, rows_stride, BLOCK: tl.constexpr):
    """Forbidden tokens of one row, BLOCK of them at a time: `reference.ban`.

        logits[i, t] = -inf   where mask_index[i] >= 0 and bit t % 32 of mask_rows[mask_index[i], t // 32] is 0 or is not there

    Launched by `ban` with the grid (rows, width / BLOCK).
    """
    row = tl.program_id(0)
    number = tl.load(mask_index + row)
    if number >= 0:
        token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        word = token // 32
        bits = tl.load(mask_rows + number.to(tl.int64) * rows_stride + word, mask=word < words, other=0)
        is_banned = ((bits >> (token % 32)) & 1) == 0
        tl.store(logits + row.to(tl.int64) * logits_stride + token, float("-inf"), mask=is_banned & (token < width))


def ban(logits: Tensor, mask_rows: Tensor, mask_index: Tensor) -> None:
    """`reference.ban` as one kernel, a program for each row and TOKENS tokens."""
    num_rows, width = logits.shape
    if num_rows == 0:
        return
    with torch.cuda.device_of(logits):
        ban_kernel[(num_rows, triton.cdiv(width, TOKENS))](
            logits, mask_rows, mask_index, width, mask_rows.shape[1], logits.stride(0), mask_rows.stride(0),
            BLOCK=TOKENS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip


@triton.jit
def mask_rows_kernel(
    states, transitions, byte_class, accepting, token_bytes, token_start, end_row, out,
    vocab_size, num_classes, out_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    """Which tokens each state allows, one bit a token: `vocabulary.mask_rows` for one state and BLOCK tokens.

        bit t of out[i, :] = the walk from states[i] over the bytes of token t never meets state 0,
        or states[i] is accepting and bit t of end_row is set

    A token without bytes is never allowed by the walk. All tokens of a program are walked side by side, so that it ends with its
    longest live one. Launched by `mask_rows` with the grid (states, vocab_size / BLOCK).
    """
    state_number = tl.program_id(0)
    first = tl.load(states + state_number)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_vocab = token < vocab_size
    start = tl.load(token_start + token, mask=in_vocab, other=0)
    length = tl.load(token_start + token + 1, mask=in_vocab, other=0) - start
    state = tl.where(in_vocab & (length > 0), first, 0)  # 0 is dead
    read = 0
    walking = (state != 0) & (read < length)
    while tl.max(tl.where(walking, 1, 0), axis=0) > 0:
        byte = tl.load(token_bytes + start + read, mask=walking, other=0).to(tl.int32)
        column = tl.load(byte_class + byte).to(tl.int32)
        state = tl.where(walking, tl.load(transitions + state * num_classes + column, mask=walking, other=0), state)
        read += 1
        walking = (state != 0) & (read < length)
    WORDS: tl.constexpr = BLOCK // 32
    bits = tl.reshape((state != 0).to(tl.int32), (WORDS, 32)) << tl.arange(0, 32)[None, :]
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    in_row = word * 32 < vocab_size
    rows = tl.sum(bits, axis=1)  # distinct bits: a sum is an or
    ends = tl.load(end_row + word, mask=in_row, other=0)
    rows = rows | tl.where(tl.load(accepting + first) != 0, ends, 0)
    tl.store(out + state_number.to(tl.int64) * out_stride + word, rows, mask=in_row)


def mask_rows(states: Tensor, automaton: ByteAutomaton, vocabulary: TokenBytes, out: Tensor) -> None:
    """`vocabulary.mask_rows` as one kernel, a program for each state and TOKENS tokens."""
    if len(states) == 0:
        return
    vocab_size = vocabulary.start.shape[0] - 1
    with torch.cuda.device_of(states):
        mask_rows_kernel[(len(states), triton.cdiv(vocab_size, TOKENS))](
            states, automaton.transitions, automaton.byte_class, automaton.accepting, vocabulary.data, vocabulary.start,
            vocabulary.end_row, out, vocab_size, automaton.transitions.shape[1], out.stride(0),
            BLOCK=TOKENS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip

"""Two grouped products: up with gate and activation, then down with the weights.

The pairs (token, choice) are sorted by expert and cut into blocks of BLOCK_M that never mix experts. How many blocks an expert
needs is known on the device only, so the grid has room for the worst case, and programs without a block end at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...triton_support import dot

BLOCK_N, BLOCK_K = 64, 64


class Blocks(NamedTuple):
    """Which pairs each block multiplies with which expert: those at places first:stop of `pairs`, BLOCK_M at most."""

    pairs: Tensor  # int64 [num_pairs]: token * per_token + choice, sorted by expert
    expert: Tensor  # int64 [num_blocks]
    first: Tensor  # int64 [num_blocks]; a block without pairs has first = stop
    stop: Tensor  # int64 [num_blocks]


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """The activation of fp32 numbers, element by element: "silu", "gelu" or "gelu_tanh"."""
    if ACTIVATION == "silu":
        return x * tl.sigmoid(x)
    elif ACTIVATION == "gelu":
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    else:  # tanh(y) = 2 sigmoid(2 y) - 1
        return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def up_kernel(
    hidden,  # [num_tokens, hidden_size]
    gate_up,  # [num_experts, 2 * size, hidden_size]: rows of the gate, then those of up
    weights,  # float32 [num_pairs], by pair
    blocks: Blocks,
    inner,  # [num_pairs, size], in the order of `blocks.pairs`
    hidden_size,
    size,
    per_token,
    ACTIVATION: tl.constexpr,
    SCALES_INPUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """inner[place, n] = activation(<x, gate_n>) * <x, up_n>, for one block of places and BLOCK_N columns n.

    x is the token of the pair at that place, times the pair's weight with SCALES_INPUT; gate_n and up_n are rows of the block's
    expert. Launched by `launch` with the grid (number of blocks, size / BLOCK_N).
    """
    block = tl.program_id(0)
    expert, first, stop = tl.load(blocks.expert + block), tl.load(blocks.first + block), tl.load(blocks.stop + block)
    if first < stop:
        place = first + tl.arange(0, BLOCK_M)
        is_pair = place < stop
        pair = tl.load(blocks.pairs + place, mask=is_pair, other=0)
        column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        is_column = column < size
        x_row = hidden + (pair // per_token)[:, None] * hidden_size
        gate_row = gate_up + (expert * 2 * size + column)[None, :] * hidden_size
        up_row = gate_row + size.to(tl.int64) * hidden_size
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        scale = tl.load(weights + pair, mask=is_pair, other=0.0)
        for start in range(0, hidden_size, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            inside = k < hidden_size
            x = tl.load(x_row + k[None, :], mask=is_pair[:, None] & inside[None, :], other=0.0)
            if SCALES_INPUT:
                x = (x.to(tl.float32) * scale[:, None]).to(x.dtype)
            is_weight = inside[:, None] & is_column[None, :]
            gate = dot(x, tl.load(gate_row + k[:, None], mask=is_weight, other=0.0), gate)
            up = dot(x, tl.load(up_row + k[:, None], mask=is_weight, other=0.0), up)
        found = (activated(gate, ACTIVATION) * up).to(inner.dtype.element_ty)
        tl.store(inner + place[:, None] * size + column[None, :], found, mask=is_pair[:, None] & is_column[None, :])


@triton.jit
def down_kernel(
    inner,  # [num_pairs, size], in the order of `blocks.pairs`
    down,  # [num_experts, hidden_size, size]
    weights,  # float32 [num_pairs], by pair
    blocks: Blocks,
    output,  # float32 [num_pairs, hidden_size], in the order of tokens
    hidden_size,
    size,
    SCALES_INPUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """output[pair, n] = <inner of the pair, down_n>, for one block of places and BLOCK_N columns n.

    It is multiplied by the pair's weight, unless that went into the input (SCALES_INPUT); down_n is a row of the block's expert.
    Launched by `launch` with the grid (number of blocks, hidden_size / BLOCK_N).
    """
    block = tl.program_id(0)
    expert, first, stop = tl.load(blocks.expert + block), tl.load(blocks.first + block), tl.load(blocks.stop + block)
    if first < stop:
        place = first + tl.arange(0, BLOCK_M)
        is_pair = place < stop
        pair = tl.load(blocks.pairs + place, mask=is_pair, other=0)
        column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        is_column = column < hidden_size
        x_row = inner + place[:, None] * size
        down_row = down + (expert * hidden_size + column)[None, :] * size
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, size, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            inside = k < size
            x = tl.load(x_row + k[None, :], mask=is_pair[:, None] & inside[None, :], other=0.0)
            w = tl.load(down_row + k[:, None], mask=inside[:, None] & is_column[None, :], other=0.0)
            total = dot(x, w, total)
        if not SCALES_INPUT:
            total = total * tl.load(weights + pair, mask=is_pair, other=0.0)[:, None]
        target = output + pair[:, None] * hidden_size + column[None, :]
        tl.store(target, total, mask=is_pair[:, None] & is_column[None, :])


def launch(
    hidden: Tensor, gate_up: Tensor, down: Tensor, chosen: Tensor, weights: Tensor, activation: str, scales_input: bool
) -> Tensor:
    """`kernels.moe.grouped_mlp` by two grouped products. The weights of experts must be contiguous; the rest is made so."""
    if not (gate_up.is_contiguous() and down.is_contiguous()):
        raise ValueError("gate_up and down must be contiguous; call contiguous() on them")
    hidden, weights = hidden.contiguous(), weights.float().contiguous()
    (num_tokens, hidden_size), per_token = hidden.shape, chosen.shape[1]
    num_experts, size = len(gate_up), down.shape[2]
    block_m = 16 if num_tokens * per_token <= 16 * num_experts else 64
    blocks = blocks_of(chosen, num_experts, block_m)
    inner = hidden.new_empty((len(blocks.pairs), size))
    output = hidden.new_empty((len(blocks.pairs), hidden_size), dtype=torch.float32)
    common = {"SCALES_INPUT": scales_input, "BLOCK_M": block_m, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    up_kernel[(len(blocks.expert), triton.cdiv(size, BLOCK_N))](
        hidden, gate_up, weights, blocks, inner, hidden_size, size, per_token, ACTIVATION=activation, **common
    )
    down_kernel[(len(blocks.expert), triton.cdiv(hidden_size, BLOCK_N))](
        inner, down, weights, blocks, output, hidden_size, size, **common
    )
    return output.view(num_tokens, per_token, hidden_size).sum(dim=1).to(hidden.dtype)


def blocks_of(chosen: Tensor, num_experts: int, block_m: int) -> Blocks:
    """The pairs of `chosen` [num_tokens, per_token] in blocks; asks nothing of the device."""
    flat = chosen.flatten()
    counts = torch.zeros(num_experts, dtype=torch.int64, device=flat.device).scatter_add_(0, flat, torch.ones_like(flat))
    needed = (counts + block_m - 1) // block_m
    ends, block_ends = counts.cumsum(0), needed.cumsum(0)
    block = torch.arange(triton.cdiv(len(flat), block_m) + min(num_experts, len(flat)), device=flat.device)
    expert = torch.searchsorted(block_ends, block, right=True).clamp_max(num_experts - 1)
    first = (ends - counts)[expert] + (block - (block_ends - needed)[expert]) * block_m
    stop = ends[expert]
    return Blocks(flat.argsort(stable=True), expert, torch.minimum(first, stop), stop)

"""A mixture of experts whose matrices stay packed, one expert's under another's: two grouped products in Triton.

Rows are sorted by expert as in `kernels/moe`, and multiplied as in `gpu/product.py`; Triton is imported where that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..fused import gated_activation
from ..fused.gated_activation import Activation
from .blocks import Packed
from .codes import Scaled
from .rounding import Rounding

if TYPE_CHECKING:
    from .gpu.product import Stacked

Matrices = Packed | Scaled  # of all experts, one under another


def grouped_mlp(
    hidden: Tensor,
    gate_up: Matrices,
    down: Matrices,
    chosen: Tensor,
    weights: Tensor,
    activation: Activation,
    scales_input: bool,
    roundings: tuple[Rounding | None, Rounding | None],
    num_experts: int,
) -> Tensor:
    """`kernels.moe.grouped_mlp` of packed matrices: of gate_up each expert has 2 * size rows, of down hidden_size.

    `roundings` of the inputs of both. Asks nothing of the device.
    """
    from ..moe.gpu.experts import blocks_of
    from .gpu.product import Stacked

    (num_tokens, _), per_token = hidden.shape, chosen.shape[1]
    block_m = 16 if num_tokens * per_token <= 16 * num_experts else 64
    blocks = blocks_of(chosen, num_experts, block_m)
    pairs, places = blocks.pairs, torch.arange(len(blocks.pairs), device=hidden.device)
    factors = weights.float().flatten()[pairs, None]
    in_order = Stacked(blocks._replace(pairs=places), num_experts, block_m)
    if scales_input:
        given, stack = (hidden[pairs // per_token] * factors).to(hidden.dtype), in_order
    else:
        given, stack = hidden, Stacked(blocks._replace(pairs=pairs // per_token), num_experts, block_m)
    inner = _product(given, gate_up, stack, roundings[0]).to(hidden.dtype)
    output = _product(gated_activation(inner, activation, backend="triton"), down, in_order, roundings[1])
    output = output if scales_input else output * factors
    by_pair = torch.empty_like(output).index_copy_(0, pairs, output)
    return by_pair.view(num_tokens, per_token, -1).sum(dim=1).to(hidden.dtype)


def _product(x: Tensor, matrices: Matrices, stack: Stacked, rounding: Rounding | None) -> Tensor:
    from .gpu.product import multiply_blocks, multiply_codes

    x = x if rounding is None else rounding(x)
    return multiply_blocks(x, matrices, stack) if isinstance(matrices, Packed) else multiply_codes(x, matrices, stack)


def stacked_blocks(parts: list[Packed]) -> Packed | None:
    """The matrices one under another; None where they are of several types."""
    if len({part.type for part in parts}) > 1:
        return None
    return Packed(parts[0].type, torch.cat([part.data for part in parts]))


def stacked_codes(parts: list[Scaled]) -> Scaled | None:
    """The matrices one under another, each with whole blocks; None where they are of several forms, or in orders of their own."""
    first = parts[0]
    forms = {(part.type.name, part.block, part.scales.dtype) for part in parts}
    if len(forms) > 1 or any(part.order is not None for part in parts):
        return None
    zeros = torch.cat([_zeros(part) for part in parts]) if any(part.zeros is not None for part in parts) else None
    data, scales = (torch.cat([getattr(part, name) for part in parts]) for name in ("data", "scales"))
    return Scaled(first.type, data, scales, first.num_columns, first.block, zeros)


def _zeros(part: Scaled) -> Tensor:
    if part.zeros is not None:
        return part.zeros
    return torch.full(part.scales.shape, part.type.middle, dtype=torch.uint8, device=part.data.device)

"""Linear layers: only these objects multiply activations by the weight matrices of a native model.

There are three kinds, each a protocol here: a `Linear` (projections of attention, MLPs and Mamba, the router, the head), a
`PerHeadLinear` (latent attention) and a `GroupedMlp` (all experts of a layer). An `Embedding` looks up rows of a matrix, which may
be the head's too. A `Linears` makes them by the names of `layout.py` when `Decoder` or `Mamba` is built. `DenseLinears` makes them
of matrices in floating point, `packed_linear.PackedLinears` of matrices in blocks. Another way to store matrices (shards) is
another `Linears`; adapters are a `Linears` that wraps the objects of another (`engine/adapters/linears.py`).

A CUDA graph may capture a call, so every implementation keeps to this: a call waits for nothing on the device and changes no
object, and what differs between steps, such as the adapter of each row, lies in tensors that stay where they are. The rows of x are
the tokens of the step in their order, those that pad the batch included; only the head gets fewer, those whose logits are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from ...kernels import fused
from ...kernels.backend import Backend
from ...kernels.moe import grouped_mlp


class Linear(Protocol):
    """One matrix product, y = x W^T + b."""

    def __call__(self, x: Tensor) -> Tensor:
        """y [num_rows, out_features] of x [num_rows, in_features], in the dtype of x. Rows of x need not be contiguous."""


class PerHeadLinear(Protocol):
    """One matrix product for each head: y_h = x_h W_h^T."""

    def __call__(self, x: Tensor) -> Tensor:
        """y [num_tokens, num_heads, out_features] of x [num_tokens, num_heads, in_features], in the dtype of x."""


class GroupedMlp(Protocol):
    """The MLPs of all experts of a layer, of which each token goes through a few: down(act(gate) * up).

    Both products are one object, because a kernel computes the activation with the first and the weighting with the second.
    """

    def __call__(self, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        """Each token's weighted sum over its experts, [num_tokens, hidden_size] in the dtype of `hidden`.

        hidden [num_tokens, hidden_size]; chosen int64 and weights float32 [num_tokens, per_token], as `Experts.route` gives them.
        """


class Embedding(Protocol):
    """A matrix of which rows are looked up. Its device and dtype are those that the model computes in."""

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def __call__(self, token_ids: Tensor, scale: float) -> Tensor:
        """Rows times `scale`, [num_tokens, hidden_size]; token_ids int64 [num_tokens], of which negative ones pad."""


class Linears(Protocol):
    """Makes the linear layers of one model. `name` is that of `layout.py`, for instance "layers.0.attention.qkv".

    Raises KeyError for a name that the model does not have.
    """

    def embedding(self, name: str, *, uses_triton: bool) -> Embedding: ...

    def linear(self, name: str) -> Linear: ...

    def per_head(self, name: str) -> PerHeadLinear: ...

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> GroupedMlp:
        """`activation` and `scales_input` as in `kernels.moe.grouped_mlp`, `uses_triton` as in `modules.py`."""


Adapt = Callable[[Linears], Linears]  # makes linear layers that add to those of another kind: adapters


@dataclass(frozen=True, slots=True)
class DenseLinear:
    """A `Linear` whose matrix is in floating point."""

    weight: Tensor  # [out_features, in_features], in the dtype of what it is given
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class DensePerHeadLinear:
    """A `PerHeadLinear` whose matrices are in floating point."""

    weight: Tensor  # [num_heads, out_features, in_features]

    def __call__(self, x: Tensor) -> Tensor:
        return torch.einsum("thi,hoi->tho", x, self.weight)


@dataclass(frozen=True, slots=True)
class DenseGroupedMlp:
    """A `GroupedMlp` whose matrices are in floating point, computed by `kernels/moe`."""

    gate_up: Tensor  # [num_experts, 2 * size, hidden_size]: gate, then up
    down: Tensor  # [num_experts, hidden_size, size]
    activation: str
    scales_input: bool = False
    uses_triton: bool = False

    def __call__(self, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        backend: Backend = "triton" if self.uses_triton else "reference"
        return grouped_mlp(
            hidden, self.gate_up, self.down, chosen, weights, self.activation, self.scales_input, backend=backend
        )


@dataclass(frozen=True, slots=True)
class DenseEmbedding:
    """An `Embedding` whose matrix is in floating point."""

    weight: Tensor  # [vocab, hidden]
    uses_triton: bool = False

    @property
    def device(self) -> torch.device:
        return self.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    def __call__(self, token_ids: Tensor, scale: float) -> Tensor:
        if self.uses_triton:
            return fused.embedding(token_ids, self.weight, scale=scale, backend="triton")
        hidden = embedding(token_ids.clamp_min(0), self.weight)
        return hidden if scale == 1.0 else hidden * scale


@dataclass(frozen=True, slots=True)
class DenseLinears:
    """Makes linear layers of matrices in floating point. Their tensors are "NAME.weight" and "NAME.bias", as in `layout.py`."""

    weights: Mapping[str, Tensor]

    def embedding(self, name: str, *, uses_triton: bool) -> DenseEmbedding:
        return DenseEmbedding(self.weights[f"{name}.weight"], uses_triton)

    def linear(self, name: str) -> DenseLinear:
        return DenseLinear(self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def per_head(self, name: str) -> DensePerHeadLinear:
        return DensePerHeadLinear(self.weights[f"{name}.weight"])

    def grouped_mlp(self, name: str, activation: str, *, scales_input: bool, uses_triton: bool) -> DenseGroupedMlp:
        gate_up, down = self.weights[f"{name}.gate_up.weight"], self.weights[f"{name}.down.weight"]
        return DenseGroupedMlp(gate_up, down, activation, scales_input, uses_triton)

"""A step in which every sequence has few new tokens, from embedded tokens to logits in one call of compiled code.

It computes what the layers of `engine/models` compute product by product, by the same functions: bit by bit the same logits,
without the microseconds that Python and PyTorch take between two products. All tensors are float32 and on a CPU, but for
the cache: see `between.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from . import FEW_FLOATS, Product
from .between import ACTIVATIONS, CACHES, VECTOR
from .library import loaded


class _Linear(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("runs", "places", "bias")),
        *((name, ctypes.c_int64) for name in ("num_runs", "num_rows", "width")),
    )


NORMS = ("input_norm", "after_attention", "mlp_norm", "after_mlp", "head_norm")


class _Layer(ctypes.Structure):
    _fields_ = (
        *((name, _Linear) for name in ("qkv", "output", "up", "down")),
        *((name, ctypes.c_void_p) for name in (*NORMS, "keys", "values")),
        *((name, ctypes.c_int64) for name in ("window", "rope")),
    )


SIZES = ("hidden_size", "inner_size", "num_heads", "num_kv_heads", "head_dim", "block_size", "activation", "kv_type")


class _Decoder(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.c_void_p), ("head", _Linear), ("final_norm", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("num_layers", *SIZES)),
        ("eps", ctypes.c_float), ("scale", ctypes.c_float),
    )  # fmt: skip


class _Angles(ctypes.Structure):
    _fields_ = (("cosine", ctypes.c_void_p), ("sine", ctypes.c_void_p), ("half", ctypes.c_int64))


ARRAYS = ("hidden", "angles", "slots", "tables", "lengths", "logit_rows", "logits", "columns")


class _Step(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ARRAYS),
        *((name, ctypes.c_int64) for name in ("num_rows", "num_logits", "table_width", "max_tokens", "num_columns")),
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix product with a bias."""

    product: Product
    bias: Tensor | None = None  # [num_rows]


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer is made of. Norms that it does not have are None."""

    qkv: Matrix
    output: Matrix
    up: Matrix  # gate, then up
    down: Matrix
    input_norm: Tensor  # [hidden_size], as the next three
    after_attention: Tensor | None
    mlp_norm: Tensor
    after_mlp: Tensor | None
    head_norm: Tensor | None  # [num_heads + num_kv_heads, head_dim]
    window: int | None
    rope: int | None


class Shape(NamedTuple):
    """What all layers share."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    activation: str  # one of `between.ACTIVATIONS`
    eps: float
    scale: float  # of scores


class Rows(NamedTuple):
    """Where the keys and values are that each new token sees: see `between.attend`."""

    slots: Tensor  # int64 [num_rows]: of its own
    tables: Tensor  # int64 [num_rows, width]
    lengths: Tensor  # int64 [num_rows]
    max_tokens: int


class CompiledDecoder:
    """Layers, norm and head. `fits` says whether they can be computed here."""

    def __init__(self, layers: Sequence[Layer], final_norm: Tensor, head: Matrix, shape: Shape) -> None:
        self._head, self._kept = head, (tuple(layers), final_norm)  # whose memory is pointed to
        self._table = (_Layer * len(layers))(*map(_layer, layers))
        sizes = (final_norm.shape[0], layers[0].down.product.num_columns, *shape[:3], 0, ACTIVATIONS.index(shape.activation), 0)
        table = (ctypes.addressof(self._table), _linear(head), final_norm.data_ptr())
        self._decoder = _Decoder(*table, len(layers), *sizes, shape.eps, shape.scale)
        self._cache: object = None  # that the table points to
        self._products = [matrix.product for matrix in (head, *(m for layer in layers for m in _matrices(layer)))]

    def is_good_for(self, num_rows: int) -> bool:
        """Whether nothing else is known to compute as many rows faster."""
        return num_rows <= FEW_FLOATS or all(product.is_good_for(num_rows) for product in self._products)

    def use_cache(self, cache: object, keys: Sequence[Tensor], values: Sequence[Tensor], block_size: int) -> None:
        """Read and write this cache from here on: keys and values of each layer, [num_places, num_kv_heads, head_dim]."""
        if cache is self._cache:
            return
        self._cache, self._decoder.block_size, self._decoder.kv_type = cache, block_size, CACHES[keys[0].dtype]
        for layer, key, value in zip(self._table, keys, values, strict=True):
            layer.keys, layer.values = key.data_ptr(), value.data_ptr()

    def __call__(
        self,
        hidden: Tensor,
        angles: Sequence[tuple[Tensor, Tensor]],
        rows: Rows,
        logit_rows: Tensor,
        columns: Tensor | None = None,
    ) -> Tensor:
        """Logits [num_logits, vocab] of the rows `logit_rows`, int64 [num_logits], which are some of `hidden`'s, in any order.

        hidden [num_rows, hidden_size] are embedded tokens, and is written to; angles: cosine and sine of each rope, contiguous
        [num_rows, ..., half]; columns, int64, ascending: the tokens whose logits are wanted, others may be 0; None: all.
        Raises MemoryError.
        """
        found = loaded()
        assert found is not None, "there are products"
        turns = (_Angles * max(1, len(angles)))(*(_Angles(c.data_ptr(), s.data_ptr(), c.shape[-1]) for c, s in angles))
        num_logits, product = logit_rows.shape[0], self._head.product
        logits = torch.empty(num_logits, product.width)
        step = _Step(
            hidden.data_ptr(), ctypes.addressof(turns), rows.slots.data_ptr(), rows.tables.data_ptr(), rows.lengths.data_ptr(),
            logit_rows.data_ptr(), logits.data_ptr(), _address(columns), hidden.shape[0], num_logits, rows.tables.stride(0),
            rows.max_tokens, 0 if columns is None else columns.shape[0],
        )  # fmt: skip
        if found.maskwright_decode(ctypes.byref(self._decoder), ctypes.byref(step), torch.get_num_threads()) != 0:
            raise MemoryError(f"no memory for a step of {hidden.shape[0]} sequences")
        return logits if product.width == product.num_rows else logits[:, : product.num_rows]


def fits(layers: Sequence[Layer], shape: Shape) -> bool:
    """Whether widths are those that vectors take, and nothing is filled up where the next part would read it."""
    widths = [shape.head_dim, *(matrix.product.num_columns for layer in layers for matrix in _matrices(layer))]
    is_whole = all(m.product.width == m.product.num_rows for layer in layers for m in (layer.output, layer.down))
    is_gate = all(layer.up.product.num_rows == 2 * layer.down.product.num_columns for layer in layers)
    has_activation = shape.activation in ACTIVATIONS
    return has_activation and is_whole and is_gate and all(width % VECTOR == 0 for width in widths)


def _matrices(layer: Layer) -> tuple[Matrix, ...]:
    return (layer.qkv, layer.output, layer.up, layer.down)


def _linear(matrix: Matrix) -> _Linear:
    product, bias = matrix.product, matrix.bias
    return _Linear(*product.addresses, _address(bias), product.num_runs, product.num_rows, product.width)


def _layer(layer: Layer) -> _Layer:
    norms = (_address(getattr(layer, name)) for name in NORMS)
    rope = -1 if layer.rope is None else layer.rope
    return _Layer(*map(_linear, _matrices(layer)), *norms, None, None, layer.window or 0, rope)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()

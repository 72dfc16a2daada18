"""A step in which every sequence has few new tokens, from embedded tokens to logits in one call of compiled code.

It computes what the layers of `engine/models` compute product by product, by the same functions: bit by bit the same logits,
without the microseconds that Python and PyTorch take between two products. All tensors are float32 and on a CPU, but for
the cache: see `between.py`. What a step is given may be tensors, or lists of the host (`StepInput`): behind a product that has
gone through all weights each object that Python touches is a wait for memory.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..quantized.blocks import Packed
from . import FEW_FLOATS, Product, matrix_of
from .between import ACTIVATIONS, CACHES, MAX_HEAD_DIM, VECTOR
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


NO_SUCH_TOKEN = -2  # see maskwright_decode
SIZES = ("hidden_size", "inner_size", "num_heads", "num_kv_heads", "head_dim", "block_size", "activation", "kv_type")


class _Decoder(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.c_void_p), ("head", _Linear), ("final_norm", ctypes.c_void_p), ("embedding", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("num_layers", *SIZES)),
        ("eps", ctypes.c_float), ("scale", ctypes.c_float), ("embedding_scale", ctypes.c_float),
    )  # fmt: skip


class Angles(ctypes.Structure):
    """`Angles` of native/decoder.c."""

    _fields_ = (("cosine", ctypes.c_void_p), ("sine", ctypes.c_void_p), ("half", ctypes.c_int64))


ARRAYS = ("token_ids", "positions", "hidden", "angles", "tables", "logit_rows", "logits", "columns", "masks")
COUNTS = ("num_rows", "num_logits", "table_width", "num_columns", "num_words", "most_columns")


class Step(ctypes.Structure):
    """`Step` of native/decoder.c."""

    _fields_ = (*((name, ctypes.c_void_p) for name in ARRAYS), *((name, ctypes.c_int64) for name in COUNTS))


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


class Embedding(NamedTuple):
    """The matrix whose rows tokens are embedded as."""

    matrix: Packed
    scale: float  # that they are multiplied by


class Rows(NamedTuple):
    """The tokens of a step, as addresses of int64 that lie as long as the step is computed."""

    token_ids: int  # [num_rows]; negative ones only pad
    positions: int  # [num_rows]
    tables: int  # [num_rows, table_width]: blocks of each row's sequence, of which those up to its position are read
    logit_rows: int  # [num_logits]: some of the rows, in any order
    num_rows: int
    num_logits: int
    table_width: int


class StepInput:
    """Makes `Rows` of lists. Tables are kept, and written anew only where they have changed."""

    def __init__(self) -> None:
        self._tables = np.empty((0, 0), np.int64)
        self._address = 0
        self._known: list[Sequence[int]] = []  # what stands in each row
        self.numbers = array("q")  # token ids, positions and logit rows of the last rows, which may be changed where they lie

    def rows(
        self, token_ids: Sequence[int], positions: Sequence[int], logit_rows: Sequence[int], tables: Sequence[Sequence[int]]
    ) -> Rows:
        """They hold until the next call. tables: the blocks of each row's sequence."""
        num_rows, longest = len(token_ids), max(map(len, tables))
        if num_rows > len(self._known) or longest > self._tables.shape[1]:
            self._reserve(max(num_rows, len(self._known)), max(2 * longest, self._tables.shape[1]))
        for row, table in enumerate(tables):
            if self._known[row] != table:
                self._tables[row, : len(table)] = table
                self._known[row] = list(table)
        self.numbers = numbers = array("q", (*token_ids, *positions, *logit_rows))
        address, size = numbers.buffer_info()[0], 8 * num_rows
        return Rows(
            address, address + size, self._address, address + 2 * size, num_rows, len(logit_rows), self._tables.shape[1]
        )

    def _reserve(self, num_rows: int, width: int) -> None:
        self._tables = np.empty((num_rows, width), np.int64)
        self._address, self._known = self._tables.ctypes.data, [[] for _ in range(num_rows)]


class CompiledDecoder:
    """Layers, norm and head. `fits` says whether they can be computed here."""

    def __init__(
        self, layers: Sequence[Layer], final_norm: Tensor, head: Matrix, shape: Shape, embedding: Embedding | None = None
    ) -> None:
        """embedding: None where steps are given embedded tokens."""
        self._head, self._kept = head, (tuple(layers), final_norm, embedding)  # whose memory is pointed to
        self._table = (_Layer * len(layers))(*map(_layer, layers))
        self._embedding = None if embedding is None else matrix_of(embedding.matrix)
        sizes = (final_norm.shape[0], layers[0].down.product.num_columns, *shape[:3], 0, ACTIVATIONS.index(shape.activation), 0)
        matrix = None if self._embedding is None else ctypes.addressof(self._embedding)
        table = (ctypes.addressof(self._table), _linear(head), final_norm.data_ptr(), matrix)
        scale = 1.0 if embedding is None else embedding.scale
        self._decoder = _Decoder(*table, len(layers), *sizes, shape.eps, shape.scale, scale)
        self._cache: object = None  # that the table points to
        self._products = [matrix.product for matrix in (head, *(m for layer in layers for m in _matrices(layer)))]

    @property
    def embeds(self) -> bool:
        """Whether steps are given tokens."""
        return self._embedding is not None

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
        rows: Rows,
        angles: Sequence[tuple[Tensor, Tensor]],
        hidden: Tensor | None = None,
        columns: tuple[int, int] | None = None,
    ) -> Tensor:
        """Logits [num_logits, vocab].

        angles: cosine and sine of each rope, contiguous [positions, ..., half], of all positions up to the rows' farthest; hidden
        [num_rows, hidden_size]: embedded tokens, which are written to, where the decoder does not embed them; columns: address
        and number of the tokens, int64, ascending, whose logits are wanted, others may be 0; None: all. Raises MemoryError,
        IndexError for a token that the embedding does not have.
        """
        found = loaded()
        assert found is not None, "there are products"
        assert hidden is not None or self.embeds, "somebody embeds"
        turns, (wanted, num_wanted) = angle_table(angles), columns or (None, 0)
        logits = torch.empty(rows.num_logits, self.width)
        step = Step(
            rows.token_ids, rows.positions, _address(hidden), ctypes.addressof(turns), rows.tables, rows.logit_rows,
            logits.data_ptr(), wanted, None, rows.num_rows, rows.num_logits, rows.table_width, num_wanted, 0, 0,
        )  # fmt: skip
        problem = found.maskwright_decode(self.address, ctypes.addressof(step), torch.get_num_threads())
        if problem:
            raise failure(problem, rows.num_rows)
        return logits if self.width == self.num_columns else logits[:, : self.num_columns]

    @property
    def address(self) -> int:
        """Of what `maskwright_decode` and `maskwright_step` are given."""
        return ctypes.addressof(self._decoder)

    @property
    def width(self) -> int:
        """Of the logits that are computed: more than `num_columns`, where the head is filled up."""
        return self._head.product.width

    @property
    def num_columns(self) -> int:
        """Of the head."""
        return self._head.product.num_rows


def angle_table(angles: Sequence[tuple[Tensor, Tensor]]) -> ctypes.Array[Angles]:
    """How C sees the angles of each rope, whose memory is not kept by this."""
    return (Angles * max(1, len(angles)))(*(Angles(c.data_ptr(), s.data_ptr(), c.shape[-1]) for c, s in angles))


def failure(problem: int, num_rows: int) -> Exception:
    """What compiled code could not do in a step of so many tokens."""
    if problem == NO_SUCH_TOKEN:
        return IndexError("a token of the step is not one of the model's")
    return MemoryError(f"no memory for a step of {num_rows} tokens")


def fits(layers: Sequence[Layer], shape: Shape) -> bool:
    """Whether widths are those that vectors take, and nothing is filled up where the next part would read it."""
    widths = [shape.head_dim, *(matrix.product.num_columns for layer in layers for matrix in _matrices(layer))]
    is_whole = all(m.product.width == m.product.num_rows for layer in layers for m in (layer.output, layer.down))
    is_gate = all(layer.up.product.num_rows == 2 * layer.down.product.num_columns for layer in layers)
    is_known = shape.activation in ACTIVATIONS and shape.head_dim <= MAX_HEAD_DIM
    return is_known and is_whole and is_gate and all(width % VECTOR == 0 for width in widths)


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

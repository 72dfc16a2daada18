"""A GGUF file written tensor by tensor, and one written anew with its matrices in other blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, UnsupportedModel
from .dequantization import dequantized
from .files import GgufModel, open_gguf
from .reader import StoredTensor, Strings, Value

KINDS = ("F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")  # that the library can make
_FINE = ("token_embd.weight", "output.weight")  # 8 bits at least: what is lost here is lost in every token
_UNTOUCHED = ("norm", "ffn_gate_inp", "rope_", "exp_probs")  # small, and what they say decides much
Progress = Callable[[int, int], None]  # (tensors written, of so many)


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor that will be written."""

    name: str
    type: str  # of its blocks
    shape: tuple[int, ...]  # rows first, as in PyTorch
    blocks: Callable[[], NDArray[np.uint8]]


def write_quantized(source: Path, target: Path, kind: str, progress: Progress | None = None) -> None:
    """Write the model in `source` with its matrices as `kind`, tensor by tensor, so that no more than one is in memory.

    Raises ConfigError for a kind that cannot be written or a target that is the source, UnsupportedModel for a type that cannot
    be read, and what `open_gguf` raises.
    """
    check_kind(kind)
    model = open_gguf(source)
    if target.exists() and target.samefile(source):
        raise ConfigError(f"{target}: this is the model that is read; name another file")
    plan = []
    for tensor in model.tensors.values():
        wanted = kind_of(tensor.name, tensor.shape, kind, tensor.type)
        plan.append(Planned(tensor.name, wanted, tensor.shape, partial(_blocks, tensor, wanted, source)))
    write_gguf(target, model.architecture, _metadata(model), plan, kind, progress)


def check_kind(kind: str) -> None:
    """Raises ConfigError for a kind that cannot be written."""
    if kind not in KINDS:
        raise ConfigError(f'"{kind}" cannot be written; choose one of {", ".join(KINDS)}')


def write_gguf(
    target: Path,
    architecture: str,
    metadata: Mapping[str, Value],
    plan: Sequence[Planned],
    kind: str,
    progress: Progress | None = None,
) -> None:
    """Write a file of most matrices of `kind`, tensor by tensor. Raises ConfigError where it cannot be written."""
    import gguf

    writer = gguf.GGUFWriter(target, architecture)
    for key, value in metadata.items():
        plain, value_type, sub_type = _typed(value)
        writer.add_key_value(key, plain, value_type, sub_type)
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if kind == "F32" else f"MOSTLY_{kind}"])
    for tensor in plan:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[tensor.type]]
        packed = (*tensor.shape[:-1], tensor.shape[-1] // block * size)
        number = int(np.prod(packed))
        writer.add_tensor_info(tensor.name, packed, np.dtype(np.uint8), number, gguf.GGMLQuantizationType[tensor.type])
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for done, tensor in enumerate(plan, 1):
            writer.write_tensor_data(tensor.blocks())
            if progress is not None:
                progress(done, len(plan))
        writer.close()
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


def kind_of(name: str, shape: tuple[int, ...], kind: str, stored: str) -> str:
    """What a tensor is written as: `kind`, or as it is `stored` where it is no matrix or has rows of no whole blocks."""
    import gguf

    if len(shape) < 2 or any(part in name for part in _UNTOUCHED):
        return stored
    wanted = "Q8_0" if name in _FINE and kind.startswith(("Q4", "Q5")) else kind
    block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[wanted]][0]
    return stored if shape[-1] % block else wanted


def encoded(numbers: NDArray[np.float32], kind: str) -> NDArray[np.uint8]:
    """Numbers as blocks."""
    import gguf

    made: NDArray[Any] = gguf.quantize(np.ascontiguousarray(numbers), gguf.GGMLQuantizationType[kind])
    return np.ascontiguousarray(made).view(np.uint8)


def _blocks(tensor: StoredTensor, wanted: str, path: Path) -> NDArray[np.uint8]:
    if tensor.type == wanted:
        return tensor.data.numpy()
    try:
        numbers = dequantized(tensor).numpy()
    except NotImplementedError:
        raise UnsupportedModel(f"{path}: tensor {tensor.name} is of type {tensor.type}, which cannot be decoded") from None
    return encoded(numbers, wanted)


def _metadata(model: GgufModel) -> dict[str, Value]:
    """What the new file says too."""
    others = ("general.architecture", "general.file_type")
    return {key: value for key, value in model.metadata.items() if key not in others and not key.startswith("split.")}


def _typed(value: Value) -> tuple[Any, Any, Any]:
    """(value, its type, the type of what it lists) for the writer. Integers have 32 bits where those suffice."""
    from gguf import GGUFValueType as Type

    if isinstance(value, bool):
        return value, Type.BOOL, None
    if isinstance(value, int):
        fits = Type.UINT32 if 0 <= value < 1 << 32 else Type.INT32 if -(1 << 31) <= value < 0 else Type.INT64
        return value, Type.UINT64 if value >= 1 << 63 else fits, None
    if isinstance(value, float):
        return value, Type.FLOAT32 if float(np.float32(value)) == value else Type.FLOAT64, None
    if isinstance(value, str):
        return value, Type.STRING, None
    if isinstance(value, Strings):
        return value.read(), Type.ARRAY, Type.STRING
    names = {"u": "UINT", "i": "INT", "f": "FLOAT"}
    kind = "BOOL" if value.dtype.kind == "b" else f"{names[value.dtype.kind]}{8 * value.dtype.itemsize}"
    return value.tolist(), Type.ARRAY, Type[kind]

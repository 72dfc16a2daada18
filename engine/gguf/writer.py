"""A GGUF file written anew with its matrices in other blocks."""

from __future__ import annotations

from collections.abc import Callable
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


def write_quantized(source: Path, target: Path, kind: str, progress: Progress | None = None) -> None:
    """Write the model in `source` with its matrices as `kind`, tensor by tensor, so that no more than one is in memory.

    Raises ConfigError for a kind that cannot be written or a target that is the source, UnsupportedModel for a type that cannot
    be read, and what `open_gguf` raises.
    """
    import gguf

    if kind not in KINDS:
        raise ConfigError(f'"{kind}" cannot be written; choose one of {", ".join(KINDS)}')
    model = open_gguf(source)
    if target.exists() and target.samefile(source):
        raise ConfigError(f"{target}: this is the model that is read; name another file")
    writer = gguf.GGUFWriter(target, model.architecture)
    _add_metadata(writer, model, kind)
    plan = [(tensor, _kind_of(tensor, kind)) for tensor in model.tensors.values()]
    for tensor, wanted in plan:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[wanted]]
        packed = (*tensor.shape[:-1], tensor.shape[-1] // block * size)
        number = int(np.prod(packed))
        writer.add_tensor_info(tensor.name, packed, np.dtype(np.uint8), number, gguf.GGMLQuantizationType[wanted])
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for done, (tensor, wanted) in enumerate(plan, 1):
            writer.write_tensor_data(_blocks(tensor, wanted, source))
            if progress is not None:
                progress(done, len(plan))
        writer.close()
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


def _kind_of(tensor: StoredTensor, kind: str) -> str:
    """What a tensor is written as: `kind`, or as it is where it is no matrix or has rows of no whole blocks."""
    import gguf

    if len(tensor.shape) < 2 or any(part in tensor.name for part in _UNTOUCHED):
        return tensor.type
    wanted = "Q8_0" if tensor.name in _FINE and kind.startswith(("Q4", "Q5")) else kind
    block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[wanted]][0]
    return tensor.type if tensor.shape[-1] % block else wanted


def _blocks(tensor: StoredTensor, wanted: str, path: Path) -> NDArray[np.uint8]:
    import gguf

    if tensor.type == wanted:
        return tensor.data.numpy()
    try:
        numbers = dequantized(tensor).numpy()
    except NotImplementedError:
        raise UnsupportedModel(f"{path}: tensor {tensor.name} is of type {tensor.type}, which cannot be decoded") from None
    made: NDArray[Any] = gguf.quantize(numbers, gguf.GGMLQuantizationType[wanted])
    return np.ascontiguousarray(made).view(np.uint8)


def _add_metadata(writer: Any, model: GgufModel, kind: str) -> None:
    import gguf

    for key, value in model.metadata.items():
        if key in ("general.architecture", "general.file_type") or key.startswith("split."):
            continue
        plain, value_type, sub_type = _typed(value)
        writer.add_key_value(key, plain, value_type, sub_type)
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if kind == "F32" else f"MOSTLY_{kind}"])


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

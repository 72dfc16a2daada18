"""Read a sharded, memory-mapped safetensors checkpoint and check it against the model spec."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import ModelFolderError, WeightError
from ..sharding.cuts import Cut
from .architecture import ModelInfo
from .files import shard_paths
from .layout import Shape, Source


class Checkpoint:
    """The tensors of a model folder by name; each stays on disk until `tensor` maps it."""

    def __init__(self, shard_of: Mapping[str, Any], path_of: Mapping[str, Path]) -> None:
        self._shard_of, self._path_of = shard_of, path_of

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._shard_of)

    def shape(self, name: str) -> Shape:
        return tuple(self._shard_of[name].get_slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """As safetensors name it: "F32", "BF16", "F8_E4M3", "I32", ..."""
        found: str = self._shard_of[name].get_slice(name).get_dtype()
        return found

    def num_bytes(self, name: str) -> int:
        bits = int("".join(char for char in self.dtype(name).split("_")[0] if char.isdigit()) or 8)  # "BOOL" has no number
        return math.prod(self.shape(name)) * bits // 8

    def tensor(self, name: str) -> Tensor:
        """The tensor as stored, backed by the file. Raises WeightError when its bytes cannot be read."""
        try:
            found: Tensor = self._shard_of[name].get_tensor(name)
        except (SafetensorError, RuntimeError, ValueError) as error:
            raise WeightError(f"{self._path_of[name]}: tensor {name} cannot be read: {error}") from None
        return found


@contextmanager
def open_checkpoint(folder: Path) -> Iterator[Checkpoint]:
    """The checkpoint in `folder`: one model.safetensors, or the shards that its index lists.

    Raises ModelFolderError when a file is missing or damaged, naming it.
    """
    shard_of: dict[str, Any] = {}
    path_of: dict[str, Path] = {}
    with ExitStack() as stack:
        for path in shard_paths(folder):
            shard = stack.enter_context(_open_shard(path))
            for name in shard.keys():  # noqa: SIM118 - not a mapping
                shard_of[name], path_of[name] = shard, path
        yield Checkpoint(shard_of, path_of)


def _open_shard(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise ModelFolderError(f"{path}: not a readable safetensors file: {error}") from None


def read_weights(
    folder: Path,
    spec: ModelInfo,
    sources: Mapping[str, Source],
    dtype: torch.dtype,
    device: torch.device,
    whole: Mapping[str, Source] | None = None,
) -> dict[str, Tensor]:
    """Every tensor that `sources` names, read, converted to its dtype, or to `dtype`, and put on `device`, one at a time.

    `whole`: all tensors of the model, where `sources` are a portion of it.

    Raises ModelFolderError when a file is missing or damaged, WeightError when the checkpoint is not one of `spec`.
    """
    with open_checkpoint(folder) as checkpoint:
        expected = {spec.prefix + name: (shape,) for source in (whole or sources).values() for name, shape in source.parts}
        check_checkpoint(checkpoint, spec, expected)
        return {name: _read(checkpoint, spec.prefix, source, dtype, device) for name, source in sources.items()}


def _read(checkpoint: Checkpoint, prefix: str, source: Source, dtype: torch.dtype, device: torch.device) -> Tensor:
    parts = [
        held(checkpoint.tensor(prefix + name), cut).to(device, source.dtype or dtype) for name, _, cut in source.held()
    ]
    return finished(parts, source)


def held(whole: Tensor, cut: Cut | None) -> Tensor:
    """What a rank holds of a tensor."""
    return whole if cut is None else cut.tensor(whole)


def finished(parts: list[Tensor], source: Source) -> Tensor:
    """Our tensor, of those of the checkpoint that make it."""
    joined = parts[0] if len(parts) == 1 else torch.cat(parts)
    return joined if source.finish is None else source.finish(joined)


def check_checkpoint(
    checkpoint: Checkpoint, spec: ModelInfo, expected: Mapping[str, tuple[Shape, ...]], passed_over: Set[str] = frozenset()
) -> None:
    """Raise WeightError naming the first missing, unknown or misshaped tensors, before any tensor is read.

    `expected` has the shapes that each tensor of the checkpoint may have; those that are `passed_over` may be there.
    """
    missing = sorted(expected.keys() - checkpoint.names)
    if missing:
        raise WeightError(f"the checkpoint lacks {_first(missing)}, which config.json calls for")
    others = checkpoint.names - expected.keys() - passed_over
    unknown = sorted(name for name in others if not _is_redundant(name, spec))
    if unknown:
        raise WeightError(f"the checkpoint holds {_first(unknown)}, which {spec.architecture} has no place for")
    for name, shapes in expected.items():
        if checkpoint.shape(name) not in shapes:
            wanted = " or ".join(str(list(shape)) for shape in shapes[:3])
            raise WeightError(f"tensor {name} has shape {list(checkpoint.shape(name))}, config.json calls for {wanted}")


def _is_redundant(name: str, spec: ModelInfo) -> bool:
    """Whether the tensor follows from the config or takes no part: old checkpoints store rotary frequencies and tied heads."""
    if name.startswith(spec.ignored):
        return True
    is_tied_head = name == f"{spec.prefix}lm_head.weight" and spec.has_tied_embeddings
    return is_tied_head or name.endswith("rotary_emb.inv_freq")


def _first(names: list[str], limit: int = 3) -> str:
    more = f" and {len(names) - limit} more tensors" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

"""A model folder written as one GGUF file: weights, hyper-parameters, tokenizer and chat template."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from ..errors import ConfigError
from ..gguf.files import GgufModel
from ..gguf.reader import StoredTensor, Value
from ..gguf.writer import Planned, Progress, check_kind, write_gguf
from ..models.architecture import ModelSpec
from ..models.layout import sources_of
from ..models.spec import gguf_spec, read_spec
from ..models.weights import check_checkpoint, open_checkpoint
from .gguf_parameters import WINDOWED, architecture_of, differences, parameters_of
from .gguf_tensors import planned_tensors
from .gguf_vocabulary import vocabulary_of

logger = logging.getLogger(__name__)


def write_gguf_of_folder(source: Path, target: Path, kind: str, progress: Progress | None = None) -> None:
    """Write the model in `source` with most matrices as `kind`, tensor by tensor.

    What is written is understood as it will be read before any weight is: raises ConfigError, naming what GGUF cannot say of this
    model; for a kind that cannot be written; for a model that is quantised, or of an architecture without a name in GGUF; for a
    tokenizer that no GGUF file describes; and what reading the folder raises.
    """
    check_kind(kind)
    spec = read_spec(source)
    if not isinstance(spec, ModelSpec) or spec.quantization is not None:
        reason = "is quantised already" if spec.quantization is not None else "is not computed natively"
        raise ConfigError(f"{source}: {spec.architecture} {reason}, and cannot be written as GGUF")
    spec = _without_windows(source, spec)
    with open_checkpoint(source) as checkpoint:
        parts = (part for ours in sources_of(spec).values() for part in ours.parts)
        check_checkpoint(checkpoint, spec, {spec.prefix + name: (shape,) for name, shape in parts})
        plan = planned_tensors(checkpoint, spec, kind)
        metadata = {**_general(source), **parameters_of(spec, spec.ropes[0].max_position_embeddings), **vocabulary_of(source, spec)}
        _check_as_read(source, spec, metadata, plan)
        write_gguf(target, architecture_of(spec), metadata, plan, kind, progress)


def _without_windows(source: Path, spec: ModelSpec) -> ModelSpec:
    """The same model for texts within its window, where no key of its architecture says that there is one."""
    widths = [window for window in spec.windows if window is not None]
    if not widths or architecture_of(spec) in WINDOWED:
        return spec
    if not all(isinstance(width, int) for width in widths):
        raise ConfigError(f"{source}: GGUF cannot say which chunks its layers see")
    longest = min(min(width for width in widths if isinstance(width, int)), spec.max_positions)
    if longest < spec.max_positions:
        logger.warning("%s: GGUF cannot say that its layers see %d tokens; the file is for texts of no more", source, longest)
    ropes = tuple(replace(rope, max_position_embeddings=longest) for rope in spec.ropes)
    if any(rope.kind != "default" for rope in ropes) and longest < spec.max_positions:
        raise ConfigError(f"{source}: GGUF cannot say that its layers see {longest} tokens, of positions that are stretched")
    return replace(spec, windows=(None,) * spec.num_layers, ropes=ropes, max_positions=longest)


def _general(source: Path) -> dict[str, Value]:
    return {"general.name": source.resolve().name, "general.quantization_version": 2}


def _check_as_read(source: Path, spec: ModelSpec, metadata: dict[str, Value], plan: Sequence[Planned]) -> None:
    """Raise ConfigError for what would not be read back as it is."""
    factors = {tensor.name: torch.from_numpy(tensor.blocks()) for tensor in plan if tensor.name.startswith("rope_")}
    nothing = torch.empty(0, dtype=torch.uint8)
    tensors = {
        tensor.name: StoredTensor(tensor.name, tensor.type, tensor.shape, factors.get(tensor.name, nothing)) for tensor in plan
    }
    found = gguf_spec(GgufModel(source, {"general.architecture": architecture_of(spec), **metadata}, tensors))
    apart = differences(found, spec)
    if apart:
        said = "; ".join(f"{name} is {getattr(spec, name)!r:.80}, read back as {getattr(found, name)!r:.80}" for name in apart[:3])
        raise ConfigError(f"{source}: GGUF cannot say of {spec.architecture} what its configuration does: {said}")

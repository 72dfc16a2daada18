"""Which layers are kept in host memory, and their tensors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from ..errors import ConfigError
from .layer_stream import SLOTS, LayerStream

_LAYER = re.compile(r"layers\.(\d+)\.")


def bytes_by_layer(sizes: Iterable[tuple[str, int]], num_layers: int) -> list[int]:
    """What each layer takes, of (name of a tensor, its bytes)."""
    found = [0] * num_layers
    for name, size in sizes:
        number = _layer_of(name)
        if number is not None:
            found[number] += size
    return found


def _layer_of(name: str) -> int | None:
    match = _LAYER.match(name)
    return None if match is None else int(match[1])


def chosen_layers(sizes: Sequence[int], wanted: int) -> frozenset[int]:
    """Layers without which the device holds `wanted` bytes less, or as many as that takes, spread evenly over the model.

    What is streamed needs room for SLOTS layers on the device. Raises ConfigError where all layers together do not take so much.
    """
    count = len(sizes)
    for number in range(SLOTS + 1, count + 1):
        spread = [(2 * index + 1) * count // (2 * number) for index in range(number)]
        kept = [sizes[index] for index in spread]
        if sum(kept) - SLOTS * max(kept) >= wanted:
            return frozenset(spread)
    most = max(sum(sizes) - SLOTS * max(sizes, default=0), 0)
    raise ConfigError(
        f"cpu_offload_gb asks for {wanted / 1e9:.3g} GB less on the device; all {count} layers in host memory save "
        f"{most / 1e9:.3g} GB, since {SLOTS} at a time are on the device: ask for less"
    )


class HostLayers:
    """The tensors of some layers, which are moved to host memory as soon as they are read."""

    def __init__(self, layers: frozenset[int], device: torch.device) -> None:
        self._layers, self._device = layers, device
        self._tensors: dict[int, dict[str, Tensor]] = defaultdict(dict)

    def park(self, weights: Mapping[str, Tensor]) -> None:
        """Move those of `weights` that belong to these layers, in place: what else holds them sees them moved."""
        for name, tensor in weights.items():
            number = _layer_of(name)
            if number in self._layers and name not in self._tensors[number]:
                tensor.data = tensor.data.to("cpu")
                self._tensors[number][name] = tensor

    def stream(self) -> LayerStream:
        """All that is kept, ready to be brought to the device. From now on the tensors lie there."""
        layers = {number: list(self._tensors[number].values()) for number in sorted(self._layers)}
        self._tensors.clear()
        return LayerStream(layers, self._device)

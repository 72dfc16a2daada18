"""Layers that take turns in a few places on the device.

A place is one stretch of memory. The tensors of every layer that uses it are views of it, at addresses that never change; in host
memory the layer is one stretch of the same form (pinned where there is CUDA), so that it comes as one copy. When a layer has been
computed, the copy of the next one that uses its place begins on a stream of its own; behind the last layer comes the first, for the
next step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

SLOTS = 2  # places: one layer is computed while the next one comes
_ALIGNMENT = 256  # bytes: where a tensor may begin, as the allocator of CUDA has it


class _Place:
    """Memory on the device, and which layer it holds."""

    def __init__(self, num_bytes: int, device: torch.device) -> None:
        self.memory = torch.empty(num_bytes, dtype=torch.uint8, device=device)
        self.holds: int | None = None
        self.is_ready: Any = None  # CUDA events: the copy into it is over;
        self.is_free: Any = None  # what read it is over


@dataclass(frozen=True, slots=True)
class _Layer:
    content: Tensor  # uint8, in host memory
    place: _Place
    next: int  # the layer that has the place after it


class LayerStream:
    """`enter` before a layer is computed, `leave` behind it, on the stream that computes it. Nothing waits on the host."""

    def __init__(self, layers: Mapping[int, Sequence[Tensor]], device: torch.device) -> None:
        """layers: the tensors of each, in host memory; they become views of memory on the device."""
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        numbers = sorted(layers)
        sizes = {number: _offsets(layers[number])[-1] for number in numbers}
        users = [numbers[first::SLOTS] for first in range(min(SLOTS, len(numbers)))]
        self._layers: dict[int, _Layer] = {}
        self.host_bytes, self.device_bytes = sum(sizes.values()), 0
        for turns in users:
            place = _Place(max(sizes[number] for number in turns), device)
            following = dict(pairwise([*turns, turns[0]]))
            for number in turns:
                content = _moved(layers[number], place.memory, is_pinned=device.type == "cuda")
                self._layers[number] = _Layer(content, place, following[number])
            self.device_bytes += place.memory.nbytes

    @property
    def numbers(self) -> frozenset[int]:
        """The layers that are streamed."""
        return frozenset(self._layers)

    def wrap(self, number: int, layer: Callable[..., Any]) -> Callable[..., Any]:
        """A layer that is there when it is called; one that is not streamed as it is."""
        return _Streamed(layer, number, self) if number in self._layers else layer

    def enter(self, number: int) -> None:
        """Have the layer's tensors in place. As a rule they are, or are on their way."""
        layer = self._layers[number]
        if layer.place.holds != number:  # the first time, or after a step that was broken off
            self._bring(number)
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_event(layer.place.is_ready)

    def leave(self, number: int) -> None:
        """Let the next layer have the place."""
        layer = self._layers[number]
        if layer.next != number:
            self._bring(layer.next)

    def _bring(self, number: int) -> None:
        """Copy the layer once all that was launched until now, which may read what is in its place, is over."""
        layer = self._layers[number]
        place = layer.place
        target = place.memory[: layer.content.shape[0]]
        if self._stream is None:
            target.copy_(layer.content)
        else:
            place.is_free = torch.cuda.current_stream(self._device).record_event(place.is_free)
            self._stream.wait_event(place.is_free)
            with torch.cuda.stream(self._stream):
                target.copy_(layer.content, non_blocking=True)
                place.is_ready = self._stream.record_event(place.is_ready)
        place.holds = number


@dataclass(frozen=True, slots=True)
class _Streamed:
    layer: Callable[..., Any]
    number: int
    stream: LayerStream

    def __call__(self, *given: Any) -> Any:
        self.stream.enter(self.number)
        found = self.layer(*given)
        self.stream.leave(self.number)
        return found


def _offsets(tensors: Sequence[Tensor]) -> list[int]:
    """Where each begins, and behind the last where all end."""
    ends = [0]
    for tensor in tensors:
        ends.append(-(-(ends[-1] + tensor.nbytes) // _ALIGNMENT) * _ALIGNMENT)
    return ends


def _moved(tensors: Sequence[Tensor], memory: Tensor, *, is_pinned: bool) -> Tensor:
    """The tensors one behind another in host memory, uint8; they themselves become views of `memory`."""
    offsets = _offsets(tensors)
    content = torch.zeros(offsets[-1], dtype=torch.uint8, pin_memory=is_pinned)
    for tensor, begin in zip(tensors, offsets, strict=False):
        piece = slice(begin, begin + tensor.nbytes)
        content[piece] = tensor.data.contiguous().reshape(-1).view(torch.uint8)
        tensor.data = memory[piece].view(tensor.dtype).view(tensor.shape)
    return content

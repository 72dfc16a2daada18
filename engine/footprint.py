"""What a loaded engine takes of its machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory on the device in bytes, and threads of the CPU."""

    weight_bytes: int  # packed and mapped matrices as they are in the file
    cache_bytes: int  # of the KV cache, or pool of states
    num_threads: int  # of a step
    host_weight_bytes: int = 0  # of layers that are streamed from host memory

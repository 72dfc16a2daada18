"""What rank 0 tells those that follow it, in the order in which they do it, and what they answer."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..adapters.adapter import Adapter
from ..config import EngineConfig
from ..kv_cache.prefix_cache import Transfer
from ..models.architecture import ModelInfo
from ..sharding.ranks import Rank
from ..steps.runner import Packing


class Start(NamedTuple):
    """Load a share of the model. Answered by `Done`."""

    rank: Rank
    config: EngineConfig  # resolved
    spec: ModelInfo


class Measure(NamedTuple):
    """Say for how many blocks of the cache there is room. Answered by `Room`."""


class Begin(NamedTuple):
    """Meet the others, and make a cache. Answered by `Done` before each of the two."""

    num_blocks: int
    num_host_blocks: int
    meeting: Path


class Step(NamedTuple):
    """Compute a forward pass. Its token ids come from rank 0's device."""

    packing: Packing
    num_tokens: int


class Move(NamedTuple):
    """Carry out transfers of blocks."""

    transfers: Sequence[Transfer]


class LoadAdapter(NamedTuple):
    """Put an adapter, as far as it adds to the rank's share, into the next free slot. Answered by `Done`."""

    adapter: Adapter


class FreeAdapter(NamedTuple):
    """Give a slot back."""

    slot: int


Order = Start | Measure | Begin | Step | Move | LoadAdapter | FreeAdapter


class Room(NamedTuple):
    """For so many blocks of the KV cache."""

    num_blocks: int


class Done(NamedTuple):
    """What was asked last has been done."""


class Failed(NamedTuple):
    """What was asked last raised this; the rank ends."""

    error: Exception


Answer = Room | Done | Failed


class Sending(Protocol):
    """One end of a connection."""

    def send_bytes(self, buf: bytes, /) -> None: ...


def send(connection: Sending, message: Order | Answer) -> None:
    """With all that is in it: `Connection.send` would leave tensors where they are, and send where that is."""
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def receive(connection: Connection) -> Any:
    """The next message. Raises EOFError or OSError when the other side has ended."""
    return pickle.loads(connection.recv_bytes())

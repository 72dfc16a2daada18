"""An adapter that is loaded, as requests and users know it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, eq=False)
class LoadedAdapter:
    """An adapter that requests can ask for. Each loading makes another one, under the same name too."""

    name: str
    path: Path
    rank: int
    num_parameters: int
    fingerprint: str
    """Of what it adds. Keys and values are shared by requests of the same fingerprint only."""
    slot: int


class Adapting(Protocol):
    """Who may run with an adapter."""

    adapter: LoadedAdapter | None


def names_of(sequences: Iterable[Adapting]) -> tuple[str, ...]:
    """The names of all adapters that some of them run with, sorted."""
    return tuple(sorted({sequence.adapter.name for sequence in sequences if sequence.adapter is not None}))

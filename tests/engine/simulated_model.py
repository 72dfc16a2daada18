"""A model without weights for the whole engine: what a token scores is a function of what is found in the simulated cache.

So a token that comes from a wrong block, or from one that was never computed, is another token. Faults are asked for before they
would have an effect, and leave a half-written cache behind.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from maskwright.engine.engine import Engine
from maskwright.engine.features import EngineFeatures
from maskwright.engine.limits import Limits

from .conftest import EOS
from .simulation import SimulatedCache, prefix_hashes

GARBAGE = -1


class NoFaults:
    """What may go wrong. Each method is given the sequences concerned; it raises, or says where the logits are NaN."""

    def plan(self, engine: Engine) -> None: ...

    def move(self) -> None: ...

    def forward(self, sequences: list) -> None: ...

    def is_invalid(self, sequence, num_others: int) -> bool:
        return False

    def draw(self, sequences: list) -> None: ...


class SimulatedModel:
    """Stands in for a ModelRunner."""

    picks_columns = False

    def __init__(self, vocab_size: int, limits: Limits, num_host_blocks: int, faults: NoFaults) -> None:
        self.decoder = SimpleNamespace(device=torch.device("cpu"), spec=SimpleNamespace(is_recurrent=False))
        self.cache, self.faults, self.vocab_size = SimulatedCache(limits, num_host_blocks), faults, vocab_size

    def move_blocks(self, transfers) -> None:
        self.cache.move(transfers[: len(transfers) // 2])
        self.faults.move()
        self.cache.move(transfers[len(transfers) // 2 :])

    def forward(self, chunks, columns) -> torch.Tensor:
        assert columns is None
        assert [chunk.width > 1 for chunk in chunks] == sorted(chunk.width > 1 for chunk in chunks)
        for chunk in chunks:
            self._write(chunk, lambda hashes: [GARBAGE] * len(hashes))
        self.faults.forward([chunk.sequence for chunk in chunks])
        for chunk in chunks:
            self._write(chunk, lambda hashes: hashes)
        rows = [self._scores(chunk, place, len(chunks)) for chunk in chunks if chunk.completes for place in self._wanted(chunk)]
        return torch.from_numpy(np.array(rows, np.float32).reshape(len(rows), self.vocab_size))

    def _wanted(self, chunk) -> range:
        end = chunk.sequence.num_computed + chunk.width
        return range(end - 1 - len(chunk.drafts), end)

    def _write(self, chunk, content) -> None:
        tokens, start = chunk.sequence.token_ids + chunk.drafts, chunk.sequence.num_computed
        for place, value in enumerate(content(prefix_hashes(tokens[: start + chunk.width]))):
            if place >= start:
                self.cache.blocks[chunk.sequence.block_table[place // self.cache.block_size]][place % self.cache.block_size] = value

    def _scores(self, chunk, place: int, num_chunks: int) -> np.ndarray:
        """Of what is read in all places up to this one."""
        if self.faults.is_invalid(chunk.sequence, num_chunks - 1):
            return np.full(self.vocab_size, np.nan)
        size, table = self.cache.block_size, chunk.sequence.block_table
        found = hash(tuple(self.cache.blocks[table[each // size]][each % size] for each in range(place + 1)))
        scores = 3 * np.sin(np.arange(1, self.vocab_size + 1) * (found % 1009 + 1) + found % 9973)
        scores[EOS] -= 2  # outputs of some length
        return scores


def simulated_engine(vocabulary, limits: Limits, features: EngineFeatures, faults: NoFaults | None = None, drafter=None) -> Engine:
    faults = faults or NoFaults()
    model = SimulatedModel(vocabulary.size, limits, features.num_host_blocks, faults)
    engine = Engine(model, vocabulary, limits, features, drafter=drafter)
    schedule, draw = engine.scheduler.schedule, engine.sampler.draw

    def faulty_schedule():
        chunks = schedule()
        faults.plan(engine)
        return chunks

    def faulty_draw(sequences, logits):
        faults.draw(sequences)
        return draw(sequences, logits)

    engine.scheduler.schedule, engine.sampler.draw = faulty_schedule, faulty_draw
    return engine

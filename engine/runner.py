"""Turn the scheduler's chunks into one packed forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .attend import Attend, fused
from .models.decoder import ForwardBatch
from .models.model import Model
from .scheduler import Chunk
from .sequence import Sequence


class ModelRunner:
    """A model with its KV cache, or pool of states. `attend` is how attention is computed, where there is a choice."""

    def __init__(self, decoder: Model, cache: Any, attend: Attend = fused) -> None:
        self.decoder, self.cache, self.attend = decoder, cache, attend

    def forward(self, chunks: list[Chunk[Sequence]]) -> Tensor:
        """Logits [chunks that complete, head width], in their order. Writes the chunks' keys and values."""
        return self.decoder.forward(self._pack(chunks), self.cache)

    def _pack(self, chunks: list[Chunk[Sequence]]) -> ForwardBatch:
        spans = [(c.sequence.num_computed, c.num_tokens, c.sequence.block_table) for c in chunks]
        token_ids = np.concatenate([_new_token_ids(chunk) for chunk in chunks])
        positions = np.concatenate([np.arange(past, past + new) for past, new, _ in spans])
        last_rows = np.cumsum([chunk.num_tokens for chunk in chunks]) - 1
        completes = np.array([chunk.completes for chunk in chunks])
        return ForwardBatch(
            token_ids=self._to_device(token_ids),
            positions=self._to_device(positions),
            logit_rows=self._to_device(last_rows[completes]),
            attention=self.decoder.plan(spans, self.cache, self.attend),
        )

    def _to_device(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.decoder.device, non_blocking=True)


def _new_token_ids(chunk: Chunk[Sequence]) -> np.ndarray:
    start = chunk.sequence.num_computed
    return np.array(chunk.sequence.token_ids[start : start + chunk.num_tokens], dtype=np.int64)

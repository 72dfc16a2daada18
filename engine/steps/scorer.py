"""A model that scores texts beside those in the batch: what it says next, for stages that compare two texts (guidance).

It has a KV cache of its own, in which each text has the same number of blocks. What it gives is a function of the text: the cache
is found by the tokens, so a text that goes on from one that was scored costs its new tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ...kernels.to_device import to_device
from ..attention.methods import Attend
from ..errors import RequestError, UnsupportedModel
from ..kv_cache.prefix_tree import common_length
from ..limits import Limits
from ..models.decoder import ForwardBatch
from ..models.model import Model

CHUNK = 512  # tokens that are read at once


@dataclass(slots=True, eq=False)
class _Place:
    """Room for one text."""

    blocks: list[int]
    tokens: list[int] = field(default_factory=list)  # whose keys and values are there
    used: int = 0  # when, in calls


class Scorer:
    """`logits(texts)` gives what comes behind each text. Called from `apply` of a stage, or while no request runs."""

    def __init__(self, model: Model, attend: Attend, limits: Limits, vocab_size: int, max_contexts: int) -> None:
        """limits: of the engine, which say how long a text may be. Raises UnsupportedModel where the model keeps a state."""
        if model.spec.is_recurrent:
            raise UnsupportedModel("a scorer goes on from any beginning of a text, and a state of this model cannot")
        if type(max_contexts) is not int or max_contexts < 1:
            raise RequestError(f"max_contexts is a number of texts, 1 or more, not {max_contexts!r}").about("max_contexts")
        self._model, self._attend, self._vocab_size = model, attend, vocab_size
        self.max_tokens = limits.max_model_len
        per_text = -(-limits.max_model_len // limits.block_size)
        self._cache = model.allocate_cache(max_contexts * per_text, limits.block_size)
        self._places = [_Place(list(range(n * per_text, (n + 1) * per_text))) for n in range(max_contexts)]
        self._calls = 0

    def logits(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """[texts, V] float32 for tokens of the model. Raises RequestError for an empty text, and one that is too long."""
        for text in texts:
            if not 0 < len(text) <= self.max_tokens:
                raise RequestError(f"a text of {len(text)} tokens cannot be scored; it has 1 to {self.max_tokens}")
        rows: list[Tensor] = []
        for start in range(0, len(texts), len(self._places)):
            rows += self._scored([list(text) for text in texts[start : start + len(self._places)]])
        return torch.stack(rows)

    def _scored(self, texts: list[list[int]]) -> list[Tensor]:
        """Of at most as many texts as there are places."""
        self._calls += 1
        chosen = self._choose(texts)
        done = [min(common_length(place.tokens, text), len(text) - 1) for place, text in zip(chosen, texts, strict=True)]
        for place, text, known in zip(chosen, texts, done, strict=True):
            del place.tokens[known:]
            while len(text) - len(place.tokens) > CHUNK:
                self._read([place], [text[len(place.tokens) :][:CHUNK]])
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]) - len(chosen[number].tokens))
        read = self._read([chosen[n] for n in order], [texts[n][len(chosen[n].tokens) :] for n in order])
        rows: list[Tensor] = [read[0]] * len(texts)
        for number, row in zip(order, read, strict=True):
            rows[number] = row
        return rows

    def _choose(self, texts: list[list[int]]) -> list[_Place]:
        """A place for each text: the one with the longest common beginning, else the least recently used."""
        free = list(self._places)
        chosen: list[_Place] = []
        for text in texts:
            best = max(free, key=lambda place: (common_length(place.tokens, text), -place.used))
            free.remove(best)
            best.used = self._calls
            chosen.append(best)
        return chosen

    @torch.inference_mode()
    def _read(self, places: list[_Place], tokens: list[list[int]]) -> Tensor:
        """Logits [places, V] behind tokens that go on from what is there; those with one token come first."""
        spans = [(len(place.tokens), len(new), place.blocks) for place, new in zip(places, tokens, strict=True)]
        positions = [past + number for past, count, _ in spans for number in range(count)]
        batch = ForwardBatch(
            token_ids=self._to_device([token for new in tokens for token in new]),
            positions=self._to_device(positions),
            logit_rows=self._to_device(list(np.cumsum([count for _, count, _ in spans]) - 1)),
            attention=self._model.plan(spans, self._cache, self._attend),
        )
        logits = self._model.forward(batch, self._cache)
        for place, new in zip(places, tokens, strict=True):
            place.tokens += new
        return logits[:, : self._vocab_size].float()

    def _to_device(self, numbers: list[int]) -> Tensor:
        return to_device(np.array(numbers, np.int64), self._model.device)

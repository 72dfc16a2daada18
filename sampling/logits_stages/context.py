"""What a stage of one's own knows: of a request when it begins, and of the rows of a batch at each draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...kernels.to_device import to_device

NO_TOKEN = -1  # in `StageContext.tokens`: this row has fewer tokens


@dataclass(frozen=True, slots=True)
class StageRequest:
    """A request, as far as `setup` may know it."""

    prompt_token_ids: tuple[int, ...]
    sampling: Any  # its SamplingParams
    seed: int  # in use: that of `sampling`, or a fresh one
    vocab_size: int
    eos_token_ids: frozenset[int]
    spellings: Sequence[bytes | None]  # [vocab_size] the bytes of each token, None of special ones
    is_constrained: bool


@dataclass(frozen=True, slots=True)
class StageRow:
    """One row of logits: those of the token behind `token_ids`."""

    request: StageRequest
    state: Any  # what `setup` gave
    _tokens: list[int] = field(repr=False)  # of the sequence, which only ever grows
    num_tokens: int

    @property
    def token_ids(self) -> list[int]:
        """Prompt and output."""
        return self._tokens[: self.num_tokens]

    @property
    def prompt_token_ids(self) -> tuple[int, ...]:
        return self.request.prompt_token_ids

    @property
    def output_token_ids(self) -> list[int]:
        return self._tokens[len(self.request.prompt_token_ids) : self.num_tokens]

    @property
    def num_output_tokens(self) -> int:
        return self.num_tokens - len(self.request.prompt_token_ids)

    def last_tokens(self, count: int) -> list[int]:
        """The last `count` tokens, or all where there are fewer."""
        return self._tokens[max(self.num_tokens - count, 0) : self.num_tokens]


class StageContext:
    """The rows of a batch that a stage is applied to, in the order of the logits.

    Tensors are made when they are first asked for, on the device of the logits.
    """

    def __init__(self, rows: Sequence[StageRow], vocab_size: int, device: torch.device, allowed: Tensor | None) -> None:
        self.rows, self.vocab_size, self.device = tuple(rows), vocab_size, device
        self._allowed = allowed

    @property
    def states(self) -> list[Any]:
        """What `setup` gave for each row."""
        return [row.state for row in self.rows]

    @cached_property
    def allowed(self) -> Tensor:
        """[rows, V] bool: the tokens that the constraint allows, to be read: nothing else can be drawn, whatever a stage writes."""
        if self._allowed is not None:
            return self._allowed.clone()
        return torch.ones(len(self.rows), self.vocab_size, dtype=torch.bool, device=self.device)

    def tokens(self, last: int | None = None) -> Tensor:
        """[rows, longest] int64: prompt and output of each row, or its last tokens, with NO_TOKEN (-1) before shorter ones."""
        texts = [row.token_ids if last is None else row.last_tokens(last) for row in self.rows]
        width = max(map(len, texts), default=0)
        padded = np.full((len(texts), width), NO_TOKEN, np.int64)
        for place, text in enumerate(texts):
            padded[place, width - len(text) :] = text
        return to_device(padded, self.device)

    @cached_property
    def num_tokens(self) -> Tensor:
        """[rows] int64: tokens of prompt and output."""
        return to_device(np.array([row.num_tokens for row in self.rows], np.int64), self.device)

    @cached_property
    def num_output_tokens(self) -> Tensor:
        """[rows] int64"""
        return to_device(np.array([row.num_output_tokens for row in self.rows], np.int64), self.device)

    def row(self, place: int) -> StageContext:
        """That row alone."""
        allowed = None if self._allowed is None else self._allowed[place : place + 1]
        return StageContext(self.rows[place : place + 1], self.vocab_size, self.device, allowed)

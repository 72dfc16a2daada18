"""The constraint core inside transformers' `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .constraints.runtime.constraint import Constraint
from .errors import UsageError


class LogitsProcessor:
    """Sets the logits of every token that `constraint` forbids to -inf.

        model.generate(**inputs, logits_processor=[maskwright.LogitsProcessor(constraint)])

    Works for greedy search, sampling and beam search, for batches with prompts padded on the left, and for heads wider than
    the vocabulary. The state of a row is found by the tokens before it, so rows may be reordered, dropped and repeated.
    A row that the caller continued with a forbidden token (a beam of score -inf) may only end.

    A new `generate` call is noticed by prompts that were not seen before; call `reset` to be sure.
    """

    def __init__(self, constraint: Constraint) -> None:
        if not isinstance(constraint, Constraint):
            raise UsageError(f"a compiled constraint is needed, not {type(constraint).__name__}: Compiler(vocabulary).compile(...)")
        if not constraint.vocabulary.eos_token_ids:
            raise ValueError("the vocabulary names no EOS token, so transformers could never end; give eos_token_ids")
        self.constraint = constraint
        self.reset()

    def reset(self) -> None:
        """Forget all rows: the next call starts new outputs."""
        self._states: dict[bytes, Any] = {}  # the tokens of a row so far -> its state, None for a dead row

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """`scores` [rows, head] for rows `input_ids` [rows, tokens so far, prompt included], masked, as a new tensor."""
        size = self.constraint.vocabulary.size
        if scores.shape[-1] < size:
            raise ValueError(
                f"the vocabulary has {size} ids, but the model has logits for {scores.shape[-1]} only; "
                f"build it with Vocabulary.from_tokenizer(tokenizer, size={scores.shape[-1]})"
            )
        allowed = torch.zeros(scores.shape, dtype=torch.bool)
        allowed[:, :size] = self._allowed(self._advance(input_ids))
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)

    def _advance(self, input_ids: Tensor) -> list[Any]:
        """The state of every row, moved by its last token, or the start for rows of a new call."""
        rows = np.ascontiguousarray(input_ids.cpu().numpy())
        before = [row[:-1].tobytes() for row in rows]
        keys = [row.tobytes() for row in rows]
        if not all(key in self._states for key in before):
            self._states = dict.fromkeys(keys, self.constraint.start())
        else:
            last = [int(row[-1]) for row in rows]
            self._states |= {key: self._next(self._states[b], token) for key, b, token in zip(keys, before, last, strict=True)}
        return [self._states[key] for key in keys]

    def _next(self, state: Any, token_id: int) -> Any:
        """The state after a token. A finished row is padded by the caller and stays finished."""
        if state is None or self._is_finished(state):
            return state
        return self.constraint.advance(state, token_id)

    def _is_finished(self, state: Any) -> bool:
        eos = self.constraint.vocabulary.eos_token_ids[0]
        return self.constraint.is_accepting(state) and self.constraint.advance(state, eos) == state

    def _allowed(self, states: list[Any]) -> Tensor:
        """bool [rows, V]; only EOS for dead rows."""
        vocabulary = self.constraint.vocabulary
        words = np.zeros((len(states), -(-vocabulary.size // 32)), np.uint32)
        for row, state in enumerate(states):
            if state is not None:
                words[row] = self.constraint.mask(state)
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : vocabulary.size].astype(bool)
        bits[np.ix_([state is None for state in states], vocabulary.eos_token_ids)] = True
        return torch.from_numpy(bits)

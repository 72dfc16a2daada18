"""The constraint core inside transformers' `generate`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .constraints.runtime.constraint import Constraint
from .errors import UsageError
from .row_states import RowStates


class LogitsProcessor:
    """Sets the logits of every token that `constraint` forbids to -inf.

        model.generate(**inputs, max_new_tokens=200, logits_processor=[maskwright.LogitsProcessor(constraint, max_new_tokens=200)])

    Works for greedy search, sampling and beam search, for batches with prompts padded on the left, for heads wider than
    the vocabulary, and for assisted generation: an assistant with the same tokenizer, prompt lookup, early exit. The state of a row
    is found by the tokens before it, so rows may be reordered, dropped, repeated and taken back.
    A row that the caller continued with a forbidden token (a beam of score -inf) may only end.

    A new `generate` call is noticed by prompts that were not seen before, as prompts or as beginnings of outputs; to be sure, call
    `reset` or give `prompt_length`.

    prompt_length: `inputs["input_ids"].shape[1]`. Then the state of a row depends on the row alone.
    max_new_tokens: what `generate` is given. Then every output is complete by then.

    Continuous batching hands over tokens without their requests: see `maskwright.integrations.transformers`.
    """

    def __init__(
        self, constraint: Constraint, *, prompt_length: int | None = None, max_new_tokens: int | None = None
    ) -> None:
        if not isinstance(constraint, Constraint):
            raise UsageError(f"a compiled constraint is needed, not {type(constraint).__name__}: Compiler(vocabulary).compile(...)")
        if not constraint.vocabulary.eos_token_ids:
            raise ValueError("the vocabulary names no EOS token, so transformers could never end; give eos_token_ids")
        if max_new_tokens is not None and (needed := constraint.min_tokens(constraint.start())) > max_new_tokens:
            raise UsageError(f"max_new_tokens={max_new_tokens} is too small: the shortest output takes {needed} tokens")
        self.constraint, self.max_new_tokens = constraint, max_new_tokens
        self._states, self._width = RowStates(constraint, prompt_length), 0

    @property
    def supports_continuous_batching(self) -> bool:
        """Asked by continuous batching alone, which would keep what it does not know and hand it tokens of no request. Raises
        UsageError."""
        raise UsageError(
            "continuous batching hands a LogitsProcessor tokens without their requests; see "
            "maskwright.integrations.transformers: with constrained(model, constraint): model.generate_batch(...)"
        )

    def reset(self) -> None:
        """Forget all rows: the next call starts new outputs."""
        self._states.reset()
        self._width = 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """`scores` [rows, head] for rows `input_ids` [rows, tokens so far, prompt included], masked, as a new tensor."""
        size, width = self.constraint.vocabulary.size, scores.shape[-1]
        if width < size:
            raise ValueError(
                f"the vocabulary has {size} ids, but the model has logits for {width} only; "
                f"build it with Vocabulary.from_tokenizer(tokenizer, size={width})"
            )
        if self._width not in (0, width):
            raise UsageError(
                f"logits of two widths, {self._width} and {width}: an assistant with a tokenizer of its own has other tokens than "
                "the constraint; take one with the same tokenizer, or prompt_lookup_num_tokens (`reset` between models)"
            )
        self._width = width
        states = self._states.of(input_ids.cpu().numpy())
        used = input_ids.shape[-1] - self._states.prompt_length
        budget = None if self.max_new_tokens is None else self.max_new_tokens - used
        allowed = torch.zeros(scores.shape, dtype=torch.bool)
        allowed[:, :size] = torch.from_numpy(np.ascontiguousarray(self._states.allowed(states, budget)))
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)

"""The two classes that SGLang calls: one compiles for the engine, one follows a request.

What a vocab mask is belongs to the backend, as long as nobody else reads it. Decoding without speculation only passes it on, from
`allocate_vocab_mask` to `apply_vocab_mask`, so it is int32 [rows] there: the row of a table that stays on the device. Verifying
drafts and filtering tokens of a reasoning part read single bits, so there it is packed, int32 [rows, ceil(V / 32)]. In both forms
-1 allows everything.

Source of what they have to do: sglang/srt/constrained/base_grammar_backend.py, sampling/sampling_batch_info.py and
speculative/spec_utils.py, release 0.5.23.

The constraint core is imported with the backend: SGLang loads this module in every process, most of which have none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
)
from torch import Tensor

from ..walk import Walk

if TYPE_CHECKING:
    from ..resident_masks import WalkMasks

ANY_JSON = "$$ANY$$"  # as the text of a schema
TABLE_BYTES = 128 << 20  # of masks on the device, about 7,000 of 150,000 tokens
LEAST_ROWS = 1024
MOST_CACHED = 1024  # constraints that SGLang's cache keeps alive, which by itself forgets none


class MaskwrightGrammar(BaseGrammarObject):
    """One request's way through its constraint."""

    def __init__(self, walk: Walk, backend: MaskwrightGrammarBackend, stats: GrammarStats | None = None) -> None:
        super().__init__()
        self.walk, self.backend, self.grammar_stats = walk, backend, stats

    def accept_token(self, token: int) -> None:
        """Go on by a token; behind the end of the text nothing happens. Raises ValueError for one that is not allowed."""
        if self.walk.is_finished:
            return
        if not self.walk.take([token]):
            raise ValueError(self._why_not(token))
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Give back the tokens taken last."""
        self.walk.back(k)

    def is_terminated(self) -> bool:
        """Whether a token that ends the text was taken."""
        return self.walk.is_finished

    def copy(self) -> MaskwrightGrammar:
        """One that has come as far and goes on by itself."""
        stats = self.grammar_stats and dataclasses.replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
        twin = MaskwrightGrammar(self.walk.copy(), self.backend, stats)
        twin.finished, twin.current_token = self.finished, self.current_token
        return twin

    # -- masks ----------------------------------------------------------------------------------------------------------

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Tensor:
        """A mask on the host in which everything is allowed, for so many rows."""
        return self.backend.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: Tensor, idx: int) -> None:
        """Write what may come next to row `idx`."""
        self.backend.fill(vocab_mask, [idx], [self.walk])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: Tensor) -> None:
        """Write what may come next to the rows of all entries, and leave all other rows as they are."""
        ours = [(entry.row, entry.grammar) for entry in entries if isinstance(entry.grammar, MaskwrightGrammar)]
        if ours:
            ours[0][1].backend.fill(vocab_mask, [row for row, _ in ours], [grammar.walk for _, grammar in ours])
        for entry in entries:
            if not isinstance(entry.grammar, MaskwrightGrammar):
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Tensor) -> None:
        """Allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Tensor, device: Any) -> Tensor:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    def apply_vocab_mask(self, logits: Tensor, vocab_mask: Tensor) -> None:
        """Set the logits of forbidden tokens to -inf, in place. logits: [rows, head]."""
        self.backend.apply_vocab_mask(logits, vocab_mask)

    # -- forced text ----------------------------------------------------------------------------------------------------

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The characters that come next whatever is chosen, as ([], text); None where there are none."""
        text = self.walk.forced_text()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of a jump, and -1: the state behind it follows from the tokens."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int) -> None:
        """Put the output's new tokens in the place of the old ones. Raises ValueError, and changes nothing, where they are not
        allowed."""
        if not self.walk.retake(old_output_ids, new_output_ids):
            raise ValueError(f"the tokens {list(new_output_ids)} behind a jump are not what the constraint allows")

    def _why_not(self, token: int) -> str:
        constraint, taken = self.walk.constraint, self.walk.num_taken
        if not 0 <= token < constraint.vocabulary.size:
            return f"token {token} is outside the vocabulary of {constraint.vocabulary.size}"
        why = constraint.explain(self.walk.state, token, num_nearest=0)
        return f"token {token} is not allowed after {taken} tokens: {why}"


class MaskwrightGrammarBackend(BaseGrammarBackend):
    """Compiles constraints for an engine, in its pool of threads, and has the masks on the device.

    whitespace: of JSON, as `JsonSchema` takes it. packed: whether somebody else reads masks bit by bit.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        whitespace: str = "auto",
        packed: bool = False,
    ) -> None:
        from ..compilers import Compilers

        super().__init__()
        self.packed = packed
        self._whitespace, self._words = whitespace, -(-vocab_size // 32)
        self._compilers = Compilers(tokenizer, vocab_size, eos_token_ids)
        self._rows: WalkMasks | None = None  # on the device of the logits, which is known with the first batch

    # -- what requests ask for ------------------------------------------------------------------------------------------

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Values of a JSON Schema."""
        return self._compiled("json", "json_value" if key_string == ANY_JSON else "json_schema", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Texts that a regular expression matches as a whole."""
        return self._compiled("regex", "regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Texts of a grammar, in any notation that `sources.grammar_of` tells apart."""
        return self._compiled("ebnf", "grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Texts with constrained parts in them."""
        return self._compiled("structural_tag", "structural_tag", key_string)

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        """Keep a grammar for requests to come, the oldest no longer."""
        super().set_cache(key, value)
        while len(self.cache) > MOST_CACHED:
            self.cache.pop(next(iter(self.cache)), None)

    def _compiled(self, dispatched: str, kind: str, text: str) -> BaseGrammarObject:
        from ...constraints import ConstraintError
        from ..sources import source_of

        try:
            constraint = self._compilers.compile(source_of(kind, text, self._whitespace))
        except ConstraintError as error:
            return InvalidGrammarObject(str(error))
        return MaskwrightGrammar(Walk(constraint), self, GrammarStats(dispatch_type=dispatched))

    # -- masks ----------------------------------------------------------------------------------------------------------

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Tensor:
        """A mask on the host in which everything is allowed: int32 [rows] or packed. device: of the logits."""
        if self.packed:
            return torch.full((batch_size, self._words), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())
        if self._rows is None:
            from ..resident_masks import WalkMasks

            self._rows = WalkMasks(max(LEAST_ROWS, TABLE_BYTES // (4 * self._words)), self._words, device)
        return torch.full((batch_size,), -1, dtype=torch.int32)

    def fill(self, vocab_mask: Tensor, indices: Sequence[int], walks: Sequence[Walk]) -> None:
        """Write what may come next in each of some walks to its row."""
        from ...constraints.runtime.mask_batches import make_masks

        make_masks((walk.constraint, walk.state) for walk in walks)
        if vocab_mask.ndim == 1:
            assert self._rows is not None, "the mask was not made by `allocate_vocab_mask`"
            vocab_mask.numpy()[indices] = self._rows.rows_of(walks)
            return
        rows = vocab_mask.numpy().view(np.uint32)
        for index, walk in zip(indices, walks, strict=True):
            walk.write_mask(rows[index])

    def move_vocab_mask(self, vocab_mask: Tensor, device: Any) -> Tensor:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    def apply_vocab_mask(self, logits: Tensor, vocab_mask: Tensor) -> None:
        """Set the logits of forbidden tokens to -inf, in place. logits: [rows, head]."""
        if vocab_mask.ndim == 2:
            from ..resident_masks import ban_packed

            ban_packed(logits, vocab_mask)
        else:
            assert self._rows is not None, "the mask was not made by `allocate_vocab_mask`"
            self._rows.ban(logits, vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Whether `set_token_filter` can be called: with packed masks."""
        return self.packed

    def set_token_filter(
        self, vocab_mask: Tensor, token_ids: Sequence[int], batch_idx: int, is_allowed: bool = True, reset_vocab_mask: bool = True
    ) -> None:
        """Allow some tokens of a row, or forbid them. reset_vocab_mask: and the contrary for all others."""
        if vocab_mask.ndim == 1:
            raise ValueError("single tokens are filtered in packed masks only")
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token_id in token_ids:
            bit = torch.tensor(1 << token_id % 32, dtype=torch.int64).to(torch.int32).to(row.device)
            word = row[token_id // 32]
            word.copy_(word | bit if is_allowed else word & ~bit)

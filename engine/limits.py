"""What an engine may hold and compute at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of one engine, fixed when it starts."""

    block_size: int  # tokens per KV-cache block
    num_blocks: int
    max_batch_tokens: int
    max_sequences: int
    max_model_len: int  # prompt + output tokens of one sequence; always fits into the blocks

    @property
    def max_prompt_len(self) -> int:
        return self.max_model_len - 1

    @property
    def shortest(self) -> str:
        """The name of the setting that bounds the length of a sequence: the cache's size where that is less than max_model_len."""
        return "num_kv_blocks" if self.max_model_len == self.num_blocks * self.block_size else "max_model_len"

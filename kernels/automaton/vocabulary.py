"""Masks of a finite automaton over bytes, computed from the bytes of all tokens: the arrays, and the operation in plain PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class ByteAutomaton(NamedTuple):
    """A deterministic automaton. State 0 is dead; from every other state some text is accepted."""

    transitions: Tensor  # [states, classes] int32
    byte_class: Tensor  # [256] uint8
    accepting: Tensor  # [states] int32, 0 or 1


class TokenBytes(NamedTuple):
    """The bytes of all tokens, and which tokens end a text."""

    data: Tensor  # [bytes] uint8, all tokens one after the other
    start: Tensor  # [vocabulary + 1] int32; a token without bytes is never legal
    end_row: Tensor  # [words] int32, the mask of the end-of-text tokens, which are legal where the automaton accepts

    @classmethod
    def of(
        cls, tokens: Sequence[bytes | None], end_ids: Sequence[int], device: torch.device | str = "cpu"
    ) -> TokenBytes:
        """tokens: the text of each, None for those that are never text; end-of-text tokens are none either."""
        texts = [b"" if text is None or token_id in set(end_ids) else text for token_id, text in enumerate(tokens)]
        start = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        words = np.zeros(-(-len(texts) // 32), np.uint32)
        for token_id in end_ids:
            words[token_id // 32] |= np.uint32(1 << token_id % 32)
        data = np.frombuffer(b"".join(texts) or b"\0", np.uint8).copy()
        return cls(*(torch.from_numpy(array).to(device) for array in (data, start, words.view(np.int32))))


def mask_rows(states: Tensor, automaton: ByteAutomaton, vocabulary: TokenBytes, out: Tensor) -> None:
    """out[k] = the mask of states[k]: bit t % 32 of word t // 32 = token t leads to a state that is not dead.

    states: [k] int32, none of them dead; out: [k, words] int32.
    """
    start, length = vocabulary.start[:-1].long(), vocabulary.start.diff()
    at = torch.where(length > 0, states[:, None], 0).long()  # [k, vocabulary]
    for read in range(int(length.max()) if len(length) else 0):
        reads = length > read
        byte = vocabulary.data[torch.where(reads, start + read, 0)].long()
        after = automaton.transitions[at, automaton.byte_class[byte].long()].long()
        at = torch.where(reads, after, at)
    padding = -at.shape[1] % 32
    bits = torch.nn.functional.pad((at != 0).int(), (0, padding)).unflatten(1, (-1, 32))
    rows = (bits << torch.arange(32, device=bits.device, dtype=torch.int32)).sum(-1, dtype=torch.int32)
    out.copy_(rows | torch.where(automaton.accepting[states.long(), None] != 0, vocabulary.end_row, 0))

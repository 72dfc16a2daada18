"""An output token by token, with what the constraint left free; `--show-mask` colours it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .constraints import Constraint, Vocabulary


@dataclass(frozen=True, slots=True)
class TokenPiece:
    """One token: the characters it completes, and how much choice there was."""

    token_id: int
    text: str
    num_allowed: int  # tokens that the constraint allowed here, end-of-text included; the whole vocabulary without one
    is_forced: bool  # every completion of the text before it begins with this token's bytes


class PieceReader:
    """Follows one output; call `read` for each of its tokens, in order."""

    def __init__(self, vocabulary: Vocabulary, constraint: Constraint | None) -> None:
        self._tokens, self._constraint = vocabulary.tokens, constraint
        self._state: Any = None if constraint is None else constraint.start()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self, token_id: int) -> TokenPiece:
        data = self._tokens[token_id] or b""
        text = self._decoder.decode(data)
        if self._constraint is None:
            return TokenPiece(token_id, text, len(self._tokens), is_forced=False)
        num_allowed = int(np.bitwise_count(self._constraint.mask(self._state)).sum())
        is_forced = bool(data) and self._constraint.forced(self._state).startswith(data)
        self._state = self._constraint.advance(self._state, token_id)
        return TokenPiece(token_id, text, num_allowed, is_forced)

    def read_all(self, token_ids: Iterable[int]) -> Iterator[TokenPiece]:
        return map(self.read, token_ids)

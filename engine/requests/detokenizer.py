"""Text from tokens, piece by piece and never half a character."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """Follows one output. The text is the UTF-8 of the tokens' bytes; bytes that cannot be UTF-8 become U+FFFD.

    `tokens[t]` are the bytes of token t, None if it is never text. Equal to decoding all bytes at once.
    """

    def __init__(self, tokens: Sequence[bytes | None], num_skipped: int = 0) -> None:
        """num_skipped: leading bytes that are no part of the text."""
        self._tokens, self._num_skipped = tokens, num_skipped
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._is_between = True  # characters: nothing is kept back

    def feed(self, token_id: int) -> str:
        """The characters that this token completes; the bytes of an unfinished one are kept back."""
        data = self._tokens[token_id] or b""
        if self._num_skipped:
            data, self._num_skipped = data[self._num_skipped :], max(self._num_skipped - len(data), 0)
        if self._is_between and data.isascii():
            return data.decode()
        text = self._decoder.decode(data)
        self._is_between = not self._decoder.getstate()[0]
        return text

    def flush(self) -> str:
        """What is left when the output ends: a replacement character if it ends within a character, else nothing."""
        return self._decoder.decode(b"", final=True)

"""An index of the n-grams of a text in tokens: where the last tokens stood before, and what followed them there."""

from __future__ import annotations


class Ngrams:
    """Knows of a growing list of tokens where each of its n-grams ended last."""

    def __init__(self, shortest: int, longest: int) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._ends: dict[tuple[int, ...], int] = {}
        self._num_read = 0  # tokens whose n-grams are known as continued: all but the last ones

    def continuation(self, token_ids: list[int], count: int) -> list[int]:
        """Up to `count` tokens behind the latest earlier place where the last tokens stood; the longest match decides."""
        self._read(token_ids)
        for length in self._lengths:
            end = self._ends.get(tuple(token_ids[-length:])) if length <= len(token_ids) else None
            if end is not None:
                return token_ids[end : end + count]
        return []

    def _read(self, token_ids: list[int]) -> None:
        for end in range(self._num_read + 1, len(token_ids)):
            for length in self._lengths:
                if length <= end:
                    self._ends[tuple(token_ids[end - length : end])] = end
        self._num_read = max(len(token_ids) - 1, 0)

"""The tokens of a prompt, of which no more is read than what tells that it is too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import PromptTooLong
from ..limits import Limits

CHARACTERS_A_TOKEN = 8  # in a text that is read at once; few have more of them
SLICE_CHARACTERS = 16_384  # read at a time of a longer one
SPARE_TOKENS = 16  # that cutting a text may add at each cut, at most


def prompt_tokens(text: str, encode: Callable[[str], Sequence[int]], limits: Limits) -> Sequence[int]:
    """The token ids of a text. Raises PromptTooLong for a long one as soon as its beginning alone has too many: reading costs
    no more than the longest prompt that fits, and memory as little."""
    if len(text) > CHARACTERS_A_TOKEN * limits.max_prompt_len:
        _check_beginning(text, encode, limits)
    return encode(text)


def _check_beginning(text: str, encode: Callable[[str], Sequence[int]], limits: Limits) -> None:
    num_tokens = 0
    for start in range(0, len(text), SLICE_CHARACTERS):
        num_tokens += max(len(encode(text[start : start + SLICE_CHARACTERS])) - SPARE_TOKENS, 0)
        if num_tokens > limits.max_prompt_len:
            raise PromptTooLong(limits.max_prompt_len, limits.max_prompt_len, limits.shortest, is_counted=False)

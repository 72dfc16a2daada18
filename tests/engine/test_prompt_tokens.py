"""A prompt that is far too long is refused by its beginning."""

from __future__ import annotations

import pytest

from maskwright.engine.errors import PromptTooLong
from maskwright.engine.limits import Limits
from maskwright.engine.requests import prompt_tokens as module
from maskwright.engine.requests.prompt_tokens import prompt_tokens

LIMITS = Limits(block_size=16, num_blocks=1000, max_batch_tokens=512, max_sequences=4, max_model_len=101)


class Encoder:
    """Makes a token of each word, and counts what it reads."""

    num_read = 0

    def __call__(self, text: str) -> list[int]:
        self.num_read += len(text)
        return [1] * len(text.split())


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_CHARACTERS", 400)


def test_reading_ends_where_the_prompt_is_known_to_be_too_long() -> None:
    encode = Encoder()
    with pytest.raises(PromptTooLong, match="more than 100 tokens, but at most 100 fit") as caught:
        prompt_tokens("a " * 1_000_000, encode, LIMITS)
    assert encode.num_read == 400 and caught.value.limit == 100


def test_a_text_of_few_tokens_is_read_however_long_it_is() -> None:
    assert len(prompt_tokens("a" + " " * 100_000 + "b", Encoder(), LIMITS)) == 2


def test_what_may_fit_is_read_once_and_judged_by_its_tokens() -> None:
    encode = Encoder()
    assert len(prompt_tokens("a " * 400, encode, LIMITS)) == 400 and encode.num_read == 800


def test_cuts_alone_refuse_nothing() -> None:
    text = "\n".join(["a" * 390] * 100)  # a word is cut in two at most places
    assert len(prompt_tokens(text, Encoder(), LIMITS)) == 100

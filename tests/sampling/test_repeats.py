"""What follows from the text so far: DRY, n-grams, bad words, windows of penalties, and texts that become tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.sampling import SamplingError, SamplingParams, SequenceSampling, spelled
from maskwright.sampling.repeats import Breakers, RepeatedEnds, common_prefixes

from . import stage_twin

LETTERS = "abcd\n: "
SPELLINGS = [letter.encode() for letter in LETTERS] + [b"ab", b"b\n", None]
BANNED = -math.inf
texts = st.lists(st.integers(0, 4), max_size=40)


def edits(sampling: SequenceSampling) -> dict[int, float]:
    token_ids, values = sampling.bias
    assert len(set(token_ids.tolist())) == len(token_ids)
    return dict(zip(token_ids.tolist(), values.tolist(), strict=True))


def begun(prompt: list[int], output: list[int], **options: Any) -> SequenceSampling:
    sampling = SequenceSampling(
        SamplingParams(**options), vocab_size=len(SPELLINGS), prompt_token_ids=prompt, spellings=SPELLINGS
    )
    for token_id in output:
        sampling.accept(token_id)
    return sampling


def is_breaker(token_id: int) -> bool:
    return token_id in (4, 8)


@given(texts, texts, st.integers(1, 3), st.sampled_from([-1, 0, 1, 2, 5, 12]), st.sampled_from([1.0, 1.75, 3.0]))
def test_dry_is_what_llamacpp_defines(prompt: list[int], output: list[int], allowed: int, last_n: int, base: float) -> None:
    found = edits(
        begun(
            prompt, output, dry_multiplier=0.8, dry_base=base, dry_allowed_length=allowed, dry_penalty_last_n=last_n,
            dry_sequence_breakers=("\n",),
        )
    )  # fmt: skip
    expected = stage_twin.dry(
        prompt + output, multiplier=0.8, base=base, allowed=allowed, last_n=last_n, is_breaker=is_breaker
    )
    assert found == {token_id: pytest.approx(-penalty, rel=1e-6) for token_id, penalty in expected.items()}


def test_a_long_repetition_costs_a_finite_number() -> None:
    for multiplier in (1.0, 1e30):
        (penalty,) = edits(begun([0, 1] * 150, [], dry_multiplier=multiplier, dry_base=4.0)).values()
        assert math.isfinite(penalty) and penalty < -1e37


def test_breakers_are_found_however_they_are_cut_into_tokens() -> None:
    breakers = Breakers([":\n", "d"], SPELLINGS)
    assert [breakers.distance(tokens) for tokens in ([0, 5, 4, 1], [5, 4], [5, 0, 4], [0, 3, 1, 1], [])] == [1, 0, 3, 2, 0]
    assert breakers.distance([5, 9, 4]) == 3  # what is no text stands between
    assert breakers.is_in(3) and not breakers.is_in(5)


@given(texts, texts, st.integers(1, 4))
def test_no_ngram_comes_twice(prompt: list[int], output: list[int], size: int) -> None:
    expected = stage_twin.repeated_ngrams(prompt + output, size)
    assert edits(begun(prompt, output, no_repeat_ngram_size=size)) == dict.fromkeys(expected, BANNED)


@given(texts, texts)
def test_repeated_ends_are_those_of_every_place(prompt: list[int], output: list[int]) -> None:
    ends = RepeatedEnds(prompt)
    for token_id in output:
        ends.add(token_id)
    text = prompt + output
    expected = [
        next((n for n in range(place + 1) if text[place - n] != text[len(text) - 1 - n]), place + 1) for place in range(len(text) - 1)
    ]
    assert ends.lengths.tolist() == expected and ends.tokens.tolist() == text
    assert RepeatedEnds(text).lengths.tolist() == expected
    copied = ends.copy()
    copied.add(1)
    assert ends.lengths.tolist() == expected


@given(texts)
def test_common_prefixes(tokens: list[int]) -> None:
    for place, found in enumerate(common_prefixes(tokens)[1:], 1):
        assert tokens[:found] == tokens[place : place + found] and tokens[found : found + 1] != tokens[place + found : place + found + 1]


def test_a_text_grows_beyond_its_memory() -> None:
    sampling = begun([0] * 3, [token % 7 for token in range(700)], no_repeat_ngram_size=3)
    assert edits(sampling) == {700 % 7: BANNED}


# ---- bad words, allowed tokens


def test_bad_words_are_completed_by_what_was_written_alone() -> None:
    words = ((3,), (0, 1), (1, 2, 0))
    assert edits(begun([0], [], bad_words_ids=words)) == {3: BANNED}  # the prompt has no part in it
    assert edits(begun([], [0], bad_words_ids=words)) == {3: BANNED, 1: BANNED}
    assert edits(begun([], [1, 2], bad_words_ids=words)) == {3: BANNED, 0: BANNED}
    assert edits(begun([], [2], bad_words_ids=words, logit_bias={3: 2.0, 5: 1.0})) == {3: BANNED, 5: 1.0}


def test_only_what_is_allowed_is_not_banned() -> None:
    assert edits(begun([], [], allowed_token_ids=(2, 4), logit_bias={4: 1.0, 5: 1.0})) == {4: 1.0} | {
        token: BANNED for token in range(len(SPELLINGS)) if token not in (2, 4)
    }


def test_edits_of_several_kinds_add_up() -> None:
    sampling = begun([0, 1, 2, 0, 1], [], dry_multiplier=1.0, no_repeat_ngram_size=2, logit_bias={2: 5.0, 4: 1.0})
    assert edits(sampling) == {2: BANNED, 4: 1.0}
    assert edits(begun([0, 1, 2, 0, 1], [], dry_multiplier=1.0, logit_bias={2: 5.0})) == {2: 4.0}


def test_a_fork_reads_its_own_text() -> None:
    parent = begun([0, 1, 2], [0], no_repeat_ngram_size=2)
    child = parent.fork(seed=1)
    child.accept(1)
    assert edits(parent) == {1: BANNED} and edits(child) == {2: BANNED}


def test_a_bias_without_edits_is_the_same_object_each_time() -> None:
    plain, reading = begun([], [], logit_bias={1: 1.0}), begun([], [], no_repeat_ngram_size=2)
    assert plain.bias is plain.bias and reading.bias is reading.bias
    assert not plain.follows_text and reading.follows_text


# ---- penalties of a window


@given(texts, texts, st.integers(1, 8), st.booleans())
def test_penalties_see_the_last_tokens_alone(prompt: list[int], output: list[int], window: int, repeats: bool) -> None:
    options = {"repetition_penalty": 1.5} if repeats else {"frequency_penalty": 0.5}
    token_ids, counts = begun(prompt, output, repeat_last_n=window, **options).history
    text = [(token_id, False) for token_id in prompt] + [(token_id, True) for token_id in output]
    expected: dict[int, int] = {}
    for token_id, is_output in text[-window:]:
        if is_output or repeats:
            expected[token_id] = expected.get(token_id, 0) + is_output
    assert dict(zip(token_ids.tolist(), counts.tolist(), strict=True)) == expected


def test_a_window_of_none_switches_penalties_off() -> None:
    """Also beside rows that have penalties, with which history is packed."""
    off = begun([1], [1], repeat_last_n=0, repetition_penalty=2.0)
    assert not off.has_penalties and not len(off.history[0])


# ---- texts as tokens

WORDS = {"ab": [0, 1], " ab": [6, 0, 1], "cd": [20], " cd": [21], "d": [3], " d": [3]}


def test_texts_become_their_tokens_as_vllm_and_llamacpp_have_it() -> None:
    params = SamplingParams(bad_words=("ab", " cd", "d"), logit_bias={"ab": -1.0, 7: 2.0}, bad_words_ids=((5, 5),), seed=1)
    known = spelled(params, WORDS.__getitem__)
    assert known.bad_words_ids == ((5, 5), (0, 1), (20,), (21,), (3,))
    assert known.logit_bias == {7: 2.0, 0: -1.0, 1: -1.0} and not known.texts and known.seed == 1
    assert spelled(known, WORDS.__getitem__) is known


def test_texts_are_refused_where_nobody_spells_them() -> None:
    with pytest.raises(SamplingError, match="bad_words must be token ids by now"):
        begun([], [], bad_words=("ab",))


@pytest.mark.parametrize("option", ["allowed_token_ids", "bad_words_ids"])
def test_ids_outside_the_vocabulary_are_refused(option: str) -> None:
    value = (99,) if option == "allowed_token_ids" else ((1, 99),)
    with pytest.raises(SamplingError, match=f"{option} must be token ids below the vocabulary size {len(SPELLINGS)}, got 99"):
        begun([], [], **{option: value})


def test_numpy_tokens_are_taken() -> None:
    ends = RepeatedEnds(tuple(np.array([1, 2, 1]).tolist()))
    assert ends.lengths.tolist() == [1, 0]

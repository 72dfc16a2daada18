"""What reaches the sampler from a changing set of sequences."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskwright.kernels.sampler.interface import SamplerRows, Stages, TokenValues
from maskwright.kernels.sampler.reference import find_stages, sample
from maskwright.sampling import (
    BatchPacker,
    SamplingError,
    SamplingParams,
    SequenceSampling,
    resolve_seed,
)

VOCAB_SIZE = 60
BANNED = -math.inf


def rows_of(lists: TokenValues | None, num_rows: int) -> list[dict[int, float]]:
    if lists is None:
        return [{} for _ in range(num_rows)]
    ends = lists.offsets.tolist()
    pairs = list(zip(lists.token_ids.tolist(), lists.values.tolist(), strict=True))
    return [dict(pairs[ends[row] : ends[row + 1]]) for row in range(num_rows)]


def sequence(prompt: tuple[int, ...] = (), eos: tuple[int, ...] = (), **options: object) -> SequenceSampling:
    params = SamplingParams(**options)  # type: ignore[arg-type]
    return SequenceSampling(params, vocab_size=VOCAB_SIZE, prompt_token_ids=prompt, eos_token_ids=eos)


def pack(*sequences: SequenceSampling) -> SamplerRows:
    return BatchPacker().pack(sequences)


def test_every_row_carries_its_own_parameters() -> None:
    rows = pack(sequence(temperature=0.5, top_k=3, seed=2**64 - 1), sequence(top_p=0.5, min_p=0.25, seed=5))
    assert rows.parameters.temperature.tolist() == [0.5, 1.0]
    assert rows.parameters.top_k.tolist() == [3, 0]
    assert rows.parameters.top_p.tolist() == [1.0, 0.5]
    assert rows.parameters.min_p.tolist() == [0.0, 0.25]
    assert rows.seed.tolist() == [-1, 5]
    assert rows.bias is None and rows.history is None


def test_a_greedy_row_asks_for_no_filter() -> None:
    assert pack(sequence(temperature=0, top_k=5, top_p=0.5, min_p=0.1)).stages == Stages(any_draw=False)
    mixed = pack(sequence(temperature=0, top_k=5), sequence(top_k=2, top_p=0.5))
    assert mixed.stages == Stages(any_draw=True, filters=frozenset({"top_k", "top_p"}), max_top_k=2)
    assert find_stages(pack(sequence(top_k=9, min_p=0.5))) == Stages(filters=frozenset({"top_k", "min_p"}), max_top_k=9)


def test_position_and_seed_follow_the_sequence_through_changing_batches() -> None:
    packer, early, late = BatchPacker(), sequence(seed=1), sequence(seed=2)
    assert packer.pack([early]).position.tolist() == [0]
    early.accept(7)
    joined = packer.pack([early, late])
    assert joined.position.tolist() == [1, 0] and joined.seed.tolist() == [1, 2]
    early.accept(7)
    late.accept(7)
    swapped = packer.pack([late, early])
    assert swapped.position.tolist() == [1, 2] and swapped.seed.tolist() == [2, 1]
    assert packer.pack([]).position.tolist() == []


def test_a_refused_draw_is_repeated_with_another_random_number() -> None:
    tracked, indices = sequence(seed=1), []
    for move in (tracked.refuse, tracked.refuse, lambda: tracked.accept(3), lambda: tracked.accept(3)):
        indices.append(int(pack(tracked).position))
        move()
    assert len(set(indices)) == 4 and indices[0] == 0 and indices[3] == 1 == tracked.draw_index - 1


@given(
    st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=60),
    st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=80),
    st.sampled_from([1.0, 1.2]),
)
def test_history_counts_the_output_and_knows_the_prompt(
    prompt: list[int], output: list[int], repetition: float
) -> None:
    tracked = sequence(tuple(prompt), repetition_penalty=repetition, frequency_penalty=0.5)
    for token_id in output:
        tracked.accept(token_id)
    expected = dict.fromkeys(prompt, 0) if repetition != 1 else {}
    assert rows_of(pack(tracked, sequence()).history, 2) == [expected | Counter(output), {}]


def test_end_tokens_are_banned_until_min_tokens() -> None:
    short = sequence(eos=(2,), min_tokens=2, stop_token_ids=(9,), logit_bias={9: 5.0, 4: 1.0})
    seen = []
    for _ in range(3):
        seen.append(rows_of(pack(short).bias, 1)[0])
        short.accept(1)
    assert seen == [{9: BANNED, 4: 1.0, 2: BANNED}, {9: BANNED, 4: 1.0, 2: BANNED}, {9: 5.0, 4: 1.0}]
    assert short.is_end(2) and short.is_end(9) and not short.is_end(4)


def test_ignore_eos_bans_end_of_text_but_not_stop_tokens() -> None:
    endless = sequence(eos=(2, 3), ignore_eos=True, stop_token_ids=(9,))
    assert rows_of(pack(endless).bias, 1) == [{2: BANNED, 3: BANNED}]


def test_a_ban_outweighs_a_bias() -> None:
    assert rows_of(pack(sequence(logit_bias={4: 9.0}, banned_token_ids=[4])).bias, 1) == [{4: BANNED}]


def test_ids_of_the_user_become_ids_of_the_engine() -> None:
    reverse = np.arange(VOCAB_SIZE)[::-1]
    params = SamplingParams(logit_bias={0: 1.0}, banned_token_ids=(1,), stop_token_ids=(2,))
    renumbered = SequenceSampling(params, vocab_size=VOCAB_SIZE, engine_ids=reverse)
    assert rows_of(pack(renumbered).bias, 1) == [{59: 1.0, 58: BANNED}]
    assert renumbered.stop_token_ids == {57}


@pytest.mark.parametrize("option", ["logit_bias", "banned_token_ids", "stop_token_ids"])
def test_ids_outside_the_vocabulary_are_refused(option: str) -> None:
    value = {VOCAB_SIZE: 1.0} if option == "logit_bias" else (VOCAB_SIZE,)
    with pytest.raises(SamplingError, match=f"{option} must be token ids below the vocabulary size 60, got 60"):
        sequence(**{option: value})


def test_a_seed_is_kept_and_a_missing_one_is_fresh() -> None:
    assert resolve_seed(5) == 5 == sequence(seed=5).seed
    assert len({resolve_seed(None) for _ in range(10)}) == 10
    assert all(0 <= resolve_seed(None) < 2**64 for _ in range(10))


def test_the_same_seed_gives_the_same_tokens_alone_and_in_a_ragged_batch() -> None:
    logits = torch.randn(VOCAB_SIZE, generator=torch.Generator().manual_seed(5))

    def generate(others: list[SequenceSampling], join_at: int) -> list[int]:
        packer, seeded, tokens = BatchPacker(), sequence(seed=17, frequency_penalty=0.3, top_p=0.9), []
        for step in range(20):
            batch = [*others[: max(0, step - join_at)], seeded]
            drawn = sample(logits.expand(len(batch), -1), packer.pack(batch), vocab_size=VOCAB_SIZE).token.tolist()
            for member, token_id in zip(batch, drawn, strict=True):
                member.accept(token_id)
            tokens.append(drawn[-1])
        return tokens

    alone = generate([], 0)
    assert len(set(alone)) > 5
    assert generate([sequence(temperature=0), sequence(top_k=3, seed=1), sequence(presence_penalty=1)], 4) == alone

"""Who keeps the others waiting is found by counting signs of life, and nobody else is."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from maskwright.engine.parallel.messages import Done
from maskwright.engine.parallel.patience import Patience
from maskwright.engine.sharding.progress import Progress, Standing, is_sign, standing_of

WAITS, WORKS = Standing(7, True), Standing(7, False)


def test_a_rank_that_never_comes_is_lost_after_so_many_signs() -> None:
    patience = Patience(3)
    assert [patience.hear(1, WORKS, WAITS) for _ in range(4)] == [None, None, None, 1]


def test_each_step_forward_gives_everybody_all_of_the_time() -> None:
    patience = Patience(3)
    for number in range(50):
        assert patience.hear(1, Standing(number // 3, False), WAITS) is None  # it gets on
    for number in range(50):
        assert patience.hear(1, WORKS, Standing(number // 3, True)) is None  # rank 0 does
    for _ in range(50):
        assert patience.hear(1, WORKS, WORKS) is None  # rank 0 waits for nobody


def test_it_is_not_the_one_that_waits_itself() -> None:
    patience = Patience(3)
    told = [patience.hear(number, WORKS if number == 2 else WAITS, WAITS) for _ in range(4) for number in (1, 2, 3)]
    assert {number for number in told if number is not None} == {2}


def test_ranks_that_all_wait_for_each_other_are_not_left_alone() -> None:
    patience = Patience(3)
    told = [patience.hear(number, WAITS, WAITS) for _ in range(5) for number in (1, 2)]
    assert any(told)


@given(st.lists(st.tuples(st.integers(1, 2), st.booleans(), st.booleans(), st.booleans()), max_size=60), st.integers(1, 4))
def test_it_says_what_reading_the_whole_story_says(steps: list[tuple[int, bool, bool, bool]], num_turns: int) -> None:
    patience, num_done, own = Patience(num_turns), {0: 0, 1: 0, 2: 0}, True
    story: list[tuple[int, tuple[int, ...], bool]] = []  # who gave a sign, how far all are, whether rank 0 waits
    for number, gets_on, first_gets_on, own in steps:
        num_done[number] += gets_on
        num_done[0] += first_gets_on
        said = {each: num_done[each] for each in (1, 2) if each == number or any(past[0] == each for past in story)}
        found = patience.hear(number, Standing(num_done[number], False), Standing(num_done[0], own))
        story.append((number, (num_done[0], *(said.values())), own))
        quiet = 0
        for back in range(len(story) - 1, 0, -1):
            if not story[back][2] or sorted(story[back][1]) != sorted(story[back - 1][1]):
                break
            quiet += story[back][0] == number
        assert (found is not None) == (quiet >= num_turns)


def test_what_a_sign_tells_is_no_answer() -> None:
    progress = Progress()
    progress.settle(is_settling=False)
    assert standing_of(progress.sign()) == (0, False)
    with progress.waiting():
        assert standing_of(progress.sign()) == (0, True)
    assert standing_of(progress.sign()) == (1, False)
    assert is_sign(b"") and standing_of(b"") is None and is_sign(progress.sign())
    assert not is_sign(pickle.dumps(Done(), pickle.HIGHEST_PROTOCOL))


def test_while_shares_are_loaded_work_is_getting_on() -> None:
    progress = Progress()
    before, number = progress.standing, 0
    while progress.standing == before:  # ends when a tenth of a second was worked
        number += sum(range(1000))
    progress.settle(is_settling=False)
    before = progress.standing
    number += sum(sum(range(1000)) for _ in range(20_000))
    assert progress.standing == before and number

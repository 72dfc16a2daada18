"""Stop strings: found where the whole text would show them, however it arrives."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.sampling import StopMatcher, StopStrings


@dataclass
class Shown:
    text: str
    matched: str | None


def naive_stop(text: str, stop: list[str], include: bool) -> Shown:
    """The first position where a stop string ends; there, the longest that does."""
    for end in range(1, len(text) + 1):
        ending_here = [s for s in stop if text[:end].endswith(s)]
        if ending_here:
            longest = max(ending_here, key=len)
            return Shown(text[:end] if include else text[: end - len(longest)], longest)
    return Shown(text, None)


def naive_shown_so_far(text: str, stop: list[str]) -> int:
    """Characters that no continuation of the text could make part of a stop string."""
    held = (n for n in range(len(text), 0, -1) if any(s.startswith(text[-n:]) and s != text[-n:] for s in stop))
    return len(text) - next(held, 0)


short_texts = st.text(alphabet="ab\n", max_size=20)
stop_lists = st.lists(st.text(alphabet="ab\n", min_size=1, max_size=4), max_size=4)


@given(st.lists(short_texts, max_size=8), stop_lists, st.booleans())
def test_agrees_with_searching_the_whole_text(pieces: list[str], stop: list[str], include: bool) -> None:
    matcher = StopMatcher(stop, include_stop_in_output=include)
    shown = "".join(matcher.feed(piece) for piece in pieces) + matcher.flush()
    assert Shown(shown, matcher.matched) == naive_stop("".join(pieces), stop, include)


@given(st.lists(short_texts, max_size=8), stop_lists)
def test_holds_back_exactly_what_might_become_a_stop_string(pieces: list[str], stop: list[str]) -> None:
    matcher, text, shown = StopMatcher(stop), "", ""
    for piece in pieces:
        text, shown = text + piece, shown + matcher.feed(piece)
        if matcher.matched is not None:
            break
        assert shown == text[: naive_shown_so_far(text, stop)]


@pytest.mark.parametrize(
    ("stop", "pieces", "shown", "matched"),
    [
        (["END"], ["abE", "N", "Dxyz"], "ab", "END"),
        (["\n\n"], ["a\n", "b\n", "\n"], "a\nb", "\n\n"),
        (["abcd", "bc"], ["abcd"], "a", "bc"),  # completed first
        (["abc", "bc", "c"], ["abc"], "", "abc"),  # completed together: the longest
        (["aab"], ["aaab"], "a", "aab"),
        (["🎉"], ["x🎉y"], "x", "🎉"),
        ([], ["abc"], "abc", None),
    ],
)
def test_by_example(stop: list[str], pieces: list[str], shown: str, matched: str | None) -> None:
    matcher = StopMatcher(stop)
    assert "".join(map(matcher.feed, pieces)) + matcher.flush() == shown
    assert matcher.matched == matched


def test_nothing_is_read_after_a_match() -> None:
    matcher = StopMatcher(["b"])
    assert matcher.feed("abc") == "a"
    assert matcher.feed("more") == "" and matcher.flush() == "" and matcher.matched == "b"


def test_one_automaton_serves_many_outputs() -> None:
    strings = StopStrings(["ab"])
    one, other = StopMatcher(strings), StopMatcher(strings, include_stop_in_output=True)
    assert (one.feed("xa"), other.feed("ya")) == ("x", "y")
    assert (one.feed("b"), other.feed("b")) == ("", "ab")

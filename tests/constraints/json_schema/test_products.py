"""Which of many alternatives are superfluous, against comparing each with each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.front_ends.json_schema.algebra.products import absorbed

_TERMS = st.lists(st.lists(st.integers(0, 6), max_size=5, unique=True).map(tuple), max_size=14, unique=True)


@given(_TERMS)
def test_no_alternative_says_what_another_says_and_more(terms):
    kept: list[tuple] = []
    for term in sorted(terms, key=len):
        if not any(set(weaker) <= set(term) for weaker in kept):
            kept.append(term)
    assert absorbed(terms) == kept

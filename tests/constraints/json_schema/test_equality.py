"""Values are equal as JSON Schema says: numbers by what they are, however they are written and whatever holds them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.front_ends.json_schema.documents.values import equality_key

integers = st.one_of(
    st.integers(-1200, 1200),
    st.integers(-(2**70), 2**70),
    st.sampled_from([each + beside for each in (0, 2**59, 2**60, 2**64, 10**17, 10**18, -(2**60)) for beside in (-1, 0, 1)]),
)


@given(integers)
def test_an_integer_is_equal_to_the_decimal_of_the_same_number(value: int) -> None:
    assert equality_key(value) == equality_key(Decimal(value)) == equality_key(Decimal(value).scaleb(3).scaleb(-3))


@given(integers, integers)
def test_integers_are_equal_where_their_numbers_are(one: int, other: int) -> None:
    assert (equality_key(one) == equality_key(other)) == (one == other)


@pytest.mark.parametrize("value", [True, False, "1", "1e0", None, [1], {"1": 1}], ids=repr)
def test_nothing_else_is_equal_to_a_number(value: Any) -> None:
    assert equality_key(value) not in [equality_key(0), equality_key(1)]

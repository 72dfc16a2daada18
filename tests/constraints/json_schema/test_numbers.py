"""Numbers in an interval: the texts against comparison of decimals."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.constraints.base.errors import ConstraintError, ConstraintLimit
from maskwright.constraints.front_ends.numbers.numbers import canonical_number, number_node
from maskwright.constraints.grammar.expression import FAIL, Grammar
from maskwright.constraints.grammar.reference import Reference

CANONICAL = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?|-?[1-9](\.\d*[1-9])?e-(0[5-9]|[1-9]\d|[12]\d\d|3[01]\d|32[0-4])")


def twin(
    text: str, *, integer: bool, low=None, high=None, exclusive_low=False, exclusive_high=False, digits=300
) -> bool:
    """The definition of `number_node`, by comparison."""
    if not CANONICAL.fullmatch(text) or text == "-0":
        return False
    value = Decimal(text)
    is_integer = value == int(value)
    whole, _, fraction = text.partition("e")[0].lstrip("-").partition(".")
    if is_integer != ("." not in text and "e" not in text) or (integer and not is_integer):
        return False
    if not is_integer and ("e" in text) != (abs(value) < Decimal("0.0001")):
        return False
    if max(len(whole), len(fraction)) > digits or 0 < abs(value) < Decimal("3e-324"):
        return False
    above = low is None or value > low or (value == low and not exclusive_low)
    return above and (high is None or value < high or (value == high and not exclusive_high))


def number_reference(**bounds) -> Reference:
    grammar = Grammar()
    return Reference(grammar, number_node(grammar, **bounds))


def short_texts(length: int) -> list[str]:
    return ["".join(letters) for count in range(1, length + 1) for letters in product("012349.-", repeat=count)]


TEXTS = [text for text in short_texts(4) if not text.startswith((".", "00", "--"))]


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize(
    "low, high",
    [
        (None, None),
        ("0", "0"),
        ("-1.3", "1.35"),
        ("0.25", "0.3"),
        ("3", None),
        (None, "-0.4"),
        ("9.5", "42"),
        ("1.2", "1.25"),
        ("2", "1"),
    ],
)
@pytest.mark.parametrize("exclusive", [(False, False), (True, True), (False, True)])
def test_agrees_with_comparison_on_every_short_text(integer, low, high, exclusive):
    bounds = {
        "integer": integer,
        "low": low and Decimal(low),
        "high": high and Decimal(high),
        "exclusive_low": exclusive[0],
        "exclusive_high": exclusive[1],
    }
    reference = number_reference(**bounds)
    for text in TEXTS:
        assert reference.accepts(text.encode()) == twin(text, **bounds), text


DECIMALS = st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(map(int, str(digits))), exponent)),
    st.integers(0, 1),
    st.one_of(st.integers(0, 20), st.integers(0, 10**20), st.sampled_from([99, 999, 100, 1000, 10**12])),
    st.one_of(st.integers(-3, 3), st.integers(-30, 30), st.sampled_from([-4, -5, -320])),
)


@st.composite
def nearby(draw, bound):
    """A number in the neighbourhood of a bound: the bound itself, cut, extended or moved in one digit."""
    if bound is None:
        return draw(DECIMALS)
    sign, digits, exponent = bound.as_tuple()
    change = draw(st.sampled_from(["same", "extend", "cut", "step", "other", "negate"]))
    if change == "extend":
        return Decimal((sign, (*digits, draw(st.integers(0, 9))), exponent - 1))
    if change == "cut":
        return Decimal((sign, digits[:-1] or (0,), exponent + 1))
    if change == "step":
        return Decimal((sign, digits, exponent)) + draw(st.sampled_from([-1, 1])) * Decimal((0, (1,), exponent))
    if change == "other":
        return draw(DECIMALS)
    return -bound if change == "negate" else bound


@given(
    st.data(),
    st.one_of(st.none(), DECIMALS),
    st.one_of(st.none(), DECIMALS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_agrees_with_comparison_near_the_bounds(data, low, high, exclusive_low, exclusive_high, integer):
    bounds = {
        "low": low,
        "high": high,
        "exclusive_low": exclusive_low,
        "exclusive_high": exclusive_high,
        "integer": integer,
    }
    reference = number_reference(**bounds)
    for bound in (low, high, low, high):
        text = canonical_number(data.draw(nearby(bound)))
        assert reference.accepts(text.encode()) == twin(text, **bounds), text


@settings(max_examples=25)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_has_a_text_and_is_read_back(value, bound):
    text = canonical_number(value)
    assert float(json.loads(text)) == value
    assert number_reference(integer=False, digits=310).accepts(text.encode())
    at_least = number_reference(integer=False, digits=310, low=Decimal(repr(bound)))
    assert at_least.accepts(text.encode()) == (Decimal(repr(value)) >= Decimal(repr(bound)))


@pytest.mark.parametrize(
    "value", [0.1, 1e-4, 1e-5, 12.5, 2.5e-7, 5e-324, 1.7976931348623157e-308, -3.25, 123456789.125]
)
def test_what_is_not_an_integer_is_spelled_as_python_does(value):
    assert canonical_number(value) == repr(value)


def test_values_that_are_equal_have_one_text():
    assert {canonical_number(one) for one in (1, 1.0, Decimal("1.00"), Decimal("0.1e1"))} == {"1"}
    assert {canonical_number(zero) for zero in (0, -0.0, Decimal("-0.000"), Decimal("0e-500"))} == {"0"}


def test_digits_are_limited_on_both_sides_of_the_point():
    reference = number_reference(integer=False, digits=3)
    assert reference.accepts(b"123.456") and reference.accepts(b"-1.234e-05")
    assert not any(map(reference.accepts, (b"1234", b"0.1234", b"1.2345e-05")))


def test_a_bound_beyond_every_number_does_not_bind_and_one_that_excludes_all_of_them_is_a_limit():
    assert number_reference(integer=True, high=Decimal("1e5000")).accepts(b"7")
    with pytest.raises(ConstraintLimit, match="digits") as raised:
        number_reference(integer=True, low=Decimal("1e5000"))
    assert (raised.value.limit, raised.value.value) == ("digits", 300)


def test_an_empty_interval_is_fail():
    assert number_node(Grammar(), integer=True, low=Decimal("0.1"), high=Decimal("0.9")) == FAIL
    assert number_node(Grammar(), integer=False, low=Decimal(1), high=Decimal(1), exclusive_high=True) == FAIL


def test_bounds_too_small_for_doubles_are_compared_exactly():
    reference = number_reference(integer=False, low=Decimal("1e-99999999"), high=Decimal("1e-300"))
    assert reference.accepts(b"5e-324") and reference.accepts(b"1e-300")
    assert not any(map(reference.accepts, (b"0", b"1.1e-300", b"-5e-324")))


def test_the_number_of_nodes_is_linear_in_the_digits_of_the_bounds():
    def nodes(digits: int) -> int:
        grammar = Grammar()
        bound = Decimal("1" + "37" * (digits // 2) + "." + "73" * (digits // 2))
        number_node(grammar, integer=False, low=-bound, high=bound)
        return len(grammar)

    assert nodes(120) < 2.2 * nodes(60)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("-Infinity")])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(ConstraintError, match="not a JSON number"):
        canonical_number(value)


def test_a_number_with_too_many_digits_is_a_limit():
    with pytest.raises(ConstraintLimit):
        canonical_number(Decimal("1e999999999"))

"""Entry points linked from parts compute what Numba makes of the same functions, each compiled and linked on its own."""

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import pytest

from maskwright.foundation.compiled_loops.linking import PartCompiler, WholeCompiler

Decorator = Callable[[Callable[..., Any]], Any]
own: Decorator = nb.njit
part: Decorator = nb.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=PartCompiler)
whole: Decorator = nb.njit(no_cfunc_wrapper=True, pipeline_class=WholeCompiler)

VALUES = np.array([9, 4, 7, 4, 30], np.int64)
SCALE = np.array([1, 10, 100], np.int64)  # a constant of the code that reads it


def sorted_and_scaled(inside: Decorator, outside: Decorator) -> Callable[[Any], Any]:
    """Two functions share a third; one takes an argument of either of two types; memory is taken and freed."""

    @inside
    def place(values, value):
        count = 0
        for other in values:
            count += other < value
        return count

    @inside
    def twice(value):
        return value + value

    @inside
    def ranks(values):
        found = np.empty(values.size, np.int64)
        for index in range(values.size):
            found[index] = twice(place(values, values[index]))
        return found

    @outside
    def computed(values):
        total = 0.0
        for rank in ranks(values):
            total += twice(rank / 4) + place(values, rank) + SCALE[rank % 3]
        return total, ranks(values)

    return computed


def raising(inside: Decorator, outside: Decorator) -> Callable[[Any], Any]:
    @inside
    def checked(value):
        if value > 20:
            raise ValueError("too large")
        return value

    @outside
    def total(values):
        result = 0
        for value in values:
            result += checked(value)
        return result

    return total


def test_linked_parts_compute_what_functions_compiled_one_by_one_do() -> None:
    linked, one_by_one = (make(VALUES) for make in (sorted_and_scaled(part, whole), sorted_and_scaled(own, own)))
    assert linked[0] == one_by_one[0]
    assert linked[1].tolist() == one_by_one[1].tolist()


def test_two_entry_points_may_share_a_part() -> None:
    @part
    def shared(value):
        return value * 3

    @whole
    def first(value):
        return shared(value) + 1

    @whole
    def second(value):
        return shared(shared(value))

    assert (first(5), second(5)) == (16, 45)
    assert first(0.5) == 2.5, "another type of argument, compiled later"


def test_an_entry_point_may_call_another_one() -> None:
    @whole
    def below(value):
        return value - 1

    @part
    def between(value):
        return below(value) * 2

    @whole
    def above(value):
        return between(value) + below(value)

    assert (below(4), above(4)) == (3, 9)


def test_errors_raised_in_a_part_reach_the_caller() -> None:
    total = raising(part, whole)
    assert total(VALUES[:4]) == 24
    with pytest.raises(ValueError, match="too large"):
        total(VALUES)


def test_a_part_that_calls_itself_is_refused() -> None:
    @part
    def power(base, exponent):
        if exponent == 0:
            return 1
        return base * power(base, exponent - 1)

    @whole
    def cube(value):
        return power(value, 3)

    with pytest.raises(AssertionError, match="call themselves"):
        cube(5)

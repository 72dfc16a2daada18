"""Members of enumerations in compiled code are the numbers that they are in Python."""

from collections.abc import Callable
from enum import Enum, IntEnum, IntFlag
from typing import Any

import numba as nb
import numpy as np
import pytest
from numba.core.errors import TypingError

from maskwright.foundation.compiled_loops.enumerations import MemberCompiler

compiled: Callable[[Callable[..., Any]], Any] = nb.njit(pipeline_class=MemberCompiler)


class Place(IntEnum):
    FIRST = 0
    SECOND = 1
    BEFORE = -2


class Bits(IntFlag):
    NONE = 0
    HIGH = 4
    LOW = 1


class Plain(Enum):
    ONE = 1


def place_of(value):
    if value == Place.BEFORE or value & Bits.HIGH:
        return np.int64(Place.BEFORE)
    return Place.SECOND if value > Place.FIRST else Place.FIRST + Bits.LOW


def swapped(values):
    kept = values[Place.FIRST]
    values[Place.FIRST], values[Place.SECOND] = values[Place.SECOND], kept + (Bits.HIGH | Bits.LOW)
    return values


@pytest.mark.parametrize("value", [-2, 0, 1, 4, 9])
def test_members_are_compared_added_and_returned(value: int) -> None:
    found = compiled(place_of)(value)
    assert found == place_of(value) and type(found) is int


def test_members_index_arrays() -> None:
    assert compiled(swapped)(np.array([3, 8])).tolist() == swapped(np.array([3, 8])).tolist() == [8, 8]


def test_a_member_is_an_argument_of_the_type_of_any_number() -> None:
    @compiled
    def one_more(value):
        return value + 1

    @compiled
    def both(value):
        return one_more(np.int64(Place.SECOND)) + one_more(value)

    assert both(5) == 8
    assert len(one_more.signatures) == 1


def test_the_enumeration_may_be_local() -> None:
    class Local(IntEnum):
        HERE = 7

    assert compiled(lambda value: value * Local.HERE)(3) == 21


def test_what_is_no_member_is_refused_by_numba() -> None:
    with pytest.raises(AttributeError, match="THIRD"):
        compiled(lambda: Place.THIRD)()  # type: ignore[attr-defined]
    with pytest.raises(TypingError):
        compiled(lambda value: value + Plain.ONE)(1)

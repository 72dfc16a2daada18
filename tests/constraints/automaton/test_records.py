"""Records mean in compiled code what their classes mean in Python, and each field has bits of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError
from numpy.typing import NDArray

from maskwright.constraints.automaton import containment, tables
from maskwright.constraints.masks import mask_rows
from maskwright.constraints.numba_support.jit import LOOPS
from maskwright.constraints.numba_support.record_access import view
from maskwright.constraints.numba_support.records import (
    Record,
    Records,
    View,
    Word,
    Words,
    bits,
    byte,
    instead_of,
    several,
    words_of_address,
)
from maskwright.constraints.vocabulary import packed_records

WORDS = 96
RECORDS = [
    tables.Counters, tables.NodeRecord, tables.StateRecord, tables.Closure, tables.Frame, tables.Ends, tables.End, tables.Uniform,
    tables.BodyClass, tables.Path, tables.Step, tables.Judging, tables.Unsettled, containment.Comparison, containment.Noted,
    packed_records.TrieNode, packed_records.Shape, mask_rows.Edit, mask_rows.Recipe,
]  # fmt: skip
words32 = st.integers(-(1 << 31), (1 << 31) - 1)
needs_numba = pytest.mark.skipif(LOOPS.is_compiled, reason="the loops are compiled already, so Numba is not told of records")


class Thing(Record, size=8):
    first: int
    flag: int = byte()
    other: int = byte()
    span: Words = several(3)
    low: int = bits(7)
    high: int = bits(25, above=7)
    last: int
    end: int = instead_of("last")


class Things(View):
    head: Thing
    things: Records[int, Thing]
    tail: Words
    tail_size: int
    num_things: int


things_at: Callable[[int], Things] = view(
    Things,
    {"head": Word(0), "things": Word(1), "tail": Word(2), "tail_size": Word(3, since=2), "num_things": Word(2, since=1, shift=3)},
)


def fresh() -> NDArray[np.int32]:
    memory = np.arange(WORDS, dtype=np.int32) * 1009 - 20_000
    memory[:4] = 8, 16, 48, 90
    return memory


def changed(things: Any, number: int, value: int, flag: int) -> int:
    """Writes and reads fields of all sorts."""
    one = things.things[number]
    one.first, one.last = value, one.first
    one.low, one.high = value, one.low + flag
    one.other = flag
    one.span[1] += things.head.last
    things.head.flag = one.other
    later = things.tail + number
    later[0] = later[1] ^ one.flag
    one.end += things.head.end
    return int(things.tail_size + 3 * things.num_things + 5 * one.other + later[0] + one.last + 7 * one.low + 11 * one.high)


@needs_numba
@given(st.integers(0, 3), words32, st.integers(-128, 127))
@settings(max_examples=60, deadline=None)
def test_compiled_code_reads_and_writes_as_python_does(number: int, value: int, flag: int) -> None:
    expected, memory = fresh(), fresh()
    result = changed(Things(Words(expected)), number, value, flag)
    assert compiled_change(int(memory.ctypes.data), number, value, flag) == result
    assert memory.tolist() == expected.tolist()


if not LOOPS.is_compiled:
    import numba as nb

    _changed = nb.njit(changed)

    @nb.njit
    def compiled_change(address: int, number: int, value: int, flag: int) -> int:
        return _changed(things_at(address), number, value, flag)  # type: ignore[no-any-return]


@needs_numba
@pytest.mark.parametrize("name", ["firs", "span_size"])
def test_a_field_that_does_not_exist_is_refused(name: str) -> None:
    scope: dict[str, Any] = {"things_at": things_at}
    exec(f"def read(address):\n    return things_at(address).head.{name}", scope)
    with pytest.raises(TypingError, match=name):
        nb.njit(scope["read"])(int(fresh().ctypes.data))
    with pytest.raises(AttributeError, match=name):
        getattr(Things(Words(fresh())).head, name)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_has_its_own_bits(record: type[Record]) -> None:
    taken: set[int] = set()
    for name, place in record.PLACES.items():
        if place.instead_of:
            assert replace(place, instead_of="") == record.PLACES[place.instead_of]
            continue
        first = 8 * place.at + place.shift
        own = set(range(first, first + (place.num_bits or (8 if place.is_byte else 32 * (place.num_words or 1)))))
        assert not own & taken, name
        taken |= own
    assert max(taken) < 32 * record.SIZE


def test_nodes_and_states_are_lines_of_the_cache() -> None:
    assert tables.NodeRecord.SIZE == tables.StateRecord.SIZE == 16


def test_columns_are_the_fields_of_all_records() -> None:
    memory = np.arange(64, dtype=np.int32)
    for name in ("cost", "accept", "ends"):
        column = tables.column(memory, tables.StateRecord, name)
        column[:] = [3, -1, 5, 7]
        found = [getattr(tables.StateRecord(Words(memory, 16 * k)), name) for k in range(4)]
        assert found == [3, -1, 5, 7]


def test_a_record_says_its_fields() -> None:
    assert str(Thing(Words(np.array([1, 0xFF02, 0, 0, 0, -127, 9, 0], np.int32)))) == (
        "Thing(first=1, flag=2, other=-1, low=1, high=33554431, last=9)"
    )


def test_words_at_an_address_are_those_of_the_array() -> None:
    memory = fresh()
    words = words_of_address(int(memory.ctypes.data))
    words[5] = -7
    assert memory[5] == -7 and (words + 2)[3] == -7

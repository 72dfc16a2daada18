"""The set of bytes that begin only characters of a class, against the characters themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.base.utf8 import MAX_CODE_POINT, Ranges, normalize
from maskwright.constraints.vocabulary.packed_vocabulary import FIRST_LEAD, first_bytes

EDGES = [0, 0x22, 0x7F, 0x80, 0xBF, 0xC0, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, MAX_CODE_POINT]
code_points = st.sampled_from(EDGES) | st.integers(0, MAX_CODE_POINT)
classes = st.lists(st.tuples(code_points, code_points).map(sorted).map(tuple), max_size=4).map(normalize)


def characters_of(lead: int) -> tuple[int, int]:
    """The first and the last character that begin with a byte."""
    if lead < 0x80:
        return lead, lead
    if lead < 0xE0:
        return (lead & 0x1F) << 6, (lead & 0x1F) << 6 | 0x3F
    if lead < 0xF0:
        return max((lead & 0x0F) << 12, 0x800), (lead & 0x0F) << 12 | 0xFFF
    return max((lead & 0x07) << 18, 0x10000), min((lead & 0x07) << 18 | 0x3FFFF, MAX_CODE_POINT)


def has_all(ranges: Ranges, low: int, high: int) -> bool:
    """Whether a class has all characters between two; there are no surrogates."""
    return all(any(a <= x and y <= b for a, b in ranges) for x, y in normalize([(low, high)]))


@given(classes)
def test_bytes_that_begin_only_characters_of_a_class(ranges: Ranges) -> None:
    words = first_bytes(ranges)
    for byte in range(256):
        position = byte if byte < 0x80 else byte - FIRST_LEAD + 0x80
        if 0x80 <= byte < FIRST_LEAD:
            continue
        begins = byte < 0x80 or 0xC2 <= byte < 0xF5
        assert bool(words[position >> 5] >> (position & 31) & 1) == (begins and has_all(ranges, *characters_of(byte))), byte

"""Array operations on byte strings, against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.vocabulary.byte_order import CHUNK, concatenated, cut_out, sorted_ids

few = st.sampled_from([b"\x00", b"\x01", b"a", b"\xff"])
strings = st.lists(few, max_size=3 * CHUNK).map(b"".join) | st.binary(max_size=4) | st.integers(0, 3 * CHUNK).map(lambda n: b"\x00" * n)


@given(st.lists(strings | st.none(), max_size=40), st.data())
def test_ids_are_sorted_as_python_sorts(given_strings: list[bytes | None], data: st.DataObject) -> None:
    offsets, joined = concatenated(given_strings)
    ids = data.draw(st.permutations(range(len(given_strings))))
    found = sorted_ids(np.array(ids, np.int32), offsets, joined).tolist()
    assert found == sorted(ids, key=lambda i: given_strings[i] or b"")  # equal ones as they were given


@given(st.lists(strings, max_size=20), st.data())
def test_parts_are_cut_out(given_strings: list[bytes], data: st.DataObject) -> None:
    offsets, joined = concatenated(given_strings)
    spans = [sorted(data.draw(st.tuples(st.integers(0, len(each)), st.integers(0, len(each))))) for each in given_strings]
    start = offsets[:-1] + np.array([first for first, _ in spans], np.int32)
    length = np.array([end - first for first, end in spans], np.int32)
    cut, parts = cut_out(joined, start, length)
    found = [parts[cut[i] : cut[i + 1]].tobytes() for i in range(len(given_strings))]
    assert found == [each[first:end] for each, (first, end) in zip(given_strings, spans, strict=True)]

"""What a file of requests may be: checked as a whole, with the lines that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.server.batches.lines import MOST_FAULTS, BatchFileError, Bounds, checked_ids, id_digest, read_lines

CHAT = "/v1/chat/completions"
BOUNDS = Bounds(line_bytes=500, num_lines=30)


def request(custom_id: Any = "a", **other: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": {"messages": []}} | other


def written(path: Path, *lines: Any) -> Path:
    texts = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"\n".join(texts))
    return path


def test_requests_are_read_as_they_stand(tmp_path: Path) -> None:
    path = written(tmp_path / "in", b"\xef\xbb\xbf" + json.dumps(request("a")).encode(), b"  ", request("é", url="/v1/messages"), b"")
    assert checked_ids(path, BOUNDS) == {id_digest("a"), id_digest("é")}
    assert [(line.number, line.custom_id, line.url, line.body) for line in read_lines(path, BOUNDS)] == [
        (1, "a", CHAT, {"messages": []}),
        (3, "é", "/v1/messages", {"messages": []}),
    ]


@pytest.mark.parametrize(
    ("line", "param", "said"),
    [
        (b"{", None, "no JSON|not JSON"),
        (b"\xff", None, "not UTF-8|not JSON"),
        (b"[" * 400, None, "not JSON"),
        (b"3", None, "no object"),
        (b"x" * 501, None, "longer than 500 bytes"),
        (request(7), "custom_id", "string of 1 to 512"),
        (request(""), "custom_id", "string of 1 to 512"),
        (request("first"), "custom_id", "comes twice"),
        (request(method="GET"), "method", "POST, not 'GET'"),
        (request(url="/v1/models"), "url", "/v1/completions"),
        (request(url=[]), "url", "not \\[\\]"),
        (request(body=[]), "body", "an object"),
        (request(body={"stream": True}), "body", "answers of a batch are whole"),
        (request(priority=1), "priority", "priority is unknown"),
    ],
)
def test_a_line_that_is_wrong_is_told_with_its_number(tmp_path: Path, line: Any, param: str | None, said: str) -> None:
    path = written(tmp_path / "in", request("first"), b"", line)
    with pytest.raises(BatchFileError, match=f"line 3: .*({said})") as caught:
        checked_ids(path, BOUNDS)
    assert [(fault.number, fault.param) for fault in caught.value.faults] == [(3, param)]


def test_many_faults_are_told_but_not_all(tmp_path: Path) -> None:
    with pytest.raises(BatchFileError, match="perhaps more") as caught:
        checked_ids(written(tmp_path / "in", *[b"{}"] * 25), BOUNDS)
    assert len(caught.value.faults) == MOST_FAULTS


def test_files_without_requests_and_with_too_many(tmp_path: Path) -> None:
    with pytest.raises(BatchFileError, match="no requests"):
        checked_ids(written(tmp_path / "in", b"", b" "), BOUNDS)
    with pytest.raises(BatchFileError, match="line 31: there are more than 30 requests"):
        checked_ids(written(tmp_path / "in", *(request(f"{number}") for number in range(40))), BOUNDS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
lines = st.one_of(
    st.binary(max_size=40),
    st.fixed_dictionaries({"custom_id": values, "url": values | st.just(CHAT), "body": values | st.just({})}).map(lambda each: json.dumps(each).encode()),
    st.text(max_size=3).map(lambda custom_id: json.dumps(request(custom_id)).encode()),
)


@given(st.lists(lines, max_size=8))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, given_lines: list[bytes]) -> None:
    path = written(tmp_path_factory.mktemp("batch") / "in", *given_lines)
    try:
        ids = checked_ids(path, BOUNDS)
    except BatchFileError as error:
        assert error.faults
    else:
        read = list(read_lines(path, BOUNDS))
        assert len(read) == len(ids) and ids == {id_digest(line.custom_id) for line in read}

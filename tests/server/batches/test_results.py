"""The file of answers: one line for each request, wherever the work was interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.server.batches.lines import BatchLine, id_digest
from maskwright.server.batches.results import results_in
from maskwright.server.batches.runner import Answer, as_record

IDS = ("a", "b", "ä", "d\ud800")
REQUESTED = {id_digest(each) for each in IDS}


def record(custom_id: str, status: int = 200) -> dict[str, object]:
    return as_record(BatchLine(1, custom_id, "/v1/completions", {}), Answer(status, "id", {"text": custom_id}))


def answered(path: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [(line["custom_id"], line["response"]["status_code"]) for line in lines]


@given(cut=st.integers(0, 900), first=st.permutations(IDS))
def test_cut_anywhere_each_request_has_one_answer_in_the_end(tmp_path_factory: pytest.TempPathFactory, cut: int, first: list[str]) -> None:
    path = tmp_path_factory.mktemp("results") / "out"
    with results_in(path, REQUESTED) as results:
        for custom_id in first:
            results.write(record(custom_id))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    num_whole = whole[:cut].count(b"\n")
    with results_in(path, REQUESTED) as results:
        assert results.answered == {id_digest(each) for each in first[:num_whole]}
        for custom_id in (each for each in IDS if id_digest(each) not in results.answered):
            results.write(record(custom_id))
    assert sorted(answered(path)) == sorted((each, 200) for each in IDS)
    assert path.read_bytes().startswith(whole[:cut][: whole[:cut].rfind(b"\n") + 1])


def test_failed_answers_are_kept_or_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with results_in(path, REQUESTED) as results:
        for custom_id, status in (("a", 500), ("b", 200), ("ä", 400)):
            results.write(record(custom_id, status))
    with results_in(path, REQUESTED) as results:
        assert (len(results.answered), results.num_failed) == (3, 2)
    with results_in(path, REQUESTED, retries_failed=True) as results:
        assert (results.answered, results.num_failed) == ({id_digest("b")}, 0)
        results.write(record("a"))
    assert answered(path) == [("b", 200), ("a", 200)] and list(tmp_path.iterdir()) == [path]


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with results_in(path, REQUESTED) as results:
        results.write(record("a", 500))
    with results_in(path, REQUESTED, retries_failed=True), pytest.raises(UsageError, match="another process"), results_in(path, REQUESTED):
        pass
    with results_in(path, REQUESTED):
        pass


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello\n", "line 1, is no answer"),
        (b'{"custom_id": 3, "response": null}\n', "line 1, is no answer"),
        (b'{"custom_id": "a", "response": 3}\n', "line 1, is no answer"),
        (json.dumps(record("z")).encode() + b"\n", "line 1, answers 'z', which the input does not ask"),
        (2 * (json.dumps(record("a")).encode() + b"\n"), "line 2, answers 'a' once more"),
    ],
)
def test_a_file_of_something_else_is_not_touched(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "out"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said), results_in(path, REQUESTED, retries_failed=True):
        pass
    assert path.read_bytes() == content

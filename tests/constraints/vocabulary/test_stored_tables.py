"""Tables out of a file are those that were made, and a file that is not what it should be is made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from maskwright.constraints import Compiler, JsonSchema, Vocabulary
from maskwright.constraints.vocabulary import shared_vocabulary, stored_tables
from maskwright.constraints.vocabulary.shared_vocabulary import JSON_CHARACTERS, SharedVocabulary
from maskwright.constraints.vocabulary.trie import TokenTrie

WORDS = ["the", " of", '"name"', '": "', '", "', "été", "日本", "\n\n", "{", "[[,", "ab" * 9, "0123", "tool", "],", '"a","b"']
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "array", "items": {"type": "integer"}}}}


def vocabulary(*more: bytes) -> Vocabulary:
    tokens = [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS), *more, None, None]
    return Vocabulary(tokens, eos_token_ids=[len(tokens) - 1], special_tokens={"<tool>": len(tokens) - 2})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(stored_tables.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(stored_tables, "SMALLEST", 1)
    return tmp_path / "kept"


def refuse_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(vocabulary: Vocabulary) -> TokenTrie:
        raise AssertionError("the tables are made again")

    monkeypatch.setattr(TokenTrie, "build", build)


def assert_same(one: SharedVocabulary, other: SharedVocabulary) -> None:
    for field in fields(TokenTrie):
        assert np.array_equal(getattr(one.trie, field.name), getattr(other.trie, field.name)), field.name
    assert np.array_equal(one.packed_vocabulary.used, other.packed_vocabulary.used)
    assert one._offsets == other._offsets and one._bodies.keys() == other._bodies.keys()
    for ranges, body in one._bodies.items():
        for field in fields(body):
            mine, yours = getattr(body, field.name), getattr(other._bodies[ranges], field.name)
            if field.name == "residual":
                assert all(np.array_equal(getattr(mine, part.name), getattr(yours, part.name)) for part in fields(mine))
            else:
                assert np.array_equal(mine, yours), field.name


def masks(compiler: Compiler) -> list[list[int]]:
    """Of a walk through a schema."""
    constraint = compiler.compile(JsonSchema(SCHEMA))
    state, found = constraint.start(), []
    for byte in b'{"a":"xyz","b":[1,2]}':
        found.append(constraint.mask(state).tolist())
        state = constraint.advance(state, byte)
        assert state is not None
    return found


def test_tables_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SharedVocabulary(vocabulary())
    assert len(list(folder.iterdir())) == 1
    expected = masks(Compiler(vocabulary()))
    refuse_to_build(monkeypatch)
    read = SharedVocabulary(vocabulary())
    assert_same(made, read)
    assert masks(Compiler(vocabulary())) == expected
    with pytest.raises(AssertionError, match="again"):
        SharedVocabulary(vocabulary(b"another"))


def test_what_is_appended_stays_in_the_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SharedVocabulary(vocabulary())
    (path,) = folder.iterdir()
    before = path.read_bytes()
    monkeypatch.setattr(shared_vocabulary, "_WALKS_BEFORE_TABLES", 0)
    first, second = SharedVocabulary(vocabulary()), SharedVocabulary(vocabulary())
    letters = ((97, 122),)
    first.tables_wanted(letters)
    first.wait_for_tables()
    assert first.tables(letters) != 0 and second.tables(letters) == 0
    assert first.packed_vocabulary.nbytes > second.packed_vocabulary.nbytes
    assert path.read_bytes() == before
    made = SharedVocabulary(vocabulary())
    made.tables_wanted(letters)
    made.wait_for_tables()
    assert made.tables_wanted(letters) == first.tables(letters)
    assert_same(made, first)
    assert first.tables(JSON_CHARACTERS) == second.tables(JSON_CHARACTERS) != 0


def test_arrays_are_read_only_but_for_the_packed_vocabulary(folder: Path) -> None:
    SharedVocabulary(vocabulary())
    trie = SharedVocabulary(vocabulary()).trie
    for field in fields(trie):
        value = getattr(trie, field.name)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable, field.name


def _flipped(share: float) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        end = len(bytes(data).rstrip(b"\0"))
        data[int(share * (end - 1))] ^= 1
        path.write_bytes(data)

    return change


CHANGES: dict[str, Callable[[Path], object]] = {
    **{f"a bit at {share:.2f}": _flipped(share) for share in (0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)},
    "empty": lambda path: path.write_bytes(b""),
    "cut in the header": lambda path: os.truncate(path, 100),
    "cut in an array": lambda path: os.truncate(path, 9000),
    "something else": lambda path: path.write_bytes(b"\x7fELF" + bytes(10_000)),
    "only the beginning": lambda path: path.write_bytes(stored_tables._MAGIC),
    "a huge header": lambda path: path.write_bytes(stored_tables._MAGIC + bytes(32) + b"\xff" * 8 + bytes(100)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_file_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    made = SharedVocabulary(vocabulary())
    (path,) = folder.iterdir()
    other = path.with_suffix(".other")
    shutil.copy(path, other)
    CHANGES[change](other)
    other.replace(path)  # what a process has mapped stays as it is
    assert stored_tables.read(path, vocabulary()) is None
    assert_same(made, SharedVocabulary(vocabulary()))
    refuse_to_build(monkeypatch)
    assert_same(made, SharedVocabulary(vocabulary()))


def test_a_foreign_file_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SharedVocabulary(vocabulary())
    (path,) = folder.iterdir()
    assert stored_tables.read(path, vocabulary()) is not None
    assert stored_tables.read(path, vocabulary(b"another")) is None, "of another vocabulary"
    assert stored_tables.read(folder, vocabulary()) is None, "a folder"
    with monkeypatch.context() as changed:
        changed.setattr(stored_tables.LOOPS, "stamp", "0" * 64)
        assert stored_tables.read(path, vocabulary()) is None, "by other sources"
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(path).st_uid + 1)
    assert stored_tables.read(path, vocabulary()) is None, "of another user"


def test_where_nothing_can_be_kept_tables_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_tables, "SMALLEST", 1)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(stored_tables.VARIABLE, str(tmp_path / "file" / "below"))
    assert SharedVocabulary(vocabulary()).trie.num_nodes > 256
    monkeypatch.setenv(stored_tables.VARIABLE, "never")
    assert SharedVocabulary(vocabulary()).trie.num_nodes > 256
    assert os.listdir(tmp_path) == ["file"]


def test_small_vocabularies_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(stored_tables.VARIABLE, str(tmp_path))
    SharedVocabulary(vocabulary())
    assert os.listdir(tmp_path) == []


def test_the_folder_is_that_of_the_environment() -> None:
    assert stored_tables.folder({stored_tables.VARIABLE: "/a"}) == Path("/a")
    assert stored_tables.folder({stored_tables.VARIABLE: "never", "HOME": "/h"}) is None
    assert stored_tables.folder({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/maskwright/vocabularies")
    assert stored_tables.folder({"HOME": "/h"}) == Path("/h/.cache/maskwright/vocabularies")
    assert stored_tables.folder({}) is None


def test_writers_do_not_disturb_each_other(folder: Path) -> None:
    made: list[SharedVocabulary] = []
    threads = [Thread(target=lambda: made.append(SharedVocabulary(vocabulary()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and len(list(folder.iterdir())) == 1
    for one in made:
        assert_same(one, SharedVocabulary(vocabulary()))


def test_files_that_are_not_needed_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_tables, "_MOST_FILES", 3)
    SharedVocabulary(vocabulary())
    (first,) = folder.iterdir()
    stale = first.with_name(f"{first.name.split('-')[0]}-{'0' * 16}.tables")
    first.rename(stale)
    os.utime(stale, (1, 1))
    SharedVocabulary(vocabulary())
    assert list(folder.iterdir()) == [first], "by other sources"
    os.utime(first, (1, 1))
    for number in range(3):
        SharedVocabulary(vocabulary(b"more %d" % number))
    assert len(list(folder.iterdir())) == 3 and not first.exists()

"""A library of loops is used where it was made of these very sources, and is whole."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from maskwright.foundation.compiled_loops import library


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """What passes for a library until it is loaded, and its manifest."""
    path = tmp_path / library.file_name()
    path.write_bytes(b"machine code" * 1000)
    library.write_manifest(path, {"constraints": "1234", "kernels": "5678"})
    return path


def test_a_library_that_is_whole_is_taken_for_what_it_was_made_of(made: Path) -> None:
    assert library.is_made_of(made, "constraints", "1234")
    assert library.is_made_of(made, "kernels", "5678")
    assert not library.is_made_of(made, "kernels", "1234"), "its sources were edited"
    assert not library.is_made_of(made, "another", "1234")


CHANGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda made: made.write_bytes(made.read_bytes()[:-1]),
    "empty": lambda made: made.write_bytes(b""),
    "one byte": lambda made: made.write_bytes(made.read_bytes().replace(b"m", b"n", 1)),
    "gone": lambda made: made.unlink(),
    "no manifest": lambda made: manifest_of(made).unlink(),
    "manifest cut": lambda made: manifest_of(made).write_text(manifest_of(made).read_text()[:-1]),
    "manifest of something else": lambda made: manifest_of(made).write_text("[]"),
    "no stamps": lambda made: manifest_of(made).write_text(json.dumps({"digest": hashlib.sha256(made.read_bytes()).hexdigest()})),
    "no digest": lambda made: manifest_of(made).write_text(json.dumps({"stamps": {"constraints": "1234"}})),
}


def manifest_of(made: Path) -> Path:
    return made.with_name("entry_points.json")


@pytest.mark.parametrize("change", CHANGES)
def test_a_library_that_is_not_whole_is_left_alone(made: Path, change: str) -> None:
    CHANGES[change](made)
    assert not library.is_made_of(made, "constraints", "1234")


def test_a_library_of_another_system_is_left_alone(made: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(library, "candidates", lambda: [made])
    with caplog.at_level(logging.WARNING):
        assert library.opened("constraints", "1234") is None
    assert "cannot be loaded" in caplog.text


def test_never_leaves_a_library_alone(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "candidates", lambda: [made])
    monkeypatch.setattr(library, "_loaded", lambda path: path)
    monkeypatch.delenv("MASKWRIGHT_NATIVE", raising=False)
    assert library.opened("constraints", "1234") == made
    monkeypatch.setenv("MASKWRIGHT_NATIVE", "never")
    assert library.opened("constraints", "1234") is None


@pytest.mark.parametrize("part", library.PARTS)
def test_every_source_counts(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = library.sources(part)
    assert len(sources) > 3
    assert {path.match(pattern) for pattern in library.PARTS[part] for path in sources if path.match(pattern)} == {True}
    monkeypatch.setattr(library, "ROOT", tmp_path)
    for pattern in library.PARTS[part]:
        path = tmp_path / pattern.replace("*", "one")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before\n")
    stamps = [library.stamp(part)]
    for path in library.sources(part):
        path.write_text("after\n")
        stamps.append(library.stamp(part))
    assert len(set(stamps)) == len(library.PARTS[part]) + 1

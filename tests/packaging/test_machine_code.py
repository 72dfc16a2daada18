"""Compiled modules of an editable installation are used as long as no source has changed."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path

import pytest

from maskwright.constraints.machine_code import SHARED, Finder, compiled_files

SOURCES = {"one": "value = 1\n", "inner/two": "value = 2\n"}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Sources, and what was compiled of them; here that is more Python."""
    sources, compiled = tmp_path / "sources", tmp_path / "compiled"
    for name, text in SOURCES.items():
        for file in (sources / f"{name}.py", compiled / "package" / f"{name}.code.py"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    (compiled / f"{SHARED}.code.py").touch()
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in SOURCES.items()}
    (compiled / "manifest.json").write_text(json.dumps({"suffix": ".code.py", "sources": digests}))
    return sources, compiled


def test_compiled_modules_are_found_by_their_full_names(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    sources, compiled = folders
    files = compiled_files(compiled, sources, "package")
    assert files == {
        "package.one": compiled / "package" / "one.code.py", "package.inner.two": compiled / "package" / "inner" / "two.code.py",
        SHARED: compiled / f"{SHARED}.code.py",
    }  # fmt: skip
    finder = Finder({"a_module_of_no_package": files["package.one"]})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert importlib.import_module("a_module_of_no_package").value == 1
    del sys.modules["a_module_of_no_package"]
    assert finder.find_spec("json", None) is None


@pytest.mark.parametrize("what", ["edited", "source gone", "file gone", "shared gone", "no manifest", "manifest cut", "manifest of something else"])
def test_nothing_is_used_when_something_changed(folders: tuple[Path, Path], what: str) -> None:
    sources, compiled = folders
    manifest = compiled / "manifest.json"
    change = {
        "edited": lambda: (sources / "one.py").write_text("value = 3\n"),
        "source gone": (sources / "one.py").unlink,
        "file gone": (compiled / "package" / "one.code.py").unlink,
        "shared gone": (compiled / f"{SHARED}.code.py").unlink,
        "no manifest": manifest.unlink,
        "manifest cut": lambda: manifest.write_text(manifest.read_text()[:-1]),
        "manifest of something else": lambda: manifest.write_text("[]"),
    }[what]
    change()
    assert compiled_files(compiled, sources, "package") == {}
